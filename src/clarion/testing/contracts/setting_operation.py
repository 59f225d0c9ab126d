"""Operations on settings of types that chance can put together, and the questions about them."""

from typing import Final
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel
from clarion.domain.setting import EffectiveSetting, SettingChange, TypeSetting
from clarion.ports.setting import SettingRow
from clarion.testing.contracts.side import Side
from clarion.testing.factories import guid

TYPES: Final = ("order-shipped", "one-time-code")
UNITS: Final[tuple[UUID | None, ...]] = (None, guid(1, "unit"), guid(2, "unit"))
PAGE: Final = 2


class PutSetting(msgspec.Struct, frozen=True):
    """Say something of a type, for the whole tenant or for one of its units; what is None is taken away."""

    event_type: str
    unit: UUID | None
    said: TypeSetting

    async def run(self, side: Side) -> object:
        """Put it."""
        change = SettingChange(**msgspec.structs.asdict(self.said))
        return await side.store.put_setting(side.tenant_id, self.event_type, self.unit, change, actor="kim")


async def settings_of(side: Side) -> list[SettingRow]:
    """List what is set, page by page; each row is the one that is found by its names."""
    rows: list[SettingRow] = []
    after = ("", "")
    while page := await side.store.list_settings(side.tenant_id, after=after, limit=PAGE):
        for row in page:
            assert await side.store.find_setting(side.tenant_id, row.event_type, row.unit) == row
        rows += page
        after = (page[-1].event_type, str(page[-1].unit or ""))
    return rows


async def effective_of(side: Side) -> list[EffectiveSetting]:
    """Ask what holds for every type in every unit, and in none."""
    asked = [(side.tenant_id, event_type, unit) for event_type in TYPES for unit in UNITS]
    found = await side.store.find_settings(asked)
    return [found[one] for one in asked]


PUT_SETTING: Final = st.builds(
    PutSetting,
    event_type=st.sampled_from(TYPES),
    unit=st.sampled_from(UNITS),
    said=st.builds(
        TypeSetting,
        enabled=st.sampled_from((None, True, False)),
        recipients=st.sampled_from((None, (Addressee(role="teacher"), Addressee(unit=True)))),
        channels=st.sampled_from((None, (Channel.SMS, Channel.EMAIL))),
    ),
)
