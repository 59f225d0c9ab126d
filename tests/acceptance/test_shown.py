"""What the documentation shows is what the program does: its commands are run, and their outputs compared."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.acceptance.house import PROGRAM, ROOT, House, until
from tests.acceptance.shown import Reader, steps_of
from tests.integration.smtp_server import closed_port
from tests.warm import COMMANDS

BIN = Path(sys.executable).parent

DEMO = (
    ("README.md", "A tour of 60 seconds"),
    ("docs/how-to/send-from-the-shell.md", ""),
    ("docs/how-to/write-a-notification.md", ""),
    ("docs/tutorial/demo.md", ""),
)
"""Pages that are followed while one demo runs, and the section of each that is, if it is not the whole."""

SERVER_TIME_MAX = 60.0
"""Seconds within which a server has said what is open to whom."""

NOTIFICATIONS = (
    "docs/tutorial/first-notification.md",
    "docs/how-to/translate-a-notification.md",
    "docs/how-to/share-a-layout.md",
    "docs/how-to/link-to-your-application.md",
    "docs/how-to/describe-the-data.md",
    "docs/how-to/check-notifications-in-ci.md",
    "docs/how-to/choose-channels.md",
    "docs/how-to/decide-who-gets-a-notification.md",
    "docs/how-to/see-what-would-be-sent.md",
    "docs/how-to/group-people.md",
    "docs/how-to/say-who-is-related.md",
    "docs/how-to/import-people-from-csv.md",
    "docs/how-to/tell-clarion-about-your-invoices.md",
    "docs/how-to/send-an-event.md",
    "docs/tutorial/first-reminder.md",
    "docs/how-to/send-one-time-codes.md",
    "docs/how-to/show-an-inbox.md",
    "docs/how-to/send-to-many.md",
    "docs/how-to/what-did-this-person-get.md",
    "docs/how-to/publish-over-the-api.md",
    "docs/how-to/keep-people.md",
    "docs/how-to/keep-push-tokens.md",
    "docs/how-to/remind-before-something-expires.md",  # reminds people, so it comes last
)
"""Pages about notifications as files, which are followed while another demo runs."""


def reader(folder: Path, *, shown_port: str = "", port: str = "") -> Reader:
    """Somebody in a clone whose environment is ours, with a program that starts at once."""
    (folder / ".venv/bin").mkdir(parents=True)
    for one in [*BIN.parent.iterdir(), *BIN.iterdir()]:
        if one != BIN:
            (folder / ".venv" / one.relative_to(BIN.parent)).symlink_to(COMMANDS[-1] if one == PROGRAM else one)
    (folder / "src").symlink_to(ROOT / "src")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
    environment = {**kept, "PATH": f"{folder}/.venv/bin:{kept['PATH']}", "TMPDIR": str(folder)}
    return Reader(folder, environment, shown_port=shown_port, port=port)


def complaints(page: Path, by: Reader, *, only: str = "") -> str:
    """Follow a page, and say where it shows something else than what happens."""
    steps = steps_of(page, only=only)
    assert any(step.shown for step in steps), f"nothing of {page} would be compared"
    found = ((step.line, by.follow(step)) for step in steps)
    return "\n".join(f"{page.name}, line {line}: {what}" for line, what in found if what is not None)


def at_rest(house: House) -> bool:
    """Tell whether all that was asked for so far is on its way."""
    status = house.ask("status")
    return not any(status[what] for what in ("notifications_waiting", "messages_waiting", "sending"))


def test_pages_about_the_demo_show_what_happens(tmp_path: Path) -> None:
    house = House(tmp_path / "clarion-data")
    with house.serving(command="demo") as served:
        until(house.outbox, so=lambda sent: len(sent) == 26)  # the first day is over
        by = reader(tmp_path, shown_port="8025", port=served.url.rpartition(":")[2])
        found = []
        for page, only in DEMO:
            until(lambda: at_rest(house))  # or what the page before it sent would come after what this one sends
            found.append(complaints(ROOT / page, by, only=only))
    assert not any(found), "\n".join(found)


def test_pages_about_notifications_show_what_happens(tmp_path: Path) -> None:
    house = House(tmp_path / "clarion-data")
    with house.serving(command="demo") as served:
        by = reader(tmp_path, shown_port="8025", port=served.url.rpartition(":")[2])
        found = [complaints(ROOT / page, by) for page in NOTIFICATIONS]
    assert not any(found), "\n".join(found)


def test_a_page_that_begins_with_nothing_shows_what_happens(tmp_path: Path) -> None:
    found = complaints(ROOT / "docs/tutorial/first-ensure.md", reader(tmp_path))
    assert not found, found


def test_pages_about_an_installation_show_what_happens(tmp_path: Path) -> None:
    by = reader(tmp_path)
    found = complaints(ROOT / "docs/how-to/migrate.md", by)
    assert not found, found
    House(tmp_path / "clarion-data").ask("tenants", "create", "school")  # what is used has a mark
    found = complaints(ROOT / "docs/how-to/when-the-clock-was-wrong.md", by)
    assert not found, found


def test_the_page_about_http_shows_what_happens(tmp_path: Path) -> None:
    house = House(tmp_path / "clarion-data")
    assert house.run("migrate").returncode == 0
    with house.serving() as served:
        until(lambda: house.ask("status")["workers"])
        by = reader(tmp_path, shown_port="8025", port=served.url.rpartition(":")[2])
        found = complaints(ROOT / "docs/how-to/send-over-http.md", by)
    assert not found, found


def test_what_a_server_says_when_it_starts_is_shown(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/run-workers.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(serving .*?)^```$", page, re.MULTILINE | re.DOTALL)
    house = House(tmp_path / "home")
    assert house.run("migrate").returncode == 0
    port = str(closed_port())
    command = [str(BIN / "clarion"), "serve", "--port", port]
    environment = {**house.environment, "PYTHONUNBUFFERED": ""}  # whoever runs the tests may have set it
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        stop = threading.Timer(SERVER_TIME_MAX, process.kill)  # ends the wait for lines that do not come
        stop.start()
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in shown.splitlines()]
        finally:
            stop.cancel()
            process.terminate()
    assert [line.split() for line in lines] == [line.replace("8025", port).split() for line in shown.splitlines()]
    assert process.returncode == 0


def test_the_page_about_smtp_shows_what_happens(tmp_path: Path) -> None:
    port = str(closed_port())
    house = House(tmp_path / "mail-data", CLARION_PROVIDERS=f"email=smtp://127.0.0.1:{port}?from=school@example.com")
    assert house.run("migrate").returncode == 0
    server = subprocess.Popen(
        [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    )
    try:
        until(lambda: house.run("check").returncode == 0)
        with house.serving(command="work"):
            found = complaints(
                ROOT / "docs/how-to/send-mail-by-smtp.md", reader(tmp_path, shown_port="2525", port=port)
            )
    finally:
        server.terminate()
        printed, _ = server.communicate()
    assert not found, found
    assert "Subject: Welcome to Linden Park School, you" in printed


@pytest.mark.parametrize(
    "page, says",
    [
        ("```sh\necho 7 apples\n```\n\n```\n7 pears\n```\n", "the page shows\n7 pears\n--- it prints\n7 apples"),
        ("```sh\nfalse\n```\n\n```sh\necho a\n```\n\n```\na\n```\n", "line 1: false\n--- it ends with 1"),
    ],
)
def test_a_page_that_shows_something_else_is_found_out(page: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    assert says in complaints(tmp_path / "page.md", reader(tmp_path))
