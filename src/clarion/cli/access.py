"""`clarion keys`: the keys with which programs and people use the API."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table, say
from clarion.cli.session import Session, in_session
from clarion.errors import Conflict
from clarion.ports.catalog import ApiKey, Role

if TYPE_CHECKING:
    from clarion.catalog.access import MintedKey

DAYS_MAX = 36_500
"""A century; for longer than that, make a key that does not expire."""

keys = typer.Typer(help="API keys: who may use the API, and as what.")


@keys.command()
def create(
    *,
    actor: Annotated[str, typer.Option(help="Who acts with it, as the audit log shows it.", metavar="NAME")],
    role: Annotated[Role, typer.Option(help="What it may do.")] = Role.SENDER,
    days: Annotated[
        int | None, typer.Option(help="How long it lasts; without it, until it is revoked.", min=1, max=DAYS_MAX)
    ] = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Make a key and show it, this once."""

    async def work(session: Session) -> "MintedKey":
        return await grant(session, actor=actor, role=role, lasts=None if days is None else timedelta(days=days))

    minted = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"key_id": minted.key.key_id, "token": minted.token, "role": role, "actor": actor})
        return
    typer.echo(minted.token)
    say(f"keep it now: it is stored nowhere. Its id is {minted.key.key_id}; `clarion keys revoke` ends it")


@keys.command("list")
def list_keys(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """List a tenant's keys, without their secrets."""

    async def work(session: Session) -> Sequence[ApiKey]:
        return await session.store.list_api_keys(session.tenant_id)

    found = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"items": [_shown(one) for one in found]})
        return
    print_table(
        ("id", "actor", "role", "made", "last used", "expires", "revoked"),
        [
            (one.key_id, one.actor, one.role, one.created_at, one.last_used_at, one.expires_at, one.revoked_at)
            for one in found
        ],
        empty="there is no key yet; `clarion keys create` makes one",
    )


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id in the list.", metavar="ID")],
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """End a key, on every node within seconds."""

    async def work(session: Session) -> None:
        from clarion.catalog.access import Access

        access = Access(session.store, clock=session.platform.clock)
        if not await access.revoke(session.tenant_id, key_id, actor=session.actor):
            raise Conflict(
                f"there is no key {key_id!r} that could be revoked", hint="`clarion keys list` shows how they stand"
            )

    in_session(work, store=store, tenant=tenant)
    print_line(f"revoked: {key_id}", {"key_id": key_id, "revoked": True}, as_json=as_json)


async def grant(session: Session, *, actor: str, role: Role, lasts: timedelta | None = None) -> "MintedKey":
    """Mint a key for the session's tenant and store it."""
    from clarion.catalog.access import SECRET_BYTES, Access, mint

    platform = session.platform
    minted = mint(
        tenant_id=session.tenant_id,
        actor=actor,
        role=role,
        key_guid=platform.ids.new_guid(),
        secret=platform.randomness(SECRET_BYTES),
        expires_at=None if lasts is None else platform.clock.now() + lasts,
    )
    await Access(session.store, clock=platform.clock).grant(minted, actor=session.actor)
    return minted


def _shown(key: ApiKey) -> dict[str, object]:
    """Give a key without what stands for its secret."""
    return {
        "key_id": key.key_id,
        "actor": key.actor,
        "role": key.role,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }
