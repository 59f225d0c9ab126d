"""Reports: which there are, subscriptions to them, runs by hand, and opening one by its link. Changes are audited."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.subscriptions import Subscriptions
from clarion.client import wire, wire_reports
from clarion.domain import messaging_content, report_link
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Identity, IdentityDomain, read_person
from clarion.domain.messaging_content import WrittenReport
from clarion.domain.report import ReportSubscription
from clarion.domain.report_run import manual_row
from clarion.domain.sealed_link import no_link, tenant_of
from clarion.errors import Conflict, Gone, InvalidInput
from clarion.operations import page
from clarion.operations.shape import S, as_wire
from clarion.operations.wake import DUE, SETTINGS, Wake
from clarion.ports.source import SubscriptionRecord

SUBSCRIPTIONS: Final = "report-subscriptions"


class Reports:
    """The reports of a tenant."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform, and wake workers."""
        self._wake = wake
        self._store = platform.store
        self._keyring = platform.keyring
        self._contents = platform.contents
        self._reports = platform.reports
        self._changes = Subscriptions(
            platform.store,
            templates=platform.templates,
            check=platform.reports.check,
            public_url=platform.settings.public_url,
        )

    async def kinds(self) -> wire_reports.ReportKinds:
        """List the reports that can be subscribed to."""
        return wire_reports.ReportKinds(
            items=tuple(
                wire_reports.ReportKind(
                    report=one.report, forms=tuple(sorted(one.forms)), parameters=tuple(sorted(one.parameters))
                )
                for one in self._reports.all
            )
        )

    async def list(self, tenant_id: str, query: wire.PageQuery) -> wire_reports.SubscriptionPage:
        """List the report subscriptions."""
        after = page.read_guid(SUBSCRIPTIONS, query.cursor)
        found = await self._store.list_subscriptions(tenant_id, after=after, limit=query.limit + 1)
        records, following = page.cut(SUBSCRIPTIONS, found, query.limit, lambda one: one.subscription.guid.hex)
        now = await self._store.now()
        items = tuple(_as(one, wire_reports.SubscriptionLine, now=now) for one in records)
        return wire_reports.SubscriptionPage(items=items, next_cursor=following)

    async def find(self, tenant_id: str, guid: UUID) -> wire_reports.Subscription | None:
        """Show a report subscription, with what keeps it from reaching anybody."""
        return await self._shown(tenant_id, await self._store.find_subscription(tenant_id, guid))

    async def put(
        self, tenant_id: str, guid: UUID, request: wire_reports.SubscriptionRequest, *, actor: str
    ) -> wire_reports.Subscription | None:
        """Make a report subscription, or replace it; its next run is planned anew."""
        to = tuple(_identity(text, field=f"to[{place}]") for place, text in enumerate(request.to))
        fields = msgspec.structs.asdict(request) | {"to": to}
        subscription = ReportSubscription(guid=guid, tz_id=fields.pop("time_zone"), **fields)
        try:
            changed = await self._changes.put(tenant_id, subscription, actor=actor)
        except InvalidInput as error:
            field = "time_zone" if error.field == "tz_id" else error.field
            raise type(error)(error.message, field=field, hint=error.hint) from None
        if changed:
            self._wake(SETTINGS)
        return await self.find(tenant_id, guid)

    async def switch(self, tenant_id: str, guid: UUID, *, active: bool, actor: str) -> wire_reports.Subscription | None:
        """Switch a report subscription on or off; what waits of one that is off is deactivated."""
        if await self._changes.switch(tenant_id, guid, active=active, actor=actor):
            self._wake(SETTINGS)
        return await self.find(tenant_id, guid)

    async def run(self, tenant_id: str, guid: UUID, run: UUID, *, actor: str) -> wire_reports.SubscriptionRun | None:
        """Have a report written now, once for the guid of the run; None where there is no such subscription."""
        record = await self._store.find_subscription(tenant_id, guid)
        if record is None:
            return None
        if not record.subscription.active:
            raise Conflict("the subscription is not active", hint="switch it on first")
        row = manual_row(record.subscription, run, now=await self._store.now(), correlation_id=str(run))
        answer = await self._store.run_subscription(tenant_id, row, actor=actor)
        if answer.outcome is Outcome.CREATED:
            self._wake(DUE)
        return wire_reports.SubscriptionRun(
            subscription=guid,
            run=run,
            occurrence=row.scheduler_key,
            created=answer.outcome is Outcome.CREATED,
        )

    async def open(self, token: str) -> WrittenReport:
        """Open the report that a link leads to.

        Raises Gone where the link has ended, and InvalidInput, always in the same words, where it leads nowhere.
        """
        tenant_id = tenant_of(token)
        try:
            keys = await self._keyring.get(tenant_id)
        except InvalidInput:
            raise no_link() from None
        guid = report_link.read_token(keys, token, now=await self._store.now())
        stored = await self._contents.find(tenant_id, guid)
        if stored is None:
            raise Gone("the report is not kept any more", hint="ask whoever sends it")
        return messaging_content.read_report(stored)

    async def _shown(self, tenant_id: str, record: SubscriptionRecord | None) -> wire_reports.Subscription | None:
        if record is None:
            return None
        warnings = await self._changes.warnings(tenant_id, record.subscription)
        return _as(record, wire_reports.Subscription, now=await self._store.now(), warnings=warnings)


def _as(record: SubscriptionRecord, shape: type[S], *, now: datetime, **more: object) -> S:
    """Give a subscription in its wire form, with who changed it and when it is due next."""
    subscription = record.subscription
    following = subscription.recurrence.after(now) if subscription.active else None
    return as_wire(
        subscription,
        shape,
        time_zone=subscription.tz_id,
        to=tuple(f"{one.domain}:{one.id}" for one in subscription.to),
        version=record.version,
        changed_by=record.changed_by,
        changed_at=record.changed_at,
        next_at=None if following is None else following.scheduled_at,
        **more,
    )


def _identity(text: str, *, field: str) -> Identity:
    """Read whom a subscription names."""
    domain, _, rest = text.partition(":")
    if domain != IdentityDomain.GROUP:
        return read_person(text, field=field)
    try:
        return Identity.group(UUID(rest))
    except ValueError:
        raise InvalidInput("it names no group", field=field, hint="write group: and its guid") from None
