"""Suppressions and preferences from the shell: what a person reads, and what is refused."""

from pathlib import Path

import pytest

from tests.integration.program_use import clarion, home, model, refused
from tests.integration.test_program_groups import said

__all__ = ["home", "model"]

NEWSLETTER = "src/clarion/cli/definitions"


def test_somebody_is_suppressed_listed_and_lifted(home: Path) -> None:
    assert "nobody is suppressed" in said(home, "suppress", "list")
    why = ("--reason", "asked on the phone")
    assert said(home, "suppress", "add", "sam@example.com", "sms:+447700900001", *why).startswith("2 suppressed, 0 ")
    assert said(home, "suppress", "add", "sam@example.com", *why).startswith("0 suppressed, 1 ")
    shown = said(home, "suppress", "list", "sam@example.com", "--cause", "manual").splitlines()
    assert len(shown) == 2
    assert shown[1].split()[:5] == ["sam@example.com", "everything", "every", "channel", "manual"]
    said(home, "send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')
    assert said(home, "suppress", "lift", "sam@example.com", *why) == "sam@example.com is suppressed no more\n"
    assert "+447700900001" in said(home, "suppress", "list")
    acts = [line.split() for line in said(home, "audit").splitlines() if "suppression " in line]
    assert [("lift" in words, "suppress" in words) for words in acts] == [(True, False), *[(False, True)] * 2]


def test_a_person_chooses_by_category_and_channel(home: Path) -> None:
    said(home, "publish", NEWSLETTER)
    said(home, "people", "put", "user:1", "--name", "Sam", "--contact", "sam@example.com")
    lines = said(home, "suppress", "preferences", "user:1").splitlines()
    assert ["news", "email", "on", "School", "newsletter"] in [line.split() for line in lines]
    assert any(line.split()[2] == "required" for line in lines[1:])
    lines = said(home, "suppress", "preferences", "user:1", "--off", "news:email", "--reason", "asked").splitlines()
    assert ["news", "email", "off", "School", "newsletter"] in [line.split() for line in lines]
    assert "user:1" in said(home, "suppress", "list", "--cause", "preference")
    said(home, "suppress", "preferences", "user:1", "--on", "news")
    assert "nobody is suppressed" in said(home, "suppress", "list")
    done = clarion("suppress", "preferences", "user:1", "--on", "news", "--off", "nothing", home=home)
    assert "--off: no published type has this category" in refused(done, code=2)
    said(home, "suppress", "add", "user:1", "--reason", "left")
    done = clarion("suppress", "preferences", "user:1", home=home)
    assert "user:1 gets nothing at all: manual" in done.stderr


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("add", "user:1"), "--reason: it is missing"),
        (("add", "user:1", "--reason", " "), "--reason: it is empty"),
        (("add", "nobody", "--reason", "r"), "RECIPIENT: the phone number"),
        (("add", "user:1", "nobody", "--reason", "r"), "RECIPIENT 2: the phone number"),
        (("add", "user:1", "--channel", "email", "--reason", "r"), "--channel: a channel goes with a category"),
        (("preferences", "user:1", "--on", "news", "--off", "news"), "--off: 'news' is named by --on too"),
        (("lift", "user:1", "--reason", "r"), "RECIPIENT: it is not suppressed like that"),
        (("list", "fax:1"), "'fax' is no kind of recipient"),
        (("preferences", "user:nobody"), "PERSON: the tenant has nobody called user:nobody"),
        (("preferences", "nobody"), "PERSON: it names nobody"),
        (("list", "--after", "x"), "--after: it is no cursor of this list"),
    ],
)
def test_what_is_asked_wrongly_is_refused_in_one_line(model: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(clarion("suppress", *arguments, home=model), code=2)
    assert "nobody is suppressed" in said(model, "suppress", "list")
