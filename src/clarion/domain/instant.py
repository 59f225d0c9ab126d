"""Which instants a record may hold: those that every engine stores and gives back, whichever zone they are read in.

Before 1970 there is no month bucket, and no engine of ours counts from further back. The last year that a datetime can
hold is left free, so that a zone or a lifetime added to an instant does not leave the calendar. Reads and writes
nothing.
"""

from datetime import datetime
from typing import Final

from clarion.domain.hashing import utc
from clarion.errors import InvalidInput

YEARS: Final = (1970, 9998)
"""The first and the last year, in UTC."""


EXPIRY_YEARS: Final = (1970, 9999)
"""Those of an instant that is another one and a lifetime: the year that others leave free."""


def require_storable(at: datetime, *, field: str, years: tuple[int, int] = YEARS) -> datetime:
    """Refuse an instant that some engine could not give back, or that is none."""
    first, last = years
    try:
        year = utc(at).year
    except (TypeError, ValueError) as reason:
        raise InvalidInput(str(reason), field=field, hint="correct it and ask again") from None
    if not first <= year <= last:
        raise InvalidInput(
            f"it is outside of the years {first} to {last}", field=field, hint="correct it and ask again"
        )
    return at
