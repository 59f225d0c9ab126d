"""Operations on what is known that chance can put together, and all the questions that can be asked of a store."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from clarion.domain.attribute import Attribute, Kind
from clarion.domain.audience import Audience
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.identity import Channel
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingMessage
from clarion.domain.person import StoredPerson
from clarion.domain.result import Standing, standing_of
from clarion.domain.seal import Purpose
from clarion.domain.support import SupportCase, SupportStatus
from clarion.domain.suppression import Cause, Change, Suppression
from clarion.ports.catalog import ApiKey, NewTemplate, Role
from clarion.ports.insights import PAGE_MAX, UncertainLine
from clarion.testing.contracts.group_operation import GROUP_OPERATIONS, GROUPS, PAGE, PEOPLE, about_groups
from clarion.testing.contracts.kind import changed_person
from clarion.testing.contracts.queue_operation import Elapse, Resolve
from clarion.testing.contracts.setting_operation import PUT_SETTING, effective_of, settings_of
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.contracts.subscription_operation import (
    SUBSCRIPTION_OPERATIONS,
    deliveries_of,
    subscriptions_of,
    totals_of,
)
from clarion.testing.factories import address_version, guid, messaging_job, person, person_version

KEYS: Final = ("welcome", "reset", "Ärger")
TYPES: Final = ("order-shipped", "one-time-code")
CATEGORIES: Final = ("news", "Ärger & mehr")
SCOPES: Final = ("*", "news", "news:email")
LONG_AGO: Final = datetime(2026, 1, 2, tzinfo=UTC)


class MakeTenant(msgspec.Struct, frozen=True):
    """Make the tenant, by a person or by a program."""

    key: bytes
    actor: str | None

    async def run(self, side: Side) -> object:
        """Ensure it."""
        return await side.store.ensure_tenant(side.tenant_id, {(Purpose.DATA, 1): self.key}, actor=self.actor)


class Publish(msgspec.Struct, frozen=True):
    """Publish a set of templates: (key, content)."""

    templates: tuple[tuple[str, int], ...]

    async def run(self, side: Side) -> object:
        """Publish them."""
        templates = [
            NewTemplate(template_key=key, content_hash=f"h1:{content}", bundle=f'{{"content": {content}}}')
            for key, content in self.templates
        ]
        return await side.store.publish_templates(side.tenant_id, templates, actor="sam")


class PutPeople(msgspec.Struct, frozen=True):
    """Put people with addresses of their own: (number, which). Who has none differs from before in every column.

    The first of several addresses is retired, and not verified.
    """

    people: tuple[tuple[int, tuple[int, ...]], ...]
    actor: str | None = None

    async def run(self, side: Side) -> object:
        """Ensure the addresses, then put all of them."""
        people = []
        for n, editions in self.people:
            versions = [address_version(n, edition) for edition in editions]
            answers = await side.store.ensure_address_versions(side.tenant_id, versions)
            edit = person_version(n, profile_hash=f"k1:{len(editions)}")
            (profile,) = await side.store.ensure_person_versions(side.tenant_id, [edit])
            put = person(n, *(answer.record for answer in answers), person_version_id=profile.record.id)
            if editions[1:]:
                old = msgspec.structs.replace(put.contacts[0], verified=False, retired_at=LONG_AGO)
                put = msgspec.structs.replace(put, contacts=(old, *put.contacts[1:]))
            people.append(put if editions else changed_person(put))
        values = {one.recipient_id_hash: {"grade": str(len(one.contacts))} for one in people if one.contacts}
        return await side.store.put_people(side.tenant_id, people, attributes=values, actor=self.actor)


class EditPerson(msgspec.Struct, frozen=True):
    """Change a person, who is known or not, as they were seen or otherwise."""

    n: int
    locale: str
    is_late: bool

    async def run(self, side: Side) -> object:
        """Look, and put them as they are but for the locale."""
        hashed = address_version(self.n).recipient_id_hash
        seen = dict(await side.store.find_people(side.tenant_id, [hashed]))
        known = seen[hashed].person if hashed in seen else person(self.n)
        if self.is_late:
            seen = {hashed: StoredPerson(person=msgspec.structs.replace(known, tz_id="UTC"))}
        edited = msgspec.structs.replace(known, locale=self.locale)
        return await side.store.put_people(side.tenant_id, [edited], seen=seen, actor="sam")


class RemovePeople(msgspec.Struct, frozen=True):
    """Remove people, known or not."""

    people: tuple[int, ...]

    async def run(self, side: Side) -> object:
        """Remove them."""
        hashes = [address_version(n).recipient_id_hash for n in self.people]
        return await side.store.remove_people(side.tenant_id, hashes, actor="sam")


class Declare(msgspec.Struct, frozen=True):
    """Declare an attribute."""

    kind: Kind

    async def run(self, side: Side) -> object:
        """Declare it, whatever it is already."""
        return await side.store.declare_attribute(side.tenant_id, Attribute(name="grade", kind=self.kind), actor="sam")


class Switch(msgspec.Struct, frozen=True):
    """Switch a notification type on or off."""

    event_type: str
    enabled: bool

    async def run(self, side: Side) -> object:
        """Switch it."""
        return await side.store.set_type_enabled(side.tenant_id, self.event_type, enabled=self.enabled, actor="sam")


class Suppress(msgspec.Struct, frozen=True):
    """Suppress people: (number, scope, cause)."""

    rows: tuple[tuple[int, str, Cause], ...]

    async def run(self, side: Side) -> object:
        """Put them."""
        items = [
            Suppression(subject=address_version(n).recipient_id_hash, scope=scope, cause=cause, note=cause)
            for n, scope, cause in self.rows
        ]
        return await side.store.put_suppressions(side.tenant_id, items, actor="sam", reason="asked")


class Lift(msgspec.Struct, frozen=True):
    """Suppress people no more: (number, scope)."""

    keys: tuple[tuple[int, str], ...]

    async def run(self, side: Side) -> object:
        """Lift them."""
        keys = [(address_version(n).recipient_id_hash, scope) for n, scope in self.keys]
        return await side.store.lift_suppressions(side.tenant_id, keys, actor="sam")


class Prefer(msgspec.Struct, frozen=True):
    """Set preferences of one person."""

    person: int
    changes: tuple[Change, ...]

    async def run(self, side: Side) -> object:
        """Set them."""
        recipient = address_version(self.person).recipient_id_hash
        done = await side.store.set_preferences(side.tenant_id, recipient, self.changes, actor="recipient")
        return sorted(done.put), sorted(done.lifted)


class PutKey(msgspec.Struct, frozen=True):
    """Store an API key."""

    key: int
    role: Role

    async def run(self, side: Side) -> object:
        """Store it, unless its id is taken."""
        key = ApiKey(
            key_id=f"{side.tenant_id}-{self.key}",
            tenant_id=side.tenant_id,
            secret_hash=f"h1:{self.key}",
            actor=f"app-{self.key}",
            role=self.role,
        )
        return await side.store.put_api_key(key, actor="sam")


class RevokeKey(msgspec.Struct, frozen=True):
    """Revoke an API key."""

    key: int

    async def run(self, side: Side) -> object:
        """Revoke it."""
        return await side.store.revoke_api_key(side.tenant_id, f"{side.tenant_id}-{self.key}", actor="sam")


class Ask(msgspec.Struct, frozen=True):
    """Ask every question that a store answers, about everything that the tenant has."""

    async def run(self, side: Side) -> object:
        """Ask them."""
        store, tenant_id = side.store, side.tenant_id
        hashes = [address_version(n).recipient_id_hash for n in PEOPLE]
        groups = [guid(n, "group") for n in GROUPS]
        templates = [(tenant_id, key, version) for key in KEYS for version in (None, 1, 2)]
        found = await store.find_members(tenant_id, groups)
        audience = Audience(groups=tuple(groups))
        return {
            "keys": await store.find_tenant_keys(tenant_id),
            "templates": await store.list_templates(tenant_id),
            "published": [
                [(one.version, one.content_hash) for one in await store.list_template_versions(tenant_id, key, limit=9)]
                for key in KEYS
            ],
            "versions": [one for _, one in sorted((await store.find_templates(templates)).items(), key=repr)],
            "people": await store.find_recipients(tenant_id, hashes),
            "known": await store.find_people(tenant_id, hashes),
            "listed": await store.list_people(tenant_id, limit=PAGE),
            "listed later": await store.list_people(tenant_id, after=hashes[0], limit=PAGE),
            "attributes": await store.list_attributes(tenant_id),
            "forms": await store.find_local_forms(tenant_id, [guid(n, "unit") for n in GROUPS]),
            "units": await store.list_business_units(tenant_id),
            "groups": {str(one): members for one, members in found.items()},
            "audience": [await store.find_audience(tenant_id, audience, after=one, limit=2) for one in ("", *hashes)],
            "settings": await settings_of(side),
            "effective": await effective_of(side),
            "subscriptions": await subscriptions_of(side),
            "deliveries": await deliveries_of(side),
            "totals": [await totals_of(side, one) for one in ("", str(messaging_job(1).guid))],
            "suppressed": await store.list_suppressions(tenant_id, limit=PAGE_MAX),
            "suppressed first": await store.list_suppressions(tenant_id, limit=PAGE),
            "suppressed one": await store.list_suppressions(tenant_id, subjects=hashes[:1]),
            "scopes": {
                one: sorted(scopes.items())
                for one, scopes in (await store.find_suppressions(tenant_id, hashes)).items()
            },
            **await about_groups(side),
            "api keys": await store.list_api_keys(tenant_id),
            "api key": await store.find_api_key(f"{tenant_id}-1"),
            "gauge": await store.measure(),
            "uncertain": [one async for one in _pages(side)],
            **await _about_jobs(side),
            **await _about_support(side),
        }


async def _about_jobs(side: Side) -> dict[str, object]:
    """Ask about every job, message and guard."""
    store, tenant_id = side.store, side.tenant_id
    jobs = sorted(await side.harness.rows(tenant_id, NotificationJob), key=lambda job: job.row_key)
    messages = sorted({row.message_id for row in await side.harness.rows(tenant_id, OutgoingMessage)})
    guards = sorted(row.key for row in await side.harness.rows(tenant_id, IdempotencyGuard))
    return {
        "timelines": [await store.find_job_timeline(tenant_id, job.guid) for job in jobs],
        "parts": [await store.find_job_timeline(tenant_id, job.guid, messages=messages[:3]) for job in jobs],
        "by guid": [await store.find_job(tenant_id, job.guid) for job in jobs],
        "jobs": [await store.list_jobs(tenant_id, job.partition_key, limit=PAGE) for job in jobs],
        "latest": sorted(await store.list_latest_jobs(tenant_id, limit=PAGE_MAX), key=lambda job: job.row_key),
        "standings": {str(one): found for one, found in (await _standings(side, jobs)).items()},
        "sets": sorted(await store.find_sets(tenant_id, [job.guid for job in jobs]), key=lambda one: one.guid),
        "of recipients": [
            await store.list_jobs_of_recipient(tenant_id, f"{n:032}", partition_key=job.partition_key, limit=PAGE)
            for n, job in enumerate(jobs)
        ],
        "counts": sorted((await store.count_messages(tenant_id, messages)).items()),
        "payloads": sorted((await store.find_payloads(tenant_id, [job.guid for job in jobs])).items()),
        "of messages": [await store.find_job_of_message(tenant_id, message_id) for message_id in messages],
        "guards": [await store.find_guard(tenant_id, (operation, key_hash)) for operation, key_hash in guards],
    }


async def _standings(side: Side, jobs: Sequence[NotificationJob]) -> dict[UUID, Standing]:
    """Count what decides each job's result, and hold it to what a timeline shows of the same rows."""
    found = await side.store.find_standings(side.tenant_id, [job.guid for job in jobs])
    for job in jobs:
        timeline = await side.store.find_job_timeline(side.tenant_id, job.guid)
        assert timeline is None or found[job.guid] == standing_of(timeline)
    return found


async def _about_support(side: Side) -> dict[str, object]:
    """Ask what went wrong and who did what, page by page."""
    store, tenant_id = side.store, side.tenant_id
    case_ids = sorted(case.case_id for case in await side.harness.rows(tenant_id, SupportCase))
    after: UUID | None = case_ids[0] if case_ids else None
    return {
        "cases": await store.list_support_cases(tenant_id, limit=PAGE),
        "later cases": await store.list_support_cases(tenant_id, after=after),
        "open cases": await store.list_support_cases(tenant_id, status=SupportStatus.OPEN),
        "each case": [await store.find_support_case(tenant_id, case_id) for case_id in case_ids],
        "audit": await store.list_audit(tenant_id, after=1, limit=PAGE),
        "newest audit": await store.list_newest_audit(tenant_id, limit=PAGE),
        "older audit": await store.list_newest_audit(tenant_id, before=3, limit=PAGE),
    }


async def _pages(side: Side) -> AsyncIterator[UncertainLine]:
    """List what is uncertain, each page behind the last id of the one before."""
    after = 0
    while page := await side.store.list_uncertain(side.tenant_id, after=after, limit=PAGE):
        for line in page:
            yield line
        after = page[-1].id


_N: Final = st.integers(1, len(PEOPLE))
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (1, st.builds(MakeTenant, key=st.sampled_from((b"1", b"2")), actor=st.sampled_from((None, "sam")))),
    (
        4,
        st.builds(
            Publish,
            templates=st.dictionaries(st.sampled_from(KEYS), st.integers(1, 2), max_size=3).map(
                lambda drawn: tuple(drawn.items())
            ),
        ),
    ),
    (
        4,
        st.builds(
            PutPeople,
            people=st.lists(
                st.tuples(_N, st.lists(st.integers(1, 3), max_size=2, unique=True).map(tuple)),
                min_size=1,
                max_size=3,
                unique_by=lambda one: one[0],
            ).map(tuple),
            actor=st.sampled_from((None, "sam")),
        ),
    ),
    (2, st.builds(EditPerson, n=_N, locale=st.sampled_from(("de", "fr")), is_late=st.booleans())),
    (1, st.builds(RemovePeople, people=st.lists(_N, max_size=2).map(tuple))),
    (1, st.builds(Declare, kind=st.sampled_from(tuple(Kind)))),
    *GROUP_OPERATIONS,
    (3, st.builds(Switch, event_type=st.sampled_from(TYPES), enabled=st.booleans())),
    (4, PUT_SETTING),
    *SUBSCRIPTION_OPERATIONS,
    (
        4,
        st.builds(
            Suppress,
            rows=st.lists(st.tuples(_N, st.sampled_from(SCOPES), st.sampled_from(Cause)), max_size=4).map(tuple),
        ),
    ),
    (2, st.builds(Lift, keys=st.lists(st.tuples(_N, st.sampled_from(SCOPES)), max_size=3).map(tuple))),
    (
        4,
        st.builds(
            Prefer,
            person=_N,
            changes=st.lists(
                st.builds(
                    Change,
                    category=st.sampled_from(CATEGORIES),
                    channel=st.sampled_from((None, *Channel)),
                    on=st.booleans(),
                ),
                max_size=3,
            ).map(tuple),
        ),
    ),
    (3, st.builds(PutKey, key=st.integers(1, 3), role=st.sampled_from(tuple(Role)))),
    (2, st.builds(RevokeKey, key=st.integers(1, 3))),
    (1, st.builds(Resolve, place=st.integers(0, 9))),
    (2, st.builds(Elapse, seconds=st.sampled_from((1, 61)))),
    (2, st.builds(Ask)),
)
CATALOG_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
