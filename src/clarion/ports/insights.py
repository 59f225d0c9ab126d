"""The read side: what people and support tools ask about records. Nothing here changes anything."""

from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from clarion.domain.support import SupportCase, SupportStatus

PAGE_MAX: Final = 200
"""A page that a person reads and a response that stays small."""


class InsightStore(Protocol):
    """Questions about what is stored."""

    async def list_support_cases(
        self, tenant_id: str, *, status: SupportStatus | None = None, after: UUID | None = None, limit: int = 50
    ) -> Sequence[SupportCase]:
        """List a tenant's cases in the order of their ids, starting behind `after`."""
        ...
