"""Writes initialisers, and functions that call them."""

import re

from deriving.declarations import Unreadable, is_optional, wrapped_type
from deriving.lines import COLUMNS_MAX, INDENT, depth_of, filled


def write_init(asked):
    """
    >>> print(in_one_file('public struct A {\\n    public var a: Int\\n    public var b: Int?\\n    // derived: init\\n}'))
    public struct A {
        public var a: Int
        public var b: Int?
        // derived: init
        /// Creates a value with these fields. Those that are left out have their defaults.
        public init(a: Int, b: Int? = nil) {
            self.a = a
            self.b = b
        }
    }
    >>> print(in_one_file('public struct A {\\n    let a: () -> Void\\n    // derived: init\\n    /// One.\\n    init() {\\n    }\\n\\n    let b = 1\\n}'))
    public struct A {
        let a: () -> Void
        // derived: init
        /// One.
        public init(a: @escaping () -> Void) { self.a = a }
    <BLANKLINE>
        let b = 1
    }
    >>> print(in_one_file('package struct A {\\n    let a: Int\\n    // derived: init (_ a)\\n}').splitlines()[3])
        package init(_ a: Int) { self.a = a }
    >>> in_one_file('package struct A {\\n    let a: Int\\n    // derived: init (_ b)\\n}')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:3: “(_ b)” should name fields without a label: (_ name, _ other)
    >>> in_one_file('struct A {\\n    // derived: init\\n}')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:2: A is internal to its module; Swift writes its initialiser
    >>> in_one_file('public struct A {\\n    var a = 1\\n    // derived: init\\n}')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:2: a needs an explicit type for what is derived from it
    >>> in_one_file('struct A {\\n    // derived: everything\\n}')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:2: everything is unknown; can be derived: init, package init, flat init, write(to:), writeMembers(to:), CodingKeys, encode(to:), init(from:), init(plainly:), columns, bound columns, init(reading:), bind(to:), cache columns, init(cached:), cache(in:), applying(_:), cases, row, optional init, all, values
    """
    type = asked.type
    access = "package" if asked.what == "package init" else type.access
    if not access and type.kind == "struct":
        raise Unreadable(f"{type.name} is internal to its module; Swift writes its initialiser")
    head = f"{access} init(".lstrip()
    said = re.fullmatch(r"(?:\((_ \w+(?:, _ \w+)*)\))?", asked.said)
    bare = [name.removeprefix("_ ") for name in (said[1] or "").split(", ") if name] if said else []
    if said is None or any(name not in [field.name for field in type.fields] for name in bare):
        raise Unreadable(f"“{asked.said}” should name fields without a label: (_ name, _ other)")
    parameters = [
        "_ " * (field.name in bare) + parameter(field) for field in type.fields
    ]
    assignments = [f"self.{field.name} = {field.name}" for field in type.fields]
    if len(assignments) < 2:
        line = f"{head}{''.join(parameters)}) {{{''.join(f' {each} ' for each in assignments)}}}"
        if depth_of(type) + len(line) <= COLUMNS_MAX:
            return [line]
    return [*filled(head, parameters, ") {", depth_of(type)), *(INDENT + each for each in assignments), "}"]


def write_flat_init(asked):
    """
    >>> text = '''public struct A {
    ...     public var a: Int
    ...     public var b: B  // inline
    ...     // derived: flat init
    ... }
    ... public struct B { public var c: String? }'''
    >>> print(in_one_file(text))
    public struct A {
        public var a: Int
        public var b: B  // inline
        // derived: flat init
        /// Creates a value with these fields. Those that are left out have their defaults.
        public init(a: Int, c: String? = nil) {
            let b = B(c: c)
            self.init(a: a, b: b)
        }
    }
    public struct B { public var c: String? }
    """
    type = asked.type
    parameters, made = [], []
    indent = depth_of(type) + len(INDENT)
    for field in type.fields:
        inner = fields_of_inline(asked, field) if field.is_inline else [field]
        parameters += [parameter(each) for each in inner]
        if field.is_inline:
            made += filled(f"let {field.name} = {field.type}(", [f"{each.name}: {each.name}" for each in inner], ")", indent)
    head = f"{type.access} init(".lstrip()
    made += filled("self.init(", [f"{field.name}: {field.name}" for field in type.fields], ")", indent)
    return [*filled(head, parameters, ") {", depth_of(type)), *(INDENT + each for each in made), "}"]


def docstring(declaration):
    """The docstring of a public initialiser without a handwritten one.

    >>> docstring(["public init() {}"]), docstring(["public init(a: Int) { self.a = a }"]), docstring(["init(a: Int) { self.a = a }"])
    (['/// Creates a value, which has no fields.'], ['/// Creates a value with these fields.'], [])
    >>> print(in_one_file('public struct A {\\n    let a: Int\\n    // derived: init\\n    /// Creates a value, which has no fields.\\n    public init() {}\\n}'))
    public struct A {
        let a: Int
        // derived: init
        /// Creates a value with these fields.
        public init(a: Int) { self.a = a }
    }
    """
    if not declaration[0].startswith("public init("):
        return []
    head = "\n".join(declaration).partition(") {")[0]
    if head == "public init(":
        return [DOCSTRINGS[0]]
    return [DOCSTRINGS[2 if " = " in head else 1]]


DOCSTRINGS = [
    "/// Creates a value, which has no fields.",
    "/// Creates a value with these fields.",
    "/// Creates a value with these fields. Those that are left out have their defaults.",
]


def write_applying(asked):
    """
    >>> print(in_one_file('struct A {\\n    var a: Int?\\n    var b: String?\\n    // derived: applying(_:)\\n}'))
    struct A {
        var a: Int?
        var b: String?
        // derived: applying(_:)
        func applying(_ changes: A) -> A {
            A(a: a.replaced(by: changes.a), b: b.replaced(by: changes.b))
        }
    }
    >>> in_one_file('struct A {\\n    var a: Int\\n    // derived: applying(_:)\\n}')
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:3: a isn't optional, so no value can mean that it stays unchanged
    """
    type = asked.type
    for field in type.fields:
        if not is_optional(field.type):
            raise Unreadable(f"{field.name} isn't optional, so no value can mean that it stays unchanged")
    arguments = [f"{field.name}: {field.name}.replaced(by: changes.{field.name})" for field in type.fields]
    return [
        f"func applying(_ changes: {type.name}) -> {type.name} {{",
        *(INDENT + line for line in filled(f"{type.name}(", arguments, ")", depth_of(type) + len(INDENT))),
        "}",
    ]


def parameter(field):
    return f"{field.name}: {passed(field.type)}" + (f" = {field.default}" if field.default is not None else "")


def fields_of_inline(asked, field):
    inner = asked.known(field.type)
    if inner is None:
        raise Unreadable(f"{field.name} can't be inline: {field.type} is declared nowhere")
    return inner.fields


def passed(type):
    """A type as the type of a parameter that is stored.

    >>> passed("Int"), passed("(Int) -> Void"), passed("((Int) -> Void)?"), passed("[() -> Void]"), passed("Optional<Int>")
    ('Int', '@escaping (Int) -> Void', '((Int) -> Void)?', '[() -> Void]', 'Int?')
    """
    if type.startswith("Optional<"):
        return f"{wrapped_type(type)}?"
    depth = 0
    for index, character in enumerate(type):
        depth += 1 if character in "([<" else -1 if character in ")]" or character == ">" and type[index - 1] != "-" else 0
        if depth == 0 and type.startswith("->", index):
            return "@escaping " + type
    return type
