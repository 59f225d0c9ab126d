"""Sending from the shell and over HTTP, as a person or a program does it, and asking what became of it."""

from datetime import UTC, timedelta

from clarion.adapters.host import HostClock
from tests.acceptance.house import House, is_sent, until

CHILD = "0c11d000-0000-4000-8000-000000000007"
WELCOME = {"type": "welcome", "to": [{"address": "sam@example.com"}], "data": {"name": "Sam"}}


def in_an_hour() -> str:
    return (HostClock().now().astimezone(UTC) + timedelta(hours=1)).isoformat()


def test_a_notification_from_the_shell_is_sent_and_its_timeline_is_told_in_order(house: House) -> None:
    accepted = house.ask("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')
    assert house.timeline(accepted["message_id"]) == ["accepted", "stored", "waiting to be scheduled"]
    with house.serving() as served:
        (sent,) = until(lambda: house.sent(accepted["message_id"]))
        assert (sent.destination, sent.channel) == ("sam@example.com", "email")
        until(lambda: served.timeline(accepted["message_id"]), so=lambda lines: "delivered" in lines)
    timeline = house.timeline(accepted["message_id"])
    # A receipt may come before the record of its own call; then the timeline has no line that it was sent.
    assert [what for what in timeline if what not in ("called", "sent")] == [
        "accepted",
        "stored",
        "scheduled",
        "generated",
        "queued",
        "claimed",
        "receipt",
        "delivered",
    ]
    assert timeline.count("called") == 1
    assert house.timeline(accepted["job_id"]) == timeline
    listed = house.run("outbox")
    assert "Welcome to Linden Park School" in listed.stdout
    assert "Welcome, Sam" in house.run("outbox", "--show", str(sent.id)).stdout


def test_a_notification_over_http_is_sent_and_can_be_seen_as_its_recipient_sees_it(house: House) -> None:
    with house.serving() as served:
        answer = served.send(WELCOME)
        assert answer.status == 202, answer
        accepted = answer.json
        (sent,) = until(lambda: house.sent(accepted["message_id"]))
        assert served.timeline(accepted["message_id"])[:2] == ["accepted", "stored"]
        assert served.timeline(accepted["job_id"])[:2] == ["accepted", "stored"]
        assert b"Welcome, Sam" in served.call("GET", f"/sandbox/outbox/{sent.id}/content").content
        assert b"sam@example.com" in served.call("GET", "/sandbox/outbox").content
        counted = until(lambda: served.call("GET", "/metrics").content, so=lambda text: b'outcome="accepted"' in text)
        assert b"clarion_outgoing_uncertain 0" in counted


def test_the_same_key_sends_once_however_often_and_through_whichever_door(house: House) -> None:
    with house.serving() as served:
        first = served.send(WELCOME, key="order-1").json
        again = served.send(WELCOME, key="order-1").json
        shell = house.ask("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}', "--key", "order-1")
        assert [first["repeated"], again["repeated"], shell["repeated"]] == [False, True, True]
        assert {first["job_id"], again["job_id"], shell["job_id"]} == {first["job_id"]}
        later = served.send(WELCOME, key="order-2").json
        until(lambda: house.sent(later["message_id"]))  # to the same person, so it left after the first
    assert len(house.sent(first["message_id"])) == 1


def test_a_used_key_with_other_content_is_refused_and_becomes_a_case(house: House) -> None:
    other = {**WELCOME, "data": {"name": "Kim"}}
    with house.serving("--no-workers") as served:
        assert served.send(WELCOME, key="order-1").status == 202
        refused = served.send(other, key="order-1")
        assert (refused.status, refused.json["code"]) == (409, "conflict")
    shell = house.run("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Kim"}', "--key", "order-1")
    assert shell.returncode == 2
    assert "support case" in shell.stderr
    (case,) = house.ask("support", "list")["items"]
    assert (case["kind"], case["seen_count"]) == ("Conflict", 2)
    assert "recipients, data, lane or not_before_at" in house.run("support", "show", case["case_id"]).stdout
    house.ask("support", "resolve", case["case_id"], "--resolution", "the caller was told")
    assert house.ask("support", "list")["items"] == []
    last = house.ask("audit")["items"][0]
    assert (last["act"], last["reason"]) == ("resolve", "the caller was told")


def test_what_is_canceled_before_it_is_due_is_never_sent(house: House) -> None:
    with house.serving() as served:
        later = served.send({**WELCOME, "not_before_at": in_an_hour()}).json
        assert house.ask("cancel", later["job_id"]) == {"job_id": later["job_id"], "repeated": False}
        now = served.send(WELCOME).json
        until(lambda: house.sent(now["message_id"]))
        until(lambda: served.timeline(now["job_id"]), so=is_sent)
    assert house.sent(later["message_id"]) == []
    assert "nobody (canceled by " in house.run("explain", later["message_id"]).stdout
    too_late = house.run("cancel", now["job_id"])
    assert too_late.returncode == 2
    assert "left to cancel" in too_late.stderr


def test_what_is_not_due_yet_waits(house: House) -> None:
    later = house.ask(
        "send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}', "--not-before", in_an_hour()
    )
    with house.serving() as served:
        now = served.send(WELCOME).json
        until(lambda: house.sent(now["message_id"]))
        assert "waiting to be scheduled" in served.timeline(later["message_id"])


def test_an_entitys_history_lists_what_was_sent_about_it_newest_first(house: House) -> None:
    with house.serving("--no-workers") as served:
        first = served.send({**WELCOME, "entity": {"type": "child", "guid": CHILD}}).json
        second = house.ask(
            "send", "one-time-code", "--to", "+12025550101", "--data", '{"code": "1"}', "--entity", f"child:{CHILD}"
        )
        other = served.send(WELCOME).json
        over_http = served.call("GET", f"/v1/entities/{CHILD}/notifications").json
    assert [line["job_id"] for line in house.ask("history", CHILD)["items"]] == [second["job_id"], first["job_id"]]
    assert [line["job_id"] for line in over_http["items"]] == [second["job_id"], first["job_id"]]
    # Without an entity, the recipient is what it is about.
    assert [line["job_id"] for line in house.ask("history", "sam@example.com")["items"]] == [other["job_id"]]


def test_a_type_that_is_switched_off_is_skipped_and_the_timeline_names_the_setting(house: House) -> None:
    house.ask("types", "disable", "welcome")
    with house.serving() as served:
        skipped = served.send(WELCOME).json
        until(lambda: served.timeline(skipped["message_id"]), so=lambda lines: "skipped" in lines)
        house.ask("types", "enable", "welcome")
        sent = served.send(WELCOME).json
        until(lambda: house.sent(sent["message_id"]))
    assert house.sent(skipped["message_id"]) == []
    assert (
        "the notification type 'welcome' is switched off for this tenant"
        in house.run("explain", skipped["message_id"]).stdout
    )
    acts = [(entry["act"], entry["subject"]) for entry in house.ask("audit")["items"]]
    assert acts[:2] == [("enable", "type welcome"), ("disable", "type welcome")]


def test_a_lost_reply_is_uncertain_until_a_person_decides(house: House) -> None:
    with house.serving() as served:
        sent = served.send({**WELCOME, "to": [{"address": "unknown1@example.com"}]}).json
        until(
            lambda: served.call("GET", "/v1/uncertain").json["items"],
            so=lambda found: found and "left as it is" in found[0]["reason"],
        )
        (send,) = house.ask("uncertain", "list")["items"]
        assert send["message_id"] == sent["message_id"]
        retry = ("uncertain", "retry", str(send["id"]), "--reason", "they called")
        assert house.run(*retry, "--version", "1").returncode == 2
        house.ask(*retry, "--version", str(send["version"]))
        until(lambda: served.timeline(sent["message_id"]), so=is_sent)
    assert house.ask("uncertain", "list")["items"] == []
    assert len(house.sent(sent["message_id"])) == 2
    explained = house.run("explain", sent["message_id"]).stdout
    assert explained.index("left uncertain") < explained.index("they called")


def test_a_revoked_key_opens_nothing(house: House) -> None:
    made = house.ask("keys", "create", "--actor", "a script", "--role", "sender")
    with house.serving("--no-workers") as served:
        assert served.call("POST", "/v1/notifications", WELCOME, token=made["token"]).status == 202
        house.ask("keys", "revoke", made["key_id"])
        until(
            lambda: served.call("POST", "/v1/notifications", WELCOME, token=made["token"]).status,
            so=lambda status: status == 401,
        )
    shown = house.run("keys", "list").stdout
    assert made["key_id"] in shown
    assert made["token"] not in shown
