"""Changes that are made of what was read, and would undo what somebody else has changed meanwhile. Pure."""

from clarion.errors import Conflict


def require_version(stored: int | None, expected: int | None, *, what: str) -> None:
    """Refuse a change that expects a version other than the stored one; None expects nothing."""
    if expected is not None and stored != expected:
        raise Conflict(
            f"{what} was changed by somebody else meanwhile", hint="look at it again, and decide by what it says now"
        )
