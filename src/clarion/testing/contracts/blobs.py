"""What every blob store must do, as tests to inherit.

A plugin author derives a class, overrides the `blobs` fixture and lets pytest collect it; the tests are coroutines, so
pytest-asyncio runs in `auto` mode. Every test takes a fresh, empty store. What a store does besides (durability, errors
of its own) is tested beside its adapter.
"""

import asyncio
from abc import ABC, abstractmethod

import pytest

from clarion.errors import BlobMissing, InvalidInput, InvalidKey
from clarion.ports.blobs import CONTENT_BYTES_MAX, PATH_BYTES_MAX, SEGMENT_BYTES_MAX, Blobs

PATH = "acme/recipients/6d0cbb1e-0d6c-4ad5-9c5d-7f6a1c1f0b52/0"

# Each would be refused, or taken for another path, by at least one kind of store.
BAD_PATHS = (
    "",
    "/",
    "/acme/a",
    "acme/a/",
    "acme//a",
    "acme/./a",
    "acme/../other/a",
    "..",
    ".hidden",
    "acme/-a",
    "acme/A",
    "acme/a b",
    "acme/a\\b",
    "acme/a#1",
    "acme/a%2fb",
    "acme/a?b",
    "acme/ä",
    "acme/a\n",
    "acme/a\0",
    "acme/" + "a" * (SEGMENT_BYTES_MAX + 1),
    "a/" * (PATH_BYTES_MAX // 2) + "a",
)


class BlobsContract(ABC):
    """The promises of `ports.blobs.Blobs`."""

    @pytest.fixture
    @abstractmethod
    def blobs(self) -> Blobs:
        """Open a fresh, empty store."""

    async def test_what_was_put_is_found_byte_for_byte(self, blobs: Blobs) -> None:
        """Every byte value survives."""
        content = bytes(range(256)) * 3
        assert await blobs.put_if_absent(PATH, content) is True
        assert await blobs.get(PATH) == content
        assert await blobs.find(PATH) == content

    async def test_a_second_put_changes_nothing_and_says_so(self, blobs: Blobs) -> None:
        """The first content stays, whether the second is equal or not."""
        await blobs.put_if_absent(PATH, b"first")
        assert await blobs.put_if_absent(PATH, b"second, and longer") is False
        assert await blobs.put_if_absent(PATH, b"first") is False
        assert await blobs.get(PATH) == b"first"

    async def test_of_many_puts_at_once_exactly_one_wins_and_its_content_stays(self, blobs: Blobs) -> None:
        """Writers race; the winner is the one that was told so."""
        contents = [f"writer {number}".encode() * 1000 for number in range(16)]
        won = await asyncio.gather(*(blobs.put_if_absent(PATH, content) for content in contents))
        assert won.count(True) == 1
        assert await blobs.get(PATH) == contents[won.index(True)]

    async def test_a_blob_may_be_empty_and_is_not_taken_for_absent(self, blobs: Blobs) -> None:
        """Nothing stored and an empty content are two things."""
        assert await blobs.put_if_absent(PATH, b"") is True
        assert await blobs.find(PATH) == b""
        assert await blobs.put_if_absent(PATH, b"late") is False
        assert await blobs.get(PATH) == b""

    async def test_what_was_never_put_is_none_to_find_and_an_error_that_names_it_to_get(self, blobs: Blobs) -> None:
        """`find_` may return None, `get_` raises."""
        assert await blobs.find(PATH) is None
        with pytest.raises(BlobMissing, match=PATH):
            await blobs.get(PATH)

    async def test_paths_beside_each_other_do_not_mix(self, blobs: Blobs) -> None:
        """Neighbours, and one tenant's path under another's name, are blobs of their own."""
        paths = ["acme/a/0", "acme/a/1", "acme/a/10", "other/a/0", "acme/a.b"]
        for path in paths:
            assert await blobs.put_if_absent(path, path.encode()) is True
        assert [await blobs.get(path) for path in paths] == [path.encode() for path in paths]

    async def test_a_folder_of_blobs_is_not_a_blob(self, blobs: Blobs) -> None:
        """A prefix of a path holds nothing itself."""
        await blobs.put_if_absent("acme/a/0", b"content")
        assert await blobs.find("acme/a") is None

    @pytest.mark.parametrize("path", BAD_PATHS)
    async def test_a_path_that_some_store_would_misread_is_refused_by_all(self, blobs: Blobs, path: str) -> None:
        """Writing and reading refuse alike."""
        with pytest.raises(InvalidKey):
            await blobs.put_if_absent(path, b"content")
        with pytest.raises(InvalidKey):
            await blobs.get(path)
        with pytest.raises(InvalidKey):
            await blobs.find(path)

    async def test_the_longest_path_is_accepted(self, blobs: Blobs) -> None:
        """Both limits are reached, not only approached."""
        part = "a" * SEGMENT_BYTES_MAX
        path = f"{part}/{part}/{'a' * (PATH_BYTES_MAX - 2 * SEGMENT_BYTES_MAX - 2)}"
        assert len(path) == PATH_BYTES_MAX
        assert await blobs.put_if_absent(path, b"content") is True
        assert await blobs.get(path) == b"content"

    async def test_content_over_the_limit_is_refused_before_anything_is_stored(self, blobs: Blobs) -> None:
        """One byte too many stores none."""
        with pytest.raises(InvalidInput, match=str(CONTENT_BYTES_MAX)):
            await blobs.put_if_absent(PATH, bytes(CONTENT_BYTES_MAX + 1))
        assert await blobs.find(PATH) is None

    async def test_content_larger_than_one_part_of_an_upload_is_whole(self, blobs: Blobs) -> None:
        """Over 5 MiB, where object store clients begin to split, the first writer still wins and nothing is lost."""
        content = bytes(range(251)) * 25_000
        assert await blobs.put_if_absent(PATH, content) is True
        assert await blobs.put_if_absent(PATH, content[:-1]) is False
        assert await blobs.get(PATH) == content
