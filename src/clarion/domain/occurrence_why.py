"""Why an occurrence is due, in words that people read: what was planned, counted from what. Pure."""

from datetime import date

from clarion.domain.automation import AutomationScheduler, TriggerType
from clarion.domain.key import FiringPolicy
from clarion.domain.source import WHOLE

_HOW_OFTEN = {
    FiringPolicy.ONCE_PER_SOURCE: "once for the source",
    FiringPolicy.ONCE_PER_THRESHOLD: "once for the threshold",
    FiringPolicy.ONCE_PER_DAY: "every day while it is met",
    FiringPolicy.FALSE_TO_TRUE: "each time that it becomes true",
}


def why_in_words(row: AutomationScheduler) -> str:
    """Say what makes an occurrence due."""
    match row.trigger_type:
        case TriggerType.DATE_BASED:
            return _date_in_words(row.trigger_key, row.target_date, row.offset_days or 0)
        case TriggerType.THRESHOLD_CONDITION:
            return _threshold_in_words(row)
        case TriggerType.MANUAL_RUN:
            return "somebody asked for this run"
        case TriggerType.SCHEDULED_RUN:
            return "the one run that its subscription plans"
        case TriggerType.RECURRING:
            return "the rule of its subscription"


def _date_in_words(field: str, target: date | None, offset: int) -> str:
    day = f"{field} {target}"
    if offset == 0:
        return f"on {day}"
    days = "1 day" if abs(offset) == 1 else f"{abs(offset)} days"
    return f"{days} {'before' if offset > 0 else 'after'} {day}"


def _threshold_in_words(row: AutomationScheduler) -> str:
    scope = "" if row.scope in (None, WHOLE) else f" of {row.scope}"
    value = "its threshold" if row.threshold_value is None else f"the threshold {row.threshold_value}"
    often = "" if row.firing_policy is None else f", {_HOW_OFTEN[FiringPolicy(row.firing_policy)]}"
    return f"{row.metric}{scope} meets {value}{often}"
