"""The founding of an installation: its people, what they belong to, and what its settings say, in good weather."""

from collections.abc import Iterator
from uuid import UUID

import msgspec

from clarion.dispatch.request import Trace
from clarion.domain.entity_event import EventMapping
from clarion.domain.group import Relation
from clarion.domain.person import BusinessUnit
from clarion.domain.setting import SettingChange, TypeSetting
from clarion.ports.catalog import NewTemplate
from clarion.testing.simulation import content, society
from clarion.testing.simulation.agenda import ZONES
from clarion.testing.simulation.directory import Directory
from clarion.testing.simulation.node import Node

FOUNDER = "founder"
"""Who does all this, in the audit log."""


async def found(node: Node, directory: Directory) -> None:
    """Put everybody in, and say what is said in the beginning."""
    store = node.platform.store
    people = [society.person(number) for number in range(society.PEOPLE)]
    await node.people.put(content.TENANT, people, trace=Trace(correlation_id="setup"))
    for place, guid in enumerate(society.UNITS):
        await store.put_business_unit(content.TENANT, BusinessUnit(guid=guid, name=f"Unit {place}"))
    for guid in (society.CLASS, society.GROUP):
        inside = [society.CLASS] if guid == society.GROUP else []
        await store.put_group(content.TENANT, guid=guid, name="Some", members=[], children=inside)
    for circle, members in society.CIRCLES.items():
        hashes = [directory.hash_of(number) for number in sorted(members)]
        match circle.kind:
            case "group":
                await store.change_members(content.TENANT, UUID(circle.name), add=hashes, remove=[])
            case "unit":
                await store.change_unit_members(content.TENANT, UUID(circle.name), add=hashes, remove=[])
            case "role":
                held_in = UUID(circle.place) if circle.place else None
                await store.change_holders(content.TENANT, circle.name, unit=held_in, add=hashes, remove=[])
            case _:
                given = [
                    Relation(
                        entity_type=society.THING,
                        entity_guid=UUID(circle.place),
                        relation=circle.name,
                        recipient_id_hash=hashed,
                    )
                    for hashed in hashes
                ]
                await store.change_relations(content.TENANT, add=given, remove=[])
    for (key, unit), setting in society.SETTINGS.items():
        said = msgspec.structs.replace(SettingChange(), **dict(_said(setting)))
        await store.put_setting(content.TENANT, key, None if unit is None else society.UNITS[unit], said, actor=FOUNDER)


async def found_automation(node: Node) -> None:
    """Give the units their zones, publish what reminders are sent as, and say that events lead to nothing more."""
    store = node.platform.store
    for place, guid in enumerate(society.UNITS):
        await store.put_business_unit(content.TENANT, BusinessUnit(guid=guid, name=f"Unit {place}", tz_id=ZONES[place]))
    row = content.reminder_template()
    new = NewTemplate(template_key=row.template_key, content_hash=row.content_hash, bundle=row.bundle)
    await store.publish_templates(content.TENANT, [new], actor="person")
    await store.put_mapping(
        content.TENANT, EventMapping(event_type="room.changed", notification_type=None), actor=FOUNDER
    )


def _said(setting: TypeSetting) -> Iterator[tuple[str, object]]:
    """Give what a setting says."""
    fields = (("enabled", setting.enabled), ("recipients", setting.recipients), ("channels", setting.channels))
    return ((name, value) for name, value in fields if value is not None)
