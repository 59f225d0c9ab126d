"""Hash algorithms come and go: a stored row is compared under the tag that it was stored with.

A second algorithm is added to the registries of `domain.hashing` for the length of a test. A release that knows it
writes it from then on, or not yet; one that does not know it leaves such rows alone.
"""

import hashlib
import hmac
from collections.abc import Iterator

import msgspec
import pytest

from clarion.domain import hashing
from clarion.domain.automation import AutomationStatus
from clarion.domain.ensured import Ensured, Outcome
from clarion.domain.fingerprint import Fingerprint
from clarion.domain.guard import IdempotencyGuard, JobEntry
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.testing.contracts.ensuring import ensure_one
from clarion.testing.contracts.harness import StoreHarness, everything, without_cases
from clarion.testing.contracts.kind import AUTOMATION_SCHEDULER, Kind, changed
from clarion.testing.contracts.partial_failure import HASHED
from clarion.testing.contracts.sets import outcomes
from clarion.testing.factories import automation_scheduler, guarded_entry, notification_job, notification_scheduler

each_hash = pytest.mark.parametrize("kind, name", HASHED, ids=str)


class Release:
    """The algorithms of the program that runs, to be changed as an upgrade or a downgrade would."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Start with the algorithms of this program."""
        self._patch = patch

    def learn(self) -> None:
        """Know a second algorithm of each kind, and still write the first."""
        self._patch.setitem(hashing.PLAIN, "h2", _sha512)
        self._patch.setitem(hashing.KEYED, "k2", _hmac_sha512)

    def write(self) -> None:
        """Know the second and write it."""
        self.learn()
        self._patch.setattr(hashing, "PLAIN_TAG", "h2")
        self._patch.setattr(hashing, "KEYED_TAG", "k2")

    def forget(self) -> None:
        """Be the old program again."""
        self._patch.undo()


def _sha512(content: object) -> str:
    return hashlib.sha512(hashing.canonical_json(content)).hexdigest()


def _hmac_sha512(key: bytes, content: object) -> str:
    return hmac.digest(key, hashing.canonical_json(content), "sha512").hex()


def _tag(row: msgspec.Struct, name: str) -> str:
    stored: Fingerprint = getattr(row, name)
    return stored.text.partition(":")[0]


class HashTagContract:
    """Old rows are found, new ones are written, newer ones are left alone."""

    @pytest.fixture
    def release(self) -> Iterator[Release]:
        """Change the algorithms, and put them back."""
        with pytest.MonkeyPatch.context() as patch:
            yield Release(patch)

    @each_hash
    async def test_a_row_of_the_old_algorithm_is_found_by_a_program_that_writes_the_new_one(
        self, harness: StoreHarness, kind: Kind, name: str, release: Release
    ) -> None:
        """And is not rewritten."""
        created = await ensure_one(harness, kind, kind.make())
        before = await everything(harness)
        release.write()
        assert await ensure_one(harness, kind, kind.make()) == Ensured(outcome=Outcome.FOUND, record=created.record)
        assert await everything(harness) == before

    @each_hash
    async def test_other_content_is_a_conflict_under_the_old_algorithm_too(
        self, harness: StoreHarness, kind: Kind, name: str, release: Release
    ) -> None:
        """A new algorithm hides no difference."""
        await ensure_one(harness, kind, kind.make())
        release.write()
        answer = await ensure_one(harness, kind, changed(kind.make(), name))
        assert (answer.outcome, answer.differing) == (Outcome.CONFLICT, (name,))

    @each_hash
    async def test_a_row_stores_one_hash_and_any_program_that_knows_it_finds_the_row(
        self, harness: StoreHarness, kind: Kind, name: str, release: Release
    ) -> None:
        """The release before the one that writes a new algorithm already reads it."""
        release.write()
        created = await ensure_one(harness, kind, kind.make())
        assert _tag(created.record, name) in {"h2", "k2"}
        assert getattr(created.record, name).tagged == (getattr(kind.make(), name).text,)
        release.forget()
        release.learn()
        assert _tag(kind.make(), name) in {"h1", "k1"}
        assert (await ensure_one(harness, kind, kind.make())).outcome is Outcome.FOUND

    @each_hash
    async def test_a_row_of_an_unknown_algorithm_is_left_to_the_newer_program_that_wrote_it(
        self, harness: StoreHarness, kind: Kind, name: str, release: Release
    ) -> None:
        """It can be neither confirmed nor denied: nothing is written, no case is opened, the caller stops."""
        release.write()
        created = await ensure_one(harness, kind, kind.make())
        release.forget()
        before = await everything(harness)
        for given in (kind.make(), changed(kind.make(), name), changed(kind.make(), kind.given_fields[0])):
            answer = await ensure_one(harness, kind, given)
            assert answer == Ensured(outcome=Outcome.NEWER, record=created.record)
            assert not answer.proceeds
        assert await everything(harness) == before

    async def test_an_occurrence_of_an_unknown_algorithm_is_neither_moved_nor_woken(
        self, harness: StoreHarness, release: Release
    ) -> None:
        """Not even a failed one with a new send time."""
        release.write()
        created = await ensure_one(harness, AUTOMATION_SCHEDULER, automation_scheduler())
        row = msgspec.structs.replace(created.record, status=AutomationStatus.FAILED)
        await harness.overwrite(harness.tenant_id, row)
        release.forget()
        before = await everything(harness)
        answer = await ensure_one(harness, AUTOMATION_SCHEDULER, automation_scheduler(local_time="07:00"))
        assert answer == Ensured(outcome=Outcome.NEWER, record=row)
        assert await everything(harness) == before

    async def test_a_guard_of_the_old_algorithm_leads_to_its_job(self, harness: StoreHarness, release: Release) -> None:
        """Guard and job are both compared under their own tags."""
        (created,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [guarded_entry()])
        before = await everything(harness)
        release.write()
        again, other = await harness.store.ensure_notification_jobs(
            harness.tenant_id, [guarded_entry(), guarded_entry(payload="something else")]
        )
        assert again == Ensured(outcome=Outcome.FOUND, record=created.record)
        assert (other.outcome, other.differing) == (Outcome.CONFLICT, ("payload_hash",))
        assert without_cases(await everything(harness)) == without_cases(before)

    async def test_a_guard_stores_one_hash(self, harness: StoreHarness, release: Release) -> None:
        """As every other row."""
        release.write()
        entry = guarded_entry()
        await harness.store.ensure_notification_jobs(harness.tenant_id, [entry])
        (guard,) = await harness.rows(harness.tenant_id, IdempotencyGuard)
        assert guard.payload_hash.tagged == (entry.job.payload_hash.text,)

    async def test_a_guard_of_an_unknown_algorithm_makes_nothing(self, harness: StoreHarness, release: Release) -> None:
        """Not even the job that is missing."""
        release.write()
        (created,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [guarded_entry()])
        (scheduler,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        await harness.remove(harness.tenant_id, created.record)
        await harness.remove(harness.tenant_id, scheduler)
        release.forget()
        before = await everything(harness)
        (answer,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [guarded_entry()])
        assert (answer.outcome, answer.record.row_key) == (Outcome.NEWER, created.record.row_key)
        assert await everything(harness) == before

    async def test_in_a_set_a_newer_row_withholds_its_own_item_only(
        self, harness: StoreHarness, release: Release
    ) -> None:
        """And a job that is left alone gets no scheduler row either."""
        release.write()
        await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=notification_job(2))])
        release.forget()
        answers = await harness.store.ensure_notification_jobs(
            harness.tenant_id,
            [JobEntry(job=notification_job(n), scheduler=notification_scheduler(n)) for n in (1, 2, 3)],
        )
        assert outcomes(answers) == [Outcome.CREATED, Outcome.NEWER, Outcome.CREATED]
        assert len(await harness.rows(harness.tenant_id, NotificationJob)) == 3
        assert len(await harness.rows(harness.tenant_id, NotificationScheduler)) == 2
        assert await harness.store.list_support_cases(harness.tenant_id) == []
