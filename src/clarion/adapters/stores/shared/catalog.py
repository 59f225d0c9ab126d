"""The control plane: templates, keys, cases; acts of people are audited where they happen.

Writes `template`, `tenant`, `api_key`, `support_case`, through `replan` `reminder_setting` and, through `audit`,
`audit_log`. People are in `people`, their groups in `group`, settings of types in `type_setting`.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.stores.shared import replan
from clarion.adapters.stores.shared.audit import append_audit
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import resolve_case, write_cases
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction, first
from clarion.domain import act
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.person import LocalForm
from clarion.domain.trouble import quarantined_template
from clarion.ports.catalog import ApiKey, NewTemplate, TemplateVersion
from clarion.ports.ensure import bounded
from clarion.ports.facts import TemplateRow

_SQL: Final = Statements("catalog.sql")


class _About(msgspec.Struct, frozen=True):
    record_key: str


class _Zone(msgspec.Struct, frozen=True):
    tz_id: str | None


class _Quarantined(msgspec.Struct, frozen=True):
    version: int


async def publish_templates(
    transaction: Transaction, tenant_id: str, templates: Sequence[NewTemplate], *, actor: str
) -> list[Ensured[TemplateRow]]:
    """Store a new version of each, audited, unless its latest one has this content; answer with what stands.

    By key, so that of two who publish the same set at once one waits for the other.
    """
    answers = {
        one.template_key: await _publish(transaction, tenant_id, one, actor=actor)
        for one in sorted(bounded(templates), key=lambda one: one.template_key)
    }
    return [answers[one.template_key] for one in templates]


async def _publish(
    transaction: Transaction, tenant_id: str, template: NewTemplate, *, actor: str
) -> Ensured[TemplateRow]:
    key, content_hash = template.template_key, template.content_hash
    latest = first(
        await transaction.fetch(TemplateRow, _SQL["read_latest_template"], tenant_id=tenant_id, template_key=key)
    )
    if latest is not None and latest.content_hash == content_hash:
        return Ensured(outcome=Outcome.FOUND, record=latest)
    version = latest.version + 1 if latest else 1
    row = TemplateRow(template_key=key, version=version, content_hash=content_hash, bundle=template.bundle)
    given = msgspec.structs.asdict(template)
    if not await transaction.execute(_SQL["insert_template"], tenant_id=tenant_id, version=version, **given):
        raise Overtaken  # somebody else took the number that we would have given
    await append_audit(
        transaction, tenant_id, act.publish(key, version=version, content_hash=content_hash, actor=actor)
    )
    return Ensured(outcome=Outcome.CREATED, record=row)


async def list_template_versions(
    transaction: Transaction, tenant_id: str, template_key: str, *, limit: int
) -> list[TemplateVersion]:
    """Return the latest versions of one template, newest first."""
    return await transaction.fetch(
        TemplateVersion, _SQL["list_template_versions"], tenant_id=tenant_id, template_key=template_key, limit=limit
    )


async def list_templates(transaction: Transaction, tenant_id: str) -> list[TemplateRow]:
    """Return the latest version of every template of a tenant, by key."""
    return await transaction.fetch(TemplateRow, _SQL["list_templates"], tenant_id=tenant_id)


async def quarantine_template(transaction: Transaction, tenant_id: str, template_key: str, content_hash: str) -> bool:
    """Have a version merged no more, and open the case about it; False where it is so already, or there is none."""
    names = {"tenant_id": tenant_id, "template_key": template_key, "content_hash": content_hash}
    versions = await transaction.fetch(_Quarantined, _SQL["quarantine_template"], **names)
    await write_cases(
        transaction,
        tenant_id,
        [quarantined_template(tenant_id, template_key=template_key, version=row.version) for row in versions],
    )
    return bool(versions)


async def set_tenant_form(transaction: Transaction, tenant_id: str, form: LocalForm, *, actor: str) -> bool:
    """Say in which language and zone a tenant's people read; audited; False where it is so already.

    In another zone, what is pending of sources without a zone of their own is due at other instants.
    """
    before = first(await transaction.fetch(_Zone, _SQL["lock_tenant_zone"], tenant_id=tenant_id))
    if not await transaction.execute(_SQL["set_tenant_form"], tenant_id=tenant_id, **msgspec.structs.asdict(form)):
        return False
    if before is not None and form.tz_id != before.tz_id:
        await replan.replan_tenant(transaction, tenant_id)
    done = act.set_form(tenant_id, locale=form.locale, zone=form.tz_id, actor=actor)
    await append_audit(transaction, tenant_id, done)
    return True


async def put_api_key(transaction: Transaction, key: ApiKey, *, actor: str) -> bool:
    """Store a new key; audited; False where its id is taken."""
    row = msgspec.structs.asdict(key)
    del row["last_used_at"]  # it was not used yet; that is counted elsewhere
    if not await transaction.execute(_SQL["insert_api_key"], **row):
        return False
    await append_audit(transaction, key.tenant_id, act.mint(key.key_id, actor=actor))
    return True


async def find_api_key(transaction: Transaction, key_id: str) -> ApiKey | None:
    """Return a key by its public id, whatever its state, or None."""
    return first(await transaction.fetch(ApiKey, _SQL["find_api_key"], key_id=key_id))


async def list_api_keys(transaction: Transaction, tenant_id: str) -> list[ApiKey]:
    """Return a tenant's keys in the order of creation."""
    return await transaction.fetch(ApiKey, _SQL["list_api_keys"], tenant_id=tenant_id)


async def revoke_api_key(transaction: Transaction, tenant_id: str, key_id: str, *, actor: str) -> bool:
    """Revoke a key from now on; audited; False where there is none to revoke."""
    if not await transaction.execute(_SQL["revoke_api_key"], tenant_id=tenant_id, key_id=key_id):
        return False
    await append_audit(transaction, tenant_id, act.revoke(key_id, actor=actor))
    return True


async def resolve_support_case(
    transaction: Transaction, tenant_id: str, case_id: UUID, *, actor: str, resolution: str
) -> bool:
    """Open → Resolved; audited with the resolution; False where the case is not open.

    A template version that was quarantined with this case is merged again.
    """
    if not await resolve_case(transaction, tenant_id, case_id, actor=actor, resolution=resolution):
        return False
    for row in await transaction.fetch(_About, _SQL["read_case_of_template"], tenant_id=tenant_id, case_id=case_id):
        key, version = msgspec.json.decode(row.record_key, type=tuple[str, str])
        await transaction.execute(_SQL["end_quarantine"], tenant_id=tenant_id, template_key=key, version=int(version))
    await append_audit(transaction, tenant_id, act.resolve(case_id, resolution=resolution, actor=actor))
    return True
