"""What is one line ends with its last character: `$` alone would let a line break follow it."""

import re
from pathlib import Path

import msgspec
import pytest

import clarion
from clarion.client.wire_reminders import ReminderRequest
from clarion.client.wire_reports import SubscriptionRequest
from clarion.domain.report_choice import PARAMETER_CHARS_MAX


def test_every_pattern_goes_up_to_the_end() -> None:
    """Those of msgspec are searched for, so each has to say itself where it begins and ends."""
    folder = Path(clarion.__file__).parent
    lines = [line for path in sorted(folder.rglob("*.py")) for line in path.read_text().splitlines()]
    found = [line for line in lines if "pattern=" in line or "PLAIN" in line]
    assert any("END" in line for line in found)
    assert [line for line in found if re.search(r"\$\"", line)] == []


RULE = {"on": "date", "field": "due"}
REMINDER = {"name": "R", "source_type": "invoice", "rule": RULE, "notification_type": "invoice-due"}
REPORT = {"name": "R", "report": "r", "rule": "0 8 * * *", "time_zone": "UTC", "notification_type": "weekly"}


@pytest.mark.parametrize(
    "shape, body, wrong",
    [
        (ReminderRequest, REMINDER, {"send_time": "09:00\n"}),
        (ReminderRequest, REMINDER, {"source_type": "invoice\n"}),
        (ReminderRequest, REMINDER, {"name": "R\n"}),
        (ReminderRequest, REMINDER, {"rule": RULE | {"field": "due\n"}}),
        (SubscriptionRequest, REPORT, {"notification_type": "weekly\n"}),
        (SubscriptionRequest, REPORT, {"parameters": {"type": "x" * (PARAMETER_CHARS_MAX + 1)}}),
    ],
)
def test_a_line_break_behind_the_end_is_refused(
    shape: type[msgspec.Struct], body: dict[str, object], wrong: dict[str, object]
) -> None:
    """A send time with one stopped all planning of its source type."""
    msgspec.convert(body, shape)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body | wrong, shape)
