"""Writes declarations derived from the names of fields, mostly of another type: lists of them, and their meaning there."""

import re

from deriving.declarations import Unreadable
from deriving.initialisers import passed
from deriving.lines import COLUMNS_MAX, INDENT, depth_of, filled, wrapped


def fields_of_other(asked):
    """The other type, its requested fields, and the type that a name becomes."""
    said = re.fullmatch(r"of (\w+)(?: as (\w+))?(?:, without (.+))?", asked.said)
    other = said and asked.known(said[1])
    if not other:
        raise Unreadable(f"“{asked.said}” should name a type: of Type, of Type as Other, of Type, without field and field")
    without = said[3].split(" and ") if said[3] else []
    if unknown := set(without) - {field.name for field in other.fields}:
        raise Unreadable(f"{other.name} has no field {sorted(unknown)[0]}")
    return other, [field for field in other.fields if field.name not in without], said[2]


def write_cases(asked):
    """
    >>> text = '''struct A {
    ...     var a: Int
    ...     var b: Kind
    ...     var c: Kind
    ...     enum Kind { case d }
    ... }
    ... enum Name {
    ...     // derived: cases of A, without a
    ...     case old
    ...     case older
    ...
    ...     // derived: row of A as Row, without a
    ...     private var row: Row { Row() }
    ... }
    ... public struct Changes {
    ...     // derived: optional init of A, without a
    ... }'''
    >>> print(in_one_file(text).partition("enum Name {\\n")[2])
        // derived: cases of A, without a
        case b, c
    <BLANKLINE>
        // derived: row of A as Row, without a
        private var row: Row {
            switch self {
            case .b: Row(self, \\.b)
            case .c: Row(self, \\.c)
            }
        }
    }
    public struct Changes {
        // derived: optional init of A, without a
        /// Creates a value with these fields. Those that are left out have their defaults.
        public init(b: A.Kind? = nil, c: A.Kind? = nil) {
            self.b = b
            self.c = c
        }
    }
    >>> in_one_file("struct A {\\n    let a: Int\\n}\\nenum Name {\\n    // derived: cases of A, without b\\n}")
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:5: A has no field b
    """
    _, fields, _ = fields_of_other(asked)
    names = wrapped([field.name for field in fields], COLUMNS_MAX - depth_of(asked.type) - len("case "))
    return ["case " + line.removesuffix(",") for line in names]


def write_row(asked):
    _, fields, row = fields_of_other(asked)
    return [
        f"private var row: {row} {{",
        INDENT + "switch self {",
        *(INDENT + f"case .{field.name}: {row}(self, \\.{field.name})" for field in fields),
        INDENT + "}",
        "}",
    ]


def write_optional_init(asked):
    other, fields, _ = fields_of_other(asked)

    def qualified(name):
        return f"{other.name}.{name[0]}" if asked.known(f"{other.name}.{name[0]}") else name[0]
    types = [re.sub(r"\b[A-Z]\w*", qualified, passed(field.type)) for field in fields]
    parameters = [f"{field.name}: {type}? = nil" for field, type in zip(fields, types)]
    head = f"{asked.type.access} init(".lstrip()
    return [
        *filled(head, parameters, ") {", depth_of(asked.type)),
        *(INDENT + f"self.{field.name} = {field.name}" for field in fields),
        "}",
    ]


def write_all(asked):
    """
    >>> text = '''struct A { let a: Int }
    ... extension A {
    ...     static let b = A(a: 1)
    ...     static let c = A(a: 2)
    ...
    ...     // derived: all
    ...     /// Every one.
    ...     static let all = [
    ...         b,
    ...     ]
    ...
    ...     static let d = 1
    ... }
    ... struct Given {
    ...     var e: Int?
    ...     var b, c: String?
    ...     // derived: values of A, without e
    ... }'''
    >>> print(in_one_file(text).partition("a: 2)\\n\\n")[2])
        // derived: all
        /// Every one.
        static let all: [A] = [
            b, c,
        ]
    <BLANKLINE>
        static let d = 1
    }
    struct Given {
        var e: Int?
        var b, c: String?
        // derived: values of A, without e
        private var values: [(A, String?)] {
            [
                (.b, b), (.c, c),
            ]
        }
    }
    >>> in_one_file(text.replace(", without e", ""))
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:17: the values are of several types: Int?, String?
    """
    name = asked.type.name
    lines = wrapped(list(asked.around.constants), COLUMNS_MAX - depth_of(asked.type) - len(INDENT) - 1)
    return [f"static let all: [{name}] = [", *(INDENT + line for line in with_last_comma(lines)), "]"]


def write_values(asked):
    said = re.fullmatch(r"of (\w+)(?:, without (.+))?", asked.said)
    if not said:
        raise Unreadable(f"“{asked.said}” should name the type of the names: of Type, of Type, without field and field")
    without = said[2].split(" and ") if said[2] else []
    fields = [field for field in asked.type.fields if field.name not in without]
    types = sorted({field.type for field in fields})
    if len(types) > 1:
        raise Unreadable(f"the values are of several types: {', '.join(types)}")
    pairs = wrapped([f"(.{field.name}, {field.name})" for field in fields], COLUMNS_MAX - depth_of(asked.type) - 2 * len(INDENT) - 1)
    return [
        f"private var values: [({said[1]}, {types[0]})] {{",
        INDENT + "[",
        *(2 * INDENT + line for line in with_last_comma(pairs)),
        INDENT + "]",
        "}",
    ]


def with_last_comma(lines):
    return [*lines[:-1], lines[-1] + ","] if lines else []
