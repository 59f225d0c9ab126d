"""How many recipients a set may have in the row of its job, in a page, and in one step that makes rows.

Those of the program stand where they are used. A simulation has smaller ones, so that a handful of people fill several
pages.
"""

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of recipients; a set of more than `inline` lies in pages."""

    inline: int
    page: int
    step: int
