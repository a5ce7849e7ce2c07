"""Finds the requested declarations, and writes them in their places."""

import re

from deriving.declarations import MODIFIERS, Unreadable, code_of, end_of_declaration, line_of, lookup, types_in
from deriving.initialisers import DOCSTRINGS, docstring, write_applying, write_flat_init, write_init
from deriving.lines import Asked
from deriving.names import write_all, write_cases, write_optional_init, write_row, write_values
from deriving.rows import (
    write_bind, write_bound_columns, write_cache_columns, write_cache_reading, write_caching, write_columns, write_reading,
)
from deriving.wire import write_decode, write_encode, write_keys, write_members, write_plain_reading, write_write

# The declarations that can be requested: how each begins, and the function that writes it.
WRITERS = {
    "init": (r"init(?=\()", write_init),
    "package init": (r"init(?=\()", write_init),
    "flat init": (r"init(?=\()", write_flat_init),
    "write(to:)": (r"func write(?=\(to )", write_write),
    "writeMembers(to:)": (r"func writeMembers(?=\(to )", write_members),
    "CodingKeys": (r"enum CodingKeys\b", write_keys),
    "encode(to:)": (r"func encode(?=\(to )", write_encode),
    "init(from:)": (r"init(?=\(from )", write_decode),
    "init(plainly:)": (r"init\?(?=\(plainly )", write_plain_reading),
    "columns": (r"(?:let|func) columns\b", write_columns),
    "bound columns": (r"let boundColumns\b", write_bound_columns),
    "init(reading:)": (r"init(?=\(reading )", write_reading),
    "bind(to:)": (r"func bind(?=\(to )", write_bind),
    "cache columns": (r"let cacheColumns\b", write_cache_columns),
    "init(cached:)": (r"init(?=\(cached )", write_cache_reading),
    "cache(in:)": (r"func cache(?=\(in )", write_caching),
    "applying(_:)": (r"func applying(?=\(_ )", write_applying),
    "cases": (r"case\b", write_cases),
    "row": (r"var row\b", write_row),
    "optional init": (r"init(?=\()", write_optional_init),
    "all": (r"let all\b", write_all),
    "values": (r"var values\b", write_values),
}

INITIALISERS = ["init", "package init", "flat init", "optional init"]

# A line that looks like a request.
ANY_MARKER = re.compile(r"^[ \t]*//\s*derive[sd]?\b[^\n]*$", re.MULTILINE | re.IGNORECASE)
MARKER = re.compile(r"^(?P<indent>[ \t]*)// derived: (?P<what>[^\n]+)\n(?P<docs>(?:[ \t]*///[^\n]*\n)*)", re.MULTILINE)

CASES = re.compile(r"(?:[ \t]*case [^\n]*\n)*")


def rewritten(text, path, known):
    """The text with all requested declarations. `known` returns the type of a name, for types of other files."""
    code = code_of(text)
    types = types_in(text, path, code)
    refuse_misspelt(text, path)
    refuse_unmarked(text, code, types)
    for match in reversed(list(MARKER.finditer(text))):
        line = line_of(text, match.start("what"))
        around = [type for type in types if type.start < match.start() < type.end]
        if not around:
            raise Unreadable(f"{path}:{line}: no type around this line to derive something for")
        what, said = parts_of_marker(match)
        said = said_of_row(text, around[-1], match, what) or said
        if what not in WRITERS:
            raise Unreadable(f"{path}:{line}: {what} is unknown; can be derived: {', '.join(WRITERS)}")
        type = known(around[-1].name)
        if type is None:
            raise Unreadable(f"{path}:{line}: {around[-1].name} is declared nowhere")
        pattern, write = WRITERS[what]
        for field in type.fields:
            if field.type is None:
                raise Unreadable(f"{type.path}:{field.line}: {field.name} needs an explicit type for what is derived from it")
        try:
            lines = write(Asked(type, known, what, said, around[-1]))
        except Unreadable as error:
            raise Unreadable(f"{path}:{line}: {error}") from None
        start = match.end()
        declared = re.compile(rf"[ \t]*{MODIFIERS}{pattern}").match(code, start)
        end = end_of_declaration(text, code, declared.end()) if declared else start
        if what == "cases":
            end = CASES.match(text, start).end()
        if what in INITIALISERS and (not match["docs"] or match["docs"].strip() in DOCSTRINGS):
            # There is no handwritten docstring, so it is derived too.
            start = match.start("docs")
            lines = docstring(lines) + lines
        written = "".join(match["indent"] + each + "\n" if each else "\n" for each in lines)
        text = text[:start] + written + text[end:]
    return text


def parts_of_marker(match):
    """The declaration to derive, and the options after it."""
    return re.fullmatch(r"((?:package |flat |bound |cache |optional )?[^\s,]+)(?:,? (.*))?", match["what"]).groups("")


def said_of_row(text, around, match, what):
    """A row's options are given once: after `columns`, and for the written ones after `bound columns`; in the same way after `cache columns`."""
    read, bound, cached = "", None, ""
    for each in MARKER.finditer(text, around.start, match.end()):
        asked, said = parts_of_marker(each)
        if asked == "columns":
            read = said
        elif asked == "bound columns":
            bound = ", ".join(filter(None, [read, said]))
        elif asked == "cache columns":
            cached = said
    if what in ("bound columns", "bind(to:)") and bound is not None:
        return bound
    if what in ("init(cached:)", "cache(in:)"):
        return cached
    return read if what in ("init(reading:)", "bind(to:)") else ""


def refuse_misspelt(text, path):
    """
    >>> refuse_misspelt("struct A {\\n    // Derived: init\\n}", "A.swift")
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:2: “// Derived: init” derives nothing; write “// derived: …”
    """
    for match in ANY_MARKER.finditer(text):
        if not MARKER.match(text, match.start()):
            raise Unreadable(f"{path}:{line_of(text, match.start())}: “{match[0].strip()}” derives nothing; write “// derived: …”")


def refuse_unmarked(text, code, types):
    """Refuses handwritten initialisers that could be derived: they are forgotten when a field is added.

    >>> def refuse(text): refuse_unmarked(text, code_of(text), types_in(text, "A.swift"))
    >>> refuse("public struct A {\\n    let a: Int\\n    public init(a: Int) {\\n        self.a = a\\n    }\\n}")
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:3: this initialiser follows from the fields of A; put “// derived: init” above it
    >>> refuse("public struct A {\\n    let a: Int\\n    // derived: init\\n    public init(a: Int) { self.a = a }\\n}")
    >>> refuse("public struct A {\\n    let a: Int\\n    public init(a: Int) { self.a = abs(a) }\\n}")
    """
    for type in types:
        # A wrapper of one value has nothing to forget.
        if type.kind != "struct" or not type.access or any(field.type is None or field.name == "rawValue" for field in type.fields):
            continue
        derived = squeezed("\n".join(write_init(Asked(type, None, "init", ""))))
        for match in re.compile(rf"^[ \t]*{MODIFIERS}init(?=\()", re.MULTILINE).finditer(code, type.start, type.end):
            end = end_of_declaration(text, code, match.end())
            above = re.sub(r"(?:[ \t]*///[^\n]*\n)*\Z", "", text[:match.start()])
            if squeezed(text[match.start():end]) == derived and "// derived: " not in above[above.rfind("\n", 0, len(above) - 1) + 1:]:
                raise Unreadable(
                    f"{type.path}:{line_of(text, match.end())}: this initialiser follows from the fields of {type.name}; "
                    "put “// derived: init” above it")


def squeezed(text):
    return re.sub(r"\s", "", text)


def refuse_unread(types, texts):
    """Refuses options of a field that nothing reads, because nothing is derived from its type.

    >>> text = 'struct A {\\n    var a: Int  // wire: "b"\\n}'
    >>> refuse_unread(types_in(text, "A.swift"), [text])
    Traceback (most recent call last):
    deriving.declarations.Unreadable: A.swift:2: nothing derived for A reads the options of a
    """
    read = set()
    for text in texts:
        types_here = types_in(text, "")
        for match in MARKER.finditer(text):
            around = [type for type in types_here if type.start < match.start() < type.end]
            if around and parts_of_marker(match)[0] not in ("init", "package init"):
                read.add(around[-1].name)
    # Inline fields are read with the enclosing type.
    read |= {field.type for type in types if type.name in read for field in type.fields if field.is_inline or "inline" in field.options}
    for type in types:
        for field in type.fields:
            if field.options and type.name not in read:
                raise Unreadable(f"{type.path}:{field.line}: nothing derived for {type.name} reads the options of {field.name}")


def in_one_file(text):
    """The derived text of a file that needs no other files, for examples."""
    return rewritten(text, "A.swift", lookup(types_in(text, "A.swift")))
