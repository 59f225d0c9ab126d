"""The client that waits, in a program without an event loop, against a server of its own."""

import asyncio
import inspect
import subprocess
import sys
import threading
from typing import Any
from uuid import UUID

import pytest

from clarion.client import ApiError, Client, Entity, Recipient, SyncClient, Unreachable
from tests.acceptance.house import House

SAM = Recipient(address="sam@example.com")
CHILD = Entity(type="child", guid=UUID("0c11d000-0000-4000-8000-000000000007"))

SCRIPT = """
import sys
from clarion.client import Recipient, SyncClient

with SyncClient(sys.argv[1], key=sys.argv[2]) as clarion:
    print(clarion.send("welcome", to=Recipient(address="kim@example.com"), data={"name": "Kim"}).repeated)
"""


def public(kind: type[object]) -> dict[str, Any]:
    return {name: method for name, method in vars(kind).items() if not name.startswith("_")}


def test_it_has_every_method_of_the_async_one_with_what_that_takes() -> None:
    assert set(public(SyncClient)) == set(public(Client))
    for name, method in public(SyncClient).items():
        assert list(inspect.signature(method).parameters) == list(inspect.signature(public(Client)[name]).parameters)


def test_a_program_without_an_event_loop_sends_asks_and_is_refused(house: House) -> None:
    with house.serving() as served, SyncClient(served.url, key=house.token) as clarion:
        sent = [
            clarion.send("welcome", to=SAM, data={"name": "Sam"}, entity=CHILD, key=f"k{n}").job_id for n in range(2)
        ]
        assert clarion.send("welcome", to=SAM, data={"name": "Sam"}, entity=CHILD, key="k0").repeated
        assert {line.job_id for line in clarion.history(CHILD.guid)} == set(sent)
        assert next(clarion.history(CHILD.guid)).job_id in sent  # and the rest is never asked for
        assert clarion.timeline(sent[0]).lines[0].what == "accepted"
        with pytest.raises(ApiError) as refused:
            clarion.send("nothing-such", to=SAM)
        assert refused.value.status == 422

        async def inside() -> str:  # as in a notebook, whose own loop runs while a cell does
            return clarion.types()[0].type

        assert asyncio.run(inside())
        answers: list[bool] = []
        threads = [threading.Thread(target=lambda: answers.append(bool(clarion.types()))) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert answers == [True] * 4
        script = [sys.executable, "-c", SCRIPT, served.url, house.token]
        done = subprocess.run(script, capture_output=True, text=True, check=True, timeout=60)
        assert (done.stdout, done.stderr) == ("False\n", "")
        served.stop()
        with pytest.raises(Unreachable):
            clarion.send("welcome", to=SAM, data={"name": "Sam"})
    assert not [one for one in threading.enumerate() if one.name == "clarion-client"]
    clarion.close()
