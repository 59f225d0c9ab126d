"""Every mistake in a template file, where the libraries that read it stop at the first.

What cannot be read is noted, blanked where it stands, and the rest is read again; so each mistake keeps its line, and a
tag that closes what was blanked is none. Pure.
"""

import re
from collections import Counter
from typing import Final

from liquid.exceptions import LiquidError

from clarion.adapters.renderers.language import HTML, LIBRARY_MISSES, LIBRARY_UNEXPECTED, TEXT, Language, parse
from clarion.adapters.renderers.links import wrong_places
from clarion.adapters.renderers.markup import wrong_elements
from clarion.errors import InvalidInput
from clarion.ports.renderer import TemplateMistake

MISTAKES_MAX: Final = 20
"""Mistakes of one file that are told at once; each takes one more reading of it."""

_INSIDE: Final = {
    "if": frozenset({"elsif", "else"}),
    "unless": frozenset({"elsif", "else"}),
    "case": frozenset({"when", "else"}),
    "for": frozenset({"else", "break", "continue"}),
}
"""Tags that stand inside a block and make no sense without it."""

_TAG: Final = re.compile(r"\{%-?\s*(\w+)")


def mistakes_in(source: str, *, file: str) -> list[InvalidInput]:
    """Name everything that is wrong with a file, in the order of its lines."""
    is_mjml = file == "email.mjml.liquid"
    is_html = is_mjml or file == "email.preheader.liquid"
    found, left = _liquid_mistakes(HTML if is_html else TEXT, source, file=file)
    if is_mjml:
        found += [*wrong_places(left, file=file), *wrong_elements(left, file=file)]
    return sorted(found, key=lambda one: one.line if isinstance(one, TemplateMistake) else 0)[:MISTAKES_MAX]


def _liquid_mistakes(language: Language, source: str, *, file: str) -> tuple[list[InvalidInput], str]:
    """Name what is wrong with the Liquid of a file, and give the file without it."""
    found: list[InvalidInput] = []
    left, orphans, blocks = source, Counter[str](), Counter[str]()
    for _ in range(10 * MISTAKES_MAX):
        try:
            parse(language, left, file=file)
        except TemplateMistake as error:
            cause = error.__cause__
            said = str(cause.message) if isinstance(cause, LiquidError) else ""
            if missing := LIBRARY_MISSES.match(said):
                found.append(error)
                left = f"{left}{{% {missing[1]} %}}"
                continue
            unexpected = LIBRARY_UNEXPECTED.match(said)
            if not (unexpected and _is_orphan(unexpected[1], orphans, blocks)):
                found.append(error)
            left, tag = _blanked(left, error.position or 0)
            if tag is not None:
                orphans[f"end{tag}"] += 1
                blocks[tag] += 1
        except InvalidInput as error:
            return [*found, error], left
        else:
            break
        if len(found) >= MISTAKES_MAX:
            break
    return found, left


def _is_orphan(tag: str, orphans: Counter[str], blocks: Counter[str]) -> bool:
    """Tell whether a tag belongs to a block whose beginning was blanked."""
    if orphans[tag]:
        orphans[tag] -= 1
        blocks[tag.removeprefix("end")] -= 1
        return True
    return any(blocks[name] and tag in inside for name, inside in _INSIDE.items())


def _blanked(source: str, position: int) -> tuple[str, str | None]:
    """Blank the Liquid at a position, and name the tag that it was; its brackets alone where it is not closed."""
    start = max(source.rfind("{{", 0, position + 2), source.rfind("{%", 0, position + 2))
    closing = source.find("}}" if source.startswith("{{", start) else "%}", start + 2) if start >= 0 else -1
    end = closing + 2
    if closing < 0 or end <= position:
        start, end = position, position + 2
    tag = _TAG.match(source, start, end)
    blank = re.sub(r"\S", " ", source[start:end])
    return source[:start] + blank + source[end:], tag[1] if tag else None
