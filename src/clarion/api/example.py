"""One example of every body that the API reads or answers, for its description. No secret, and nobody real."""

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from clarion.client import (
    wire,
    wire_explain,
    wire_groups,
    wire_inbox,
    wire_settings,
    wire_status,
    wire_support,
    wire_types,
)
from clarion.client.wire_rule import Totals
from clarion.domain.audience import Addressee
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Lane
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.result import Result
from clarion.domain.setting import Place
from clarion.domain.skip import SkipRule
from clarion.domain.support import SupportStatus

_AT: Final = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
_JOB: Final = UUID("5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10")
_MESSAGE: Final = UUID("0b0f7c64-3f1b-5a54-8a55-6a3c5c1d2e3f")
_INVOICE: Final = wire.Entity(type="invoice", guid=UUID("6f1c2c7e-1111-4000-8000-000000000001"))
_UNIT: Final = UUID("6f1c2c7e-2222-4000-8000-000000000001")
_REQUEST: Final = "7a9c2b9e-4b7d-4a0c-9f37-2f0f4f6f1d11"

SEND: Final = wire.SendRequest(
    type="welcome",
    to=(wire.Recipient(user="parent-17"), wire.Recipient(address="office@example.com")),
    data={"name": "Robin"},
    entity=_INVOICE,
)
SEND_ANSWER: Final = wire.SendAnswer(job_id=_JOB, message_id=_MESSAGE, accepted_at=_AT, repeated=False)
NOTIFICATION: Final = wire.Notification(
    job_id=_JOB,
    type="invoice-due",
    template_version=3,
    entity=_INVOICE,
    lane=Lane.NORMAL,
    result=Result.SENT,
    stage=Stage.GENERATE,
    status=NotificationStatus.DONE,
    reason=None,
    accepted_at=_AT,
    due_at=None,
    actor="billing",
    correlation_id=_REQUEST,
    recipients=(
        wire.RecipientLine(
            recipient="user:parent-17",
            message_id=_MESSAGE,
            skipped=(wire.Skipped(channel=Channel.SMS, reason="no sms address is known", rule=SkipRule.NO_ADDRESS),),
        ),
    ),
    messages=(
        wire.Message(
            id=1201,
            version=3,
            message_id=_MESSAGE,
            recipient="user:parent-17",
            destination="r…n@example.com",
            channel=Channel.EMAIL,
            status=OutgoingStatus.SENT_TO_PROVIDER,
            attempts=1,
            reason=None,
            account="smtp-mail.example.com",
            due_at=None,
            created_at=_AT,
        ),
    ),
    inbox=(wire.InboxLine(message_id=_MESSAGE, recipient="user:parent-17", created_at=_AT),),
)
KEPT: Final = wire.Kept(kept=1)
CANCELED: Final = wire.Canceled(job_id=_JOB, repeated=False)
TIMELINE: Final = wire.Timeline(
    job_id=_JOB,
    message_id=_MESSAGE,
    type="invoice-due",
    lines=(
        wire.TimelineLine(at=_AT, what="accepted", detail="invoice-due, by billing", channel=None, message_id=None),
        wire.TimelineLine(
            at=_AT + timedelta(seconds=1),
            what="sent",
            detail=None,
            channel=Channel.EMAIL,
            message_id=_MESSAGE,
            recipient="user:parent-17",
        ),
    ),
    recipients=NOTIFICATION.recipients,
    messages=NOTIFICATION.messages,
)
NOTIFICATIONS: Final = wire.NotificationPage(
    items=(
        wire.NotificationLine(
            job_id=_JOB,
            type="invoice-due",
            recipients=1,
            recipient="user:parent-17",
            result=Result.SENT,
            status=NotificationStatus.DONE,
            accepted_at=_AT,
        ),
    ),
    next_cursor=None,
)
_TOTALS: Final = Totals(recipients=1, shown=1, messages=1, inbox=1, not_sent={SkipRule.NO_ADDRESS: 1})
RECIPIENTS: Final = wire_explain.RecipientPage(
    items=(
        wire_explain.RecipientOutcome(
            **msgspec.structs.asdict(NOTIFICATION.recipients[0]), messages=NOTIFICATION.messages, in_inbox=True
        ),
    ),
    totals=_TOTALS,
    next_cursor=None,
)
WOULD_REQUEST: Final = wire_explain.WouldRequest(
    type="welcome", recipient=wire.Recipient(user="parent-17"), entity=_INVOICE
)
WOULD: Final = wire_explain.Would(
    type="welcome",
    version=3,
    recipient="user:parent-17",
    known=True,
    skipped=None,
    channels=(
        wire_explain.WouldChannel(channel=Channel.EMAIL, goes=True, destination="r…n@example.com"),
        wire_explain.WouldChannel(
            channel=Channel.INBOX,
            goes=False,
            rule=SkipRule.SETTING,
            reason="the tenant's setting leaves inbox out",
        ),
    ),
    named_by=("relation:payer",),
    names=("relation:payer", "role:bursar"),
    decided_by=wire_explain.Decided(enabled=None, recipients=Place.TENANT, channels=Place.TENANT),
)
TYPES: Final = wire_types.TypeList(
    items=(
        wire_types.NotificationType(
            type="invoice-due",
            version=3,
            title="Invoice due",
            description="An invoice falls due.",
            channels=(Channel.EMAIL, Channel.INBOX),
            lane=Lane.NORMAL,
            enabled=True,
            variables=("amount", "due", "name"),
        ),
    )
)
_WELCOME: Final = Definition(
    key="welcome", title="Welcome", channels=(Channel.SMS,), locales=("en", "de"), sample={"name": "Maya"}
)
TYPE_REQUEST: Final = wire_types.TypeRequest(
    definition=_WELCOME,
    files={"sms.liquid": "{% t hello %}"},
    locales={"en": {"hello": "Welcome, {{ name }}"}, "de": {"hello": "Willkommen, {{ name }}"}},
)
TYPE_CHANGE: Final = wire_types.TypeChange(
    type="welcome",
    version=3,
    created=True,
    fields=(wire_types.FieldChange(field="lane", before="high", after="normal"),),
    parts=(
        wire_types.PartChange(
            locale="de", channel=Channel.SMS, part="text", lines=("-Hallo, {{ name }}", "+Willkommen, {{ name }}")
        ),
    ),
)
TYPE_DETAILS: Final = wire_types.TypeDetails(
    type="welcome",
    version=3,
    enabled=True,
    definition=_WELCOME,
    variables=("name",),
    versions=(wire_types.TypeVersion(version=3, content_hash="h1:2ef973c4", created_at=_AT),),
)
PREVIEW_REQUEST: Final = wire_types.PreviewRequest(data={"name": "Robin"}, locale="de-AT")
TYPE_PREVIEW: Final = wire_types.TypePreview(
    type="welcome", version=3, locale="de", contents={Channel.SMS: {"text": "Willkommen, Robin"}}
)
DISABLE: Final = wire_types.EnabledRequest(enabled=False)
_NAMED: Final = (Addressee(role="accountant"), Addressee(relation="guardian"))
SETTING_REQUEST: Final = wire_settings.SettingRequest(recipients=_NAMED, channels=(Channel.EMAIL,))
SETTING: Final = wire_settings.Setting(
    type="invoice-due",
    business_unit=_UNIT,
    enabled=None,
    recipients=_NAMED,
    channels=(Channel.EMAIL,),
    changed_by="ada",
    changed_at=_AT,
    effective=wire_settings.Effective(
        enabled=True,
        enabled_by=None,
        recipients=_NAMED,
        recipients_by=Place.UNIT,
        channels=(Channel.EMAIL,),
        channels_by=Place.UNIT,
        left_out=(
            wire.Skipped(
                channel=Channel.INBOX, reason="the business unit's setting leaves inbox out", rule=SkipRule.SETTING
            ),
        ),
    ),
)
SETTINGS: Final = wire_settings.SettingPage(
    items=(
        wire_settings.SettingLine(
            type="invoice-due",
            business_unit=_UNIT,
            enabled=None,
            recipients=_NAMED,
            channels=(Channel.EMAIL,),
            changed_by="ada",
            changed_at=_AT,
        ),
    ),
    next_cursor=None,
)
SETTING_CLEARED: Final = wire_settings.Setting(
    type="invoice-due",
    business_unit=_UNIT,
    enabled=None,
    recipients=None,
    channels=None,
    changed_by=None,
    changed_at=None,
    effective=wire_settings.Effective(
        enabled=True,
        enabled_by=None,
        recipients=(),
        recipients_by=None,
        channels=(Channel.EMAIL, Channel.INBOX),
        channels_by=None,
        left_out=(),
    ),
)
UNCERTAIN: Final = wire_support.UncertainPage(
    items=(
        wire_support.UncertainLine(
            id=1201,
            version=3,
            message_id=_MESSAGE,
            channel=Channel.EMAIL,
            account="smtp-mail.example.com",
            reason="no reply within 20 s",
            since_at=_AT,
        ),
    ),
    next_cursor=None,
)
RETRY: Final = wire_support.RetryRequest(version=3, reason="The provider confirmed by phone that it never arrived.")
RETRIED: Final = wire_support.Retried(id=1201)
RETRY_NOTIFICATION: Final = wire_support.RetryNotificationRequest(reason="The template was mended.")
RETRIED_NOTIFICATION: Final = wire_support.RetriedNotification(job_id=_JOB)
CASE: Final = wire_support.SupportCase(
    case_id=UUID("3f8d1c1e-0a53-5b0b-8f0e-9a4b2b7c6d55"),
    kind="Conflict",
    status=SupportStatus.OPEN,
    about="notification 5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10",
    record="notification",
    record_key='["2516892395999999999_5e6d0d3c-6f5c-5d1e-9c1a-0d6a3b1f2a10"]',
    details={"differing": ["type"]},
    seen_count=2,
    correlation_id=_REQUEST,
    first_seen_at=_AT,
    last_seen_at=_AT + timedelta(minutes=5),
    resolved_at=None,
    resolved_by=None,
    resolution=None,
)
CASES: Final = wire_support.SupportCasePage(items=(CASE,), next_cursor=None)
RESOLVE: Final = wire_support.ResolveRequest(resolution="The caller reused a key by mistake and has corrected it.")
AUDIT: Final = wire_support.AuditPage(
    items=(
        wire_support.AuditLine(
            seq=7,
            at=_AT,
            actor="ada",
            act="disable",
            subject="type newsletter",
            reason=None,
            details={},
            hash="h1:2f0c5d5f6e6d4a4f8f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60",
        ),
    ),
    next_cursor=None,
)
INBOX: Final = wire_inbox.InboxPage(
    items=(
        wire_inbox.InboxMessage(
            message_id=_MESSAGE,
            type="invoice-due",
            category="billing",
            title="Your invoice is due",
            body="Invoice 2026-0815 over 120.00 EUR is due on 1 December.",
            created_at=_AT,
            seen_at=_AT + timedelta(minutes=5),
        ),
    ),
    next_cursor=None,
)
INBOX_COUNTS: Final = wire_inbox.InboxCounts(lines=12, unseen=1, unread=3, archived=40)
STATUS: Final = wire_status.Status(
    at=_AT + timedelta(minutes=5),
    workers=(
        wire_status.WorkerLine(
            name="mail-1:4711",
            program="0.1.0",
            channels=(Channel.EMAIL,),
            started_at=_AT,
            seen_at=_AT + timedelta(minutes=5, seconds=-4),
            lost=False,
        ),
    ),
    accounts=(
        wire_status.AccountLine(
            account="smtp-mail.example.com",
            workers=1,
            failing=True,
            failing_since_at=_AT + timedelta(minutes=1),
            called_at=_AT + timedelta(minutes=4),
            reason="connecting: Connection refused",
        ),
    ),
    waiting=(
        wire_status.ChannelLine(channel=Channel.EMAIL, oldest_seconds=240.0, served=True),
        wire_status.ChannelLine(channel=Channel.SMS, oldest_seconds=12.5, served=False),
    ),
    notifications_waiting=0,
    oldest_notification_seconds=0.0,
    messages_waiting=13,
    oldest_message_seconds=240.0,
    sending=0,
    uncertain=0,
    open_support_cases=1,
    occurrences_due=2,
    oldest_occurrence_seconds=4.0,
    occurrences_held=1,
    occurrences_failed=0,
)
_GROUP: Final = UUID("6f1c2c7e-2222-4000-8000-000000000001")
_INNER: Final = UUID("6f1c2c7e-2222-4000-8000-000000000002")
_CHILD: Final = wire_groups.Thing(type="child", guid=UUID("6f1c2c7e-4444-4000-8000-000000000001"))
GROUP_REQUEST: Final = wire_groups.GroupRequest(name="Parents of class 3", groups=(_INNER,))
GROUP_CHANGE: Final = wire_groups.GroupChange(name="Parents of class 3b")
GROUP: Final = wire_groups.Group(guid=_GROUP, name="Parents of class 3", groups=(_INNER,), members=42)
GROUP_PAGE: Final = wire_groups.GroupPage(
    items=(wire_groups.GroupLine(guid=_GROUP, name="Parents of class 3"),), next_cursor=None
)
MEMBERS_REQUEST: Final = wire_groups.MembersRequest(add=("user:parent-17",), remove=("user:parent-3",))
MEMBERS_CHANGE: Final = wire_groups.MembersChange(added=1, removed=1, unchanged=0, unknown=0)
MEMBER_PAGE: Final = wire_groups.MemberPage(items=(wire_groups.MemberLine(person="user:parent-17"),), next_cursor=None)
UNIT_REQUEST: Final = wire_groups.UnitRequest(name="North", locale="de-AT", zone="Europe/Vienna")
UNIT_CHANGE: Final = wire_groups.UnitChange(zone="Europe/Berlin")
UNIT: Final = wire_groups.Unit(guid=_UNIT, name="North", locale="de-AT", zone="Europe/Vienna")
UNIT_PAGE: Final = wire_groups.UnitPage(items=(UNIT,), next_cursor=None)
TENANT_REQUEST: Final = wire_groups.TenantRequest(locale="de-AT", zone="Europe/Vienna")
TENANT: Final = wire_groups.Tenant(tenant_id="school", locale="de-AT", zone="Europe/Vienna")
ROLE_PAGE: Final = wire_groups.RolePage(
    items=(wire_groups.RoleLine(role="teacher", business_unit=_UNIT, holders=12),), next_cursor=None
)
RELATIONS_REQUEST: Final = wire_groups.RelationsRequest(
    add=(wire_groups.Relation(entity=_CHILD, relation="guardian", person="user:parent-17"),)
)
RELATION_PAGE: Final = wire_groups.RelationPage(
    items=(wire_groups.RelationLine(entity=_CHILD, relation="guardian", person="user:parent-17"),), next_cursor=None
)
PROBLEM: Final = wire.Problem(
    type="urn:clarion:error:invalid-input",
    title="A value cannot be accepted",
    status=422,
    detail="the notification type 'invoice-due' needs amount: add what is missing to data and send again",
    code="invalid-input",
    correlation_id=_REQUEST,
    field="data",
)
