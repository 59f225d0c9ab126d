"""What a decision needs to know: the time, people, settings, suppressions and templates, read in sets, never singly."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from clarion.domain.audience import Audience
from clarion.domain.person import LocalForm, Person, PersonVersion
from clarion.domain.setting import EffectiveSetting
from clarion.domain.suppression import Cause


class TemplateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A published version of a notification's templates."""

    template_key: str
    version: int
    content_hash: str
    bundle: str
    quarantined: bool = False


class Latest(msgspec.Struct, frozen=True, kw_only=True):
    """What was published at a moment of the store's: versions by (tenant, key); a key without any is left out."""

    at: datetime
    versions: Mapping[tuple[str, str], int]
    quarantined: frozenset[tuple[str, str]] = frozenset()
    """Those whose latest version is not merged any more."""


class FactStore(Protocol):
    """Questions that doors and the pipeline ask before they decide."""

    async def now(self) -> datetime:
        """Return the store's present time: a notification is accepted, due and out of time by this one clock (I-37)."""
        ...

    async def find_recipients(self, tenant_id: str, hashes: Collection[str]) -> dict[str, Person]:
        """Return the people behind these recipient hashes, by hash; the unknown are left out."""
        ...

    async def find_person_versions(self, tenant_id: str, ids: Collection[int]) -> dict[int, PersonVersion]:
        """Return these versions of profiles, sealed as they are stored, by id; the unknown are left out."""
        ...

    async def find_local_forms(self, tenant_id: str, units: Collection[UUID]) -> dict[UUID | None, LocalForm]:
        """Return the language and zone of a tenant, under None, and of its business units; the unknown are left out."""
        ...

    async def find_members(self, tenant_id: str, groups: Collection[UUID]) -> dict[UUID, tuple[str, ...]]:
        """Return the recipient hashes of each group's members, sorted; an unknown group is left out."""
        ...

    async def find_audience(self, tenant_id: str, audience: Audience, *, after: str = "", limit: int) -> Sequence[str]:
        """Return the recipient hashes of everybody in any part of an audience behind one, sorted, each once.

        Whoever is in a group that is in a group is in both. At most `limit`; as many mean that there may be more.
        """
        ...

    async def find_audiences(
        self, tenant_id: str, audiences: Sequence[Audience], *, limit: int
    ) -> Sequence[Sequence[str]]:
        """Return the first recipient hashes of each of these audiences, as `find_audience` does, `limit` of each."""
        ...

    async def find_settings(
        self, asked: Collection[tuple[str, str, UUID | None]]
    ) -> dict[tuple[str, str, UUID | None], EffectiveSetting]:
        """Return what holds for each of these (tenant, event type, business unit or none), set by anybody or not."""
        ...

    async def find_templates(
        self, wanted: Sequence[tuple[str, str, int | None]]
    ) -> dict[tuple[str, str, int | None], TemplateRow]:
        """Return templates by (tenant, key, version), the latest where the version is None."""
        ...

    async def find_latest_versions(self, wanted: Collection[tuple[str, str]]) -> Latest:
        """Return the latest version of these (tenant, key) templates, and the store's time as `now` does."""
        ...

    async def find_suppressions(self, tenant_id: str, subjects: Collection[str]) -> dict[str, dict[str, Cause]]:
        """Return the scopes under which these subjects get nothing, with their causes; others are left out.

        A subject is the hash of a recipient or the index of a destination; `domain.suppression` says which scopes
        apply to what.
        """
        ...
