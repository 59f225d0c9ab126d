"""A stage to measure on: a fresh store with one tenant, a published notification and recipients, built in sets."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clarion.bootstrap import Platform, Settings, open_platform, prepare
from clarion.dispatch.message import outgoing_item
from clarion.dispatch.request import Destination, Direct, JobRequest, Trace
from clarion.domain.address import AddressVersion
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.recipient import Target
from clarion.ports.catalog import NewTemplate
from clarion.testing.postgres import postgres_server

TENANT = "bench"
TRACE = Trace(correlation_id="bench")
SET = 1000


@contextmanager
def store_urls(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the address of a durable store on each engine."""
    with postgres_server(durable=True) as server, server.database() as url:
        yield {"postgres": url, "sqlite": f"sqlite:///{folder}/clarion.db"}


@asynccontextmanager
async def open_stage(store: str, *, vault: Path, provider: str) -> AsyncIterator[Platform]:
    """Open an installation on a store, with one provider for every channel and the tenant made."""
    settings = Settings(store=store, blobs="memory://", vault=f"file://{vault}", providers={"*": provider})
    await prepare(settings)
    async with open_platform(settings) as platform:
        await platform.dispatcher.ensure_tenant(TENANT)
        yield platform


async def publish(
    platform: Platform, key: str, channel: Channel, files: Mapping[str, str], *, required: tuple[str, ...] = ()
) -> int:
    """Publish one channel of a notification; return its version."""
    definition = Definition(key=key, title=key, channels=(channel,), required=required)
    mine = {name: text for name, text in files.items() if name.startswith(channel)}
    bundle = platform.renderer.compile(definition, mine)
    template = NewTemplate(
        template_key=key, content_hash=bundle.content_hash, bundle=msgspec.json.encode(bundle).decode()
    )
    (answer,) = await platform.store.publish_templates(TENANT, [template], actor="bench")
    await platform.templates.load([(TENANT, key, answer.record.version)])
    return answer.record.version


async def addresses(platform: Platform, channel: Channel, *, count: int) -> list[AddressVersion]:
    """Make so many recipients with one address each."""
    made: list[AddressVersion] = []
    for start in range(0, count, SET):
        given = [
            Destination(
                identity=Identity.user(str(n)),
                channel=channel,
                destination=f"+4477009{n:05d}" if channel is Channel.SMS else f"user{n}@example.com",
                trace=TRACE,
            )
            for n in range(start, min(count, start + SET))
        ]
        made += [answer.record for answer in await platform.dispatcher.ensure_address_versions(TENANT, given)]
    return made


async def job(platform: Platform, event_type: str, version: int, *, key: str) -> NotificationJob:
    """Make one job that many messages derive from."""
    (made,) = await jobs(platform, event_type, version, keys=[key])
    return made


async def jobs(platform: Platform, event_type: str, version: int, *, keys: Sequence[str]) -> list[NotificationJob]:
    """Make a job for each key; none is scheduled, so that its messages are made by hand."""
    made: list[NotificationJob] = []
    for start in range(0, len(keys), SET):
        requests = [
            JobRequest(
                origin=Direct(operation="bench", idempotency_key=key),
                event_type=event_type,
                source_at=datetime.now(UTC),
                to=(Target(identity=Identity.user("0")),),
                data={"name": "Sam"},
                resolved_template_version=version,
                scheduled=False,
                trace=TRACE,
            )
            for key in keys[start : start + SET]
        ]
        made += [answer.record for answer in await platform.dispatcher.ensure_notification_job(TENANT, requests)]
    return made


def sends(parents: Sequence[NotificationJob], people: Sequence[AddressVersion], *, lane: Lane) -> list[OutgoingItem]:
    """Make one message of each job to its recipient."""
    return [
        outgoing_item(
            TENANT,
            parent,
            recipient_id_hash=one.recipient_id_hash,
            channel=one.channel,
            address_id=one.id or 0,
            lane=lane,
        )
        for parent, one in zip(parents, people, strict=True)
    ]
