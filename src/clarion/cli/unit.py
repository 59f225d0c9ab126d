"""`clarion units`: the business units of a tenant, and the language and zone in which their people read."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table
from clarion.cli.session import guid as read_guid
from clarion.cli.session import in_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clarion.cli.session import Session
    from clarion.domain.person import BusinessUnit

units = typer.Typer(help="Business units: parts of a tenant with a language and a zone of their own.")


@units.command("list")
def list_units(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None:
    """List the business units."""

    async def work(session: "Session") -> "Sequence[BusinessUnit]":
        return await session.store.list_business_units(session.tenant_id)

    found = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"items": [_shown(one) for one in found]})
        return
    print_table(
        ("guid", "name", "locale", "zone"),
        [(one.guid, one.name, one.locale, one.tz_id) for one in found],
        empty="there is no business unit yet; `clarion units put` adds one",
    )


@units.command()
def put(
    guid: Annotated[str, typer.Argument(help="Its guid, as sends name it with --business-unit.", metavar="GUID")],
    *,
    name: Annotated[str, typer.Option(help="What it is called.")],
    locale: option.Locale = None,
    zone: option.Zone = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Add a business unit, or replace what is known of it."""

    async def work(session: "Session") -> "BusinessUnit":
        from clarion.catalog.local_form import LocalForms
        from clarion.domain.person import LocalForm

        form = LocalForm(locale=locale or None, tz_id=zone or None)
        number = read_guid(guid, field="GUID", hint="write a guid, such as 6f1c2c7e-0000-4000-8000-000000000001")
        return await LocalForms(session.store).put_unit(session.tenant_id, guid=number, name=name, form=form)

    unit = in_session(work, store=store, tenant=tenant)
    print_line(f"the business unit {unit.name} is stored", _shown(unit), as_json=as_json)


def _shown(unit: "BusinessUnit") -> dict[str, object]:
    return {"guid": unit.guid, "name": unit.name, "locale": unit.locale, "zone": unit.tz_id}
