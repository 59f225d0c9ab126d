"""Reports: the contract of what writes one, what it may ask Clarion, and what a due run of a subscription comes to.

A provider is an entry point of `clarion.reports`: a call without arguments that gives a `ReportProvider`. It writes its
output in the form that was asked for; where that is kept, who gets it and how is not its concern. What a provider
raises, or does not write in time, is a failure of that run, which is tried again.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

import msgspec

from clarion.domain.automation import AutomationScheduler
from clarion.domain.identity import Channel
from clarion.domain.planning import EndReason
from clarion.domain.report_choice import ReportForm
from clarion.ports.automation import DueClaim
from clarion.ports.source import SubscriptionRecord

OUTPUT_BYTES_MAX: Final = 8 * 1024 * 1024
"""A report is held in memory while it is written; a table of 50,000 lines takes half of this."""

PAGE_MAX: Final = 500
"""Lines of the summary that one statement gives."""


class ReportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one run asks of a provider; the period is from `start_at` on and up to before `end_at`."""

    tenant_id: str
    report: str
    parameters: Mapping[str, str]
    start_at: datetime
    end_at: datetime
    tz_id: str
    form: ReportForm


class DeliveryCount(msgspec.Struct, frozen=True, kw_only=True):
    """How the messages of one type on one channel stand that were made in a period."""

    notification_type: str
    channel: Channel
    sent: int
    delivered: int
    failed: int
    uncertain: int
    waiting: int
    not_sent: int

    @property
    def total(self) -> int:
        """How many there are."""
        return self.sent + self.delivered + self.failed + self.uncertain + self.waiting + self.not_sent


class ReportFacts(Protocol):
    """What a report may ask of Clarion itself."""

    async def count_deliveries(
        self,
        tenant_id: str,
        *,
        start_at: datetime,
        end_at: datetime,
        after: tuple[str, str] | None = None,
        limit: int = PAGE_MAX,
    ) -> Sequence[DeliveryCount]:
        """Count the messages of notifications of a period by type and channel, in their order, behind a place."""
        ...


class ReportOutput(Protocol):
    """Where a provider writes; bounded by `OUTPUT_BYTES_MAX`."""

    def write(self, text: str) -> None:
        """Write a part; raises InvalidInput where the whole is too large."""
        ...


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """What a template may read of a report; `lines` is 0 where there is nothing to say."""

    lines: int
    data: Mapping[str, object] = {}


@runtime_checkable
class ReportProvider(Protocol):
    """Writes the reports of one name."""

    report: str
    forms: Collection[ReportForm]
    parameters: Collection[str]

    async def write(self, asked: ReportRequest, facts: ReportFacts, output: ReportOutput) -> ReportData:
        """Write the report of a period, and say what a template may read of it."""
        ...


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """A due run was handed over: delivery work is queued. `dispatch_result` is JSON of at most 4 kB.

    `next` is the run that follows it, to be ensured in the transaction that ends this one (`DueEnd.next`).
    """

    dispatch_result: str
    trace_blob: str | None = None
    next: AutomationScheduler | None = None


class NotHanded(msgspec.Struct, frozen=True, kw_only=True):
    """There is nobody, or no longer a reason, to hand it to; `next` as of one that was handed over."""

    reason: EndReason
    next: AutomationScheduler | None = None


class ReportRuns(Protocol):
    """Hands due runs of report subscriptions over; asked again after a kill, it hands the same over and nothing more.

    Raises PluginFailed or an OperatorError where the run is to be tried again.
    """

    async def run(self, claim: DueClaim, record: SubscriptionRecord, *, now: datetime) -> Handed | NotHanded:
        """Write the report of a claimed run and hand it over to whom its subscription names."""
        ...
