"""Frozen sets as they are kept: the first page stands, parts and single recipients are found, and it is sealed."""

from collections.abc import Sequence

import pytest

from clarion.domain import recipient
from clarion.domain.identity import Channel, IdentityDomain
from clarion.domain.notification import NotificationJob
from clarion.domain.recipient import Decision, FrozenRecipient, Manifest, Totals
from clarion.errors import BlobMissing, SealBroken
from clarion.sealing.recipients import RecipientSets
from clarion.testing import factories
from clarion.testing.blobs import MemoryBlobs
from tests.unit.dispatch_harness import DispatchHarness

TENANT = "school"
PAGES = ((2, 4, 6), (8, 10, 12), (14,))


def one(n: int) -> FrozenRecipient:
    decision = Decision(channel=Channel.EMAIL, address_id=n)
    return FrozenRecipient(
        recipient_id_hash=f"{n:032x}", domain=IdentityDomain.USER, person_id=f"p{n}", decisions=(decision,)
    )


def numbers(recipients: Sequence[FrozenRecipient]) -> list[int]:
    return [int(each.recipient_id_hash, 16) for each in recipients]


@pytest.fixture
async def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture
async def sets(blobs: MemoryBlobs) -> RecipientSets:
    harness = DispatchHarness()
    await harness.dispatcher.ensure_tenant(TENANT)
    await harness.dispatcher.ensure_tenant("other")
    return RecipientSets(blobs=blobs, keyring=harness.keyring)


async def large(sets: RecipientSets) -> NotificationJob:
    """Store a set in pages, and make the job that has it."""
    job = factories.notification_job(1)
    for place, page in enumerate(PAGES):
        await sets.put_page(TENANT, job.guid, place, tuple(one(n) for n in page))
    manifest = Manifest(totals=Totals(recipients=7), pages=tuple(f"{page[-1]:032x}" for page in PAGES))
    stored = await sets.put_manifest(TENANT, job.guid, manifest)
    return factories.notification_job(1, recipients=recipient.encode_manifest(stored))


def small() -> NotificationJob:
    everybody = tuple(one(n) for page in PAGES for n in page)
    return factories.notification_job(1, recipients=recipient.encode(everybody))


async def test_the_first_page_and_the_first_manifest_stand(sets: RecipientSets) -> None:
    guid = factories.guid(7)
    assert await sets.find_page(TENANT, guid, 0) is None
    assert await sets.put_page(TENANT, guid, 0, (one(1), one(2))) == (one(1), one(2))
    assert await sets.put_page(TENANT, guid, 0, (one(3),)) == (one(1), one(2))
    assert await sets.find_page(TENANT, guid, 0) == (one(1), one(2))
    first, second = Manifest(pages=("a",)), Manifest(pages=("b",))
    assert await sets.put_manifest(TENANT, guid, first) == first
    assert await sets.put_manifest(TENANT, guid, second) == first


@pytest.mark.parametrize(
    "after, limit, found",
    [
        (0, 3, [2, 4, 6]),
        (0, 4, [2, 4, 6, 8]),
        (4, 2, [6, 8]),
        (6, 3, [8, 10, 12]),
        (5, 100, [6, 8, 10, 12, 14]),
        (13, 1, [14]),
        (14, 5, []),
        (99, 5, []),
    ],
)
@pytest.mark.parametrize("kind", ["in pages", "in its row"])
async def test_a_part_is_read_behind_one_recipient_wherever_the_pages_end(
    sets: RecipientSets, kind: str, after: int, limit: int, found: list[int]
) -> None:
    job = await large(sets) if kind == "in pages" else small()
    behind = f"{after:032x}" if after else ""
    assert numbers(await sets.part(TENANT, job, after=behind, limit=limit)) == found


@pytest.mark.parametrize("kind", ["in pages", "in its row"])
async def test_one_recipient_is_found_in_the_one_page_that_may_have_it(sets: RecipientSets, kind: str) -> None:
    job = await large(sets) if kind == "in pages" else small()
    for n in range(1, 20):
        found = await sets.find(TENANT, job, f"{n:032x}")
        assert found == (one(n) if n % 2 == 0 and n <= 14 else None)


async def test_of_a_job_without_a_set_nobody_is_found(sets: RecipientSets) -> None:
    job = factories.notification_job(1)
    assert await sets.part(TENANT, job, limit=5) == ()
    assert await sets.find(TENANT, job, f"{2:032x}") is None


async def test_pages_are_sealed_for_their_tenant_and_their_place(sets: RecipientSets, blobs: MemoryBlobs) -> None:
    job = await large(sets)
    contents = blobs._contents
    assert len(contents) == len(PAGES) + 1
    assert not [path for path, sealed in contents.items() if b"p10" in sealed or b"pages" in sealed]
    first, second, *_ = sorted(contents)
    contents[first] = contents[second]
    with pytest.raises(SealBroken):
        await sets.part(TENANT, job, limit=1)
    with pytest.raises(BlobMissing):
        await sets.part("other", job, limit=1)
