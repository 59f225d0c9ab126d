"""On which line of a TOML file something stands: the library that reads TOML does not say. Pure.

It finds what people write, a table's heading and a name with a value below it. Where something is written in another
way, the line of what it stands in is near enough.
"""

import re
from collections.abc import Iterator
from typing import Final

_HEADING: Final = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(#.*)?")
_VALUE: Final = re.compile(r"""\s*((?:[A-Za-z0-9_.-]|"[^"]*"|'[^']*')+)\s*=""")


def line_of(text: str, path: str) -> int:
    """Return the line on which a dotted path is written, or of what it stands in; 1 where there is none."""
    lines = dict(_written(text))
    while path:
        if path in lines:
            return lines[path]
        path = path.rpartition(".")[0]
    return 1


def _written(text: str) -> Iterator[tuple[str, int]]:
    """Give every heading and name with its line, the last ones first, so that the first one counts."""
    found, table = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := _HEADING.fullmatch(line):
            table = _plain(heading[1])
            found.append((table, number))
        elif value := _VALUE.match(line):
            found.append((f"{table}.{_plain(value[1])}".removeprefix("."), number))
    return reversed(found)


def _plain(path: str) -> str:
    return re.sub(r"[\"']", "", path).strip()
