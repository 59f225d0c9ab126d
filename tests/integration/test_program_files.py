"""Notifications as files, from the shell: starting one, checking, comparing, publishing and seeing it."""

import asyncio
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from clarion.bootstrap import load_settings, open_platform
from clarion.cli.program import program
from clarion.errors import InvalidDefinition, InvalidInput
from tests.integration.program_use import PROGRAM


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, without an installation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLARION_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def school(place: Path) -> Path:
    """The same, with an installation that has one tenant."""
    ran("migrate")
    ran("tenants", "create", "school")
    return place


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, arguments)


def ran(*arguments: str) -> str:
    """Run a command that succeeds, and return what it printed."""
    done = run(*arguments)
    assert done.exit_code == 0, done
    return done.stdout


def said(*arguments: str) -> Any:
    return msgspec.json.decode(ran(*arguments, "--json"))


def refusal(*arguments: str) -> InvalidInput:
    """Run a command that is refused."""
    error = run(*arguments).exception
    assert isinstance(error, InvalidInput)
    return error


def test_a_new_notification_can_be_checked_and_seen_without_an_installation(place: Path) -> None:
    made = ran("new", "outing", "--channel", "email", "--channel", "push", "--channel", "inbox").splitlines()
    assert made == [
        f"definitions/outing/{name}"
        for name in (
            "definition.toml",
            "email.subject.liquid",
            "email.mjml.liquid",
            "email.text.liquid",
            "push.liquid",
            "inbox.liquid",
        )
    ]
    assert said("publish", "--check", "definitions") == {
        "items": [{"key": "outing", "channels": ["email", "push", "inbox"], "locales": ["en"]}]
    }
    assert ran("publish", "--check", "definitions").splitlines()[-1] == "no mistakes"
    shown = ran("preview", "definitions/outing", "--output", "mail.html")
    assert shown.splitlines() == [
        "email subject: Hello Maya",
        "email text:",
        "  Hello Maya,",
        "",
        "  something happened.",
        "push title: Hello Maya",
        "push body: something happened.",
        "inbox title: Hello Maya",
        "inbox body: something happened.",
        "email html: mail.html",
    ]
    assert "Hello Maya," in (place / "mail.html").read_text()
    assert not (place / "home").exists()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("channel", ["email", "sms", "push", "chat", "inbox"])
def test_a_new_notification_of_any_channel_has_no_mistakes(channel: str) -> None:
    ran("new", "one-two", "--channel", channel, "--folder", "elsewhere")
    assert said("publish", "--check", "elsewhere/one-two")["items"][0]["key"] == "one-two"


def test_a_new_notification_takes_the_place_of_none(place: Path) -> None:
    ran("new", "outing")
    (place / "definitions/outing/definition.toml").write_text("mine")
    assert "there is such a folder already" in str(refusal("new", "outing"))
    assert "use 1 to 63 of a-z" in str(refusal("new", "Out ing"))
    assert "use 1 to 63 of a-z" in str(refusal("new", "../outing"))
    assert (place / "definitions/outing/definition.toml").read_text() == "mine"


def test_a_check_names_every_mistake_and_needs_no_installation(place: Path) -> None:
    ran("new", "outing")
    ran("new", "ball", "--channel", "sms")
    (place / "definitions/outing/email.text.liquid").write_text("{% if %}")
    (place / "definitions/ball/sms.liquid").write_text("a\n{{ b | nope }}")
    error = refusal("publish", "--check", "definitions")
    assert isinstance(error, InvalidDefinition)
    assert [str(one)[:70] for one in error.mistakes] == [
        "definitions/ball/sms.liquid: line 2: there is no filter 'nope'; there ",
        "definitions/outing/email.text.liquid: line 1: this cannot be read as L",
    ]
    assert not (place / "home").exists()


def test_what_would_change_is_shown_and_nothing_is_stored(school: Path) -> None:
    ran("new", "outing")
    assert ran("publish", "--diff", "definitions") == "outing: new, version 1\n"
    assert said("types")["items"] == []
    ran("publish", "definitions")
    assert ran("publish", "--diff", "definitions") == "outing: unchanged, version 1\n"
    definition = school / "definitions/outing/definition.toml"
    definition.write_text(definition.read_text().replace("[sample]", 'lane = "high"\n[sample]'))
    (school / "definitions/outing/email.text.liquid").write_text("Hello {{ name }},\n\nsomething nice happened.\n")
    assert ran("publish", "--diff", "definitions").splitlines() == [
        "outing: version 1 becomes 2",
        '  lane: "normal" becomes "high"',
        "  en email text",
        "    @@ -2,2 +2,2 @@",
        "     ",
        "    -something happened.",
        "    +something nice happened.",
    ]
    changes = said("publish", "--diff", "definitions")["items"]
    assert [(one["type"], one["version"], one["created"]) for one in changes] == [("outing", 2, True)]
    assert said("types")["items"][0]["version"] == 1


def test_one_mistake_keeps_a_whole_folder_from_being_published(school: Path) -> None:
    ran("new", "outing")
    ran("new", "ball", "--channel", "sms")
    (school / "definitions/outing/email.text.liquid").write_text("{% if %}")
    assert "definitions/outing/email.text.liquid: line 1: " in str(refusal("publish", "definitions"))
    assert said("types")["items"] == []


def test_a_published_type_is_seen_by_its_key(school: Path) -> None:
    ran("new", "ball", "--channel", "sms")
    ran("publish", "definitions")
    (school / "definitions/ball/sms.liquid").write_text("Not published {{ name }}")
    assert ran("preview", "ball") == "sms text: Hello Maya, something happened.\n"
    assert ran("preview", "ball", "--data", '{"name": "Leo"}') == "sms text: Hello Leo, something happened.\n"
    assert ran("preview", "definitions/ball") == "sms text: Not published Maya\n"
    assert said("preview", "ball") == {
        "type": "ball",
        "version": 1,
        "locale": "en",
        "contents": {"sms": {"text": "Hello Maya, something happened."}},
    }
    assert "did you mean ball?" in str(refusal("preview", "bal"))
    assert str(refusal("preview", "ball", "--channel", "email")).startswith("--channel: the notification type 'ball'")
    assert str(refusal("preview", "ball", "--zone", "Mars")).startswith("--zone: 'Mars' is no time zone")


def test_a_preview_with_links_to_an_installation_without_url_says_what_to_set(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran("new", "ball", "--channel", "sms")
    with (place / "definitions/ball/definition.toml").open("a") as definition:
        definition.write('\n[links]\nBALL_LINK = "{{ public_url }}/ball"\n')
    (place / "definitions/ball/sms.liquid").write_text("{{ BALL_LINK }}")
    monkeypatch.delenv("CLARION_PUBLIC_URL", raising=False)
    assert str(run("preview", "definitions/ball").exception) == (
        "the notification 'ball' has links to this installation, and its URL is not set: set CLARION_PUBLIC_URL and "
        "start again"
    )
    monkeypatch.setenv("CLARION_PUBLIC_URL", "https://clarion.example.com")
    assert ran("preview", "definitions/ball") == "sms text: https://clarion.example.com/ball\n"


@pytest.mark.usefixtures("school")
def test_the_preview_of_a_quarantined_type_says_so_and_what_to_do() -> None:
    ran("new", "ball", "--channel", "sms")
    ran("publish", "definitions")

    async def hurt() -> None:
        async with open_platform(load_settings()) as platform:
            (version,) = await platform.store.list_template_versions("school", "ball", limit=1)
            assert await platform.store.quarantine_template("school", "ball", version.content_hash)

    asyncio.run(hurt())
    assert "  quarantined" in ran("types")
    assert [one["quarantined"] for one in said("types")["items"]] == [True]
    assert str(refusal("preview", "ball")) == (
        "type: version 1 of the notification type 'ball' is quarantined, because merging it ended a process again and "
        "again: publish a corrected version, or resolve its support case (`clarion support list`)"
    )
    (case,) = said("support", "list")["items"]
    ran("support", "resolve", case["case_id"], "--resolution", "it was the machine")
    assert ran("preview", "ball") == "sms text: Hello Maya, something happened.\n"
    assert "  on" in ran("types")


def in_a_terminal(place: Path, *arguments: str, browser: Path) -> str:
    """Run the program with a terminal of its own, where a person sees what it prints, and give all of that."""
    seen, terminal = os.openpty()
    environ = {**os.environ, "BROWSER": f"{browser} %s"}
    command = [str(PROGRAM), *arguments]
    done = subprocess.run(command, stdout=terminal, stderr=terminal, cwd=place, env=environ, check=True)
    os.close(terminal)
    said = b""
    with suppress(OSError):  # Linux says so where nobody writes any more
        while piece := os.read(seen, 65536):
            said += piece
    os.close(seen)
    assert done.returncode == 0
    return said.decode()


def test_the_preview_of_a_mail_is_opened_in_the_browser_of_whoever_sits_before_it(place: Path) -> None:
    """What the browser is given is the file that the program names, with the mail's HTML in it."""
    ran("new", "outing")
    opened, browser = place / "opened", place / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> {opened}\n')
    browser.chmod(0o755)
    printed = in_a_terminal(place, "preview", "definitions/outing", browser=browser)
    (named,) = [line.removeprefix("email html: ") for line in printed.splitlines() if line.startswith("email html: ")]
    assert opened.read_text().splitlines() == [Path(named).as_uri()]
    assert "Hello Maya" in Path(named).read_text()
    assert Path(named).stat().st_mode & 0o077 == 0, "nobody else on this machine reads it"
    Path(named).unlink()


@pytest.mark.parametrize("options", ["--no-open", "--output mail.html", "--channel sms", "--json"])
def test_a_browser_is_opened_for_nobody_who_did_not_ask(place: Path, options: str) -> None:
    ran("new", "outing", "--channel", "email", "--channel", "sms")
    opened, browser = place / "opened", place / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {opened}\n")
    browser.chmod(0o755)
    in_a_terminal(place, "preview", "definitions/outing", *options.split(), browser=browser)
    ran("preview", "definitions/outing", "--channel", "email")  # not in a terminal
    assert not opened.exists()


@pytest.mark.usefixtures("place")
def test_a_check_and_a_comparison_are_two_things() -> None:
    assert str(refusal("publish", "--check", "--diff", "definitions")).startswith("--diff: ")
