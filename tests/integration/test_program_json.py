"""`--json` prints what the API answers to the same question, byte by byte: both doors on the same store."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from clarion.bootstrap import open_platform, prepare
from clarion.cli.access import grant
from clarion.cli.program import program
from clarion.cli.session import open_session
from clarion.domain.attempt import AttemptStatus
from clarion.domain.automation import AutomationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.catalog import Role
from clarion.testing.factories import automation_scheduler
from tests.integration.both_doors import answered, invoked, printed, said, settings_of, work
from tests.integration.json_lines import (
    AGED,
    ASKED,
    BODIES,
    CHANGED,
    CHILD,
    DONE,
    GROUP,
    INNER,
    OCCURRENCE,
    OWN,
    REMINDER,
    REPORT,
    RULE,
    SEND,
    UNIT,
    WITHOUT_TWIN,
    Change,
)

ROOT = Path(__file__).parents[2]


async def fall_due(home: Path) -> None:
    """Have occurrences that wait, one of them on hold, and one that is over."""
    async with open_platform(settings_of(home)) as platform:
        at = await platform.store.now() + timedelta(days=9)
        rows = [automation_scheduler(n, scheduled_at=at, on_support_hold=n == 1) for n in (1, 2)]
        odd = automation_scheduler(3, scheduler_key=OCCURRENCE, source="INV/17 ä", scheduled_at=at)
        over = automation_scheduler(4, status=AutomationStatus.COMPLETED)
        await platform.store.ensure_automation_schedulers("school", [*rows, odd, over])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A school with a notification in every state that a question is about, and the ids of each."""
    home = tmp_path_factory.mktemp("model") / "home"

    async def make() -> None:
        await prepare(settings_of(home))
        async with open_platform(settings_of(home)) as platform:
            await platform.dispatcher.ensure_tenant("school", actor="test")
            api = await open_session(platform, tenant="school")
            (home / "key").write_text((await grant(api, actor="test", role=Role.ADMIN)).token)

    async def drain() -> None:
        async with open_platform(settings_of(home)) as platform:
            await work(platform, calls=4)

    asyncio.run(make())
    said(home, f"publish {ROOT}/src/clarion/cli/definitions/welcome")
    said(home, f"units put {UNIT} --name North")
    said(home, "settings set welcome --to role:teacher --to relation:guardian --channels inbox,email")
    said(home, f"settings set welcome --to unit --business-unit {UNIT}")
    said(home, f"{SEND} --to kim@example.com --entity child:{CHILD}")
    sent = said(home, f"{SEND} --to sam@example.com --entity child:{CHILD}")
    for name in ("unknown", "unknown+2"):
        said(home, f"{SEND} --to {name}@example.com")
    failed = said(home, f"{SEND} --to damaged@example.com")
    with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
        connection.execute("UPDATE notification_job SET payload = x'00' WHERE guid = ?", (failed["job_id"],))
    asyncio.run(drain())
    asyncio.run(fall_due(home))
    said(home, f"reminders put {REMINDER} --name one --source-type order --type welcome --date due --offset 3")
    weekly = f"--name weekly --report delivery-summary --rule {RULE} --zone Europe/Vienna --type welcome"
    said(home, f"reports put {REPORT} {weekly} --user user:1")
    said(home, "people attributes declare grade number")
    for number in (1, 2):
        said(home, f"people put user:{number} --name P{number} --locale de --contact p{number}@example.com")
    for group in (INNER, GROUP):
        said(home, f"groups put {group} --name one")
    said(home, f"groups set {GROUP} --group {INNER}")
    said(home, f"groups change {GROUP} --add user:1 --add employee:{CHILD}")
    said(home, f"units change {UNIT} --add user:1")
    said(home, "roles change teacher --add user:1")
    said(home, f"sources put invoice 2026/17 --date due_on=2026-11-01 --entity {CHILD}")
    said(home, "event-mappings set member.joined welcome")
    event = said(home, f"event member.joined --key joined --entity child:{CHILD} --data {{data}}")
    with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
        connection.execute(
            "UPDATE entity_event SET status = 'Failed', due_at = NULL WHERE event_type = 'member.joined'"
        )
    said(home, "sources put invoice 18 --metric open=1")
    said(home, f"roles change teacher --business-unit {UNIT} --add user:2")
    said(home, f"relations change child:{CHILD} guardian --add user:1 --add user:2")
    said(home, f"relations change child:{CHILD} payer --add user:1")
    waiting = said(home, f"{SEND} --to sam@example.com --key known")
    assert invoked(home, f"{SEND} --to kim@example.com --key known").exit_code != 0
    uncertain = said(home, "uncertain list")["items"]
    cases = {case["kind"]: case["case_id"] for case in said(home, "support list")["items"]}
    assert (len(uncertain), set(cases)) == (2, {"Conflict", "Failed"})
    return home, {
        "job": sent["job_id"],
        "message": sent["message_id"],
        "child": CHILD,
        "failed": failed["job_id"],
        "waiting": waiting["job_id"],
        "outgoing": str(uncertain[0]["id"]),
        "version": str(uncertain[0]["version"]),
        "case": cases["Conflict"],
        "event": event["event_id"],
        "unit": UNIT,
        "welcome_of_unit": f"/v1/settings/welcome?business_unit={UNIT}",
        "group": GROUP,
        "inner": INNER,
        "reminder": REMINDER,
        "occurrence": OCCURRENCE,
        "in_path": quote(OCCURRENCE, safe=":"),
        "held": automation_scheduler(1).scheduler_key,
        "over": automation_scheduler(4).scheduler_key,
        "report": REPORT,
    }


@pytest.mark.parametrize("line, path", ASKED, ids=[line for line, _ in ASKED])
def test_a_question_has_one_answer(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    assert printed(home, line, **ids) == answered(home, "GET", path.format(**ids))


@pytest.mark.parametrize("line, path", AGED, ids=[line for line, _ in AGED])
def test_a_question_about_the_moment_has_one_answer(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    one, other = said(home, line, **ids), msgspec.json.decode(answered(home, "GET", path))
    for answer in (one, other):
        for name in [name for name in answer if name == "at" or name.endswith("_seconds")]:
            del answer[name]
    assert one == other
    assert (one["workers"], one["messages_waiting"], one["uncertain"]) == ([], 0, 2), "the workers stopped properly"


@pytest.mark.parametrize("line, path", DONE, ids=[line for line, _ in DONE])
def test_an_act_has_one_answer(model: tuple[Path, dict[str, str]], tmp_path: Path, line: str, path: str) -> None:
    """Each door does it on a copy of the same store; who did it and when is all that may differ."""
    home, ids = model
    (body,) = [body for name, body in BODIES.items() if line.startswith(f"{name} ")]
    if body is not None and "outgoing" in line:
        body = body | {"version": int(ids["version"])}
    by_program = printed(shutil.copytree(home, tmp_path / "program"), line, **ids)
    method, _, path = path.rpartition(" ")
    by_api = answered(
        shutil.copytree(home, tmp_path / "api"),
        method or "POST",
        path.format(**ids),
        json=body,
        headers={"idempotency-key": "known"},
    )
    one, other = msgspec.json.decode(by_program), msgspec.json.decode(by_api)
    own = OWN.get(" ".join(line.split()[:2]), ())
    assert all(answer.pop(name) for name in own for answer in (one, other))
    assert list(one) == list(other)
    assert one == other
    assert own or by_program == by_api


@pytest.mark.parametrize("change", CHANGED, ids=[change.line for change in CHANGED])
def test_a_change_has_one_answer(model: tuple[Path, dict[str, str]], tmp_path: Path, change: Change) -> None:
    """Each door does it on a copy of the same store."""
    home, ids = model
    line, method, path, body = change
    by_program = printed(shutil.copytree(home, tmp_path / "program"), line, **ids)
    by_api = answered(shutil.copytree(home, tmp_path / "api"), method, path.format(**ids), json=body)
    assert by_program == by_api


@pytest.mark.parametrize(
    "line, path",
    [
        ("groups list", "/v1/groups"),
        ("roles list", "/v1/roles"),
        ("relations list user:1", "/v1/relations?person=user:1"),
        ("audit", "/v1/audit"),
        ("uncertain list", "/v1/uncertain"),
        ("support list", "/v1/support-cases"),
        ("history {child}", "/v1/entities/{child}/notifications"),
        ("list", "/v1/notifications"),
        ("settings list", "/v1/settings"),
        ("automation list", "/v1/automation"),
    ],
)
def test_a_page_of_one_door_goes_on_at_the_other(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    first = said(home, f"{line} --limit 1", **ids)
    cursor = first["next_cursor"]
    second = printed(home, f"{line} --limit 1 --after {cursor}", **ids)
    joint = "&" if "?" in path else "?"
    assert second == answered(home, "GET", f"{path}{joint}limit=1&cursor={cursor}".format(**ids))
    assert msgspec.json.decode(second)["items"] != first["items"]


def test_what_a_person_reads_of_a_message_has_no_name_of_a_state(model: tuple[Path, dict[str, str]]) -> None:
    """Those are for programs, which get them with --json."""
    home, ids = model
    told = CliRunner().invoke(program, ["explain", ids["job"]], env={"CLARION_HOME": str(home)}).stdout
    assert "email: sent\n" in told
    assert not [name for name in (*OutgoingStatus, *AttemptStatus) if name in told], told
    assert [one["status"] for one in said(home, f"explain {ids['job']}")["messages"]] == ["SentToProvider"]


def test_every_command_that_the_api_has_too_is_compared() -> None:
    compared = [*(line for line, _ in (*ASKED, *AGED, *DONE)), *(change.line for change in CHANGED)]
    without = {
        name
        for name in commands(typer.main.get_command(program), "")
        if not any(line.startswith(f"{name} ") or line == name for line in compared)
    }
    assert without == WITHOUT_TWIN


def commands(command: Any, name: str) -> Iterator[str]:
    """Name every command that takes `--json`."""
    if any("--json" in parameter.opts for parameter in command.params):
        yield name
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, inner), f"{name} {inner}".strip())
