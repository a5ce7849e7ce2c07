"""Shared by all written declarations: the type that they belong to, and line breaks."""

from typing import NamedTuple

from deriving.declarations import Type

# As in .swift-format.
COLUMNS_MAX = 132
INDENT = "    "


class Asked(NamedTuple):
    type: Type
    # A function from a name to its type.
    known: object
    what: str
    # The rest of the line after that.
    said: str
    # The declaration that contains the line: the type, or an extension of it.
    around: Type = None


def depth_of(type):
    """The indentation of a type's members."""
    return len(INDENT) * (type.name.count(".") + 1)


def filled(head, parts, tail, indent):
    """A declaration on one line if it fits, otherwise its parts on as few lines as possible.

    >>> filled("init(", ["a: Int", "b: Int"], ") {", 4)
    ['init(a: Int, b: Int) {']
    >>> filled("init(", [f"a{number}: SomeType" for number in range(9)], ") {", 20)[2:]
    ['    a7: SomeType, a8: SomeType', ') {']
    """
    line = head + ", ".join(parts) + tail
    if indent + len(line) <= COLUMNS_MAX:
        return [line]
    return [head, *(INDENT + each for each in wrapped(parts, COLUMNS_MAX - indent - len(INDENT))), tail]


def wrapped(parts, width):
    lines = []
    for number, part in enumerate(parts):
        part += "," if number + 1 < len(parts) else ""
        if lines and len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += " " + part
        else:
            lines.append(part)
    return lines


def assigned(head, value, indent):
    """
    >>> assigned("a =", "1", 4), assigned("a =", "1", 128)
    (['a = 1'], ['a =', '    1'])
    """
    return [f"{head} {value}"] if indent + len(f"{head} {value}") <= COLUMNS_MAX else [head, INDENT + value]
