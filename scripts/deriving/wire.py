"""Writes the code that converts a type to JSON, and JSON to the type."""

import re
from typing import NamedTuple, Optional

from deriving.declarations import Field, Unreadable, is_optional, wrapped_type
from deriving.lines import COLUMNS_MAX, INDENT, assigned, depth_of, filled, wrapped


class Member(NamedTuple):
    """A member of the JSON object of a type."""
    key: str
    # Its path in the value: `counters.seq`.
    path: str
    type: str
    default: Optional[str]
    may_be_absent: bool
    # Whether its default is left out.
    is_left_out: bool
    # The field that contains it, if that field is inline.
    inlined_in: Optional[Field]
    name: str
    # The type that reads it, as its `value`, if that isn't its own.
    read_as: Optional[str] = None


def members_of(asked, type=None, inlined_in=None):
    """The members of the object, in their order on the wire."""
    members, last = [], []
    for field in (type or asked.type).fields:
        key, default, is_inline, may_be_absent, is_left_out, ending, read_as = field.name, field.default, False, False, False, None, None
        for option in field.options:
            if named := re.fullmatch(r'"(\w+)"', option):
                key = named[1]
            elif option in ("inline", "inline everywhere"):
                is_inline = True
            elif option == "may be absent":
                may_be_absent = True
            elif option == "default is absent":
                may_be_absent, is_left_out = True, True
            elif said := re.fullmatch(r"absent is (\S+)", option):
                may_be_absent, default = True, said[1]
            elif said := re.fullmatch(r"(\w+) last", option):
                ending = said[1]
            elif said := re.fullmatch(r"read as (\S+)", option):
                read_as = said[1]
            else:
                raise Unreadable(f'unknown option “{option}” of {field.name}; known: "name", inline, inline with “name last”, may be absent, absent is value, default is absent, read as Type')
        if may_be_absent and (default is None or default == "nil"):
            raise Unreadable(f"{field.name} may be absent but has no default")
        if not is_inline:
            path = f"{inlined_in.name}.{field.name}" if inlined_in else field.name
            members.append(Member(key, path, field.type, default, may_be_absent, is_left_out, inlined_in, field.name, read_as))
            continue
        inner = asked.known(field.type)
        if inner is None or inlined_in:
            raise Unreadable(f"{field.name} can't be inline: {field.type} is " + ("inline itself" if inner else "declared nowhere"))
        for member in members_of(asked, inner, field):
            (last if member.name == ending else members).append(member)
        if ending and not any(member.name == ending for member in last):
            raise Unreadable(f"{field.type} has no {ending}")
    return members + last


def writes_null(asked, member):
    if unknown := set(asked.type.options) - {"nil is null"}:
        raise Unreadable(f"unknown option “{unknown.pop()}” of {asked.type.name}; known: nil is null")
    return "nil is null" in asked.type.options and is_optional(member.type)


def write_write(asked):
    """
    >>> text = '''struct A {  // wire: nil is null
    ...     var a: Int?
    ...     var b: B  // wire: inline, d last
    ...     var e: Int = 1  // wire: "f", may be absent
    ...     var g: Int = 1  // wire: absent is 0
    ...     var h: Int = 1  // wire: default is absent
    ... }
    ... struct B { var c: Int; var d: Int? }
    ... extension A {
    ...     // derived: write(to:)
    ...     // derived: CodingKeys
    ...     // derived: encode(to:)
    ...     // derived: init(from:)
    ... }'''
    >>> print(in_one_file(text).partition("extension A {\\n")[2])
        // derived: write(to:)
        public func write(to json: inout JSONBytes) {
            json.beginObject()
            json.memberOrNull("a", a)
            json.member("c", b.c)
            json.member("f", e)
            json.member("g", g)
            if h != 1 { json.member("h", h) }
            json.memberOrNull("d", b.d)
            json.endObject()
        }
        // derived: CodingKeys
        private enum CodingKeys: String, CodingKey {
            case a, c
            case e = "f"
            case g, h, d
        }
        // derived: encode(to:)
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(a, forKey: .a)
            try container.encode(b.c, forKey: .c)
            try container.encode(e, forKey: .e)
            try container.encode(g, forKey: .g)
            if h != 1 { try container.encode(h, forKey: .h) }
            try container.encode(b.d, forKey: .d)
        }
        // derived: init(from:)
        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            a = try container.decodeIfPresent(Int.self, forKey: .a)
            let c = try container.decode(Int.self, forKey: .c)
            e = try container.decodeIfPresent(Int.self, forKey: .e) ?? 1
            g = try container.decodeIfPresent(Int.self, forKey: .g) ?? 0
            h = try container.decodeIfPresent(Int.self, forKey: .h) ?? 1
            let d = try container.decodeIfPresent(Int.self, forKey: .d)
            b = B(c: c, d: d)
        }
    }

    >>> print(in_one_file(text.replace("derived: write(to:)", "derived: init(plainly:)")).partition("extension A {\\n")[2].partition("    // derived: Cod")[0])
        // derived: init(plainly:)
        package init?(plainly json: inout PlainJSON) {
            var (a, c, e, g, h, d): (Int?, Int?, Int?, Int?, Int?, Int?)
            let isPlain = json.members { key, json in
                switch key {
                case "a": json.read(into: &a)
                case "c": json.read(into: &c)
                case "f": json.read(into: &e)
                case "g": json.read(into: &g)
                case "h": json.read(into: &h)
                case "d": json.read(into: &d)
                default: json.pass() != nil
                }
            }
            guard isPlain, let c else { return nil }
            let b = B(c: c, d: d)
            self.init(a: a, b: b, e: e ?? 1, g: g ?? 0, h: h ?? 1)
        }
    <BLANKLINE>
    """
    return [
        "public func write(to json: inout JSONBytes) {",
        INDENT + "json.beginObject()",
        *(INDENT + line for line in member_lines(asked)),
        INDENT + "json.endObject()",
        "}",
    ]


def write_members(asked):
    return [
        "public func writeMembers(to json: inout JSONBytes) {",
        *(INDENT + line for line in member_lines(asked)),
        "}",
    ]


def member_lines(asked):
    return [
        unless_default(member, f'json.{"memberOrNull" if writes_null(asked, member) else "member"}("{member.key}", {member.path})')
        for member in members_of(asked)
    ]


def unless_default(member, line):
    if not member.is_left_out:
        return line
    condition = member.path if member.default == "false" else f"{member.path} != {member.default}"
    return f"if {condition} {{ {line} }}"


def write_keys(asked):
    lines, plain = [], []
    for member in members_of(asked):
        if member.key == member.name:
            plain.append(member.name)
            continue
        lines += cases(plain) + [f'case {member.name} = "{member.key}"']
        plain = []
    lines += cases(plain)
    return ["private enum CodingKeys: String, CodingKey {", *(INDENT + line for line in lines), "}"]


def cases(names):
    """
    >>> cases(["a", "b"]), cases([])
    (['case a, b'], [])
    """
    return ["case " + line.removesuffix(",") for line in wrapped(names, COLUMNS_MAX - 3 * len(INDENT))] if names else []


def write_encode(asked):
    lines = [
        unless_default(
            member,
            f"try container.encode{'IfPresent' * (is_optional(member.type) and not writes_null(asked, member))}"
            f"({member.path}, forKey: .{member.name})")
        for member in members_of(asked)
    ]
    return [
        "public func encode(to encoder: any Encoder) throws {",
        INDENT + "var container = encoder.container(keyedBy: CodingKeys.self)",
        *(INDENT + line for line in lines),
        "}",
    ]


def write_decode(asked):
    r"""
    >>> text = '''struct A: Codable {
    ...     var b: [B]  // wire: read as C<B>
    ...     var d: D?  // wire: read as E
    ...     var f: F = .g  // wire: may be absent, read as H
    ...     // derived: init(from:)
    ... }'''
    >>> print(in_one_file(text).partition("CodingKeys.self)\n")[2])
            b = try container.decode(C<B>.self, forKey: .b).value
            d = try container.decodeIfPresent(E.self, forKey: .d)?.value
            f = try container.decodeIfPresent(H.self, forKey: .f)?.value ?? .g
        }
    }
    """
    lines, inlined = [], {}
    for member in members_of(asked):
        value = (
            f"try container.decode{'IfPresent' * (is_optional(member.type) or member.may_be_absent)}"
            f"({member.read_as or wrapped_type(member.type)}.self, forKey: .{member.name})"
        )
        if member.read_as:
            value += "?.value" if is_optional(member.type) or member.may_be_absent else ".value"
        value += f" ?? {member.default}" if member.may_be_absent else ""
        if member.inlined_in:
            inlined.setdefault(member.inlined_in, []).append(member.name)
        lines += assigned(f"{'let ' * bool(member.inlined_in)}{member.name} =", value, depth_of(asked.type) + len(INDENT))
    for field, names in inlined.items():
        # In the order of its own initialiser, independent of the wire's.
        ordered = [inner.name for inner in asked.known(field.type).fields if inner.name in names]
        lines += filled(f"{field.name} = {field.type}(", [f"{name}: {name}" for name in ordered], ")", depth_of(asked.type) + len(INDENT))
    return [
        "public init(from decoder: any Decoder) throws {",
        INDENT + "let container = try decoder.container(keyedBy: CodingKeys.self)",
        *(INDENT + line for line in lines),
        "}",
    ]


def write_plain_reading(asked):
    if asked.said not in ("", "refusing others"):
        raise Unreadable(f"of init(plainly:) is said “{asked.said}”; known: refusing others")
    depth = depth_of(asked.type) + len(INDENT)
    members = members_of(asked)
    for member in members:
        if member.read_as:
            raise Unreadable(f"{member.name} is read as {member.read_as}, which init(plainly:) can't")
    needed = [f"let {member.name}" for member in members if not is_optional(member.type) and not member.may_be_absent]
    given, inlined = {}, {}
    for member in members:
        value = f"{member.name} ?? {member.default}" if member.may_be_absent else member.name
        (inlined.setdefault(member.inlined_in.name, {}) if member.inlined_in else given)[member.name] = value
    # In the order of each one's own initialiser, independent of the wire's.
    lines, values = [], []
    for field in asked.type.fields:
        if field.name not in inlined:
            values.append(f"{field.name}: {given[field.name]}")
            continue
        inner = [each.name for each in asked.known(field.type).fields if each.name in inlined[field.name]]
        lines += filled(
            f"let {field.name} = {field.type}(", [f"{name}: {inlined[field.name][name]}" for name in inner], ")", depth)
        values.append(f"{field.name}: {field.name}")
    return [
        "package init?(plainly json: inout PlainJSON) {",
        *(INDENT + line for line in declared_places(members, depth)),
        INDENT + "let isPlain = json.members { key, json in",
        2 * INDENT + "switch key {",
        *(2 * INDENT + f'case "{member.key}": json.read(into: &{member.name})' for member in members),
        2 * INDENT + ("default: false" if asked.said else "default: json.pass() != nil"),
        2 * INDENT + "}",
        INDENT + "}",
        *(INDENT + line for line in guarded(["isPlain"] + needed, depth)),
        *(INDENT + line for line in lines + filled("self.init(", values, ")", depth)),
        "}",
    ]


def declared_places(members, depth):
    """Variables for the values read, as many per line as fit."""
    def declared(group):
        types = [wrapped_type(member.type) + "?" for member in group]
        if len(group) == 1:
            return f"var {group[0].name}: {types[0]}"
        return f"var ({', '.join(member.name for member in group)}): ({', '.join(types)})"

    groups = []
    for member in members:
        if groups and depth + len(declared(groups[-1] + [member])) <= COLUMNS_MAX:
            groups[-1].append(member)
        else:
            groups.append([member])
    return [declared(group) for group in groups]


def guarded(conditions, depth):
    line = f"guard {', '.join(conditions)} else {{ return nil }}"
    if depth + len(line) <= COLUMNS_MAX:
        return [line]
    first, *rest = wrapped(conditions, COLUMNS_MAX - depth - len("guard "))
    return ["guard " + first, *(INDENT + each for each in rest), "else { return nil }"]
