"""Examples of what is asked and answered about who gets nothing, and what people want."""

from datetime import UTC, datetime
from typing import Final

from clarion.client import wire_suppression as wire
from clarion.domain.identity import Channel
from clarion.domain.suppression import Cause

SUPPRESSION: Final = wire.Suppression(
    id="AAECAwQFBgcICQoLDA0ODyo",
    recipient="sam@example.com",
    category=None,
    channel=None,
    cause=Cause.BOUNCE,
    note="receipt 3fa29c1d-22-bounced of sandbox",
    created_by="track",
    created_at=datetime(2026, 3, 2, 8, 30, tzinfo=UTC),
)
SUPPRESSION_PAGE: Final = wire.SuppressionPage(items=(SUPPRESSION,), next_cursor=None)
SUPPRESSION_REQUEST: Final = wire.SuppressionRequest(
    items=(
        wire.SuppressionItem(recipient="sam@example.com"),
        wire.SuppressionItem(recipient="user:parent-17", category="news", channel=Channel.EMAIL),
    ),
    reason="asked for it on the phone",
)
SUPPRESSIONS_ADDED: Final = wire.SuppressionsAdded(added=2)
PREFERENCES: Final = wire.Preferences(
    person="user:parent-17",
    stopped=None,
    items=(
        wire.Preference(
            category="billing",
            titles=("Invoice due",),
            required=True,
            channels={Channel.EMAIL: True, Channel.SMS: True},
        ),
        wire.Preference(
            category="news", titles=("School newsletter",), required=False, channels={Channel.EMAIL: False}
        ),
    ),
)
PREFERENCES_REQUEST: Final = wire.PreferencesRequest(
    changes=(wire.PreferenceChange(category="news", channel=Channel.EMAIL, on=False),), reason="asked for it"
)
