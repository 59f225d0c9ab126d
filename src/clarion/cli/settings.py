"""`clarion settings`: what a tenant and its business units say of notification types."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.output import print_json, print_table, say
from clarion.cli.session import Session, guid, unknown_type
from clarion.domain.audience import ADDRESSEES_MAX, NAME_CHARS_MAX, Addressee
from clarion.domain.identity import Channel
from clarion.domain.misfit import read_misfit
from clarion.domain.setting import PLACE_IN_WORDS, Place, SettingChange
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.client.wire_settings import Setting

settings = typer.Typer()

TypeKey = Annotated[str, typer.Argument(help="The notification type.", metavar="TYPE")]
Unit = Annotated[
    str | None,
    typer.Option("--business-unit", help="Of this business unit; without it, of the whole tenant.", metavar="GUID"),
]

FORMS = "group:GUID, role:NAME, relation:NAME or unit"
OPTIONS = {"recipients": "--to", "channels": "--channels", "business_unit": "--business-unit"}
"""What the fields of a setting are called here."""


@settings.callback(invoke_without_command=True)
@asks
def settings_or_list(asked: Asked, context: typer.Context) -> None:
    """Settings of notification types: whether one is on, who gets it, by which channels."""
    if context.invoked_subcommand is None:
        list_settings(**msgspec.structs.asdict(asked))


@settings.command("list")
@lists
def list_settings(asked: AskedPage) -> None:
    """List what is set, by type."""
    asked.show(
        asked.run(lambda it: it.operations.settings.list(it.tenant_id, asked.query)),
        head=("type", "business unit", "state", "recipients", "channels", "changed by", "changed at"),
        row=lambda one: (
            one.type,
            one.business_unit,
            _state(one.enabled),
            one.recipients,
            one.channels,
            one.changed_by,
            one.changed_at,
        ),
        empty="nothing is set; every type is on, and goes by its own channels to whom its sends name",
    )


@settings.command()
@asks
def show(asked: Asked, notification: TypeKey, unit: Unit = None) -> None:
    """Show what is set of a type in one place, and what holds there."""
    number = _unit(unit)

    async def work(session: Session) -> "Setting":
        found = await session.operations.settings.find(session.tenant_id, notification, number)
        return await _known(session, notification, found)

    _print(asked, asked.run(work, typed_as=OPTIONS))


@settings.command("set")
@asks
def set_setting(
    asked: Asked,
    notification: TypeKey,
    *,
    to: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Who gets it where a send names nobody: {FORMS}; up to {ADDRESSEES_MAX}, '' for nothing set.",
            metavar="ADDRESSEE",
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(help="By which of its channels, in this order, such as email,inbox; '' for nothing set."),
    ] = None,
    enabled: Annotated[bool | None, typer.Option("--on/--off", help="Whether its notifications are sent.")] = None,
    unit: Unit = None,
) -> None:
    """Say who gets a type, by which channels, and whether at all; what is not named stays."""
    change = SettingChange(
        enabled=msgspec.UNSET if enabled is None else enabled,
        recipients=msgspec.UNSET if to is None else addressees(to),
        channels=msgspec.UNSET if channels is None else _channels(channels),
    )
    if change == SettingChange():
        raise InvalidInput("nothing is named", field="--to", hint="name --to, --channels, --on or --off")
    _change(asked, notification, unit, change)


@settings.command()
@asks
def clear(asked: Asked, notification: TypeKey, unit: Unit = None) -> None:
    """Take back everything that is set of a type in one place."""
    change = SettingChange(enabled=None, recipients=None, channels=None)
    _change(asked, notification, unit, change)


def _change(asked: Asked, notification: str, unit: str | None, change: SettingChange) -> None:
    number = _unit(unit)

    async def work(session: Session) -> "Setting":
        operations = session.operations.settings
        changed = await operations.change(session.tenant_id, notification, number, change, actor=session.actor)
        return await _known(session, notification, changed)

    _print(asked, asked.run(work, typed_as=OPTIONS))


async def _known(session: Session, name: str, setting: "Setting | None") -> "Setting":
    """Give a setting, or say which types there are."""
    if setting is None:
        raise unknown_type(name, [one.type for one in (await session.operations.types.list(session.tenant_id)).items])
    return setting


def _print(asked: Asked, setting: "Setting") -> None:
    if asked.as_json:
        print_json(setting)
        return
    holds = setting.effective
    print_table(
        (setting.type, "set here", "holds", "by"),
        [
            ("state", _state(setting.enabled), _state(holds.enabled), _by(holds.enabled_by)),
            ("recipients", setting.recipients, holds.recipients or "nobody", _by(holds.recipients_by)),
            ("channels", setting.channels, holds.channels or "none", _by(holds.channels_by)),
        ],
        empty="",
    )
    for one in holds.left_out:
        say(f"not by {one.channel}: {one.reason}")


def _state(enabled: bool | None) -> str | None:
    return None if enabled is None else "on" if enabled else "off"


def _by(place: Place | None) -> str:
    return "the type itself" if place is None else f"the {PLACE_IN_WORDS[place]}"


def _unit(text: str | None) -> "UUID | None":
    return None if text is None else guid(text, field="--business-unit", hint="`clarion units list` shows them")


def addressees(given: list[str]) -> tuple[Addressee, ...] | None:
    """Read whom a setting names; one that is empty takes them away."""
    if given == [""]:
        return None
    return tuple(read_addressee(text, place=place) for place, text in enumerate(given))


def read_addressee(text: str, *, place: int = 0) -> Addressee:
    """Read an addressee: `group:GUID`, `role:NAME`, `relation:NAME` or `unit`."""
    field = f"--to ({place + 1})"
    kind, colon, rest = text.partition(":")
    if text == "unit":
        return Addressee(unit=True)
    if not colon or kind not in {"group", "role", "relation"}:
        raise InvalidInput(f"{text!r:.80} is nobody that a setting can name", field=field, hint=f"write {FORMS}")
    if kind == "group":
        return Addressee(group=guid(rest, field=field, hint="write a group's guid; `clarion groups list` shows them"))
    try:
        return msgspec.convert({kind: rest}, Addressee)
    except msgspec.ValidationError as error:
        hint = f"write {kind}:NAME, with a name of 1 to {NAME_CHARS_MAX} characters without a colon"
        raise InvalidInput(read_misfit(str(error)).what, field=field, hint=hint) from None


def _channels(text: str) -> tuple[Channel, ...] | None:
    """Read channels in their order; none takes them away."""
    if not text.strip():
        return None
    names = [name.strip() for name in text.split(",")]
    for place, name in enumerate(names):
        if name not in set(Channel):
            raise InvalidInput(
                f"{name!r:.40} is no channel",
                field=f"--channels ({place + 1})",
                hint=f"name some of {', '.join(Channel)}, with commas between them",
            )
    return tuple(map(Channel, names))
