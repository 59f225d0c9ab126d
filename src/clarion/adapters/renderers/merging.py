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
from clarion.adapters.renderers.links import find_wrong_link
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


class BrokenMerge(RenderFailed):
    """A merge failed at a piece of the template, which is `near`."""

    def __init__(self, message: str, *, hint: str, part: str, near: str) -> None:
        super().__init__(message, hint=hint, part=part)
        self.near = near


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
        raise BrokenMerge(
            f"{channel} {name}: {error.message if isinstance(error, FormatRefused) else why}",
            part=name,
            hint="check that the data has the right types",
            near=token.value if token else "",
        ) from None
    public_url = str(names["public_url"]) if isinstance(names, Given) else None
    if part.written_links is not None and (wrong := find_wrong_link(text, part.written_links, public_url=public_url)):
        raise RenderFailed(
            f"{channel} {name}: in {wrong}, a link that comes from the data is neither https: nor mailto: nor tel:",
            part=name,
            hint="give whole addresses, such as https://example.com; any other scheme has to stand in the template",
        )
    return text
