"""The form of the preference page: written as HTML, and read again. Pure.

Each category on each channel is a box to tick. Beside it stands, hidden, how it was when the page was made: what comes
back says what the person changed, and only that is written. So a page that was open for long takes nothing back that
was done elsewhere meanwhile. Taking back is the same form, the other way round.
"""

from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import Final

from clarion.api.form import Form
from clarion.api.hosted_words import Words
from clarion.catalog.category import Category
from clarion.domain.identity import Channel
from clarion.operations.by_link import Cell, Preferences

_ON: Final = "on"
_WAS_ON: Final = "was-on"
_WAS_OFF: Final = "was-off"

FORM_BYTES_MAX: Final = 1024 * 1024
"""Of as many cells as a page has at most, twice, with names in a script that takes nine bytes a letter in a form."""

TITLES_MAX: Final = 5
"""Of a category: enough to see what it is."""


def read(form: Form) -> Mapping[Cell, bool] | None:
    """Say what was changed, and to what; None where this is no such form."""
    given: dict[str, list[Cell]] = {}
    for name in (_ON, _WAS_ON, _WAS_OFF):
        cells = [_cell(value) for value in form.get(name, [])]
        given[name] = [cell for cell in cells if cell is not None]
        if len(given[name]) < len(cells):
            return None
    on = set(given[_ON])
    if not given[_WAS_ON] and not given[_WAS_OFF]:
        return None
    switched_off = {cell: False for cell in given[_WAS_ON] if cell not in on}
    return switched_off | {cell: True for cell in given[_WAS_OFF] if cell in on}


def write(words: Words, preferences: Preferences) -> str:
    """Write the form: what can be chosen, and below it what cannot."""
    cells, on = set(preferences.cells), preferences.on
    fields = "".join(
        _category(words, one, [channel for channel in one.channels if (one.name, channel) in cells], on)
        for one in preferences.categories
        if any((one.name, channel) in cells for channel in one.channels)
    )
    if not fields:
        return f"<p>{escape(words.nothing_to_choose)}</p>"
    return f'<form method="post">{fields}<p><button type="submit">{escape(words.save)}</button></p></form>'


def write_required(words: Words, categories: Iterable[Category]) -> str:
    """Write what always comes, greyed, with the reason."""
    fields = "".join(
        f'<fieldset disabled class="off"><legend>{escape(one.name)}</legend>{_titles(words, one)}'
        + "".join(
            f'<label><input type="checkbox" checked disabled> <span>{escape(words.channels[channel])}</span></label>'
            for channel in one.channels
        )
        + "</fieldset>"
        for one in categories
        if one.required
    )
    return fields and f"<h2>{escape(words.always)}</h2><p>{escape(words.always_says)}</p>{fields}"


def write_held(words: Words, cells: Collection[Cell]) -> str:
    """Say what was switched off by hand."""
    return f"<p>{escape(words.held_says.format(cells=_named(words, cells)))}</p>" if cells else ""


def write_changes(words: Words, before: Collection[Cell], now: Collection[Cell]) -> str:
    """Say what is on and off now that was not before, and offer to take it back."""
    on = sorted(set(now) - set(before))
    off = sorted(set(before) - set(now))
    if not on and not off:
        return f"<p>{escape(words.nothing_changed)}</p>"
    said = [(words.now_on, on), (words.now_off, off)]
    listed = f"<p><strong>{escape(words.saved)}</strong></p>" + "".join(
        f"<p>{escape(text.format(cells=_named(words, cells)))}</p>" for text, cells in said if cells
    )
    back = _hidden(_WAS_ON, on) + _hidden(_WAS_OFF, off) + _hidden(_ON, off)
    button = f'<button type="submit" class="plain">{escape(words.undo)}</button>'
    return f'{listed}<form method="post">{back}{button}</form>'


def _category(words: Words, one: Category, channels: Iterable[Channel], on: Collection[Cell]) -> str:
    boxes = "".join(_box(words, (one.name, channel), is_on=(one.name, channel) in on) for channel in channels)
    return f"<fieldset><legend>{escape(one.name)}</legend>{_titles(words, one)}{boxes}</fieldset>"


def _box(words: Words, cell: Cell, *, is_on: bool) -> str:
    ticked = " checked" if is_on else ""
    return (
        _hidden(_WAS_ON if is_on else _WAS_OFF, [cell])
        + f'<label><input type="checkbox" name="{_ON}" value="{escape(_written(cell))}"{ticked}>'
        f" <span>{escape(words.channels[cell[1]])}</span></label>"
    )


def _titles(words: Words, one: Category) -> str:
    titles = ", ".join(one.titles[:TITLES_MAX]) + (" …" if len(one.titles) > TITLES_MAX else "")
    return f'<p class="soft">{escape(words.such_as.format(titles=titles))}</p>'


def _named(words: Words, cells: Iterable[Cell]) -> str:
    return ", ".join(f"{category} ({words.channels[channel]})" for category, channel in cells)


def _hidden(name: str, cells: Iterable[Cell]) -> str:
    return "".join(f'<input type="hidden" name="{name}" value="{escape(_written(cell))}">' for cell in cells)


def _written(cell: Cell) -> str:
    return f"{cell[1]}:{cell[0]}"


def _cell(text: str) -> Cell | None:
    channel, _, category = text.partition(":")
    return (category, Channel(channel)) if channel in set(Channel) else None
