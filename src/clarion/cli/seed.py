"""The demo's first start: makes the installation and puts the school into it.

It publishes the sample notifications, puts in people and what they are to each other, says who hears of what and what
the school is reminded of, sends what a first day brings and makes an API key.
Every step is idempotent and the key's file is written last, so a start that was interrupted is simply made again, and a
later one finds the file and changes nothing. No worker runs before that, so nothing was planned by the days of a start
that was interrupted.
"""

import os
from pathlib import Path

from clarion.bootstrap import Platform, Settings, open_platform, prepare
from clarion.catalog.access import Access
from clarion.catalog.people import People
from clarion.catalog.publish import Publisher
from clarion.cli import school, school_agenda
from clarion.cli.access import grant
from clarion.cli.output import progress
from clarion.cli.session import Session, acting, open_session
from clarion.client.wire_sources import SourcesRequest
from clarion.domain.group import Relation
from clarion.domain.person import BusinessUnit
from clarion.errors import BadConfiguration
from clarion.ports.catalog import Role

KEY_FILE = "demo-api-key"
ACTOR = "demo"

DEFINITIONS = Path(__file__).parent / "definitions"
"""The sample notifications, which are part of the package."""


async def seed(settings: Settings) -> str | None:
    """Make the school unless it is there; return its new API key, or None where there was one."""
    with progress("preparing") as step:
        step("database")
        await prepare(settings)
        async with open_platform(settings) as platform:
            if await _is_seeded(platform, key_path(settings)):
                return None
            await platform.dispatcher.ensure_tenant(school.TENANT, actor=acting())
            session = await open_session(platform, tenant=school.TENANT)
            await session.store.set_tenant_form(school.TENANT, school.FORM, actor=session.actor)
            publisher = Publisher(catalog=session.store, renderer=platform.renderer)
            await publisher.publish(school.TENANT, folder=DEFINITIONS, actor=session.actor, progress=step)
            step("people")
            people = People(catalog=session.store, dispatcher=platform.dispatcher, keyring=platform.keyring)
            await people.put(school.TENANT, [*school.PARENTS, *school.EMPLOYEES], trace=session.trace)
            for group in school.GROUPS:
                await people.put_group(school.TENANT, group)
            await _put_ties(session)
            step("settings")
            await _put_settings(session)
            step("reminders")
            await _put_agenda(session)
            step("the first day")
            await _send_first_day(session)
            minted = await grant(session, actor=ACTOR, role=Role.ADMIN)
            _write_key(key_path(settings), minted.token)
            return minted.token


def key_path(settings: Settings) -> Path:
    """Say where the demo's API key is kept: in the home, or where the program was started if nothing lies there."""
    return (settings.home or Path.cwd()) / KEY_FILE


async def _is_seeded(platform: Platform, path: Path) -> bool:
    """Tell whether an earlier start came to its end: its key is there and opens the door."""
    caller = await Access(platform.store, clock=platform.clock).check(_read_key(path))
    return caller is not None and caller.tenant_id == school.TENANT


async def _put_ties(session: Session) -> None:
    """Put in the business units, who holds which role, and what people are to things."""
    store, tenant_id, actor = session.store, session.tenant_id, session.actor
    keys = await session.platform.keyring.get(tenant_id)
    for guid, name in school.UNITS.items():
        await store.put_business_unit(tenant_id, BusinessUnit(guid=guid, name=name), actor=actor)
    for (role, unit), who in school.HOLDERS.items():
        await store.change_holders(tenant_id, role, unit=unit, add=[keys.hash_of(who)], remove=[], actor=actor)
    relations = [
        Relation(entity_type=kind, entity_guid=guid, relation=relation, recipient_id_hash=keys.hash_of(who))
        for kind, guid, relation, who in (*school.RELATIONS, *school_agenda.RELATIONS)
    ]
    await store.change_relations(tenant_id, add=relations, remove=[], actor=actor)


async def _put_settings(session: Session) -> None:
    """Say who hears of what, and what somebody does not want to hear of."""
    for (notification, unit), change in school.SETTINGS.items():
        operations = session.operations.settings
        await operations.change(session.tenant_id, notification, unit, change, actor=session.actor)
    keys = await session.platform.keyring.get(session.tenant_id)
    for who, preference in school.OPTED_OUT.items():
        await session.store.set_preferences(
            session.tenant_id, keys.hash_of(who), [preference], actor=session.actor, reason="asked for it"
        )


async def _put_agenda(session: Session) -> None:
    """Put in the things that the school is reminded of, and say when and whom; sources last, for they are planned."""
    operations, tenant_id, actor = session.operations, session.tenant_id, session.actor
    now = await session.store.now()
    for event_type, notification in school_agenda.EVENTS.items():
        await operations.event_mappings.put(tenant_id, event_type, notification, actor=actor)
    for guid, setting in school_agenda.reminders(now).items():
        await operations.reminders.put(tenant_id, guid, setting, actor=actor)
    for guid, subscription in school_agenda.reports(now).items():
        await operations.reports.put(tenant_id, guid, subscription, actor=actor)
    for source_type, items in school_agenda.sources(now).items():
        request = SourcesRequest(sources=items)
        await operations.sources.put_all(tenant_id, source_type, request, actor=actor, trace=session.trace)


async def _send_first_day(session: Session) -> None:
    for key, asked in school.FIRST_DAY.items():
        await session.operations.notifications.send(
            session.tenant_id, asked, key=key, actor=session.actor, trace=session.trace
        )


def _read_key(path: Path) -> str:
    """Read the key that an earlier start kept; empty where there is none."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    except OSError as error:
        raise _unusable(path, error) from None


def _write_key(path: Path, token: str) -> None:
    """Keep the key for this user only, in place of one that opens nothing."""
    try:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> BadConfiguration:
    return BadConfiguration(
        f"the API key cannot be kept in {path} ({error.strerror})", hint="let this user write a file there"
    )
