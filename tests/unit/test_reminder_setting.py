"""What a reminder setting may say: each mistake is named with its place, whether its shape or its meaning is wrong."""

from typing import Any

import msgspec
import pytest

from clarion.domain.end_reason import MEANINGS
from clarion.domain.misfit import misfits_in
from clarion.domain.planning import EndReason
from clarion.domain.reminder import ReminderSetting, require_setting
from clarion.errors import InvalidInput

SETTING: dict[str, Any] = {
    "guid": "6f1c2c7e-0000-4000-8000-000000000001",
    "name": "First aid ends",
    "source_type": "certificate",
    "rule": {"on": "date", "field": "expires", "offsets": [30, 0, -7]},
    "notification_type": "certificate-expires",
}
METRIC: dict[str, Any] = {"on": "threshold", "metric": "booked", "value": 0.9}


@pytest.mark.parametrize(
    "change, field, what",
    [
        ({"source_type": "Certificate"}, "source_type", "it is no name that a field or a type can have"),
        ({"send_time": "24:00"}, "send_time", "it is no time of day"),
        ({"send_time": "9:00"}, "send_time", "it is no time of day"),
        ({"rule": {"on": "day", "field": "expires"}}, "rule.on", "'day' is not one of its words"),
        ({"rule": {"field": "expires"}}, "rule.on", "it is missing"),
        ({"rule": {"on": "date", "field": "the end"}}, "rule.field", "it is no name that a field or a type can have"),
        ({"rule": {"on": "date", "field": "expires", "offsets": []}}, "rule.offsets", "it has too few entries"),
        ({"rule": {"on": "date", "field": "e", "offsets": [3661]}}, "rule.offsets[0]", "it is too large"),
        ({"rule": {"on": "date", "field": "e", "offsets": [*range(21)]}}, "rule.offsets", "it has too many entries"),
        ({"rule": METRIC | {"policy": "Often"}}, "rule.policy", "'Often' is not one of its words"),
        ({"rule": METRIC | {"value": "much"}}, "rule.value", "it is text and must be a number"),
        ({"rule": METRIC | {"scope": "\n"}}, "rule.scope", "it is blank, or holds a control character or one that"),
        ({"rule": METRIC | {"above": 1}}, "rule.above", "there is no such field"),
        ({"conditions": [{"field": "state", "values": []}]}, "conditions[0].values", "it has too few entries"),
        ({"conditions": [{"field": "a", "op": "like", "values": [1]}]}, "conditions[0].op", "'like' is not one of"),
    ],
)
def test_a_value_of_another_shape_is_named(change: dict[str, Any], field: str, what: str) -> None:
    (misfit,) = misfits_in(SETTING | change, ReminderSetting)
    assert misfit.field == field
    assert misfit.what.startswith(what)


def test_of_two_kinds_of_rules_the_words_are_named() -> None:
    (misfit,) = misfits_in(SETTING | {"rule": {"on": "day"}}, ReminderSetting)
    assert misfit.hint == "choose from date, threshold"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"rule": METRIC | {"value": float("nan")}}, "rule.value"),
        ({"rule": METRIC | {"value": float("-inf")}}, "rule.value"),
        ({"rule": {"on": "date", "field": "expires", "offsets": [7, 0, 7]}}, "rule.offsets[2]"),
        ({"conditions": [{"field": "grade", "values": [1, float("inf")]}]}, "conditions[0].values[1]"),
        (
            {"conditions": [{"field": "a", "values": [1]}, {"field": "b", "values": ["x", "x"]}]},
            "conditions[1].values[1]",
        ),
        ({"recipients": []}, "recipients"),
        ({"recipients": [{"role": "head"}, {"role": "head"}]}, "recipients[1]"),
        ({"recipients": [{"role": "head", "unit": True}]}, "recipients[0]"),
        ({"recipients": [{"role": f"r{n}"} for n in range(21)]}, "recipients"),
    ],
)
def test_what_cannot_be_meant_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        require_setting(msgspec.convert(SETTING | change, ReminderSetting))
    assert refused.value.field == field


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"rule": METRIC},
        {"rule": METRIC | {"value": -1, "compare": "at_most", "scope": "Raum 1", "policy": "FalseToTrue"}},
        {"rule": {"on": "date", "field": "hired", "yearly": True}},
        {"conditions": [{"field": "paid", "op": "is_not", "values": [True, 1, None, "yes"]}], "send_time": "00:00"},
        {"recipients": [{"relation": "owner"}, {"unit": True}], "active": False},
    ],
)
def test_what_can_be_meant_is_taken(change: dict[str, Any]) -> None:
    setting = msgspec.convert(SETTING | change, ReminderSetting)
    assert require_setting(setting) is setting


def test_every_reason_for_which_nobody_is_told_has_its_words() -> None:
    assert set(MEANINGS) == set(EndReason)
