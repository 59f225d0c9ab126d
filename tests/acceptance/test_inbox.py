"""An inbox through the real doors: what is sent to it alone leaves a line there and nothing else anywhere."""

from pathlib import Path
from typing import Any

from tests.acceptance.house import House, Served, until

READER = "user:parent-6"
WELCOME = {"type": "welcome", "to": [{"user": "parent-6"}], "data": {"name": "Robin"}}


def test_what_is_sent_to_the_inbox_alone_makes_a_line_and_nothing_else(tmp_path: Path) -> None:
    """By either door, of a type that has mail too, and of a person who has an address."""
    house = House(tmp_path / "clarion-data")
    with house.serving(command="demo") as served:
        until(house.outbox, so=lambda sent: len(sent) == 26)  # the first day is over
        house.token = house.ask("keys", "create", "--actor", "portal", "--role", "admin")["token"]
        alone = [
            call(house, served, "POST", "/v1/notifications", WELCOME | {"channels": ["inbox"]})["job_id"],
            house.ask("send", "welcome", "--to", READER, "--channel", "inbox", "--data", '{"name": "Robin"}')["job_id"],
        ]
        by_mail = call(house, served, "POST", "/v1/notifications", WELCOME | {"channels": ["email"]})
        (mail,) = until(lambda: house.sent(by_mail["message_id"]))  # it was sent last, and has left
        assert mail.channel == "email"
        for job_id in alone:
            notification = until(
                lambda job_id=job_id: call(house, served, "GET", f"/v1/notifications/{job_id}"),  # type: ignore[misc]
                so=lambda shown: shown["result"] != "waiting",
            )
            assert (notification["result"], notification["messages"]) == ("delivered", [])
            (line,) = notification["inbox"]
            assert line["recipient"] == READER
            told = house.timeline(job_id)
            assert told == ["accepted", "stored", "scheduled", "generated", "put into the inbox"]
        assert len(house.outbox()) == 27
        assert call(house, served, "GET", f"/v1/inbox/{READER}/counts") == {
            "lines": 2,
            "unseen": 2,
            "unread": 2,
            "archived": 0,
        }
        shown = house.ask("inbox", READER)
        assert shown == call(house, served, "GET", f"/v1/inbox/{READER}")
        assert [one["title"] for one in shown["items"]] == ["Welcome, Robin"] * 2
        (_, older) = shown["items"]
        path = f"/v1/inbox/{READER}/{older['message_id']}/read"
        assert call(house, served, "POST", path)["unread"] == 1
        assert [one["message_id"] for one in house.ask("inbox", READER, "--unread")["items"]] == [
            shown["items"][0]["message_id"]
        ]


def call(house: House, served: Served, method: str, path: str, body: object = None) -> Any:
    answer = served.call(method, path, body, token=house.token)
    assert answer.status < 300, answer
    return answer.json
