"""Reminder settings and occurrences from the shell: what a person reads, files, and what is refused."""

import asyncio
import shlex
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from clarion.bootstrap import load_settings, open_platform, prepare
from clarion.cli.program import program
from clarion.domain.automation import AutomationStatus
from clarion.domain.due import skipped
from clarion.domain.planning import EndReason
from clarion.errors import CallerError
from clarion.testing.factories import automation_scheduler

A, B = (f"6f1c2c7e-000{n}-4000-8000-000000000001" for n in (1, 2))
ROOT = Path(__file__).parents[2]
MINE = "--source-type certificate --type welcome --name 'First aid ends'"
WHOLE = f"reminders put {A} --name n --source-type c --type welcome"
FILE = """
name = "Class is nearly full"
source_type = "class"
notification_type = "welcome"
recipients = [{ role = "head" }]

[rule]
on = "threshold"
metric = "booked"
value = 25
"""


def invoked(home: Path, line: str) -> Result:
    """Run a command here: that `main` makes one line and code 2 of a refusal is tested for every command."""
    return CliRunner().invoke(program, shlex.split(line), env={"CLARION_HOME": str(home)})


def said(home: Path, line: str) -> str:
    done = invoked(home, line)
    assert done.exit_code == 0, done
    return done.stdout


def refused(home: Path, line: str) -> str:
    done = invoked(home, line)
    assert isinstance(done.exception, CallerError), done
    assert done.stdout == ""
    return str(done.exception)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with a tenant and a notification type, for making copies of."""
    home = tmp_path_factory.mktemp("model") / "home"
    asyncio.run(prepare(load_settings({"CLARION_HOME": str(home)})))
    said(home, "tenants create school")
    said(home, f"publish {ROOT}/src/clarion/cli/definitions/welcome")
    return home


@pytest.fixture
def home(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "home"))


@pytest.fixture(scope="module")
def empty(model: Path) -> Iterator[Path]:
    """One installation for all that is refused, which has no reminder setting in the end."""
    yield model
    assert "no reminder setting yet" in said(model, "reminders list")


def test_a_setting_is_put_by_options_and_read_by_a_person(home: Path) -> None:
    where = "--where kind=first-aid --where kind=rescue --where-not paid=true"
    when = "--date expires --offset 30 --offset 14 --offset 0 --offset -1 --send-time 08:30"
    put = said(home, f"reminders put {A} {MINE} {where} {when} --to role:head --off")
    lines = {line.split("  ")[0]: line.partition("  ")[2].strip() for line in put.splitlines()}
    assert lines["about"] == "certificate where kind is first-aid or rescue and paid is not True"
    assert lines["when"] == "30, 14 days before and on and 1 day after expires, at 08:30"
    assert (lines["tells"], lines["state"]) == ("role:head", "off")
    on = invoked(home, f"reminders on {A}")
    assert "on, being planned\n" in on.stdout
    assert on.stderr.splitlines() == [
        "warning: nobody holds the role 'head' yet",
        "warning: no source of type 'certificate' is stored yet; a plugin may provide them",
    ]
    assert "First aid ends" in said(home, "reminders list")
    assert "on, being planned" not in said(home, f"reminders off {A}")


def test_a_setting_is_read_from_a_file_and_options_replace_its_fields(home: Path) -> None:
    file = home.parent / "full.toml"
    file.write_text(FILE)
    put = said(home, f"reminders put {B} --file {file} --send-time 07:00")
    assert "booked of all is at least 25 (OncePerThreshold), at 07:00" in put
    for text, says in (
        (FILE.replace("25", "nan"), f"{file}: rule.value: it is no number"),
        (FILE.replace("25", '"much"'), f"{file}: rule.value: it is text and must be a number"),
        (FILE.replace("metric", "metrics"), f"{file}: rule.metrics: there is no such field"),
        (FILE.replace('"head"', '"a:b"'), f"{file}: recipients[0].role: it is blank"),
        ("name", f"{file}: line 1: this is no TOML"),
        ('{"name": 7', f"{file}: this is no JSON, it ends too early"),
        ("name = 1", f"{file}: name: it is a whole number and must be text"),
        ("#" * 70_000, f"{file}: it has over 64 kB"),
    ):
        file.write_text(text)
        assert says in refused(home, f"reminders put {B} --file {file}")
    assert "nearly full" in said(home, f"reminders show {B}")


@pytest.mark.parametrize(
    "line, says",
    [
        (f"reminders show {A}", f"GUID: the tenant has no reminder setting {A}: `clarion reminders list` shows"),
        (f"reminders off {A}", f"the tenant has no reminder setting {A}"),
        ("reminders put 7", "GUID: '7' is no id"),
        (f"reminders put {A}", "--name: it is missing"),
        (f"reminders put {A} --date due", "--name: it is missing"),
        (f"reminders put {A} --offset 3", "--date: no date is named"),
        (f"reminders put {A} --at-least 3", "--metric: no metric is named"),
        (f"reminders put {A} --date due --metric m", "--metric: it is about a date already"),
        (f"reminders put {A} --metric m", "--at-least: it needs one value"),
        (f"reminders put {A} --metric m --at-least much", "--at-least: 'much' is no number"),
        (f"reminders put {A} --date due --where paid", "--where (1): 'paid' is no condition: write FIELD=VALUE"),
        (f"reminders put {A} --name n --source-type c --type welcom --date d", "--type: there is no notification type"),
        (
            f"{WHOLE} --date d --offset 4000",
            "--offset (1): it is too",
        ),
        (
            f"{WHOLE} --metric m --at-least nan",
            "--at-least: it is no number",
        ),
        (
            f"{WHOLE} --date d --send-time 9",
            "--send-time: it is no time",
        ),
        (f"reminders put {A} --name n --source-type C --type welcome --date d", "--source-type: it is no name"),
        (f"{WHOLE} --date d --to head", "--to (1): 'head' is nobody"),
        (
            f"{WHOLE} --date d --business-unit {A}",
            "--business-unit: the tenant has no such business unit",
        ),
        ("automation show reminder:a", "KEY: the tenant has no occurrence 'reminder:a': `clarion automation list`"),
        ("automation hold reminder:a --reason r", "the tenant has no occurrence 'reminder:a'"),
        ("automation hold reminder:a --reason ''", "--reason: it is empty"),
        ("automation hold reminder:a", "--reason: it is missing"),
        ("automation list late", "'late' is not one of its words: choose from waiting, due"),
        ("automation list --until tomorrow", "--until: 'tomorrow' is no time with a zone"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_and_changes_nothing(empty: Path, line: str, says: str) -> None:
    assert says in refused(empty, line)


def test_occurrences_are_listed_shown_and_held(home: Path) -> None:
    async def make() -> list[str]:
        async with open_platform(load_settings({"CLARION_HOME": str(home)})) as platform:
            (tenant,) = await platform.store.list_tenants()
            now = await platform.store.now()
            rows = [
                automation_scheduler(1, scheduled_at=now + timedelta(days=9)),
                automation_scheduler(
                    2, status=AutomationStatus.COMPLETED, dispatch_result=skipped(EndReason.NO_RECIPIENTS).text
                ),
            ]
            await platform.store.ensure_automation_schedulers(tenant, rows)
            return [row.scheduler_key for row in rows]

    waits, ended = asyncio.run(make())
    assert said(home, "automation list held") == "nothing is held\n"
    assert waits in said(home, "automation list")
    shown = said(home, f"automation show {ended}")
    assert "NoRecipients: when it was due nobody was named" in shown
    assert "2026-01-29 09:00 Europe/Berlin" in shown
    assert "on hold" in said(home, f"automation hold {waits} --reason 'not yet'")
    assert waits in said(home, "automation list held")
    assert "1: `clarion automation list held` shows them\n" in said(home, "status")
    again = refused(home, f"automation hold {waits} --reason again")
    assert again.startswith("it is on hold, so there is nothing to hold: `clarion automation show KEY`")
    for act in ("release", "run"):
        assert "pending" in said(home, f"automation {act} {waits} --reason now")
    assert "DeactivatedByHand" in said(home, f"automation deactivate {waits} --reason never")
