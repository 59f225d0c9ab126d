"""Asking what happened: one notification's whole story, and an entity's history. Changes nothing."""

from datetime import UTC
from typing import Annotated
from uuid import UUID

import msgspec
import typer

from clarion.cli import option
from clarion.cli.desk import Desk, at_desk, find_job, unknown_id
from clarion.cli.output import clock_time, moment, print_json, print_pairs, print_table, say
from clarion.cli.send import read_recipient
from clarion.domain import derived_id, key
from clarion.domain.identity import Channel, IdentityDomain
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.story import JobStory, OutgoingStory, TimelineLine, timeline
from clarion.errors import InvalidInput
from clarion.ports.insights import JobLine
from clarion.producers.direct import target_of

STATES_MAX = 6
"""Messages whose state is told before the story: those of two recipients on three channels; --json has all."""


class MessageState(msgspec.Struct, frozen=True, kw_only=True):
    """How one message stands; a retry asks for its id and version."""

    id: int
    version: int
    message_id: UUID
    channel: Channel
    status: OutgoingStatus
    reason: str | None


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What `explain` tells."""

    job_id: UUID
    message_id: UUID | None
    type: str
    lines: tuple[TimelineLine, ...]
    messages: tuple[MessageState, ...]


def explain(
    message_or_job: Annotated[str, typer.Argument(help="The id of a message or of a job.", metavar="ID")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Tell the whole story of a notification in order, with times and reasons."""

    async def work(desk: Desk) -> tuple[JobStory, UUID | None]:
        job_guid, message_id = await find_job(desk, message_or_job)
        story = await desk.store.find_job_story(desk.tenant_id, job_guid)
        if story is None:
            raise unknown_id(message_or_job)
        return story, message_id

    story, message_id = at_desk(work, store=store, tenant=tenant)
    lines = timeline(story, message_id=message_id)
    if as_json:
        print_json(
            Story(
                job_id=story.job.guid,
                message_id=message_id,
                type=story.job.event_type,
                lines=lines,
                messages=tuple(_state(row) for row in story.outgoing if message_id in (None, row.message_id)),
            )
        )
        return
    _print_head(story, message_id)
    typer.echo("")
    several = len({line.message_id for line in lines if line.message_id is not None}) > 1
    days = [f"{line.at.astimezone(UTC):%Y-%m-%d}" for line in lines]
    print_table(
        (days[0], "", *(("message",) if several else ()), "", "times in UTC"),
        [
            (
                clock_time(line.at) if day == days[0] else f"{day} {clock_time(line.at)}",
                line.channel or "",
                *((_short(line.message_id),) if several else ()),
                line.what,
                line.detail,
            )
            for day, line in zip(days, lines, strict=True)
        ],
        empty="nothing is stored about it",
    )


def history(
    entity: Annotated[
        str,
        typer.Argument(
            help="The guid of what it is about, or a recipient as in `clarion send --to`.", metavar="ENTITY"
        ),
    ],
    *,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List every notification about an entity, newest first."""

    async def work(desk: Desk) -> list[JobLine]:
        partition_key = await _partition(desk, entity)
        # One more than is shown tells whether there is a next page.
        return list(await desk.store.list_jobs(desk.tenant_id, partition_key, after=after, limit=limit + 1))

    found = at_desk(work, store=store, tenant=tenant)
    jobs, following = found[:limit], found[limit - 1].row_key if len(found) > limit else None
    if as_json:
        items = [
            {
                "job_id": job.guid,
                "type": job.event_type,
                "status": job.scheduler_status,
                "accepted_at": job.source_at,
            }
            for job in jobs
        ]
        print_json({"items": items, "next": following})
        return
    print_table(
        ("time", "type", "state", "job"),
        [(moment(job.source_at), job.event_type, job.scheduler_status, job.guid) for job in jobs],
        empty="nothing was ever sent about it",
    )
    if following is not None:
        say(f"more: --after {following}")


async def _partition(desk: Desk, text: str) -> str:
    """Find where a history opens: at an entity's guid, or at a recipient."""
    entity_guid = _entity_guid(text)
    if entity_guid is not None:
        return key.event_job_pk(entity_guid=entity_guid)
    try:
        identity = target_of(read_recipient(text)).identity
    except InvalidInput:
        raise InvalidInput(
            "it names neither an entity nor a recipient",
            field="entity",
            hint="give the entity's guid, user:ID, employee:GUID, group:GUID, or an address in full",
        ) from None
    keys = await desk.platform.keyring.get(desk.tenant_id)
    hashed = derived_id.recipient_id_hash(identity_key=keys.identity_key, tenant_id=keys.tenant_id, identity=identity)
    return key.manual_job_pk(entity_guid=None, recipients=[identity], recipient_id_hash=hashed, job_guid=UUID(int=0))


def _entity_guid(text: str) -> UUID | None:
    """Read `GUID` or `TYPE:GUID`; None for what names a recipient."""
    kind, _, rest = text.rpartition(":")
    if kind in {*IdentityDomain, *Channel}:
        return None
    try:
        return UUID(rest)
    except ValueError:
        return None


def _short(message_id: UUID | None) -> str:
    """Give the first digits of an id, enough to tell the messages of one job apart."""
    return "" if message_id is None else f"{message_id!s:.8}"


def _stands(where: str, reason: str | None) -> str:
    return f"{where} ({reason})" if reason else where


def _state(row: OutgoingStory) -> MessageState:
    return MessageState(
        id=row.id,
        version=row.version,
        message_id=row.message_id,
        channel=row.channel,
        status=row.status,
        reason=row.reason,
    )


def _print_head(story: JobStory, message_id: UUID | None) -> None:
    """Say what it is about and how it stands, before the details."""
    job, scheduler = story.job, story.scheduler
    rows = [row for row in story.outgoing if message_id in (None, row.message_id)]
    states = [_stands(f"{row.channel}: {row.status}", row.reason) for row in rows]
    if not rows and scheduler is not None:
        states = [_stands(f"{scheduler.stage}: {scheduler.status}", scheduler.reason)]
    print_pairs(
        [
            ("type", f"{job.event_type}, version {job.template_version}" if job.template_version else job.event_type),
            ("job", job.guid),
            ("message", message_id),
            ("about", f"{job.source_type} {job.source}" if job.source_type else None),
            *[("state", state) for state in states[:STATES_MAX]],
            ("", f"and {len(states) - STATES_MAX} more" if len(states) > STATES_MAX else None),
            ("request", job.correlation_id),
        ]
    )
