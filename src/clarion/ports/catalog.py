"""The control plane's store: definitions, keys and the audit log. People are in `people`, settings in `setting`."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from clarion.domain.ensured import Ensured
from clarion.domain.person import LocalForm
from clarion.domain.quota import Amount, Limits, Usage
from clarion.ports.facts import TemplateRow


class Role(StrEnum):
    """What a key may do (X-04)."""

    VIEWER = "viewer"
    AUTHOR = "author"
    SENDER = "sender"
    URGENT_SENDER = "urgent-sender"
    INBOX = "inbox"
    SUPPORT = "support"
    ADMIN = "admin"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as it is stored: the secret only as its hash."""

    key_id: str
    tenant_id: str
    secret_hash: str
    actor: str
    role: Role
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What was used through one API key, or (`key_id` is empty) by a tenant as a whole, and not counted yet."""

    tenant_id: str
    key_id: str
    amount: Amount


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One act of a person or a support tool."""

    seq: int
    at: datetime
    actor: str
    act: str
    subject: str
    reason: str | None
    details: str
    hash: str


class TemplateVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One published version of a notification's templates, without them."""

    version: int
    content_hash: str
    created_at: datetime
    quarantined_at: datetime | None


class NewTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A notification's templates, to be a version of their own."""

    template_key: str
    content_hash: str
    bundle: str


class CatalogStore(Protocol):
    """Changes to what is known.

    What is audited is one transaction with its entry in the audit log: both are there, or neither. An act that changes
    nothing has no entry, because the log tells what was done and not what was asked for. An act without an actor is
    refused. The same holds for the acts of people in `QueueStore`.
    """

    async def publish_templates(
        self, tenant_id: str, templates: Sequence[NewTemplate], *, actor: str
    ) -> Sequence[Ensured[TemplateRow]]:
        """Store a new version of each, audited, unless its latest one has this content: all of them, or none.

        Answers with the versions that stand, in the order given.
        """
        ...

    async def list_template_versions(
        self, tenant_id: str, template_key: str, *, limit: int
    ) -> Sequence[TemplateVersion]:
        """Return the latest versions of one template, newest first."""
        ...

    async def quarantine_template(self, tenant_id: str, template_key: str, content_hash: str) -> bool:
        """Have a version merged no more, and open the case about it; False where it is so already, or there is none.

        It ends when the case is resolved.
        """
        ...

    async def list_templates(self, tenant_id: str) -> Sequence[TemplateRow]:
        """Return the latest version of every template of a tenant, by key."""
        ...

    async def set_tenant_form(self, tenant_id: str, form: LocalForm, *, actor: str) -> bool:
        """Say in which language and zone a tenant's people read; audited; False where it is so already."""
        ...

    async def put_api_key(self, key: ApiKey, *, actor: str) -> bool:
        """Store a new key; audited; False where its id is taken, whose key then stays as it is."""
        ...

    async def find_api_key(self, key_id: str) -> ApiKey | None:
        """Return a key by its public id, revoked or not, or None; one that has expired by the store's clock is none."""
        ...

    async def list_api_keys(self, tenant_id: str) -> Sequence[ApiKey]:
        """Return a tenant's keys in the order of creation, each with its last use, to the second."""
        ...

    async def revoke_api_key(self, tenant_id: str, key_id: str, *, actor: str) -> bool:
        """Revoke a key from now on; audited; False where there is none to revoke."""
        ...

    async def set_quota(self, tenant_id: str, key_id: str, limits: Limits, *, actor: str) -> bool:
        """Set what one of a tenant's keys, or (`key_id` is empty) all of it may use in a day.

        Audited; False where it is so already. Nothing is limited until somebody has done so.
        """
        ...

    async def count_usage(self, uses: Sequence[Used]) -> Sequence[Usage]:
        """Add what was used since it was counted last; return what all processes have counted of the same.

        The one method that is not idempotent: where its answer is lost and it is asked again, it has counted twice.
        """
        ...

    async def list_usage(self, tenant_id: str) -> Sequence[Usage]:
        """Return what a tenant, first, and its keys may use in a day and have used, if any was limited or used."""
        ...

    async def resolve_support_case(self, tenant_id: str, case_id: UUID, *, actor: str, resolution: str) -> bool:
        """Open → Resolved; audited with the resolution; False where the case is not open."""
        ...

    async def list_newest_audit(
        self, tenant_id: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[AuditEntry]:
        """Return entries, newest first, starting before `before` or with the last one."""
        ...

    async def list_audit(self, tenant_id: str, *, after: int = 0, limit: int = 50) -> Sequence[AuditEntry]:
        """Return entries in order, starting behind `after`."""
        ...
