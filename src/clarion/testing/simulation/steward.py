"""Stewards: what recipients and administrators ask for about people while notifications are under way.

Recipients refuse a category and want it again, administrators suppress by hand, change what settings say, and who
belongs to what. When, is decided in `moment`; what there is to be changed stands in `society`.
"""

from typing import Final
from uuid import UUID

import msgspec

from clarion.domain.group import MemberChange, Relation
from clarion.domain.identity import Channel
from clarion.domain.outgoing import DUE
from clarion.domain.setting import SettingChange
from clarion.domain.suppression import EVERYTHING, Cause, Change, Suppression
from clarion.ports.store import Store
from clarion.testing.simulation import content, society
from clarion.testing.simulation.asking import Asking
from clarion.testing.simulation.directory import Addressee
from clarion.testing.simulation.moment import Act
from clarion.testing.simulation.node import Node
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.society import Circle
from clarion.testing.simulation.world import World

CATEGORIES: Final = ("news", "news", "news", "alarm")
"""What is refused; that the last one is required must change nothing."""

ON_ALL: Final = 0.4
"""The share of preferences that are set for a category on all of its channels."""


class Stewards(Asking):
    """Everybody who has a say in who gets what."""

    def __init__(self, world: World) -> None:
        """Act on a world."""
        super().__init__(world, chance="stewards")

    @property
    def acts(self) -> dict[Fault, Act]:
        """What they do, by kind."""
        return {
            Fault.OPT_OUT: self._begin(self._set_preference),
            Fault.SUPPRESS: self._begin(self._suppress),
            Fault.SETTING: self._begin(self._set_setting),
            Fault.MEMBER: self._begin(self._change_member),
        }

    async def _set_preference(self) -> None:
        """Refuse a category, on one channel or on all, or want it again."""
        number, category = self._somebody(), self._chance.choice(CATEGORIES)
        channel = None if self._chance.random() < ON_ALL else self._chance.choice((Channel.EMAIL, Channel.INBOX))
        off = self._chance.random() < 0.5
        hashed = self._world.directory.hash_of(number)
        self._world.trace(f"u{number} {'refuses' if off else 'wants'} {category} on {channel or 'every channel'}")
        asked = self._notes("set", f"preferences {hashed}")
        for one in Channel if channel is None else (channel,):
            self._world.truth.notes.refused.change((Addressee(number, None), category, one), asked, off)

        async def change(door: Node) -> bool:
            wanted = [Change(category=category, channel=channel, on=not off)]
            done = await door.platform.store.set_preferences(content.TENANT, hashed, wanted, actor="recipient")
            return bool(done.put or done.lifted)

        await self._ask(change, asked)

    def _somebody(self) -> int:
        """Choose a person: any, or one for whom a message waits."""
        world = self._world
        waiting = [row for row in world.scene.outgoing.values() if row.state in DUE]
        found = [one for one in (world.directory.whose(row.recipient_id_hash) for row in waiting) if one is not None]
        people = sorted({one.person for one in found if one.person is not None})
        if people and self._chance.random() < 0.7:
            return self._chance.choice(people)
        return self._chance.randrange(society.PEOPLE)

    async def _suppress(self) -> None:
        """Suppress a person or an address by hand, or lift that."""
        number, lifts = self._somebody(), self._chance.random() < 0.5
        directory, notes = self._world.directory, self._world.truth.notes
        who: object = Addressee(number, None)
        subject = directory.hash_of(number)
        if self._chance.random() < 0.6:
            edition = max(notes.address[number].may_have_been(since=self._world.loop.time(), until=float("inf")))
            at = self._chance.choice(society.contacts(number, edition))
            who, subject = at.destination, directory.index_of(at.channel, at.destination)
        self._world.trace(f"person: {'lift' if lifts else 'suppress'} {who}")
        asked = self._notes("lift" if lifts else "suppress", f"suppression {subject}")
        notes.stopped.change(who, asked, not lifts)

        async def change(door: Node) -> bool:
            store = door.platform.store
            if lifts:
                return bool(await store.lift_suppressions(content.TENANT, [(subject, EVERYTHING)], actor="person"))
            one = Suppression(subject=subject, scope=EVERYTHING, cause=Cause.MANUAL)
            return bool(await store.put_suppressions(content.TENANT, [one], actor="person"))

        await self._ask(change, asked)

    async def _set_setting(self) -> None:
        """Change one thing that the tenant or a unit says of a type."""
        definition, unit = self._chance.choice(content.DEFINITIONS), self._chance.choice((None, 0, 1))
        field = self._chance.choice(("recipients", "recipients", "channels", "enabled"))
        value: object
        match field:
            case "recipients":
                value = self._chance.choice(society.RECIPIENTS)
            case "channels":
                value = self._chance.choice((None, *((one,) for one in definition.channels)))
            case _ if unit is None:
                return  # `person` switches types of the tenant
            case _:
                value = self._chance.choice((True, False, None))
        place = None if unit is None else society.UNITS[unit]
        self._world.trace(f"person: {field} of {definition.key} in {unit} shall be {value}")
        subject = f"setting {definition.key}" if place is None else f"setting {definition.key} of unit {place}"
        asked = self._notes("set", subject)
        self._world.truth.notes.said.change((definition.key, unit, field), asked, value)
        given = msgspec.structs.replace(SettingChange(), **{field: value})
        await self._ask(
            lambda door: door.platform.store.put_setting(content.TENANT, definition.key, place, given, actor="person"),
            asked,
        )

    async def _change_member(self) -> None:
        """Have a person belong to something, or no more."""
        circle = self._chance.choice(list(society.CIRCLES))
        number, joins = self._chance.randrange(society.PEOPLE), self._chance.random() < 0.5
        self._world.trace(f"person: u{number} {'joins' if joins else 'leaves'} {circle}")
        hashed = self._world.directory.hash_of(number)
        asked = self._notes("change", "relations" if circle.kind == "relation" else f"members of {place_of(circle)}")
        self._world.truth.notes.belongs.change((circle, number), asked, joins)

        async def change(door: Node) -> bool:
            done = await change_circle(door.platform.store, circle, hashed, joins=joins, actor="person")
            return bool(done and (done.added or done.removed))

        await self._ask(change, asked)


def place_of(circle: Circle) -> str:
    """Name a circle as the audit log does."""
    match circle.kind:
        case "group":
            return f"group {circle.name}"
        case "unit":
            return f"business unit {circle.name}"
        case _:
            return f"role {circle.name}" + (f" in business unit {circle.place}" if circle.place else "")


async def change_circle(
    store: Store, circle: Circle, hashed: str, *, joins: bool, actor: str | None
) -> MemberChange | None:
    """Have somebody belong to a circle, or no more."""
    add, remove = ([hashed], []) if joins else ([], [hashed])
    match circle.kind:
        case "group":
            return await store.change_members(content.TENANT, UUID(circle.name), add=add, remove=remove, actor=actor)
        case "unit":
            guid = UUID(circle.name)
            return await store.change_unit_members(content.TENANT, guid, add=add, remove=remove, actor=actor)
        case "role":
            unit = UUID(circle.place) if circle.place else None
            return await store.change_holders(
                content.TENANT, circle.name, unit=unit, add=add, remove=remove, actor=actor
            )
        case _:
            came, went = (
                [
                    Relation(
                        entity_type=society.THING,
                        entity_guid=UUID(circle.place),
                        relation=circle.name,
                        recipient_id_hash=one,
                    )
                    for one in some
                ]
                for some in (add, remove)
            )
            return await store.change_relations(content.TENANT, add=came, remove=went, actor=actor)
