"""Comparing what a caller gave with what is stored, and that the fields to compare are those of the design."""

from typing import Any, ClassVar

import msgspec
import pytest

from clarion.domain.address import AddressVersion
from clarion.domain.automation import INPUT_FIELDS, TIMING_FIELDS, AutomationJob, AutomationScheduler
from clarion.domain.comparison import differing
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingMessage

RECORDS = (
    AddressVersion,
    AutomationJob,
    AutomationScheduler,
    IdempotencyGuard,
    MessagingJob,
    NotificationJob,
    NotificationScheduler,
    OutgoingMessage,
    UserMessage,
)

# What we resolved or what changes over time: comparing it would turn an honest retry into a conflict
# (docs/explanation/ensure.md).
NEVER_COMPARED = {
    "template_version",
    "source_at",
    "bucket",
    "key_version",
    "ciphertext",
    "content",
    "payload",
    "recipients",
    "status",
    "version",
    "retry_count",
    "due_at",
    "lease_until",
    "dispatch_result",
    "correlation_id",
    "traceparent",
    "id",
}


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A record small enough to be checked by eye."""

    GIVEN: ClassVar[tuple[str, ...]] = ("street", "weight", "content_hash", "note_hash")

    street: str | None = "Elm"
    weight: int = 20
    content_hash: Fingerprint = Fingerprint.of("hello")
    note_hash: Fingerprint = Fingerprint.of("note")
    stamp: str = "red"


def test_what_is_equal_has_nothing_to_name() -> None:
    assert differing(Letter(), Letter()) == ()


@pytest.mark.parametrize(
    "changes, names",
    [
        ({"street": "Oak"}, ("street",)),
        ({"street": None}, ("street",)),
        ({"content_hash": Fingerprint.of("bye")}, ("content_hash",)),
        ({"note_hash": Fingerprint.of("bye"), "weight": 0, "street": ""}, ("street", "weight", "note_hash")),
        ({"stamp": "blue"}, ()),
    ],
)
def test_the_given_fields_that_differ_are_named_in_their_order_and_no_others(
    changes: dict[str, Any], names: tuple[str, ...]
) -> None:
    changed = msgspec.structs.replace(Letter(), **changes)
    assert differing(changed, Letter()) == names
    assert differing(Letter(), changed) == names


@pytest.mark.parametrize("name", ["content_hash", "note_hash"])
def test_a_row_that_a_newer_program_hashed_is_not_judged_at_all(name: str) -> None:
    newer = msgspec.structs.replace(Letter(), **{name: Fingerprint.stored("h9:00")})
    assert differing(Letter(), newer) is None
    assert differing(Letter(street="Oak"), newer) is None, "nor are its other fields, whose meaning may be newer too"


def test_hashes_are_compared_under_the_tag_of_the_row_that_is_there() -> None:
    both = Fingerprint(("h9:00", Fingerprint.of("hello").text))
    assert differing(Letter(content_hash=both), Letter()) == ()
    assert differing(Letter(content_hash=both), Letter(content_hash=Fingerprint.stored("h9:00"))) == ()
    assert differing(Letter(content_hash=both), Letter(content_hash=Fingerprint.stored("h9:01"))) == ("content_hash",)


@pytest.mark.parametrize("record", RECORDS)
def test_every_given_field_is_a_field_and_none_of_those_that_we_resolve(record: type[msgspec.Struct]) -> None:
    given: tuple[str, ...] = vars(record)["GIVEN"]
    assert set(given) <= set(record.__struct_fields__)
    assert len(set(given)) == len(given)
    assert NEVER_COMPARED.isdisjoint(given)


def test_an_occurrence_is_compared_in_all_that_its_hash_covers_and_not_in_its_send_time() -> None:
    assert set(INPUT_FIELDS) <= set(AutomationScheduler.GIVEN)
    assert set(TIMING_FIELDS).isdisjoint(AutomationScheduler.GIVEN)
    assert set(TIMING_FIELDS) <= set(AutomationScheduler.__struct_fields__)
