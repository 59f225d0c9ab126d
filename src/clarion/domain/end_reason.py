"""What it means to people that an occurrence ended and nobody was told: the words for `planning.EndReason`. Pure."""

from collections.abc import Mapping
from typing import Final

from clarion.domain.planning import EndReason

MEANINGS: Final[Mapping[EndReason, tuple[str, str]]] = {
    EndReason.SOURCE_NO_LONGER_VALID: (
        "its source was removed, or no condition of the setting fits it any more",
        "nothing, unless the source should still be there",
    ),
    EndReason.SOURCE_CHANGED: (
        "the date of its source is another one now; the occurrence of the new date stands beside it",
        "nothing",
    ),
    EndReason.REMINDER_SETTING_INACTIVE: (
        "its reminder setting was switched off",
        "`clarion reminders on` plans it again",
    ),
    EndReason.REMINDER_SETTING_CHANGED: (
        "its reminder setting asks for other days or another threshold now",
        "nothing: what it asks for now stands beside it",
    ),
    EndReason.THRESHOLD_NO_LONGER_MET: ("the metric went back behind the threshold before it was due", "nothing"),
    EndReason.SUBSCRIPTION_INACTIVE: ("its report subscription was switched off", "switch it on again"),
    EndReason.SUBSCRIPTION_CHANGED: (
        "its report subscription runs at other times now",
        "nothing: what it asks for now stands beside it",
    ),
    EndReason.RUN_MISSED: (
        "nothing ran while it was due, and its subscription leaves out runs that were missed",
        "run the report by hand if somebody needs it",
    ),
    EndReason.NO_RECIPIENTS: (
        "when it was due nobody was named: not by its setting, nor by those of its notification type",
        "name somebody, then `clarion automation rerun`",
    ),
    EndReason.NOTIFICATION_TYPE_OFF: (
        "its notification type was off when it was due",
        "switch the type on, then `clarion automation rerun`",
    ),
    EndReason.DEACTIVATED_BY_HAND: ("a person deactivated it", "ask whom the audit log names"),
}
"""Of each reason what happened, and what to do about it."""
