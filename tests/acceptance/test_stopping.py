"""Stopping, being killed and starting again: nobody hears twice, nothing is lost, data stays."""

import signal

from tests.acceptance.house import House, Served, is_sent, until

WELCOME = {"type": "welcome", "to": [{"address": "sam@example.com"}], "data": {"name": "Sam"}}


def send_many(served: Served, count: int, *, to: str = "sam") -> list[str]:
    """Send to several people and return the ids of their messages."""
    bodies = ({**WELCOME, "to": [{"address": f"{to}+{number}@example.com"}]} for number in range(count))
    return [served.send(body, key=f"many-{number}").json["message_id"] for number, body in enumerate(bodies)]


def deliveries(house: House) -> dict[str, int]:
    """How often the sandbox accepted each message."""
    counted: dict[str, int] = {}
    for one in house.outbox():
        counted[str(one.message_id)] = counted.get(str(one.message_id), 0) + 1
    return counted


def test_what_was_accepted_survives_a_kill_and_is_sent_once_after_the_restart(house: House) -> None:
    with house.serving("--no-workers") as served:
        messages = send_many(served, 10)
        served.kill()
    assert house.outbox() == []
    with house.serving() as served:
        again = send_many(served, 10)
        assert again == messages
        until(lambda: deliveries(house), so=lambda counted: counted == dict.fromkeys(messages, 1))
        until(lambda: [served.timeline(one) for one in messages], so=lambda found: all(map(is_sent, found)))
        served.kill()
    with house.serving() as served:
        later = served.send(WELCOME).json["message_id"]
        until(lambda: house.sent(later))
    assert deliveries(house) == dict.fromkeys([*messages, later], 1)


def test_a_kill_in_the_middle_of_sending_sends_nothing_twice(house: House) -> None:
    slots = 2
    with house.serving("--slots", str(slots)) as served:
        messages = send_many(served, 8, to="slow1")  # each reply takes a second, so two are under way at any time
        until(lambda: [served.timeline(one) for one in messages], so=lambda found: all("generated" in s for s in found))
        until(house.outbox)
        served.kill()
    with house.serving() as served:
        # A call that was open when the power went is settled when its lease has run out; all others are sent.
        timelines = until(
            lambda: {one: served.timeline(one) for one in messages},
            so=lambda found: sum(not is_sent(lines) for lines in found.values()) <= slots,
        )
    counted = deliveries(house)
    assert set(counted.values()) == {1}
    assert {one for one, lines in timelines.items() if is_sent(lines)} <= set(counted)


def test_a_graceful_stop_lets_an_open_call_end_and_records_it(house: House) -> None:
    with house.serving() as served:
        sent = served.send({**WELCOME, "to": [{"address": "slow2@example.com"}]}).json
        until(lambda: house.sent(sent["message_id"]))  # the provider has it and holds its reply back for two seconds
        assert "sent" not in served.timeline(sent["message_id"])
        assert served.stop() == 0
    assert "sent" in house.timeline(sent["message_id"])


def test_ctrl_c_stops_a_quiet_server_with_success(house: House) -> None:
    with house.serving() as served:
        assert served.stop(signal.SIGINT) == 0


def test_a_second_ctrl_c_ends_it_at_once(house: House) -> None:
    with house.serving() as served:
        sent = served.send({**WELCOME, "to": [{"address": "slow9@example.com"}]}).json
        until(lambda: house.sent(sent["message_id"]))
        served.process.send_signal(signal.SIGINT)
        until(lambda: "stopping" in served.log.read_text())
        assert served.stop(signal.SIGINT) == -signal.SIGINT


def test_workers_alone_send_and_stop(house: House) -> None:
    sent = house.ask("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')
    with house.serving("--channels", "email", command="work") as worker:
        assert worker.ready["channels"] == ["email"]
        until(lambda: house.sent(sent["message_id"]))
        assert worker.stop() == 0


def test_a_worker_leaves_the_channels_of_others_alone(house: House) -> None:
    code = house.ask("send", "one-time-code", "--to", "+12025550101", "--data", '{"code": "1"}')
    mail = house.ask("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')
    with house.serving("--channels", "email", command="work"):
        until(lambda: house.sent(mail["message_id"]))
        assert house.sent(code["message_id"]) == []
    with house.serving("--channels", "sms,push", command="work"):
        until(lambda: house.sent(code["message_id"]))
