"""What became of a message, reported by the provider and taken in through the real door."""

from tests.acceptance.house import House, until

WELCOME = {"type": "welcome", "data": {"name": "Sam"}}


def to(address: str) -> dict[str, object]:
    return {**WELCOME, "to": [{"address": address}]}


def test_a_message_is_delivered_and_opened_and_its_timeline_says_so(house: House) -> None:
    with house.serving() as served:
        sent = served.send(to("sam@example.com")).json
        until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "delivered" in lines)
        (delivered,) = house.sent(sent["message_id"])
        for repeated in (False, True):
            said = house.ask("outbox", "--opened", str(delivered.id))
            assert said == {"number": delivered.id, "reported": "Opened", "repeated": repeated}
        timeline = until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "opened" in lines)
        assert timeline[-4:] == ["receipt", "delivered", "receipt", "opened"]
        assert "email: opened" in house.run("explain", sent["message_id"]).stdout


def test_a_message_bounces_after_it_was_accepted(house: House) -> None:
    with house.serving() as served:
        sent = served.send(to("bounce@example.com")).json
        timeline = until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "bounced" in lines)
    assert timeline[-2:] == ["receipt", "bounced"]
    assert len(house.sent(sent["message_id"])) == 1


def test_an_uncertain_send_ends_when_the_recipient_is_known_to_have_opened_it(house: House) -> None:
    with house.serving() as served:
        sent = served.send(to("unknown@example.com")).json
        until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "left uncertain" in lines)
        (taken,) = house.sent(sent["message_id"])
        house.ask("outbox", "--opened", str(taken.id))
        until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "opened" in lines)
        assert house.ask("uncertain", "list")["items"] == []
    assert len(house.sent(sent["message_id"])) == 1


def test_receipts_wait_for_a_door_and_survive_a_kill(house: House) -> None:
    with house.serving("--no-workers") as served:
        sent = [served.send(to(f"sam{n}@example.com")).json["message_id"] for n in range(3)]
        served.kill()
    with house.serving(command="work") as worker:
        until(house.outbox, so=lambda found: len(found) == len(sent))
        worker.kill()
    with house.serving() as served:
        timelines = until(
            lambda: [served.timeline(one) for one in sent],
            so=lambda found: all("delivered" in lines for lines in found),
        )
    assert [lines.count("receipt") for lines in timelines] == [1, 1, 1]


def test_a_door_without_workers_takes_receipts_in_for_those_elsewhere(house: House) -> None:
    with house.serving("--no-workers") as served, house.serving(command="work"):
        sent = served.send(to("sam@example.com")).json
        until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "delivered" in lines)


def test_a_door_on_every_address_is_found_through_this_machines_own(house: House) -> None:
    with house.serving("--host", "0.0.0.0") as served:  # noqa: S104  (for the seconds of this test)
        sent = served.send(to("sam@example.com")).json
        until(lambda: served.timeline(sent["message_id"]), so=lambda lines: "delivered" in lines)
