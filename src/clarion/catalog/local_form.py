"""In which language and zone a tenant's people read: set for the tenant, its business units and the people themselves.

A language is written in its one form, and a zone is one that the renderer's tables have, so that what is stored can be
used. Setting the same again changes nothing.
"""

from uuid import UUID

import msgspec
from msgspec import UNSET

from clarion.domain.local_time import require_zone
from clarion.domain.locale import normal
from clarion.domain.person import BusinessUnit, LocalForm, UnitChange
from clarion.errors import InvalidInput
from clarion.ports.store import Store

NAME_BYTES_MAX = 512


class LocalForms:
    """Says how people read who do not say so themselves."""

    def __init__(self, catalog: Store) -> None:
        """Store in this catalog."""
        self._catalog = catalog

    async def set_tenant(self, tenant_id: str, form: LocalForm, *, actor: str) -> bool:
        """Set a tenant's language and zone; False where they are so already."""
        return await self._catalog.set_tenant_form(tenant_id, checked_form(form), actor=actor)

    async def put_unit(
        self, tenant_id: str, *, guid: UUID, name: str, form: LocalForm, actor: str | None = None
    ) -> BusinessUnit:
        """Insert or replace a business unit."""
        if not name.strip() or len(name.encode()) > NAME_BYTES_MAX:
            raise InvalidInput("it is empty or too long", field="name", hint=f"use 1 to {NAME_BYTES_MAX} bytes")
        checked = checked_form(form)
        unit = BusinessUnit(guid=guid, name=name, locale=checked.locale, tz_id=checked.tz_id)
        await self._catalog.put_business_unit(tenant_id, unit, actor=actor)
        return unit

    async def change_unit(self, tenant_id: str, guid: UUID, change: UnitChange, *, actor: str) -> BusinessUnit | None:
        """Change what is named of a business unit; None where there is none."""
        zone = None if change.tz_id is UNSET else change.tz_id
        checked = checked_form(LocalForm(locale=None if change.locale is UNSET else change.locale, tz_id=zone))
        locale = UNSET if change.locale is UNSET else checked.locale
        return await self._catalog.change_business_unit(
            tenant_id, guid, msgspec.structs.replace(change, locale=locale), actor=actor
        )


def checked_form(form: LocalForm) -> LocalForm:
    """Return a form as it is stored, or refuse a language that is none and a zone that is not known."""
    locale = None if form.locale is None else normal(form.locale)
    if locale is None and form.locale is not None:
        raise InvalidInput(
            f"{form.locale[:40]!r} is no locale",
            field="locale",
            hint="write a language, and a region if it matters: de or de-AT",
        )
    if form.tz_id is not None:
        require_zone(form.tz_id, field="zone")
    return LocalForm(locale=locale, tz_id=form.tz_id)
