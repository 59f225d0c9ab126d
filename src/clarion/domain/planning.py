"""Plans: what becomes of the pending occurrences of one source, decided by one pure rule for every cause.

An event, a changed setting, a repair and an occurrence that was handed over all come here, and so arrive at the same
keys. The store carries a plan out in one transaction: what is no longer wanted is deactivated, what is wanted is
ensured, and the threshold's state moves with them.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from clarion.domain.automation import AutomationScheduler
from clarion.domain.ensured import Ensured


class EndReason(StrEnum):
    """Why an occurrence came to its end without anybody being told: the closed list that people and programs read."""

    SOURCE_NO_LONGER_VALID = "SourceNoLongerValid"
    SOURCE_CHANGED = "SourceChanged"
    REMINDER_SETTING_INACTIVE = "ReminderSettingInactive"
    REMINDER_SETTING_CHANGED = "ReminderSettingChanged"
    THRESHOLD_NO_LONGER_MET = "ThresholdNoLongerMet"
    SUBSCRIPTION_INACTIVE = "SubscriptionInactive"
    SUBSCRIPTION_CHANGED = "SubscriptionChanged"
    RUN_MISSED = "RunMissed"
    NO_RECIPIENTS = "NoRecipients"
    NOTIFICATION_TYPE_OFF = "NotificationTypeOff"
    DEACTIVATED_BY_HAND = "DeactivatedByHand"


class ThresholdState(msgspec.Struct, frozen=True, kw_only=True):
    """The last truth of one metric of a source under one setting and scope, and how often it has become true."""

    setting: str
    source_type: str
    source: str
    metric: str
    scope: str
    met: bool = False
    edge_no: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What is unique within the tenant."""
        return (self.setting, self.source_type, self.source, self.metric, self.scope)


class Deactivation(msgspec.Struct, frozen=True, kw_only=True):
    """A pending occurrence that is no longer wanted as it is, at the version at which it was read."""

    scheduler_key: str
    version: int
    reason: EndReason


class SourceStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of a source's occurrences, read before a plan.

    `serial` counts the plans that were carried out for the source; a plan over another one is overtaken. `open_rows`
    are those that are not final, and with them whatever has one of the keys that were asked for.
    """

    source_type: str
    source: str
    serial: int = 0
    open_rows: tuple[AutomationScheduler, ...] = ()
    states: tuple[ThresholdState, ...] = ()


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of one source's occurrences; `cause` names what brought it about in the lines of history.

    An occurrence that is both deactivated and ensured is made anew under its key (`automation.remade`), where it is
    still as it was read: its source has moved to another business unit, or its setting to another type. `unchanged`
    counts those that are wanted and are as they should be.
    """

    source_type: str
    source: str
    serial: int
    deactivate: tuple[Deactivation, ...] = ()
    ensure: tuple[AutomationScheduler, ...] = ()
    states: tuple[ThresholdState, ...] = ()
    unchanged: int = 0
    cause: str
    at: datetime
    correlation_id: str

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to carry out."""
        return not (self.deactivate or self.ensure or self.states)


class AppliedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What carrying a plan out came to; an overtaken one wrote nothing and is to be made again from what is read then.

    `ensured` are the answers to its `ensure`, in its order; `deactivated` the keys that were still as they were read.
    """

    overtaken: bool = False
    ensured: tuple[Ensured[AutomationScheduler], ...] = ()
    deactivated: tuple[str, ...] = ()


class PlanCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What plans came to, as it is told of an event, a setting or a repair."""

    ensured: int = 0
    deactivated: int = 0
    unchanged: int = 0
    conflicts: int = 0

    def __add__(self, other: "PlanCounts") -> "PlanCounts":
        """Add those of another plan."""
        return PlanCounts(
            ensured=self.ensured + other.ensured,
            deactivated=self.deactivated + other.deactivated,
            unchanged=self.unchanged + other.unchanged,
            conflicts=self.conflicts + other.conflicts,
        )
