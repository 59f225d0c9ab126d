"""Merging one part; what becomes of it then is in `outcome`.

Errors never repeat data, only names and pieces of the template. Reads and writes nothing.
"""

from collections.abc import Mapping
from typing import Final

from liquid.exceptions import LiquidError, ResourceLimitError, UndefinedError

from clarion.adapters.renderers.formats import FormatRefused, Writing
from clarion.adapters.renderers.given import Given
from clarion.adapters.renderers.language import merge
from clarion.adapters.renderers.limit import Budget, said_of
from clarion.adapters.renderers.links import LINKS, Link, find_wrong_link
from clarion.adapters.renderers.parts import Part
from clarion.domain.identity import Channel
from clarion.errors import RenderFailed

# What python-liquid lets through besides its own errors, for values that a filter did not expect.
MERGE_ERRORS: Final = (LiquidError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


_REMEDIES: Final = {
    "recipient": "add it to the person's profile, or give it a default in the template",
    "entity": "add it to the entity that is sent with the data",
}
"""By what a missing variable begins with, if it is not the data's."""


class LacksVariable(RenderFailed):
    """A merge read a variable that it was not given."""

    def __init__(self, channel: Channel, part: str, absent: str) -> None:
        hint = _REMEDIES.get(absent.partition(".")[0], "add it to the data")
        super().__init__(f"{channel} {part}: there is no {absent}", part=part, hint=hint)
        self.absent = absent


def merge_part(
    part: Part, names: Mapping[str, object], channel: Channel, name: str, *, writing: Writing, budget: Budget
) -> str:
    """Merge one part."""
    try:
        text = merge(part.tree, names, writing=writing, budget=budget).strip()
    except UndefinedError as error:
        raise LacksVariable(channel, name, str(error.message)) from None
    except ResourceLimitError as error:
        raise RenderFailed(
            f"{channel} {name}: {said_of(error)}", part=name, hint="simplify the template or send less data"
        ) from None
    except MERGE_ERRORS as error:
        # The library's own text may quote the data; the piece of the template does not.
        token = error.token if isinstance(error, LiquidError) else None
        why = f"the merge failed near {token.value[:60]!r}" if token else "the merge failed"
        raise RenderFailed(
            f"{channel} {name}: {error.message if isinstance(error, FormatRefused) else why}",
            part=name,
            hint="check that the data has the right types",
        ) from None
    wrong = None if part.written_links is None else find_wrong_link(text, part.written_links | _ours(names))
    if wrong is not None:
        raise RenderFailed(
            f"{channel} {name}: in {wrong}, a link that comes from the data is neither https: nor mailto: nor tel:",
            part=name,
            hint="give whole addresses, such as https://example.com; any other scheme has to stand in the template",
        )
    return text


def _ours(names: Mapping[str, object]) -> frozenset[Link]:
    """Give how links begin that lead to this installation, which may have no https on the machine of a developer."""
    public_url = names.get("public_url") if isinstance(names, Given) else None
    return frozenset((attribute, f"{public_url}/") for attribute in (*LINKS, "style") if public_url)
