"""Reports: hands due runs of report subscriptions over.

The report of a run's period is written once and kept in a blob, sealed: whoever takes the run over after a kill finds
it there and hands the same over. A messaging job holds it, and a notification job under the run's key tells of it,
which is what people find in the subscription's history; both are made through dispatch. Templates read the report's
data, and the whole of it lies behind a link that ends where the subscription asks for one.

Reads subscriptions, settings and templates; nothing is rendered or sent here.
"""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.occurrence import stored_occurrence
from clarion.dispatch.request import ContentRequest, FromAutomation, JobRequest, Occurrence, ReportContent
from clarion.domain import derived_id, messaging_content, report_link
from clarion.domain.audience import audience_of
from clarion.domain.due import DispatchResult, DueOutcome, Named
from clarion.domain.identity import IdentityDomain, Lane
from clarion.domain.messaging_content import WrittenReport
from clarion.domain.notification import NotificationJob
from clarion.domain.planning import EndReason
from clarion.domain.recipient import Target
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import ReportDelivery
from clarion.domain.report_run import SOURCE_TYPE, Period, following_row, ruled
from clarion.domain.setting import switched_off
from clarion.errors import BadConfiguration, Conflict
from clarion.ports.automation import DueClaim
from clarion.ports.facts import FactStore
from clarion.ports.insights import InsightStore
from clarion.ports.reporting import Handed, NotHanded, ReportFacts, ReportRequest
from clarion.ports.source import SubscriptionRecord
from clarion.ports.templates import Published
from clarion.producers.direct import DirectSends, require_published
from clarion.producers.report_plugin import Reports, Written
from clarion.sealing.contents import MessagingContents
from clarion.sealing.keyring import Keyring

REPORT: Final = "report"
"""The name under which templates read what a report says."""


class SubscriptionRuns:
    """Hands runs over, as `ports.reporting.ReportRuns` has it."""

    def __init__(
        self,
        *,
        reports: Reports,
        counts: ReportFacts,
        facts: FactStore,
        jobs: InsightStore,
        sends: DirectSends,
        dispatcher: DeliveryDispatcher,
        contents: MessagingContents,
        keyring: Keyring,
        public_url: str | None = None,
    ) -> None:
        """Have these reports written from these counts, and told of through this dispatcher; links begin with a URL."""
        self._reports = reports
        self._counts = counts
        self._facts = facts
        self._jobs = jobs
        self._sends = sends
        self._dispatcher = dispatcher
        self._contents = contents
        self._keyring = keyring
        self._public_url = public_url

    async def run(self, claim: DueClaim, record: SubscriptionRecord, *, now: datetime) -> Handed | NotHanded:
        """Write the report of a claimed run and hand it over to whom its subscription names."""
        tenant_id, row, subscription = claim.tenant_id, claim.row, record.subscription
        guid = derived_id.report_job_guid(tenant_id=tenant_id, scheduler_key=row.scheduler_key)
        stored = await self._contents.find(tenant_id, guid)
        job = await self._jobs.find_job(tenant_id, derived_id.row_guid(tenant_id=tenant_id, row_key=row.scheduler_key))
        if stored is None or job is None:
            period = await self._asked_for(claim, subscription, now=now)
            if isinstance(period, EndReason):
                following = following_row(subscription, row, handed_until=None, now=now)
                return NotHanded(reason=period, next=following)
            occurrence = stored_occurrence(row)
            if stored is None:
                stored = await self._write(tenant_id, guid, subscription, period, occurrence)
            job = await self._tell(tenant_id, subscription, occurrence, stored)
        end_at = messaging_content.read_report(stored).end_at
        return Handed(
            dispatch_result=_result(job, subscription, guid).text,
            next=following_row(subscription, row, handed_until=end_at, now=now),
        )

    async def _asked_for(
        self, claim: DueClaim, subscription: ReportSubscription, *, now: datetime
    ) -> Period | EndReason:
        """Say what a run is to tell of, or why nobody is told: nothing is written for nobody."""
        period = ruled(subscription, claim.row, now=now)
        if isinstance(period, EndReason):
            return period
        asked = (claim.tenant_id, subscription.notification_type, subscription.business_unit)
        setting = (await self._facts.find_settings([asked]))[asked]
        if switched_off(subscription.notification_type, setting) is not None:
            return EndReason.NOTIFICATION_TYPE_OFF
        groups = [UUID(one.id) for one in subscription.to if one.domain is IdentityDomain.GROUP]
        if len(groups) < len(subscription.to):
            return period
        of_settings = () if subscription.to else setting.recipients
        audience = audience_of(
            of_settings if subscription.recipients is None else subscription.recipients,
            unit=subscription.business_unit,
            entity=(SOURCE_TYPE, subscription.guid),
            groups=groups,
        )
        found = await self._facts.find_audiences(claim.tenant_id, [audience], limit=1) if audience else [()]
        return period if found[0] else EndReason.NO_RECIPIENTS

    async def _write(
        self, tenant_id: str, guid: UUID, subscription: ReportSubscription, period: Period, occurrence: Occurrence
    ) -> bytes:
        """Have a report written and keep it, if its templates can be merged with it; whoever was first stands."""
        published = await self._sends.look_up(tenant_id, subscription.notification_type)
        require_published(published, subscription.notification_type)
        url, until = "", None
        if subscription.delivery is ReportDelivery.LINK:
            until = published.at + report_link.LASTS
            token = report_link.make_token(await self._keyring.get(tenant_id), guid, until=until)
            url = f"{require_url(self._public_url)}{report_link.PATH}{token}"
        asked = ReportRequest(
            tenant_id=tenant_id,
            report=subscription.report,
            parameters=subscription.parameters,
            start_at=period.start_at,
            end_at=period.end_at,
            tz_id=subscription.tz_id,
            form=subscription.form,
        )
        written = await self._reports.get(subscription.report).write(asked, self._counts)
        report = WrittenReport(
            data={REPORT: _read_by_templates(subscription, period, written, url=url)},
            entity={"type": SOURCE_TYPE, "guid": str(subscription.guid)},
            name=subscription.name,
            report=subscription.report,
            notification_type=subscription.notification_type,
            template_version=published.version or 0,
            start_at=period.start_at,
            end_at=period.end_at,
            form=subscription.form,
            lines=written.data.lines,
            output=written.output,
            written_at=published.at,
            link_until=until,
        )
        trial = _request(subscription, occurrence, report, published, data=report.data)
        await self._sends.check(tenant_id, trial, published, may_raise=True)
        return await self._dispatcher.keep_content(tenant_id, guid, messaging_content.encode(report))

    async def _tell(
        self, tenant_id: str, subscription: ReportSubscription, occurrence: Occurrence, stored: bytes
    ) -> NotificationJob:
        """Make the job that holds a report and the one that tells of it, each once for its run."""
        report = messaging_content.read_report(stored)
        content = ContentRequest(
            of=ReportContent(occurrence=occurrence),
            content=stored,
            source_at=report.written_at,
            template_key=report.notification_type,
            resolved_template_version=report.template_version,
            trace=occurrence.trace,
        )
        (held,) = await self._dispatcher.ensure_messaging_job(tenant_id, [content])
        if not held.proceeds:
            raise _conflict(held.differing)
        published = await self._sends.look_up(tenant_id, report.notification_type)
        request = _request(
            subscription,
            occurrence,
            report,
            published,
            messaging_job=held.record.guid,
            blob_hash=held.record.content_hash.text,
        )
        (told,) = await self._dispatcher.ensure_notification_job(tenant_id, [request])
        if not told.proceeds:
            raise _conflict(told.differing)
        return told.record


def require_url(public_url: str | None) -> str:
    """Give the URL that links begin with, or refuse to make one without."""
    if public_url is None:
        raise BadConfiguration(
            "reports by link need the URL that people reach this installation by",
            hint="set CLARION_PUBLIC_URL where the workers run, or have the report delivered inline",
        )
    return public_url


def _read_by_templates(
    subscription: ReportSubscription, period: Period, written: Written, *, url: str
) -> dict[str, object]:
    """Give what templates read under `report`; `url` is empty where there is no link."""
    return {
        "name": subscription.name,
        "report": subscription.report,
        "start_at": period.start_at.isoformat(),
        "end_at": period.end_at.isoformat(),
        "time_zone": subscription.tz_id,
        "form": subscription.form.value,
        "lines": written.data.lines,
        "url": url,
        "data": written.data.data,
    }


def _request(
    subscription: ReportSubscription,
    occurrence: Occurrence,
    report: WrittenReport,
    published: Published,
    **given: Any,  # noqa: ANN401  fields of the request, of several types
) -> JobRequest:
    """Ask for the notification that tells of a report."""
    lane = Lane.NORMAL if published.bundle is None else published.bundle.definition.lane
    return JobRequest(
        origin=FromAutomation(occurrence=occurrence),
        event_type=report.notification_type,
        source_at=report.written_at,
        entity=(SOURCE_TYPE, subscription.guid),
        to=tuple(Target(identity=one) for one in subscription.to),
        addressees=subscription.recipients,
        resolved_template_version=report.template_version,
        business_unit=subscription.business_unit,
        trace=occurrence.trace,
        resolved_lane=lane,
        **given,
    )


def _conflict(differing: tuple[str, ...]) -> Conflict:
    return Conflict(
        f"what is stored under its key is another ({', '.join(differing) or 'a newer program wrote it'})",
        hint="its support case names both; run the report again by hand",
    )


def _result(job: NotificationJob, subscription: ReportSubscription, guid: UUID) -> DispatchResult:
    """Give the coordinates of what was handed over."""
    return DispatchResult(
        outcome=DueOutcome.HANDED_OVER,
        job=job.guid,
        partition_key=job.partition_key,
        row_key=job.row_key,
        messaging_job=guid,
        notification_type=job.event_type,
        template_version=job.template_version,
        named=len(subscription.to),
        named_by=Named.SETTING if subscription.to or subscription.recipients is not None else Named.TYPE,
    )
