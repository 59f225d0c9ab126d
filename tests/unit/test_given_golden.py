"""What is compared, field by field, against a list that is written by hand: `tests/golden/given.json`.

The contract suites walk the fields of `GIVEN`, so they hold a field that is there to its promise and miss one that is
not. Here stand the fields themselves, and hashes that a stored row of an earlier program may hold.
"""

import hashlib
import hmac
import importlib
import inspect
import json
import pkgutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clarion import domain
from clarion.dispatch.job import job_entry
from clarion.dispatch.message import messaging_job
from clarion.dispatch.occurrence import automation_job, automation_scheduler
from clarion.dispatch.request import FromEvent, JobRequest
from clarion.domain.audience import Addressee
from clarion.domain.automation import INPUT_FIELDS, TIMING_FIELDS
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.key import FiringPolicy
from clarion.domain.occurrence import ThresholdTrigger
from clarion.domain.recipient import Target
from clarion.domain.seal import TenantKeys
from tests.unit.dispatch_harness import DRAFT, ENTITY, campaign, direct, reminder, report

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden/given.json").read_text())  # Any: JSON
NONCE = bytes(12)
KEYS = TenantKeys(
    tenant_id="school",
    identity_key=bytes(range(32)),
    index_key=bytes(range(32, 64)),
    data_keys={1: bytes(range(64, 96))},
)


def compared() -> dict[str, list[str]]:
    """Find every record with a list of compared fields."""
    found: dict[str, list[str]] = {}
    for one in pkgutil.iter_modules(domain.__path__):
        module = importlib.import_module(f"{domain.__name__}.{one.name}")
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if "GIVEN" in vars(kind):
                found[name] = list(vars(kind)["GIVEN"])
    return found


def test_each_record_is_compared_in_the_fields_of_the_golden_file_and_in_no_others() -> None:
    assert compared() == GOLDEN["given"]


def test_the_hash_of_an_occurrence_covers_the_fields_of_the_golden_file() -> None:
    assert list(INPUT_FIELDS) == GOLDEN["input_hash"]


def test_an_ensure_moves_an_occurrence_by_the_fields_of_the_golden_file() -> None:
    assert list(TIMING_FIELDS) == GOLDEN["moved_by_an_ensure"]


def sha256(text: str) -> str:
    return f"h1:{hashlib.sha256(text.encode()).hexdigest()}"


def test_the_hash_of_a_reminder_is_that_of_its_canonical_json() -> None:
    """Written out by hand, with every member that an occurrence by date has."""
    text = (
        '{"business_unit":"6f1c2c7e-0000-4000-8000-000000000002","notification_type":"certificate-expiring",'
        '"offset_days":30,"primary_entity":"6f1c2c7e-0000-4000-8000-000000000001","setting":"first-aid",'
        '"source":"c-9","source_type":"certificate","target_date":"2026-06-01","trigger_key":"expiry"}'
    )
    assert automation_scheduler(reminder()).input_hash.text == sha256(text)
    assert automation_job(reminder()).input_hash.text == sha256(text)


@pytest.mark.parametrize(
    "policy, value",
    [
        (FiringPolicy.ONCE_PER_THRESHOLD, '"threshold_value":"0.9",'),
        (FiringPolicy.ONCE_PER_DAY, '"threshold_value":"0.9",'),
        (FiringPolicy.FALSE_TO_TRUE, '"threshold_value":"0.9",'),
        (FiringPolicy.ONCE_PER_SOURCE, ""),
    ],
)
def test_the_hash_of_a_threshold_has_its_value_but_not_once_per_source(policy: FiringPolicy, value: str) -> None:
    trigger = ThresholdTrigger(
        metric="booked",
        value=0.9,
        firing_policy=policy,
        scope="room-1",
        local_date=date(2026, 3, 1) if policy is FiringPolicy.ONCE_PER_DAY else None,
        edge_no=1 if policy is FiringPolicy.FALSE_TO_TRUE else None,
    )
    text = (
        f'{{"business_unit":"6f1c2c7e-0000-4000-8000-000000000002","firing_policy":"{policy}","metric":"booked",'
        '"notification_type":"certificate-expiring","primary_entity":"6f1c2c7e-0000-4000-8000-000000000001",'
        '"scope":"room-1","setting":"first-aid","source":"c-9","source_type":"certificate",'
        f'{value}"trigger_key":"expiry"}}'
    )
    occurrence = reminder(what=msgspec.structs.replace(reminder().what, trigger=trigger))
    assert automation_scheduler(occurrence).input_hash.text == sha256(text)


def test_the_hash_of_a_report_is_that_of_its_canonical_json() -> None:
    text = (
        f'{{"notification_type":"weekly-report","primary_entity":"{ENTITY}","setting":"{ENTITY}",'
        f'"source":"{ENTITY}","source_type":"report-subscription","trigger_key":"scheduled"}}'
    )
    assert automation_scheduler(report()).input_hash.text == sha256(text)


def payload_hash(request: JobRequest) -> str:
    return job_entry(KEYS, request, nonce=NONCE).job.payload_hash.text


def keyed(text: str) -> str:
    return f"k1:{hmac.digest(bytes(range(32)), text.encode(), 'sha256').hex()}"


def test_the_hash_of_a_direct_send_is_that_of_all_that_was_asked_for() -> None:
    """Under the identity key, because it may hold an address or a code."""
    request = direct(
        entity=("order", ENTITY),
        template_key="other",
        template_version=3,
        lane=Lane.HIGH,
        not_before_at=datetime(2026, 3, 2, tzinfo=UTC),
    )
    text = (
        '{"data":{"name":"Sam"},"entity":["order","6f1c2c7e-0000-4000-8000-000000000001"],"event_type":"welcome",'
        '"lane":"high","not_before_at":"1772409600000000","template_key":"other","template_version":3,'
        '"to":[{"identity":{"domain":"user","id":"7"}}]}'
    )
    assert payload_hash(request) == keyed(text)


def test_the_hash_of_a_direct_send_covers_what_holds_for_it_alone() -> None:
    request = direct(
        ttl_seconds=600,
        locale="de-AT",
        channels=(Channel.SMS, Channel.EMAIL),
        business_unit=DRAFT,
        hints=Hints(region="eu", tags=("a", "b"), unicode=False, from_="office"),
    )
    text = (
        f'{{"business_unit":"{DRAFT}","channels":["sms","email"],"data":{{"name":"Sam"}},"event_type":"welcome",'
        '"hints":{"from":"office","region":"eu","tags":["a","b"],"unicode":false},"locale":"de-AT",'
        '"to":[{"identity":{"domain":"user","id":"7"}}],"ttl_seconds":600}'
    )
    assert payload_hash(request) == keyed(text)


def test_the_hash_of_a_send_that_asks_for_nothing_special_is_that_of_an_earlier_program() -> None:
    """A caller that repeats a send after an upgrade must not be told that it differs."""
    text = '{"data":{"name":"Sam"},"event_type":"welcome","to":[{"identity":{"domain":"user","id":"7"}}]}'
    assert payload_hash(direct()) == keyed(text)


def test_the_hash_of_what_a_producer_of_ours_makes_leaves_out_what_it_reads_anew() -> None:
    request = direct(origin=FromEvent(event_type="opened", event_guid=DRAFT), entity=("order", ENTITY), lane=Lane.HIGH)
    text = '{"entity":["order","6f1c2c7e-0000-4000-8000-000000000001"],"event_type":"welcome"}'
    assert payload_hash(request) == keyed(text)


CHANGES: dict[str, Any] = {
    "event_type": "other",
    "entity": ("order", ENTITY),
    "to": (Target(identity=Identity.user("8")),),
    "data": {"name": "Alex"},
    "entity_data": {"name": "Alex"},
    "template_key": "other",
    "template_version": 3,
    "lane": Lane.HIGH,
    "not_before_at": datetime(2026, 3, 2, tzinfo=UTC),
    "ttl_seconds": 60,
    "locale": "de",
    "channels": (Channel.SMS,),
    "business_unit": DRAFT,
    "hints": Hints(region="eu"),
}
NOT_COMPARED: dict[str, Any] = {
    "source_at": datetime(2026, 3, 3, tzinfo=UTC),
    "resolved_template_version": 4,
    "resolved_lane": Lane.HIGH,
    "resolved_one_time_code": True,
    "scheduled": False,
    "actor": "sam",
    "addressees": (Addressee(role="head"),),
    "messaging_job": DRAFT,
    "blob_hash": "k1:1",
}


def test_every_field_of_a_direct_send_is_either_compared_or_not() -> None:
    listed = GOLDEN["payload_hash"]
    assert set(CHANGES) == {*listed["always"], *listed["of_a_direct_send"]}
    assert {*NOT_COMPARED, "origin", "trace"} == set(listed["never"])  # of these two one is the key itself
    assert {*CHANGES, *listed["never"]} == set(JobRequest.__struct_fields__)


@pytest.mark.parametrize("name", CHANGES)
def test_another_payload_has_another_hash(name: str) -> None:
    assert payload_hash(direct(**{name: CHANGES[name]})) != payload_hash(direct())


@pytest.mark.parametrize("name", GOLDEN["payload_hash"]["of_a_direct_send"])
def test_what_a_producer_of_ours_reads_anew_has_no_part_in_the_hash(name: str) -> None:
    event = FromEvent(event_type="opened", event_guid=DRAFT)
    made = direct(origin=event, entity=("order", ENTITY))
    assert payload_hash(msgspec.structs.replace(made, **{name: CHANGES[name]})) == payload_hash(made)


def test_another_order_of_channels_has_another_hash() -> None:
    """They are tried in that order."""
    one, other = (Channel.SMS, Channel.EMAIL), (Channel.EMAIL, Channel.SMS)
    assert payload_hash(direct(channels=one)) != payload_hash(direct(channels=other))


def test_every_hint_has_a_part_in_the_hash() -> None:
    values = dict.fromkeys(GOLDEN["payload_hash"]["hints"], "x") | {"tags": ["x"], "unicode": True}
    assert list(values) == list(Hints.__struct_encode_fields__)
    given = [msgspec.convert({name: value}, Hints) for name, value in values.items()]
    assert len({payload_hash(direct(hints=hints)) for hints in given}) == len(values)


@pytest.mark.parametrize("name", NOT_COMPARED)
def test_what_we_resolved_has_no_part_in_the_hash(name: str) -> None:
    assert payload_hash(direct(**{name: NOT_COMPARED[name]})) == payload_hash(direct())


def test_the_hash_of_a_content_is_that_of_its_bytes() -> None:
    inner = hashlib.sha256(b"hello").hexdigest()
    assert messaging_job("school", campaign(b"hello")).content_hash.text == sha256(f'"{inner}"')
