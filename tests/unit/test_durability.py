"""What `clarion check` says of a server that may forget what it has answered (F-43, F-44)."""

import msgspec
import pytest

from clarion.domain.durability import Durability, warnings_of

SAFE = Durability(fsync="on", synchronous_commit="on", synchronous_standby_names="", standbys=0, asynchronous=0)

WAITED_FOR = {"synchronous_standby_names": "ANY 1 (b, c)", "standbys": 2}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"synchronous_commit": "remote_apply"},
        {"synchronous_commit": "local"},
        WAITED_FOR,
        WAITED_FOR | {"synchronous_commit": "remote_write"},
    ],
    ids=repr,
)
def test_a_server_that_keeps_its_commits_is_not_warned_of(change: dict[str, object]) -> None:
    assert warnings_of(msgspec.structs.replace(SAFE, **change)) == ()


@pytest.mark.parametrize(
    "change, begins",
    [
        ({"fsync": "off"}, ["fsync is off"]),
        ({"synchronous_commit": "off"}, ["synchronous_commit is off"]),
        ({"standbys": 1, "asynchronous": 1}, ["1 of 1 standbys may lack the last commits"]),
        ({"standbys": 2}, ["2 of 2 standbys"]),
        (WAITED_FOR | {"asynchronous": 1}, ["1 of 2 standbys"]),
        (WAITED_FOR | {"synchronous_commit": "local"}, ["2 of 2 standbys"]),
        (WAITED_FOR | {"synchronous_commit": "off"}, ["synchronous_commit is off", "2 of 2 standbys"]),
    ],
    ids=repr,
)
def test_a_server_that_may_lose_commits_is_warned_of(change: dict[str, object], begins: list[str]) -> None:
    said = warnings_of(msgspec.structs.replace(SAFE, **change))
    assert len(said) == len(begins)
    assert all(one.startswith(begin) for one, begin in zip(said, begins, strict=True))
