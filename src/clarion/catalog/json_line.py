"""On which line of a JSON file something stands: the library that reads JSON does not say. Pure.

The text is known to be JSON.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

Path = tuple[str | int, ...]

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line on which a path is written first, or of what it stands in."""
    lines: dict[Path, int] = {}
    for place, line in _written(text):
        lines.setdefault(place, line)
    wanted = tuple(path)
    while wanted and wanted not in lines:
        wanted = wanted[:-1]
    return lines.get(wanted, 1)


def second_line_of(text: str, name: str) -> int:
    """Return the line on which an object has a name a second time."""
    seen: set[Path] = set()
    for place, line in _written(text):
        if place[-1:] == (name,) and place in seen:
            return line
        seen.add(place)
    return 1


def _written(text: str) -> Iterator[tuple[Path, int]]:
    """Give every name and every entry of a list with its line, in the order in which they are written."""
    inside: list[str | int | None] = []  # of each object the name at hand, None before the first; of each list a number
    line, position, last = 1, 0, ""
    for token in _TOKEN.finditer(text):
        line += text.count("\n", position, token.start())
        position = token.start()
        sign = token[0]
        if sign in "}]":
            inside.pop()
        elif sign == ":":
            inside[-1] = json.loads(last)
            yield _path(inside), line
        elif sign == "," and isinstance(inside[-1], int):
            inside[-1] += 1
        elif sign != ",":
            if inside and isinstance(inside[-1], int):
                yield _path(inside), line
            if sign in "{[":
                inside.append(None if sign == "{" else 0)
        last = sign


def _path(inside: Sequence[str | int | None]) -> Path:
    return tuple(one for one in inside if one is not None)
