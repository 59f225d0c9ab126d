"""The store of suppressions: who must not get what, and the preferences of people, which are rows of the same table."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from clarion.domain.address import AddressVersion
from clarion.domain.suppression import Cause, Change, Suppression, SuppressionKey


class SuppressionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a page of the list ended."""

    created_at: datetime
    subject: str
    scope: str


class PreferencesSet(msgspec.Struct, frozen=True, kw_only=True):
    """What setting preferences changed: the scopes that are suppressed now and were not, and those that are no more."""

    put: frozenset[str]
    lifted: frozenset[str]


class SuppressionStore(Protocol):
    """Changes to who gets what. Each is audited in its own transaction, and one that changes nothing has no entry."""

    async def put_suppressions(
        self, tenant_id: str, items: Sequence[Suppression], *, actor: str, reason: str | None = None
    ) -> Sequence[SuppressionKey]:
        """Suppress these; return the keys of the rows that are new, or that a stronger cause has taken over."""
        ...

    async def lift_suppressions(
        self, tenant_id: str, keys: Collection[SuppressionKey], *, actor: str, reason: str | None = None
    ) -> Sequence[SuppressionKey]:
        """Suppress these no more; return the keys of those that were."""
        ...

    async def list_suppressions(
        self,
        tenant_id: str,
        *,
        subjects: Collection[str] | None = None,
        cause: Cause | None = None,
        before: SuppressionPlace | None = None,
        limit: int = 50,
    ) -> Sequence[Suppression]:
        """Return suppressions, the newest first, from behind `before` on: of these subjects, and of this cause."""
        ...

    async def find_suppressed_addresses(self, tenant_id: str, subjects: Collection[str]) -> dict[str, AddressVersion]:
        """Return the newest address version of each destination index; what is none, or is nobody's, is left out."""
        ...

    async def set_preferences(
        self,
        tenant_id: str,
        recipient_id_hash: str,
        changes: Sequence[Change],
        *,
        cause: Cause = Cause.PREFERENCE,
        actor: str,
        reason: str | None = None,
    ) -> PreferencesSet:
        """Set preferences of one recipient, all of them or none; of two who do so at once one waits for the other."""
        ...
