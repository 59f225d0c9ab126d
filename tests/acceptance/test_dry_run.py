"""`clarion send --dry-run`: what it shows is what would be sent, and nothing is stored."""

import sqlite3
from contextlib import closing

import msgspec

from clarion.domain.content import EmailContent
from tests.acceptance.house import House, until

TO = ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')


def rows(house: House) -> dict[str, int]:
    """Count what every table holds."""
    with closing(sqlite3.connect(house.home / "clarion.db")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}  # noqa: S608


def test_a_dry_run_shows_what_a_send_then_sends_and_stores_nothing(house: House) -> None:
    before = rows(house)
    shown = house.ask(*TO, "--to", "user:stranger", "--dry-run")
    assert rows(house) == before
    assert shown["messages"] == [
        {"recipient": "sam@example.com", "channel": "email", "destination": "sam@example.com", "skipped": None},
        *(
            {"recipient": "user:stranger", "channel": one, "destination": None, "skipped": "the person is not known"}
            for one in ("email", "inbox")
        ),
    ]
    assert list(shown["contents"]) == ["email"]
    sent = house.ask(*TO)
    with house.serving():
        (mail,) = until(lambda: house.sent(sent["message_id"]))
    assert isinstance(mail.content, EmailContent)
    assert shown["contents"]["email"] == msgspec.to_builtins(mail.content)


def test_a_dry_run_under_a_used_key_says_what_the_send_would(house: House) -> None:
    key = ("--key", "monday")
    assert not house.ask(*TO, *key, "--dry-run")["repeated"]
    house.ask(*TO, *key)
    before = rows(house)
    shown = house.ask(*TO, *key, "--dry-run")
    assert (shown["repeated"], shown["messages"], shown["contents"]) == (True, [], {})
    said = house.run(*TO, *key, "--dry-run")
    assert (said.returncode, said.stdout) == (0, "")
    assert "nor would it be: the key was used for the same notification before" in said.stderr
    other = house.run(*TO, "--to", "kim@example.com", *key, "--dry-run")
    assert (other.returncode, other.stdout) == (2, "")
    assert "the key was used before for something else" in other.stderr
    assert rows(house) == before


def test_a_dry_run_refuses_what_a_send_would_and_says_that_a_type_is_off(house: House) -> None:
    assert "needs name" in house.run("send", "welcome", "--to", "sam@example.com", "--dry-run").stderr
    assert "is not sent by sms" in house.run(*TO, "--to", "+12025550101", "--dry-run").stderr
    number = ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": 90071992547409930}')
    assert "beyond 2**53" in house.run(*number).stderr
    assert house.run(*number, "--dry-run").stderr == house.run(*number).stderr
    assert "warning: no worker sends on email now" in house.run(*TO, "--dry-run").stderr
    house.run("types", "disable", "welcome")
    said = house.run(*TO, "--dry-run")
    assert said.returncode == 0
    assert "it would be skipped: the notification type 'welcome' is switched off for this tenant" in said.stderr
    assert "Subject: Welcome to Linden Park School, Sam" in said.stdout


def test_a_dry_run_that_names_nobody_shows_whom_the_setting_names(house: House) -> None:
    unnamed = ("send", "welcome", "--data", '{"name": "Sam"}', "--dry-run")
    said = house.run(*unnamed)
    assert said.returncode == 0
    assert "nobody would get it" in said.stdout
    assert "no setting of welcome says who gets it" in said.stderr
    house.run("settings", "set", "welcome", "--to", "role:teacher", "--to", "relation:guardian", "--channels", "inbox")
    before = rows(house)
    shown = house.ask(*unnamed)
    assert (shown["addressed_to"], shown["addressed_by"]) == (["role:teacher", "relation:guardian"], "tenant")
    assert not [one for one in shown["warnings"] if "nobody" in one]
    assert "role:teacher, relation:guardian, by the tenant's setting" in house.run(*unnamed).stdout
    assert rows(house) == before
