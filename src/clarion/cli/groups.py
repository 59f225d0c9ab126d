"""`clarion groups` and `units`: groups and business units with their members."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_pairs, print_table, say, say_more
from clarion.cli.session import guid as read_guid
from clarion.cli.session import in_session
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
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
def list_groups(
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the groups."""
    query = option.page(limit, after)
    page = in_session(lambda it: it.operations.groups.list(it.tenant_id, query), store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    empty = "there is no group yet; `clarion groups put` adds one"
    print_table(("guid", "name"), [(one.guid, one.name) for one in page.items], empty=empty)
    say_more(page.next_cursor)


@groups.command("show")
def show_group(
    guid: GroupGuid, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Show a group: the groups inside it, and how many members of its own it has."""
    number = _guid(guid)

    async def work(session: "Session") -> "Group":
        return _known(await session.operations.groups.find(session.tenant_id, number), number)

    _show_group(in_session(work, store=store, tenant=tenant), as_json=as_json)


@groups.command("put")
def put_group(
    guid: GroupGuid,
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    inside: Inside = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add a group, or replace its name and the groups inside it; its members stay."""
    number, children = _guid(guid), _guids(inside or [])

    async def work(session: "Session") -> "Group":
        from clarion.client.wire_groups import GroupRequest

        request = GroupRequest(name=name, groups=children)
        put = await session.operations.groups.put(session.tenant_id, number, request, actor=session.actor)
        return _known(put, number)

    _show_group(typed_in_session(work, store=store, tenant=tenant), as_json=as_json)


@groups.command("set")
def set_group(
    guid: GroupGuid,
    *,
    name: Annotated[str | None, typer.Option(help="What it is called from now on.")] = None,
    inside: Inside = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
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

    _show_group(typed_in_session(work, store=store, tenant=tenant), as_json=as_json)


@groups.command("remove")
def remove_group(
    guid: GroupGuid, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Remove a group, with its members and from the groups that hold it; the people themselves stay."""
    number = _guid(guid)

    async def work(session: "Session") -> bool:
        removed = await session.operations.groups.remove(session.tenant_id, number, actor=session.actor)
        return _known(removed or None, number)

    in_session(work, store=store, tenant=tenant)
    print_line(f"the group {number} is removed", {"guid": number}, as_json=as_json)


@groups.command("members")
def list_members(
    guid: GroupGuid,
    *,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List a group's own members; those of groups inside it are theirs."""
    number, query = _guid(guid), option.page(limit, after)

    async def work(session: "Session") -> "MemberPage":
        return _known(await session.operations.groups.list_members(session.tenant_id, number, query), number)

    show_members(
        in_session(work, store=store, tenant=tenant), as_json=as_json, empty="the group has no members of its own"
    )


@groups.command("change")
def change_members(
    guid: GroupGuid,
    *,
    add: Add = None,
    remove: Remove = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add people to a group and take others out; everybody else stays."""
    number, request = _guid(guid), members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        operations = session.operations.groups
        return _known(await operations.change_members(session.tenant_id, number, request, actor=session.actor), number)

    show_change(typed_in_session(work, store=store, tenant=tenant), as_json=as_json)


@units.command("list")
def list_units(
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the business units."""
    query = option.page(limit, after)
    page = in_session(lambda it: it.operations.units.list(it.tenant_id, query), store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    print_table(
        ("guid", "name", "locale", "zone"),
        [(one.guid, one.name, one.locale, one.zone) for one in page.items],
        empty="there is no business unit yet; `clarion units put` adds one",
    )
    say_more(page.next_cursor)


@units.command("put")
def put_unit(
    guid: UnitGuid,
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    locale: option.Locale = None,
    zone: option.Zone = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add a business unit, or replace its name, language and zone; its members stay."""
    number = _guid(guid)

    async def work(session: "Session") -> "Unit":
        from clarion.client.wire_groups import UnitRequest

        request = UnitRequest(name=name, locale=locale or None, zone=zone or None)
        return await session.operations.units.put(session.tenant_id, number, request, actor=session.actor)

    unit = typed_in_session(work, store=store, tenant=tenant)
    print_line(f"the business unit {unit.name} is stored", unit, as_json=as_json)


@units.command("members")
def list_unit_members(
    guid: UnitGuid,
    *,
    limit: option.Limit = 50,
    after: option.After = "",
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """List the members of a business unit."""
    number, query = _guid(guid), option.page(limit, after)

    async def work(session: "Session") -> "MemberPage":
        found = await session.operations.units.list_members(session.tenant_id, number, query)
        return _known(found, number, what="business unit")

    page = in_session(work, store=store, tenant=tenant)
    show_members(page, as_json=as_json, empty="the business unit has no members")


@units.command("change")
def change_unit_members(
    guid: UnitGuid,
    *,
    add: Add = None,
    remove: Remove = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add people to a business unit and take others out; everybody else stays."""
    number, request = _guid(guid), members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        operations = session.operations.units
        changed = await operations.change_members(session.tenant_id, number, request, actor=session.actor)
        return _known(changed, number, what="business unit")

    show_change(typed_in_session(work, store=store, tenant=tenant), as_json=as_json)


def members_request(add: "Sequence[str] | None", remove: "Sequence[str] | None") -> "MembersRequest":
    """Make the request of what was typed, or say that nothing was."""
    from clarion.client.wire_groups import MEMBERS_MAX, MembersRequest

    if not add and not remove:
        raise InvalidInput("nobody is named", field="--add", hint="name who comes with it, or who goes with --remove")
    for option_name, named in (("--add", add or ()), ("--remove", remove or ())):
        if len(named) > MEMBERS_MAX:
            raise InvalidInput(f"{len(named)} are too many", field=option_name, hint=f"name {MEMBERS_MAX} at most")
    return MembersRequest(add=tuple(add or ()), remove=tuple(remove or ()))


def typed_in_session(work: "Callable[[Session], Awaitable[T]]", *, store: str | None, tenant: str | None) -> "T":
    """Run it; what is wrong is said of the option or argument that it was typed as, not of a request's field."""
    try:
        return in_session(work, store=store, tenant=tenant)
    except InvalidInput as error:
        field = (error.field or "").partition("[")[0]
        raise type(error)(error.message, field=TYPED_AS.get(field, error.field), hint=error.hint) from None


def show_members(page: "MemberPage", *, as_json: bool, empty: str) -> None:
    """Print a page of those who belong somewhere."""
    if as_json:
        print_json(page)
        return
    print_table(("person",), [(one.person or "(not known)",) for one in page.items], empty=empty)
    say_more(page.next_cursor)


def show_change(change: "MembersChange", *, as_json: bool) -> None:
    """Print what came of a change, and how many are not known."""
    print_line(f"{change.added} added, {change.removed} removed, {change.unchanged} unchanged", change, as_json=as_json)
    if change.unknown and not as_json:
        say(f"not known yet: {change.unknown}; they get messages as soon as `clarion people` knows them")


def _show_group(group: "Group", *, as_json: bool) -> None:
    if as_json:
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
