"""`clarion types` and `tenants`: what a tenant can send."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table, say_more
from clarion.cli.session import Session, acting, in_session, settings_with, unknown_type
from clarion.domain.identity import require_tenant
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.client.wire_types import NotificationType
    from clarion.domain.person import LocalForm

types = typer.Typer()
tenants = typer.Typer(help="Tenants: whose notifications these are.")

TypeKey = Annotated[str, typer.Argument(help="The notification type.", metavar="TYPE")]


@types.callback(invoke_without_command=True)
def types_or_list(
    context: typer.Context, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """The notification types of a tenant: list them, switch them on and off."""
    if context.invoked_subcommand is None:
        list_types(tenant=tenant, store=store, as_json=as_json)


@types.command("list")
def list_types(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """List the published types."""
    found = in_session(lambda session: session.operations.types.list(session.tenant_id), store=store, tenant=tenant)
    if as_json:
        print_json(found)
        return
    print_table(
        ("type", "title", "version", "channels", "lane", "state"),
        [(one.type, one.title, one.version, one.channels, one.lane, _state(one)) for one in found.items],
        empty="nothing is published yet; `clarion publish FOLDER` adds a type",
    )


def _state(one: "NotificationType") -> str:
    """Say in one word whether it is sent."""
    if one.quarantined:
        return "quarantined"
    return "on" if one.enabled else "off"


@types.command()
def enable(
    notification: TypeKey, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Switch a type on again."""
    _switch(notification, tenant=tenant, store=store, as_json=as_json, enabled=True)


@types.command()
def disable(
    notification: TypeKey, tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False
) -> None:
    """Switch a type off: what is sent of it is skipped, and its timeline says so."""
    _switch(notification, tenant=tenant, store=store, as_json=as_json, enabled=False)


@tenants.command("list")
def list_tenants(
    limit: option.Limit = 50, after: option.After = "", store: option.Store = None, as_json: option.Json = False
) -> None:
    """List the tenants."""
    import asyncio

    from clarion.bootstrap import open_platform

    async def work() -> Sequence[str]:
        async with open_platform(settings_with(store)) as platform:
            return await platform.store.list_tenants(after=after, limit=limit + 1)  # one more tells if more follow

    found = asyncio.run(work())
    found, following = found[:limit], found[limit - 1] if len(found) > limit else None
    if as_json:
        print_json({"items": found, "next_cursor": following})
        return
    for one in found:
        typer.echo(one)
    say_more(following)


@tenants.command()
def create(
    name: Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9 and '-'.", metavar="NAME")],
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Make a tenant with keys of its own, unless it exists."""
    require_tenant(name, field="NAME")

    import asyncio

    from clarion.bootstrap import open_platform

    async def work() -> bool:
        async with open_platform(settings_with(store)) as platform:
            return await platform.dispatcher.ensure_tenant(name, actor=acting())

    is_new = asyncio.run(work())
    said = f"the tenant {name} is created" if is_new else f"the tenant {name} exists already; nothing was changed"
    print_line(said, {"tenant_id": name, "repeated": not is_new}, as_json=as_json)


@tenants.command("set")
def set_tenant(
    name: Annotated[str, typer.Argument(help="The tenant.", metavar="NAME")],
    *,
    locale: option.Locale = None,
    zone: option.Zone = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Set the language and the zone of a tenant; what is not named stays, and '' takes it away."""
    if locale is None and zone is None:
        raise InvalidInput("nothing is named", field="--locale", hint="name a language, a zone or both")

    async def work(session: Session) -> "tuple[LocalForm, bool]":
        from clarion.catalog.local_form import LocalForms, checked_form
        from clarion.domain.person import LocalForm

        old = (await session.store.find_local_forms(session.tenant_id, []))[None]
        given = LocalForm(
            locale=old.locale if locale is None else locale or None, tz_id=old.tz_id if zone is None else zone or None
        )
        changed = await LocalForms(session.store).set_tenant(session.tenant_id, given, actor=session.actor)
        return checked_form(given), changed

    form, changed = in_session(work, store=store, tenant=name)
    said = f"{name}: language {form.locale or 'not set'}, zone {form.tz_id or 'not set'}"
    answer = {"tenant_id": name, "locale": form.locale, "zone": form.tz_id}
    print_line(said if changed else f"{said}; nothing was changed", answer, as_json=as_json)


def _switch(notification: str, *, tenant: str | None, store: str | None, as_json: bool, enabled: bool) -> None:
    async def work(session: Session) -> bool:
        operations = session.operations.types
        changed = await operations.switch(session.tenant_id, notification, enabled=enabled, actor=session.actor)
        if changed is None:
            raise unknown_type(notification, [one.type for one in (await operations.list(session.tenant_id)).items])
        return changed

    changed = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"type": notification, "enabled": enabled})
    else:
        typer.echo(f"{notification} is {'on' if enabled else 'off'}{'' if changed else ' already'}")
