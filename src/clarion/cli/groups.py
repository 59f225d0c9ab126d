"""`clarion groups` and `units`: groups and business units with their members."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clarion.cli import option
from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.output import print_json, print_pairs, say
from clarion.cli.session import guid as read_guid
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from clarion.cli.session import Session
    from clarion.client.wire_groups import Group, MemberPage, MembersChange, MembersRequest, Unit

T = TypeVar("T")

groups = typer.Typer(help="Groups: people who are written to together. A group may hold other groups.")
units = typer.Typer(help="Business units: parts of a tenant with people, a language and a zone of their own.")

GUID_HINT = "write a guid, such as 6f1c2c7e-0000-4000-8000-000000000001"
TYPED_AS = {
    "add": "--add",
    "remove": "--remove",
    "groups": "--group",
    "name": "--name",
    "locale": "--locale",
    "zone": "--zone",
    "role": "ROLE",
    "business_unit": "--business-unit",
    "entity": "THING|PERSON",
    "person": "THING|PERSON",
}
"""What the fields of requests are called here."""

GroupGuid = Annotated[str, typer.Argument(help="The group, by its guid.", metavar="GUID")]
UnitGuid = Annotated[str, typer.Argument(help="Its guid, as sends name it with --business-unit.", metavar="GUID")]
Inside = Annotated[
    list[str] | None, typer.Option("--group", help="A group inside it; may be given several times.", metavar="GUID")
]
Add = Annotated[
    list[str] | None,
    typer.Option(help="Somebody who comes: user:ID or employee:GUID; several times.", metavar="PERSON"),
]
Remove = Annotated[list[str] | None, typer.Option(help="Somebody who goes; several times.", metavar="PERSON")]


@groups.command("list")
@lists
def list_groups(asked: AskedPage) -> None:
    """List the groups."""
    asked.show(
        asked.run(lambda it: it.operations.groups.list(it.tenant_id, asked.query)),
        head=("guid", "name"),
        row=lambda one: (one.guid, one.name),
        empty="there is no group yet; `clarion groups put` adds one",
    )


@groups.command("show")
@asks
def show_group(asked: Asked, guid: GroupGuid) -> None:
    """Show a group: the groups inside it, and how many members of its own it has."""
    number = _guid(guid)

    async def work(session: "Session") -> "Group":
        return _known(await session.operations.groups.find(session.tenant_id, number), number)

    _show_group(asked, asked.run(work, typed_as=TYPED_AS))


@groups.command("put")
@asks
def put_group(
    asked: Asked,
    guid: GroupGuid,
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    inside: Inside = None,
) -> None:
    """Add a group, or replace its name and the groups inside it; its members stay."""
    number, children = _guid(guid), _guids(inside or [])

    async def work(session: "Session") -> "Group":
        from clarion.client.wire_groups import GroupRequest

        request = GroupRequest(name=name, groups=children)
        put = await session.operations.groups.put(session.tenant_id, number, request, actor=session.actor)
        return _known(put, number)

    _show_group(asked, asked.run(work, typed_as=TYPED_AS))


@groups.command("set")
@asks
def set_group(
    asked: Asked,
    guid: GroupGuid,
    *,
    name: Annotated[str | None, typer.Option(help="What it is called from now on.")] = None,
    inside: Inside = None,
) -> None:
    """Change a group's name or the groups inside it; what is not named stays, and --group '' takes all of them out."""
    if name is None and not inside:
        raise InvalidInput("nothing is named", field="--name", hint="name what shall change")
    number = _guid(guid)
    children = None if not inside else () if inside == [""] else _guids(inside)

    async def work(session: "Session") -> "Group":
        from clarion.client.wire_groups import GroupChange

        request = GroupChange(name=name, groups=children)
        changed = await session.operations.groups.change(session.tenant_id, number, request, actor=session.actor)
        return _known(changed, number)

    _show_group(asked, asked.run(work, typed_as=TYPED_AS))


@groups.command("remove")
@asks
def remove_group(asked: Asked, guid: GroupGuid) -> None:
    """Remove a group, with its members and from the groups that hold it; the people themselves stay."""
    number = _guid(guid)

    async def work(session: "Session") -> bool:
        removed = await session.operations.groups.remove(session.tenant_id, number, actor=session.actor)
        return _known(removed or None, number)

    asked.run(work)
    asked.line(f"the group {number} is removed", {"guid": number})


@groups.command("members")
@lists
def list_members(asked: AskedPage, guid: GroupGuid) -> None:
    """List a group's own members; those of groups inside it are theirs."""
    number = _guid(guid)

    async def work(session: "Session") -> "MemberPage":
        return _known(await session.operations.groups.list_members(session.tenant_id, number, asked.query), number)

    show_members(asked, asked.run(work), empty="the group has no members of its own")


@groups.command("change")
@asks
def change_members(asked: Asked, guid: GroupGuid, *, add: Add = None, remove: Remove = None) -> None:
    """Add people to a group and take others out; everybody else stays."""
    number, request = _guid(guid), members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        operations = session.operations.groups
        return _known(await operations.change_members(session.tenant_id, number, request, actor=session.actor), number)

    show_change(asked, asked.run(work, typed_as=TYPED_AS))


@units.command("list")
@lists
def list_units(asked: AskedPage) -> None:
    """List the business units."""
    asked.show(
        asked.run(lambda it: it.operations.units.list(it.tenant_id, asked.query)),
        head=("guid", "name", "locale", "zone"),
        row=lambda one: (one.guid, one.name, one.locale, one.zone),
        empty="there is no business unit yet; `clarion units put` adds one",
    )


@units.command("put")
@asks
def put_unit(
    asked: Asked,
    guid: UnitGuid,
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    locale: option.Locale = None,
    zone: option.Zone = None,
) -> None:
    """Add a business unit, or replace its name, language and zone; its members stay."""
    number = _guid(guid)

    async def work(session: "Session") -> "Unit":
        from clarion.client.wire_groups import UnitRequest

        request = UnitRequest(name=name, locale=locale or None, zone=zone or None)
        return await session.operations.units.put(session.tenant_id, number, request, actor=session.actor)

    unit = asked.run(work, typed_as=TYPED_AS)
    asked.line(f"the business unit {unit.name} is stored", unit)


@units.command("show")
@asks
def show_unit(asked: Asked, guid: UnitGuid) -> None:
    """Show a business unit: its name, its language and its zone."""
    number = _guid(guid)

    async def work(session: "Session") -> "Unit":
        return _known(await session.operations.units.find(session.tenant_id, number), number, what="business unit")

    _show_unit(asked, asked.run(work))


@units.command("set")
@asks
def set_unit(
    asked: Asked,
    guid: UnitGuid,
    *,
    name: Annotated[str | None, typer.Option(help="What it is called from now on.")] = None,
    locale: option.Locale = None,
    zone: option.Zone = None,
) -> None:
    """Change a business unit's name, language or zone; what is not named stays, and '' takes one of the latter away."""
    if name is None and locale is None and zone is None:
        raise InvalidInput("nothing is named", field="--name", hint="name what shall change")
    number = _guid(guid)

    async def work(session: "Session") -> "Unit":
        from msgspec import UNSET

        from clarion.client.wire_groups import UnitChange

        change = UnitChange(
            name=UNSET if name is None else name,
            locale=UNSET if locale is None else locale or None,
            zone=UNSET if zone is None else zone or None,
        )
        changed = await session.operations.units.change(session.tenant_id, number, change, actor=session.actor)
        return _known(changed, number, what="business unit")

    _show_unit(asked, asked.run(work, typed_as=TYPED_AS))


@units.command("members")
@lists
def list_unit_members(asked: AskedPage, guid: UnitGuid) -> None:
    """List the members of a business unit."""
    number = _guid(guid)

    async def work(session: "Session") -> "MemberPage":
        found = await session.operations.units.list_members(session.tenant_id, number, asked.query)
        return _known(found, number, what="business unit")

    show_members(asked, asked.run(work), empty="the business unit has no members")


@units.command("change")
@asks
def change_unit_members(asked: Asked, guid: UnitGuid, *, add: Add = None, remove: Remove = None) -> None:
    """Add people to a business unit and take others out; everybody else stays."""
    number, request = _guid(guid), members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        operations = session.operations.units
        changed = await operations.change_members(session.tenant_id, number, request, actor=session.actor)
        return _known(changed, number, what="business unit")

    show_change(asked, asked.run(work, typed_as=TYPED_AS))


def members_request(add: "Sequence[str] | None", remove: "Sequence[str] | None") -> "MembersRequest":
    """Make the request of what was typed, or say that nothing was."""
    from clarion.client.wire_groups import MEMBERS_MAX, MembersRequest

    if not add and not remove:
        raise InvalidInput("nobody is named", field="--add", hint="name who comes with it, or who goes with --remove")
    for option_name, named in (("--add", add or ()), ("--remove", remove or ())):
        if len(named) > MEMBERS_MAX:
            raise InvalidInput(f"{len(named)} are too many", field=option_name, hint=f"name {MEMBERS_MAX} at most")
    return MembersRequest(add=tuple(add or ()), remove=tuple(remove or ()))


def show_members(asked: AskedPage, page: "MemberPage", *, empty: str) -> None:
    """Print a page of those who belong somewhere."""
    asked.show(page, head=("person",), row=lambda one: (one.person or "(not known)",), empty=empty)


def show_change(asked: Asked, change: "MembersChange") -> None:
    """Print what came of a change, and how many are not known."""
    asked.line(f"{change.added} added, {change.removed} removed, {change.unchanged} unchanged", change)
    if change.unknown and not asked.as_json:
        say(f"not known yet: {change.unknown}; they get messages as soon as `clarion people` knows them")


def _show_group(asked: Asked, group: "Group") -> None:
    if asked.as_json:
        print_json(group)
        return
    print_pairs(
        [
            ("guid", group.guid),
            ("name", group.name),
            *[("group inside", one) for one in group.groups],
            ("members", group.members),
        ]
    )


def _show_unit(asked: Asked, unit: "Unit") -> None:
    if asked.as_json:
        print_json(unit)
        return
    print_pairs([("guid", unit.guid), ("name", unit.name), ("locale", unit.locale), ("zone", unit.zone)])


def _guid(text: str) -> "UUID":
    return read_guid(text, field="GUID", hint=GUID_HINT)


def _guids(texts: "Sequence[str]") -> "tuple[UUID, ...]":
    return tuple(read_guid(text, field="--group", hint=GUID_HINT) for text in texts)


def _known(answer: T | None, guid: "UUID", *, what: str = "group") -> T:
    """Give what was found under a guid, or say that the tenant has none."""
    if answer is None:
        plural = "units" if what == "business unit" else "groups"
        raise InvalidInput(
            f"the tenant has no {what} {guid}", field="GUID", hint=f"`clarion {plural} list` shows those there are"
        )
    return answer
