"""Due: what becomes of an occurrence that has fallen due, by rules that workers and stores share. Pure.

A failure that may pass is tried again a few times, later each time, and then waits for a person. What was handed over,
or why nobody was told, is written into the row as a few coordinates.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.planning import EndReason

DUE_LEASE: Final = timedelta(minutes=5)
"""A plugin that answers nothing takes three questions of ten seconds, a long report a minute or two."""

RETRY_WAITS: Final = (timedelta(minutes=5), timedelta(minutes=15), timedelta(hours=1))
"""After the first failure, the second and the third. What has not passed by then is for a person to look at."""

LONG_RUNNER_WAIT: Final = timedelta(days=1)
"""A system that is loaded at night is there again the next day at the same time."""

RESULT_BYTES_MAX: Final = 4096
"""As for every diagnostic (docs/reference/schema.md)."""

FAILURE_CHARS_MAX: Final = 500
"""Of the reason of a failure: a sentence or two."""


def wait_after_failure(retry_count: int, *, is_long_runner: bool = False) -> timedelta | None:
    """Say how long an occurrence waits that failed so often before; None where it waits for a person, on hold.

    A worker that was lost over it is a failure too. `is_long_runner`: its provider declares that it may be away for
    days, and its setting approves it.
    """
    if retry_count < len(RETRY_WAITS):
        return RETRY_WAITS[retry_count]
    return LONG_RUNNER_WAIT if is_long_runner else None


SKIPPING: Final = frozenset({EndReason.NO_RECIPIENTS, EndReason.NOTIFICATION_TYPE_OFF, EndReason.RUN_MISSED})
"""Reasons for which an occurrence that is asked for is complete although nobody is told: it is not made again when its
source changes. For any other reason it is deactivated, and comes back if it is asked for again."""


def wait_after_lost_worker(retry_count: int) -> timedelta | None:
    """Say how long an occurrence waits whose worker was lost, as a failure; its lease was waited out already.

    So a worker that is killed the first time costs its lease and no more. A long runner makes no difference: whether a
    provider may be away for days, only the worker knows that has loaded it, and no row says so; and what has lost every
    worker that took it must not take another one each day.
    """
    wait = wait_after_failure(retry_count)
    return None if wait is None else max(wait - DUE_LEASE, timedelta())


class DueOutcome(StrEnum):
    """What a completed occurrence came to: `HandedOver` says that delivery work is queued, not that it arrived."""

    HANDED_OVER = "HandedOver"
    SKIPPED = "Skipped"


class Named(StrEnum):
    """Who said for whom it is."""

    PROVIDER = "provider"
    SETTING = "setting"
    TYPE = "type"


class DispatchResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `dispatch_result` of an occurrence: where its delivery work stands, or why there is none.

    `job` is the notification, at its partition key and row key; `messaging_job` the report that it tells of. `named`
    recipients were named one by one by `named_by`, none where they are found by what a setting says.
    """

    outcome: DueOutcome
    reason: EndReason | None = None
    job: UUID | None = None
    partition_key: str | None = None
    row_key: str | None = None
    messaging_job: UUID | None = None
    notification_type: str | None = None
    template_version: int | None = None
    inbox_only: bool = False
    named: int = 0
    named_by: Named | None = None

    @property
    def text(self) -> str:
        """Write it as it is stored; keys are bounded, so it is far below `RESULT_BYTES_MAX`."""
        return msgspec.json.encode(self).decode()


def read_result(text: str | None) -> DispatchResult | None:
    """Read a stored result; None where there is none, or one that a newer program wrote in another form."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=DispatchResult)
    except msgspec.DecodeError:
        return None


def skipped(reason: EndReason) -> DispatchResult:
    """Say that nobody was told, and why."""
    return DispatchResult(outcome=DueOutcome.SKIPPED, reason=reason)
