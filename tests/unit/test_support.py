"""What a person reads of a support case: what it is about, and in what two requests differ, in plain words."""

import msgspec
import pytest

from clarion.domain import trouble
from clarion.domain.comparison import differing
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob
from clarion.domain.support import about, conflict_case, differing_in_words
from clarion.testing import factories as make

TENANT = "school"


def test_a_case_about_an_account_says_which() -> None:
    case = trouble.failing_account(TENANT, account="mail-1", reason="no reply", failures=3, correlation_id="r")
    assert about(case) == "account mail-1"


def test_a_case_about_an_occurrence_has_the_key_by_which_it_is_released() -> None:
    """Two cases of reminders on hold could not be told apart by the name of their record."""
    case = conflict_case(
        tenant_id=TENANT,
        given=make.automation_scheduler(scheduler_key="reminder:1"),
        found=make.automation_scheduler(scheduler_key="reminder:1"),
        fields=[],
        correlation_id="c",
    )
    assert about(case) == "occurrence reminder:1"


def test_a_case_about_a_notification_has_the_id_by_which_it_is_explained() -> None:
    job = make.guarded_entry().job
    other = msgspec.structs.replace(job, event_type="other")
    conflict = conflict_case(tenant_id=TENANT, given=other, found=job, fields=["event_type"], correlation_id="r")
    assert about(conflict) == f"notification {job.guid}"
    assert about(trouble.failed_job(TENANT, make.scheduler_of(job))) == f"notification {job.guid}"


def test_a_case_whose_key_says_nothing_to_people_names_only_the_kind_of_thing() -> None:
    event = make.notification_job(1)
    case = conflict_case(tenant_id=TENANT, given=event, found=event, fields=[], correlation_id="r")
    assert about(case) == "notification"
    assert about(msgspec.structs.replace(case, record_key="no JSON")) == "notification"


@pytest.mark.parametrize("kind", [MessagingJob, NotificationJob, UserMessage])
def test_what_differs_is_named_without_a_word_for_a_hash(kind: type[NotificationJob]) -> None:
    assert not [word for name in kind.GIVEN for word in differing_in_words([name]) if "hash" in word or "key_" in word]


def test_the_hash_of_a_payload_is_told_only_where_it_differs_alone() -> None:
    job = make.guarded_entry().job
    one = msgspec.structs.replace(job, event_type="other", payload_hash=make.payload_hash("other"))
    assert differing_in_words(differing(one, job) or ()) == ["type"]
    assert differing_in_words(["payload_hash"]) == ["recipients, data, lane or not_before_at"]
