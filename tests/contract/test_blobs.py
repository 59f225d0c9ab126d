"""The blob contract over every store that needs no server, and what local files promise besides."""

import asyncio
import errno
import os
import resource
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clarion.adapters.blobs import open_blobs
from clarion.adapters.blobs.files import FileBlobs, open_files
from clarion.errors import BadConfiguration, InvalidKey, StoreFull, StoreReadOnly, StoreUnreachable
from clarion.ports.blobs import CONTENT_BYTES_MAX, Blobs
from clarion.testing.blobs import MemoryBlobs
from clarion.testing.contracts.blobs import PATH, BlobsContract

NOBODY = 65534


class TestDict(BlobsContract):
    """The specification passes its own contract."""

    @pytest.fixture
    def blobs(self) -> Blobs:
        return MemoryBlobs()


class TestMemory(BlobsContract):
    """obstore's memory."""

    @pytest.fixture
    def blobs(self) -> Blobs:
        return open_blobs("memory://")


class TestFiles(BlobsContract):
    """Files of this machine."""

    @pytest.fixture
    def blobs(self, tmp_path: Path) -> Blobs:
        return open_blobs(f"file://{tmp_path}/blobs")


class TestFilesInline(BlobsContract):
    """Files of this machine, written without a thread."""

    @pytest.fixture
    def blobs(self, tmp_path: Path) -> Blobs:
        return FileBlobs(tmp_path, run=inline)


async def inline(write: Callable[[], bool]) -> bool:
    return write()


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up root's right to ignore file modes, for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that an ordinary user can reach: pytest's own lies below one of mode 0700."""
    folder = Path(tempfile.mkdtemp(prefix="clarion-blobs-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def read_only_folder(public_folder: Path) -> Path:
    """A folder that an ordinary user can read but not write."""
    public_folder.chmod(0o555)
    return public_folder


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_two_stores_over_one_folder_see_the_same_blobs(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/blobs"
    assert await open_blobs(url).put_if_absent(PATH, b"content") is True
    assert await open_blobs(url).put_if_absent(PATH, b"other") is False
    assert await open_blobs(url).get(PATH) == b"content"


async def test_folders_and_files_are_closed_to_other_users(tmp_path: Path) -> None:
    blobs = open_blobs(f"file://{tmp_path}/new/blobs")
    await blobs.put_if_absent(PATH, b"content")
    root = tmp_path / "new" / "blobs"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    for path in root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


async def test_nothing_but_the_blob_remains_after_a_put(tmp_path: Path) -> None:
    blobs = open_files(str(tmp_path))
    await asyncio.gather(*(blobs.put_if_absent(PATH, b"content") for _ in range(8)))
    assert files_below(tmp_path) == [PATH]


async def test_content_is_on_the_disk_before_its_name_is_visible_and_the_folders_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Watch the system calls in their order: a power cut between any two leaves the whole blob or none."""
    calls: list[tuple[str, str]] = []
    fsync, link = os.fsync, os.link

    def watched_fsync(descriptor: int) -> None:
        calls.append(("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path))))
        fsync(descriptor)

    def watched_link(source: Path, target: Path) -> None:
        calls.append(("link", str(target.relative_to(tmp_path))))
        link(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "link", watched_link)
    await FileBlobs(tmp_path, run=inline).put_if_absent("acme/a/0", b"content")
    assert calls == [
        ("fsync", "acme/a/0#1"),
        ("link", "acme/a/0"),
        ("fsync", "acme/a"),
        ("fsync", "acme"),
        ("fsync", "."),
    ]


async def test_a_blob_that_another_writer_made_visible_is_flushed_before_we_rely_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = FileBlobs(tmp_path, run=inline)
    await blobs.put_if_absent("acme/0", b"content")
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    assert await blobs.put_if_absent("acme/0", b"content") is False
    assert flushed == [tmp_path / "acme", tmp_path]


@pytest.mark.parametrize("step", ["write", "fsync", "link"])
async def test_a_half_written_blob_is_never_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Fail at each step on the way: the path stays free, and the next put succeeds."""
    blobs = FileBlobs(tmp_path, run=inline)

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(os, "fdopen", broken)
        else:
            patch.setattr(os, step, broken)
        with pytest.raises(StoreUnreachable, match="check the disk"):
            await blobs.put_if_absent(PATH, b"content")
    assert await blobs.find(PATH) is None
    assert files_below(tmp_path) == []
    assert await blobs.put_if_absent(PATH, b"content") is True


async def test_what_a_killed_writer_left_behind_is_no_blob_and_in_nobodys_way(tmp_path: Path) -> None:
    blobs = open_files(str(tmp_path))
    leftover = tmp_path / f"{PATH}#1"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"hal")
    assert await blobs.find(PATH) is None
    assert await blobs.put_if_absent(PATH, b"whole") is True
    assert await blobs.get(PATH) == b"whole"


async def test_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file size stands in for the full disk: the kernel cuts the write off in the middle."""
    blobs = FileBlobs(tmp_path, run=inline)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(StoreFull, match="no space left"):
            await blobs.put_if_absent(PATH, bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files_below(tmp_path) == []
    assert await blobs.put_if_absent(PATH, bytes(100_000)) is True


async def test_a_folder_that_became_read_only_says_so(read_only_folder: Path) -> None:
    blobs = FileBlobs(read_only_folder, run=inline)
    with ordinary_user(), pytest.raises(StoreReadOnly, match="let this user write there"):
        await blobs.put_if_absent(PATH, b"content")


def test_a_folder_that_cannot_be_written_is_refused_when_it_is_opened(read_only_folder: Path) -> None:
    with ordinary_user():
        for folder in (read_only_folder, read_only_folder / "below"):
            with pytest.raises(StoreReadOnly, match="let this user write there"):
                open_files(str(folder))


def test_a_folder_that_is_a_file_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in ("file", "file/below"):
        with pytest.raises(BadConfiguration, match="is a file"):
            open_files(str(tmp_path / folder))


async def test_a_path_that_is_a_blob_and_a_folder_at_once_is_refused(tmp_path: Path) -> None:
    blobs = open_files(str(tmp_path))
    await blobs.put_if_absent("acme/a/0", b"content")
    for path in ("acme/a", "acme/a/0/1", "acme/a/0/1/2"):
        with pytest.raises(InvalidKey, match="above or below another blob"):
            await blobs.put_if_absent(path, b"content")


async def test_a_file_larger_than_any_blob_is_not_loaded(tmp_path: Path) -> None:
    blobs = open_files(str(tmp_path))
    with (tmp_path / "foreign").open("wb") as file:
        file.truncate(CONTENT_BYTES_MAX + 1)
    with pytest.raises(BadConfiguration, match="what else writes"):
        await blobs.find("foreign")


async def test_a_blob_that_cannot_be_read_is_an_error_and_not_an_absence(public_folder: Path) -> None:
    blobs = FileBlobs(public_folder, run=inline)
    await blobs.put_if_absent("acme", b"content")
    (public_folder / "acme").chmod(0)
    with ordinary_user(), pytest.raises(StoreUnreachable, match="the blob store failed"):
        await blobs.find("acme")


@pytest.mark.parametrize(
    "url",
    ["file://relative/folder", "file:relative", "file://host/folder", "file:///a?b", "file:///a#b", "file:///a%00b"],
)
def test_a_file_url_that_is_no_absolute_folder_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(BadConfiguration, match="three slashes"):
        open_blobs(url)


async def test_a_file_url_may_hold_encoded_blanks(tmp_path: Path) -> None:
    await open_blobs(f"file://{tmp_path}/two%20words").put_if_absent("a", b"")
    assert (tmp_path / "two words" / "a").is_file()


@pytest.mark.parametrize("url", ["", "blobs", "/var/lib/blobs", "ftp://user:hunter2@host/x", "https://x/y"])
def test_an_unknown_kind_of_store_is_refused_without_repeating_the_url(url: str) -> None:
    with pytest.raises(BadConfiguration, match="use file:///folder") as raised:
        open_blobs(url)
    assert "hunter2" not in str(raised.value)


def test_an_object_store_that_is_not_set_up_is_refused_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    with pytest.raises(BadConfiguration, match="check bucket or container"):
        open_blobs("az://container/prefix")
