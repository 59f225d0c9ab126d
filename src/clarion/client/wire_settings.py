"""The shapes of the HTTP API about settings of notification types, of a tenant and of its business units.

Beside `client.wire`, whose rules hold here too. Plain values: nothing here reads or writes anything.
"""

from typing import Annotated
from uuid import UUID

import msgspec

from clarion.client.wire import At, Skipped
from clarion.domain.audience import ADDRESSEES_MAX, Addressee
from clarion.domain.identity import Channel
from clarion.domain.setting import Place

Enabled = Annotated[
    bool,
    msgspec.Meta(
        description="whether its notifications are sent; null says nothing: in a business unit it is then as the "
        "tenant says, and a type that nobody has switched off is on. Of the whole tenant true is the same as null"
    ),
]
Recipients = Annotated[
    tuple[Addressee, ...],
    msgspec.Meta(
        max_length=ADDRESSEES_MAX, description="who gets it where a send names nobody, at least one; null says nothing"
    ),
]
Channels = Annotated[
    tuple[Channel, ...],
    msgspec.Meta(
        max_length=len(Channel),
        description="by which of the type's channels it goes, at least one, each once, in the order in which they are "
        "tried; null says nothing, and it goes by all of them",
    ),
]
By = Annotated[
    Place, msgspec.Meta(description="whose setting it is; null where nobody says anything, and the type itself decides")
]


class SettingQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose setting."""

    business_unit: (
        Annotated[UUID, msgspec.Meta(description="of this business unit; without it, of the whole tenant")] | None
    ) = None


class SettingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a tenant, or one of its business units, says of a notification type; what is left out is null."""

    enabled: Enabled | None = None
    recipients: Recipients | None = None
    channels: Channels | None = None


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in the end: the business unit's word or, where it says nothing, the tenant's, or else the type's."""

    enabled: bool
    enabled_by: By | None
    recipients: Annotated[
        tuple[Addressee, ...], msgspec.Meta(description="who gets it where a send names nobody; empty: nobody")
    ]
    recipients_by: By | None
    channels: Annotated[tuple[Channel, ...], msgspec.Meta(description="by which it goes, in this order")]
    channels_by: By | None
    left_out: Annotated[
        tuple[Skipped, ...],
        msgspec.Meta(
            description="channels of the type that the setting leaves out, and those of the setting that the type does "
            "not have any more"
        ),
    ]


class SettingLine(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody has set, and who."""

    type: str
    business_unit: Annotated[UUID, msgspec.Meta(description="null: of the whole tenant")] | None
    enabled: Enabled | None
    recipients: Recipients | None
    channels: Channels | None
    changed_by: Annotated[str, msgspec.Meta(description="null where nothing is set")] | None
    changed_at: At | None


class Setting(SettingLine, frozen=True, kw_only=True):
    """What is set of a type in one place, and what holds there."""

    effective: Effective


class SettingPage(msgspec.Struct, frozen=True, kw_only=True):
    """What is set, by type; of one type that of the whole tenant first."""

    items: tuple[SettingLine, ...]
    next_cursor: str | None
