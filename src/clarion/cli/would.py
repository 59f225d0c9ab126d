"""What a notification would do for one person: `clarion explain --would`. Sends and stores nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from clarion.cli.output import print_json, print_pairs, print_table, say
from clarion.cli.send import GUID_HINT, as_typed, read_entity
from clarion.cli.session import Session, guid, in_session, unknown_type
from clarion.client import wire
from clarion.domain.identity import Channel
from clarion.domain.setting import Place
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.client import wire_explain

PLACES = {
    Place.TENANT: "the tenant's setting",
    Place.UNIT: "the business unit's setting",
    None: "nobody has set it",
}


def would(
    notification: str,
    *,
    user: str | None,
    employee: str | None,
    entity: str | None,
    business_unit: str | None,
    channels: Sequence[Channel],
    tenant: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show what would become of a notification for a person."""
    from clarion.client import wire_explain

    if (user is None) == (employee is None):
        raise InvalidInput(
            "it is about exactly one person",
            field="--user",
            hint="name a user with --user, or an employee with --employee",
        )
    asked = wire_explain.WouldRequest(
        type=notification,
        recipient=wire.Recipient(
            user=user,
            employee=None if employee is None else guid(employee, field="--employee", hint=GUID_HINT),
        ),
        entity=read_entity(entity, {}),
        channels=tuple(channels),
        business_unit=None if business_unit is None else guid(business_unit, field="--business-unit", hint=GUID_HINT),
    )
    found = in_session(lambda session: _ask(session, asked), store=store, tenant=tenant)
    if as_json:
        print_json(found)
        return
    _show(found)


async def _ask(session: Session, asked: "wire_explain.WouldRequest") -> "wire_explain.Would":
    """Ask, and name what is refused as it was typed."""
    try:
        return await session.operations.explain.would(session.tenant_id, asked, whole=True)
    except InvalidInput as error:
        if error.field == "type":
            types = await session.operations.types.list(session.tenant_id)
            raise unknown_type(asked.type, [one.type for one in types.items]) from None
        if not error.field.startswith("recipient"):
            raise as_typed(error) from None
        named = "--user" if asked.recipient.user is not None else "--employee"
        raise type(error)(error.message, field=named, hint=error.hint) from None


def _show(found: "wire_explain.Would") -> None:
    say("nothing is stored or sent; this is what would be")
    if not found.known:
        say(f"the tenant does not know {found.recipient}")
    by = found.decided_by
    print_pairs(
        [
            ("type", f"{found.type}, version {found.version}"),
            ("to", found.recipient),
            ("on", f"{'yes' if found.skipped is None else 'no'} ({PLACES[by.enabled]})"),
            ("channels", f"{', '.join(dict.fromkeys(one.channel for one in found.channels))} ({PLACES[by.channels]})"),
            ("recipients", _recipients(found)),
        ]
    )
    if found.skipped is not None:
        say(f"nobody would get it: {found.skipped.reason} ({found.skipped.rule})")
    typer.echo("")
    goes = "would be sent" if found.skipped is None else "would be sent if it were on"
    print_table(
        ("channel", "to", "", "rule"),
        [
            (one.channel, one.destination, goes if one.goes else f"not sent: {one.reason}", one.rule)
            for one in found.channels
        ],
        empty="it goes by no channel",
    )


def _recipients(found: "wire_explain.Would") -> str:
    """Say whether the person is one of those whom the settings name."""
    if not found.names:
        return "a send must name them: no setting does"
    where = PLACES[found.decided_by.recipients]
    if not found.named_by:
        return f"not this person: it goes to {', '.join(found.names)} ({where}), unless a send names them"
    return f"this person too, by {', '.join(found.named_by)} ({where})"
