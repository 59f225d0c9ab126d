"""`clarion quota`: how much a tenant and its API keys may use in a day, and have used today."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table
from clarion.cli.session import in_session
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clarion.cli.session import Session
    from clarion.domain.quota import Limits, Usage

NONE = "none"

quota = typer.Typer(help="Quotas: how much a tenant and its API keys may use in a day.")

Most = Annotated[str | None, typer.Option(help=f"The most in a day (UTC), or {NONE}.", metavar=f"N|{NONE}")]


@quota.command("list")
def list_quotas(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """List what the tenant and its keys have used today, and their quotas."""

    async def work(session: "Session") -> "Sequence[Usage]":
        return await session.store.list_usage(session.tenant_id)

    found = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"items": [_shown(one) for one in found]})
        return
    print_table(
        ("whose", "requests", "notifications", "recipients", "last used"),
        [(f"key {one.key_id}" if one.key_id else "the tenant", *_of_each(one), one.last_used_at) for one in found],
        empty="nothing is limited and nothing was used yet; `clarion quota set` sets a quota",
    )


@quota.command("set")
def set_quota(
    *,
    key: Annotated[
        str | None, typer.Option(help="The key's id; without it, for the tenant as a whole.", metavar="ID")
    ] = None,
    requests: Most = None,
    notifications: Most = None,
    recipients: Most = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Set the quotas of a key or of the tenant, on every node within seconds; what is not named stays."""
    given = {"requests": requests, "notifications": notifications, "recipients": recipients}
    changes = {name: _read(text, field=f"--{name}") for name, text in given.items() if text is not None}
    if not changes:
        raise InvalidInput("nothing is named", field="--requests", hint="name at least one: `clarion quota set --help`")

    async def work(session: "Session") -> "Limits":
        import msgspec

        from clarion.catalog.access import Access
        from clarion.domain.quota import Limits

        known = {one.key_id: one.limits for one in await session.store.list_usage(session.tenant_id)}
        limits = msgspec.structs.replace(known.get(key or "", Limits()), **changes)
        access = Access(session.store, clock=session.platform.clock)
        try:
            await access.set_quota(session.tenant_id, limits, key_id=key, actor=session.actor)
        except InvalidInput as error:
            raise type(error)(error.message, field=f"--{error.field}", hint=error.hint) from None
        return limits

    limits = in_session(work, store=store, tenant=tenant)
    said = ", ".join(f"{name} {NONE if most is None else most}" for name, most in _limits(limits).items())
    print_line(f"quotas a day: {said}", {"key_id": key, **_limits(limits)}, as_json=as_json)


def _read(text: str, *, field: str) -> int | None:
    if text == NONE:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 100):
        raise InvalidInput(f"{text!r:.80} is no quota", field=field, hint=f"use a whole number, or {NONE} for no limit")
    return int(text)


def _limits(limits: "Limits") -> dict[str, int | None]:
    return {"requests": limits.requests, "notifications": limits.notifications, "recipients": limits.recipients}


def _of_each(one: "Usage") -> list[str]:
    """Write how much of each was used today, and of how much."""
    used = one.used
    pairs = zip((used.requests, used.notifications, used.recipients), _limits(one.limits).values(), strict=True)
    return [f"{count}" if most is None else f"{count} of {most}" for count, most in pairs]


def _shown(one: "Usage") -> dict[str, object]:
    used = one.used
    return {
        "key_id": one.key_id or None,
        "used": {"requests": used.requests, "notifications": used.notifications, "recipients": used.recipients},
        "quota": _limits(one.limits),
        "last_used_at": one.last_used_at,
    }
