"""Writes the columns of a row, and the functions that read and bind them."""

import re
from typing import NamedTuple

from deriving.declarations import Field, Type, Unreadable
from deriving.lines import COLUMNS_MAX, INDENT, Asked, depth_of, filled, wrapped


class Column(NamedTuple):
    field: Field
    name: str
    # Whether the caller passes the selected expression.
    is_given: bool


def row_of(asked):
    """The columns, the fields that the caller passes, and the table's name in front of the columns.

    >>> fields = [Field(name, "Int", default, (), 1) for name, default in [("aId", None), ("b", "1"), ("c", None)]]
    >>> type = Type("A", "struct", "", fields, (), "A.swift", 1, 0, 0)
    >>> columns, handed, table = row_of(Asked(type, None, "columns", "of m, without b and c, aId as other"))
    >>> [column.name for column in columns], [field.name for field in handed], table
    (['other'], ['c'], 'm')
    >>> row_of(Asked(type, None, "columns", "without d"))
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A has no field d
    """
    table, names, without, given = None, {}, [], []
    for clause in filter(None, asked.said.split(", ")):
        if said := re.fullmatch(r"of (\w+)", clause):
            table = said[1]
        elif said := re.fullmatch(r"(\w+) as ([\w.]+)", clause):
            names[said[1]] = said[2]
        elif clause.startswith("without "):
            without += clause.removeprefix("without ").split(" and ")
        elif clause.startswith("given "):
            given = clause.removeprefix("given ").split(" and ")
        else:
            raise Unreadable(f"“{clause}” is unknown; known: of table, field as column, given field, without field and field")
    fields = {field.name: field for field in asked.type.fields}
    if unknown := [name for name in [*names, *given, *without] if name not in fields]:
        raise Unreadable(f"{asked.type.name} has no field {unknown[0]}")
    columns = [
        Column(field, names.get(field.name, snake(field.name)), field.name in given)
        for field in asked.type.fields if field.name not in without
    ]
    return columns, [fields[name] for name in without if fields[name].default is None], table


def snake(name):
    """
    >>> snake("lastReadAt"), snake("seq")
    ('last_read_at', 'seq')
    """
    return re.sub(r"([A-Z])", lambda letter: "_" + letter[1].lower(), name)


def stands_inline(field):
    return field.is_inline or "inline" in field.options


def write_columns(asked):
    """
    >>> text = '''struct A {
    ...     var aId: Int
    ...     var content: B  // inline
    ...     var isC: Bool = false
    ...     var seq: Int
    ... }
    ... struct B { var d: Int?; var g: Int }
    ... extension A {
    ...     // derived: columns of a, without isC and seq
    ...
    ...     // derived: init(reading:)
    ...
    ...     // derived: bind(to:)
    ... }
    ... extension B {
    ...     // derived: columns of table, d as e, g as h.g
    ... }
    ... extension C {
    ...     // derived: columns, given f
    ... }
    ... struct C { var f: Int }'''
    >>> print(in_one_file(text).partition("extension A {\\n")[2])
        // derived: columns of a, without isC and seq
        static let columns: SQL = "a.a_id, \\(B.columns)"
    <BLANKLINE>
        // derived: init(reading:)
        init(reading row: inout RowReader, seq: Int) throws {
            try self.init(aId: row.value(), content: B(reading: &row), seq: seq)
        }
    <BLANKLINE>
        // derived: bind(to:)
        func bind(to values: inout RowValues) throws {
            try values.bind(aId)
            try values.bind(content)
        }
    }
    extension B {
        // derived: columns of table, d as e, g as h.g
        static func columns(of table: SQL) -> SQL { "\\(table).e, h.g" }
    }
    extension C {
        // derived: columns, given f
        static func columns(f: SQL) -> SQL { "\\(f)" }
    }
    struct C { var f: Int }
    """
    columns, _, table = row_of(asked)
    prefix = "" if table is None else "\\(table)." if table == "table" else f"{table}."
    names = [
        f"\\({column.field.type}.columns)" if stands_inline(column.field)
        else f"\\({column.field.name})" if column.is_given
        else column.name if "." in column.name
        else prefix + column.name
        for column in columns
    ]
    parameters = ["of table: SQL"] * (table == "table") + [f"{column.field.name}: SQL" for column in columns if column.is_given]
    if parameters:
        return sql(asked, f"static func columns({', '.join(parameters)}) -> SQL {{", names, "}")
    return sql(asked, "static let columns: SQL =", names)


def sql(asked, head, names, tail=""):
    """A declaration of the names, separated by commas."""
    line = f'{head} "{", ".join(names)}" {tail}'.rstrip()
    if depth_of(asked.type) + len(line) <= COLUMNS_MAX:
        return [line]
    # Interpolations are Swift code, and aren't broken across lines.
    lines = wrapped(names, COLUMNS_MAX - 2 * len(INDENT))
    if tail:
        return [head, *(INDENT + each for each in ['"""', *lines, '"""']), tail]
    return [f'{head} """', *(INDENT + each for each in lines), INDENT + '"""']


def write_bound_columns(asked):
    """
    >>> text = '''struct A {
    ...     var aId: Int
    ...     var content: B  // inline
    ...     var isC: Bool = false
    ...     var seq: Int
    ... }
    ... struct B { var d: Int? }
    ... extension A {
    ...     // derived: columns of a, without isC, aId as id
    ...     // derived: bound columns, without seq
    ...     // derived: init(reading:)
    ...     // derived: bind(to:)
    ... }'''
    >>> print(in_one_file(text).partition("extension A {\\n")[2])
        // derived: columns of a, without isC, aId as id
        static let columns: SQL = "a.id, \\(B.columns), a.seq"
        // derived: bound columns, without seq
        static let boundColumns: SQL = "id, \\(B.boundColumns)"
        // derived: init(reading:)
        init(reading row: inout RowReader) throws {
            try self.init(aId: row.value(), content: B(reading: &row), seq: row.value())
        }
        // derived: bind(to:)
        func bind(to values: inout RowValues) throws {
            try values.bind(aId)
            try values.bind(content)
        }
    }
    >>> in_one_file("struct A { var a: Int }\\nextension A {\\n    // derived: columns of a, a as h.a\\n    // derived: bound columns\\n}")
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:4: a isn't a column of the table that is written
    """
    columns, _, _ = row_of(asked)
    for column in columns:
        if column.is_given or "." in column.name:
            raise Unreadable(f"{column.field.name} isn't a column of the table that is written")
    names = [f"\\({column.field.type}.boundColumns)" if stands_inline(column.field) else column.name for column in columns]
    return sql(asked, "static let boundColumns: SQL =", names)


def write_reading(asked, label="reading", reader="RowReader"):
    columns, given, _ = row_of(asked)
    arguments = []
    in_row = {column.field for column in columns}
    for field in asked.type.fields:
        if field in in_row:
            value = f"{field.type}({label}: &row)" if stands_inline(field) else "row.value()"
            arguments.append(f"{field.name}: {value}")
        elif field in given:
            arguments.append(f"{field.name}: {field.name}")
    parameters = [f"{label} row: inout {reader}"] + [f"{field.name}: {field.type}" for field in given]
    called = filled("try self.init(", arguments, ")", depth_of(asked.type) + len(INDENT))
    if called[-1] == ")":
        called[-2:] = [called[-2] + ")"]
    return [*filled("init(", parameters, ") throws {", depth_of(asked.type)), *(INDENT + each for each in called), "}"]


def write_bind(asked):
    columns, _, _ = row_of(asked)
    return [
        "func bind(to values: inout RowValues) throws {",
        *(INDENT + f"try values.bind({column.field.name})" for column in columns),
        "}",
    ]


def write_cache_columns(asked):
    """The same three for the SDK's cache, whose columns have no types: the schema is made from them.

    >>> text = '''struct A {
    ...     var aId: Int
    ...     var content: B  // inline
    ...     var seq: Int
    ... }
    ... struct B { var d: Int? }
    ... extension A {
    ...     // derived: cache columns, without seq
    ...     // derived: init(cached:)
    ...     // derived: cache(in:)
    ... }'''
    >>> print(in_one_file(text).partition("extension A {\\n")[2])
        // derived: cache columns, without seq
        static let cacheColumns: CacheColumns = "a_id, \\(B.cacheColumns)"
        // derived: init(cached:)
        init(cached row: inout CacheReader, seq: Int) throws {
            try self.init(aId: row.value(), content: B(cached: &row), seq: seq)
        }
        // derived: cache(in:)
        func cache(in row: inout CacheWriter) throws {
            try row.put(aId)
            try row.put(content)
        }
    }
    """
    columns, _, _ = row_of(asked)
    names = [f"\\({column.field.type}.cacheColumns)" if stands_inline(column.field) else column.name for column in columns]
    return sql(asked, "static let cacheColumns: CacheColumns =", names)


def write_cache_reading(asked): return write_reading(asked, "cached", "CacheReader")


def write_caching(asked):
    columns, _, _ = row_of(asked)
    return [
        "func cache(in row: inout CacheWriter) throws {",
        *(INDENT + f"try row.put({column.field.name})" for column in columns),
        "}",
    ]
