"""How deeply merge data may be nested: one limit for every door, whatever the Python below can recurse into.

Python's own limit differs between its versions, so it must not decide what is accepted or what the refusal says.
"""

from typing import Final

from clarion.errors import InvalidInput

DEPTH_MAX: Final = 30
"""Levels of lists and objects in a field: templates reach three or four deep, and what hashes the data stops at 32."""


def check_depth(value: object, *, field: str) -> None:
    """Refuse JSON that is nested more deeply than anybody means it to be."""
    level = _nested([value])
    for _ in range(DEPTH_MAX):
        if not level:
            return
        level = [inner for outer in level for inner in _nested(outer)]
    if level:
        raise too_deep(field)


def too_deep(field: str) -> InvalidInput:
    """Say that a field is nested too deeply; also where the JSON parser gave up before anything could be counted."""
    return InvalidInput("it is nested too deeply", field=field, hint=f"use at most {DEPTH_MAX} levels")


def _nested(outer: object) -> list[object]:
    """Give the lists and objects directly inside of one."""
    inside = outer.values() if isinstance(outer, dict) else outer if isinstance(outer, (list, tuple)) else ()
    return [inner for inner in inside if isinstance(inner, (dict, list, tuple))]
