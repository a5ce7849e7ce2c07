"""Parses the needed subset of Swift: types, their fields, and the comments after them."""

import re
from typing import NamedTuple, Optional


class Field(NamedTuple):
    name: str
    # None if Swift infers it.
    type: Optional[str]
    # An expression; None if callers have to pass a value.
    default: Optional[str]
    # Its options after `wire:`.
    options: tuple
    line: int

    @property
    def is_inline(self):
        return "inline everywhere" in self.options


class Type(NamedTuple):
    # With the names of the enclosing types: `AuthenticateFrame.Credentials`.
    name: str
    # struct, class, actor, enum, extension or protocol.
    kind: str
    # public, package, or empty.
    access: str
    fields: list
    options: tuple
    path: str
    line: int
    # The beginning and end of its body in the text.
    start: int
    end: int
    # The names of its static constants of the type itself.
    constants: tuple = ()


class Unreadable(Exception):
    """A file contains something that this script can't parse. The text says where, and what."""


TOKEN = re.compile(r'(?P<line>//[^\n]*)|(?P<block>/\*)|(?P<string>#*"(?:"")?)')


def code_of(text):
    r"""The text with comments and the contents of strings blanked. Every character keeps its place.

    >>> code_of('a("}", b) // {\n/* { /* } */ */ c')
    'a(" ", b)     \n                c'
    >>> code_of(r'f(#"\"#, "\(g("}"))", "\"", "")').replace(" ", "")
    'f("","","","")'
    >>> code_of('x(\"\"\"\n    "{"\n    \"\"\")')
    'x("  \n       \n      ")'
    """
    parts, index = [], 0
    while match := TOKEN.search(text, index):
        end = end_of_token(text, match)
        blank = re.sub(r"[^\n]", " ", text[match.start():end])
        parts += [text[index:match.start()], f'"{blank[1:-1]}"' if match["string"] else blank]
        index = end
    return "".join(parts) + text[index:]


def end_of_token(text, match):
    """The end of the comment or string that begins with the match."""
    if match["line"]:
        return match.end()
    if match["block"]:
        depth = 1
        for mark in re.finditer(r"/\*|\*/", text[match.end():]):
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                return match.end() + mark.end()
        return len(text)
    hashes, quotes = re.fullmatch(r'(#*)("+)', match["string"]).groups()
    # The two quotation marks of an empty string are adjacent.
    if quotes == '"' and text.startswith('"' + hashes, match.end()) and not text.startswith('""', match.end()):
        return match.end() + 1 + len(hashes)
    index = match.end()
    while index < len(text):
        if text.startswith(quotes + hashes, index):
            return index + len(quotes + hashes)
        # A single-line string without an end on its line isn't a string: it is a quotation mark in a regular expression.
        if text[index] == "\n" and quotes == '"':
            return index
        if text.startswith("\\" + hashes, index):
            index += 1 + len(hashes)
            index = end_of_interpolation(text, index) if text[index:index + 1] == "(" else index + 1
        else:
            index += 1
    return len(text)


def end_of_interpolation(text, index):
    depth = 0
    while index < len(text):
        if match := TOKEN.match(text, index):
            index = end_of_token(text, match)
            continue
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        index += 1
        if depth == 0:
            break
    return index


def end_of_brackets(code, index):
    """The end of the brackets whose first one is at the index."""
    depth = 0
    for end in range(index, len(code)):
        depth += 1 if code[end] in "([{" else -1 if code[end] in ")]}" else 0
        if depth == 0:
            return end + 1
    return len(code)


MODIFIERS = r"(?:@\w+(?:\([^)\n]*\))?\s+|(?:\w+\(set\)|public|package|internal|private|fileprivate|static|final|indirect|lazy|weak|nonisolated|mutating)\s+)*"

DECLARED = re.compile(
    rf"(?:^|(?<=[{{;]))[ \t]*(?P<modifiers>{MODIFIERS})(?P<kind>struct|class|actor|enum|extension|protocol)\s+(?P<name>(?!func\b|var\b)\w+(?:\.\w+)*)",
    re.MULTILINE)


def types_in(text, path, code=None):
    """
    >>> text = '''public struct A: Codable {  // wire: nil is null
    ...     struct B { let b, c: Int }
    ...     public var b: B?
    ... }
    ... extension A.B { var d: Int { 1 } }'''
    >>> [(type.name, type.kind, type.access, type.options, [field.name for field in type.fields]) for type in types_in(text, "A.swift")]
    [('A', 'struct', 'public', ('nil is null',), ['b']), ('A.B', 'struct', '', (), ['b', 'c']), ('A.B', 'extension', '', (), [])]
    """
    code = code if code is not None else code_of(text)
    found = []
    for match in DECLARED.finditer(code):
        start = match.end()
        while start < len(code) and code[start] != "{":
            start = end_of_brackets(code, start) if code[start] in "([" else start + 1
        end = end_of_brackets(code, start)
        around = [type for type in found if type.start < match.start() < type.end]
        name = ".".join([type.name for type in around[-1:]] + [match["name"]])
        access = re.search(r"\b(public|package)\s", match["modifiers"])
        fields = fields_in(text, code, start + 1, end - 1, path) if match["kind"] in ("struct", "class", "actor") else []
        found.append(Type(
            name, match["kind"], access[1] if access else "", fields, options_behind(text, start + 1), path,
            line_of(text, match.start("kind")), start, end, constants_in(code[start:end], name)))
    return found


def constants_in(code, name):
    """
    >>> constants_in("static let a = A(1)\\n    public static let b = A()\\nstatic let c = 1", "A")
    ('a', 'b')
    """
    return tuple(re.findall(rf"^[ \t]*(?:public |package |private )?static let (\w+) = {re.escape(name)}\(", code, re.MULTILINE))


def line_of(text, index):
    return text.count("\n", 0, index) + 1


def options_behind(text, index):
    """The options of a comment `// wire: …` or `// inline` between the index and the end of the line."""
    said = re.compile(r"[^\n]*?//\s*(?:wire:\s*(?P<wire>[^\n]+)|inline\s*(?:\n|$))").match(text, index)
    if said is None:
        return ()
    return tuple(part.strip() for part in said["wire"].split(",")) if said["wire"] else ("inline everywhere",)


PROPERTY = re.compile(rf"(?:^|(?<=[{{;]))[ \t]*(?P<modifiers>{MODIFIERS})(?P<kind>let|var)\s+(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?=[:=])", re.MULTILINE)


def fields_in(text, code, start, end, path):
    r"""The stored properties of a body, in their order.

    >>> def fields(text): return [(field.name, field.type, field.default) for field in fields_in(text, code_of(text), 0, len(text), "A.swift")]
    >>> fields('public let a: Int\n/// One.\nvar b: [String: Int]? // c\nprivate(set) var d: Int = 3 { didSet { e() } }')
    [('a', 'Int', None), ('b', '[String: Int]?', 'nil'), ('d', 'Int', '3')]
    >>> fields('let a: Int?\nvar c: Optional<Int>; let d: Int = 3\nstatic var e = 1\nvar f: Int { 1 }\nfunc g() { let h: Int = 1 }')
    [('a', 'Int?', None), ('c', 'Optional<Int>', None)]
    >>> fields('var a: (Int) -> Void = { _ in b() }\nlet c, d: Bool\nvar e: String = "}"')
    [('a', '(Int) -> Void', '{ _ in b() }'), ('c', 'Bool', None), ('d', 'Bool', None), ('e', 'String', '"}"')]
    >>> fields('var a = 1')
    [('a', None, '1')]
    >>> fields('var a: Int, b: Int')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:1: several fields with their own types; put each on its own line
    """
    fields, index = [], start
    while index < end:
        match = PROPERTY.search(code, index, end)
        brace = code.find("{", index, match.start("kind") if match else end)
        # Code in braces belongs to something else.
        if brace >= 0 and brace >= start:
            index = end_of_brackets(code, brace)
            continue
        if not match:
            break
        index = end_of_property(code, match.end(), end)
        if re.search(r"\b(static|lazy)\s", match["modifiers"]):
            continue
        names = re.split(r"\s*,\s*", match["names"])
        line = line_of(text, match.start("kind"))
        declared, default, body = parts_of_property(text, code, match.end(), index)
        if body is not None and default is None and not re.match(r"\{\s*(didSet|willSet)\b", body):
            continue
        if match["kind"] == "let" and default is not None:
            continue
        if re.search(r",\s*\w+\s*:", re.sub(r"[\[(].*[\])]", "", declared or "")):
            raise Unreadable(f"{path}:{line}: several fields with their own types; put each on its own line")
        if default is None and match["kind"] == "var" and (declared or "").endswith("?"):
            default = "nil"
        options = options_behind(text, text.rfind("\n", 0, index) + 1)
        fields += [Field(name, declared, default, options, line) for name in names]
    return fields


def end_of_property(code, index, end):
    """The end of the declaration: that of its line, unless brackets are open there or something has to follow."""
    last = ""
    while index < end:
        if code[index] in "([{":
            index = end_of_brackets(code, index)
            last = "}"
            continue
        if code[index] == ";" or code[index] == "\n" and last not in ":=,":
            break
        last = last if code[index].isspace() else code[index]
        index += 1
    return min(index, end)


def parts_of_property(text, code, index, end):
    """The type, the default and the braces that follow a property's name."""
    marks, position = {}, index
    while position < end:
        if code[position] == "{" and "=" in marks and code[marks["="] + 1:position].strip() == "":
            position = end_of_brackets(code, position)
        elif code[position] == "{":
            marks["{"] = position
            break
        elif code[position] in "([":
            position = end_of_brackets(code, position)
        else:
            if code[position] == "=":
                marks.setdefault("=", position)
            position += 1
    body = marks.get("{", end)
    declared = code[index:marks.get("=", body)].strip().lstrip(":").strip()
    default = None
    if "=" in marks:
        start = marks["="] + 1
        default = text[start:start + len(code[start:body].rstrip())].strip()
    return declared or None, default, code[body:end] if "{" in marks else None


def end_of_declaration(text, code, index):
    """The beginning of the line after a declaration, which ends with its braces, or with its string or list."""
    while index < len(code) and code[index] != "{":
        if code[index] in "([":
            is_value = code[:index].rstrip().endswith("=")
            index = end_of_brackets(code, index)
            if is_value:
                return text.find("\n", index) + 1
        elif text[index] == '"' and TOKEN.match(text, index):
            return text.find("\n", end_of_token(text, TOKEN.match(text, index))) + 1
        else:
            index += 1
    return text.find("\n", end_of_brackets(code, index)) + 1


def lookup(types, beside=()):
    """Returns a function from names to types: these, or others that they can use.

    >>> lookup(types_in("struct A {}\\nstruct A {}", "A.swift"))("A")
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A is declared at A.swift:1 and at A.swift:2
    """
    declared, twice = {}, {}
    for group in (beside, types):
        own = {}
        for type in group:
            if type.kind != "extension":
                if type.name in own:
                    twice[type.name] = (own[type.name], type)
                own[type.name] = type
        declared |= own

    def known(name):
        if name in twice:
            one, other = twice[name]
            raise Unreadable(f"{name} is declared at {one.path}:{one.line} and at {other.path}:{other.line}")
        return declared.get(name)
    return known


def is_optional(type):
    return type.endswith("?") or type.startswith("Optional<")


def wrapped_type(type):
    """
    >>> wrapped_type("Int?"), wrapped_type("Optional<Int>"), wrapped_type("Int")
    ('Int', 'Int', 'Int')
    """
    return type[:-1] if type.endswith("?") else type[len("Optional<"):-1] if type.startswith("Optional<") else type
