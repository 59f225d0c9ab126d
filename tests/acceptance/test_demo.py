"""`clarion demo`, which is what `make demo` runs."""

from pathlib import Path

from tests.acceptance.house import House, until


def test_the_demo_is_ready_to_be_tried_and_keeps_its_data(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    with house.serving(command="demo") as first:
        key = Path(first.ready["key_file"])
        assert key.stat().st_mode & 0o777 == 0o600
        token = key.read_text().strip()
        # One welcome, an incident by mail and text to two, an invoice by both, a code, a newsletter to twelve, a lost
        # reply that was delivered all the same: 1 + 4 + 2 + 1 + 12 + 1.
        until(house.outbox, so=lambda sent: len(sent) == 21)
        (doubt,) = until(lambda: house.ask("uncertain", "list")["items"])
        assert doubt["channel"] == "email"
        assert first.call("GET", "/v1/types", token=token).status == 200
        sent = house.ask("send", "welcome", "--to", "user@example.com", "--data", '{"name": "you"}')
        until(lambda: house.sent(sent["message_id"]))
        assert first.stop() == 0
    with house.serving(command="demo") as second:
        assert key.read_text().strip() == token
        again = house.ask("send", "welcome", "--to", "user@example.com", "--data", '{"name": "you"}')
        until(lambda: house.sent(again["message_id"]))
        assert second.stop() == 0
    assert len(house.outbox()) == 23
    assert len(house.ask("keys", "list")["items"]) == 1


def test_a_person_gets_it_on_every_channel_and_in_the_inbox(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    house.ask("demo", "--only-seed")
    invoice = '{"name":"Nora","invoice":{"number":"1","total":"1.00","currency":"EUR","due":"2030-03-05","items":[]}}'
    sent = house.ask("send", "invoice-due", "--to", "user:parent-4", "--data", invoice)
    with house.serving():
        until(lambda: house.sent(sent["message_id"]), so=lambda found: len(found) == 2)
    assert {one.channel for one in house.sent(sent["message_id"])} == {"email", "sms"}
    assert "put into the inbox" in house.story(sent["message_id"])
