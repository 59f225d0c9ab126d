"""`clarion roles` and `relations`: which roles people hold, and what they are to things."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.groups import GUID_HINT, TYPED_AS, Add, Remove, members_request, show_change, show_members
from clarion.cli.session import guid as read_guid

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.cli.session import Session
    from clarion.client.wire_groups import MemberPage, MembersChange, RelationPage

roles = typer.Typer(help="Roles: what people are in the whole tenant or in one business unit, such as teacher.")
relations = typer.Typer(help="Relations: what people are to a thing, such as the guardian of a child.")

RoleName = Annotated[str, typer.Argument(help="The role, such as teacher.", metavar="ROLE")]
Unit = Annotated[
    str | None,
    typer.Option("--business-unit", help="In this unit; without it, in the whole tenant.", metavar="GUID"),
]
ThingName = Annotated[str, typer.Argument(help="The thing, as sends name it with --entity.", metavar="TYPE:GUID")]


@roles.command("list")
@lists
def list_roles(asked: AskedPage) -> None:
    """List the roles that anybody holds."""
    asked.show(
        asked.run(lambda it: it.operations.roles.list(it.tenant_id, asked.query)),
        head=("role", "business unit", "holders"),
        row=lambda one: (one.role, one.business_unit, one.holders),
        empty="nobody holds a role yet; `clarion roles change ROLE --add PERSON` gives one",
    )


@roles.command("holders")
@lists
def list_holders(asked: AskedPage, role: RoleName, *, unit: Unit = None) -> None:
    """List who holds a role in the whole tenant, or in a business unit."""
    number = _unit(unit)

    async def work(session: "Session") -> "MemberPage":
        from clarion.client.wire_groups import HoldersPageQuery

        query = asked.of(HoldersPageQuery, business_unit=number)
        return await session.operations.roles.list_holders(session.tenant_id, role, query)

    page = asked.run(work, typed_as=TYPED_AS)
    show_members(asked, page, empty="nobody holds this role there")


@roles.command("change")
@asks
def change_holders(asked: Asked, role: RoleName, *, unit: Unit = None, add: Add = None, remove: Remove = None) -> None:
    """Give people a role and take it from others; everybody else keeps it."""
    number, request = _unit(unit), members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        operations = session.operations.roles
        return await operations.change_holders(session.tenant_id, role, request, unit=number, actor=session.actor)

    show_change(asked, asked.run(work, typed_as=TYPED_AS))


@relations.command("list")
@lists
def list_relations(
    asked: AskedPage,
    whose: Annotated[
        str, typer.Argument(help="A thing as TYPE:GUID, or user:ID or employee:GUID.", metavar="THING|PERSON")
    ],
) -> None:
    """List who is related to a thing, or to what a person is related."""

    async def work(session: "Session") -> "RelationPage":
        from clarion.client.wire_groups import RelationQuery

        is_person = whose.partition(":")[0] in ("user", "employee")
        query = asked.of(RelationQuery, entity=None if is_person else whose, person=whose if is_person else None)
        return await session.operations.relations.list(session.tenant_id, query)

    asked.show(
        asked.run(work, typed_as=TYPED_AS),
        head=("thing", "relation", "person"),
        row=lambda one: (f"{one.entity.type}:{one.entity.guid}", one.relation, one.person or "(not known)"),
        empty="there is no such relation; `clarion relations change` adds one",
    )


@relations.command("change")
@asks
def change_relations(
    asked: Asked,
    thing: ThingName,
    relation: Annotated[str, typer.Argument(help="What they are to it, such as guardian.", metavar="RELATION")],
    *,
    add: Add = None,
    remove: Remove = None,
) -> None:
    """Say who is related to a thing and who no longer is; all other relations stay."""
    named = members_request(add, remove)

    async def work(session: "Session") -> "MembersChange":
        from clarion.client.wire_groups import Relation, RelationsRequest, Thing
        from clarion.domain.group import check_word, read_entity

        kind, guid = read_entity(thing, field="TYPE:GUID")
        check_word(relation, field="RELATION")
        came, went = (
            tuple(Relation(entity=Thing(type=kind, guid=guid), relation=relation, person=one) for one in some)
            for some in (named.add, named.remove)
        )
        request = RelationsRequest(add=came, remove=went)
        return await session.operations.relations.change(session.tenant_id, request, actor=session.actor)

    show_change(asked, asked.run(work, typed_as=TYPED_AS))


def _unit(text: str | None) -> "UUID | None":
    return None if text is None else read_guid(text, field="--business-unit", hint=GUID_HINT)
