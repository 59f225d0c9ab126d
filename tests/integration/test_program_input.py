"""What people type wrongly, and what an installation suffers: one line that says what to do, and an exit code."""

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from clarion.cli import main
from clarion.cli.session import user_name
from clarion.domain.depth import DEPTH_MAX
from clarion.operations.page import write
from tests.integration.program_use import PROGRAM, ROOT, WELCOME, clarion, home, model, refused

__all__ = ["home", "model"]  # fixtures

WOULD = ("explain", "--would", "welcome", "--user", "1")


def refused_here(
    arguments: tuple[str, ...],
    *,
    home: Path,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> str:
    """Run a command in this process, since there are many; how the program itself starts and ends is tested below."""
    monkeypatch.setattr(sys, "argv", ["clarion", *arguments])
    monkeypatch.setenv("CLARION_HOME", str(home))
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as left:
        main()
    said = capfd.readouterr()
    assert (left.value.code, said.out) == (code, "")
    assert said.err.startswith("clarion: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(
    "arguments,says",
    [
        (
            ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": '),
            "--data: this is no JSON, it ends too early",
        ),
        (
            ("send", "welcome", "--to", "sam@example.com", "--data", "{name: 1}"),
            "this is no JSON, it goes wrong at byte 1",
        ),
        (("send", "welcome", "--to", "sam@example.com", "--data", "[1]"), "--data: this is no JSON object"),
        (("send", "welcome", "--to", "sam@example.com", "--data", '{"a":1,"a":2}'), "--data: 'a' is given twice"),
        (("send", "welcome", "--to", "sam@example.com", "--data", "@nowhere.json"), "nowhere.json cannot be read"),
        (("send", "welcom", "--to", "sam@example.com"), "did you mean welcome?"),
        (("send", "welcome", "--to", "sam@example.com"), "needs name"),
        (("send", "welcome", "--to", "sam@", "--data", '{"name": "Sam"}'), "--to (1): the mail address is not one"),
        (
            (*WELCOME, "--to", "parent-3"),
            "--to (2): it is neither a mail address nor a phone number: did you mean user:par",
        ),
        (
            (*WELCOME, "--to", "57aff000-0000-4000-8000-000000000001"),
            "did you mean employee:57aff000-0000-4000-8000-000000000001 or group:57aff000",
        ),
        ((*WELCOME, "--to", "12025550103"), "--to (2): the phone number is not in international form"),
        ((*WELCOME, "--to", "user:"), "--to (2): it is blank"),
        ((*WELCOME, "--to", "user: "), "--to (2): it is blank"),
        (
            (*WELCOME, "--entity", f"{'x' * 201}:57aff000-0000-4000-8000-000000000001"),
            "--entity: it is too long: use 200 characters or less",
        ),
        (("send", "welcome", "--to", "sam@example.com", "--data", "@/dev/zero"), "--data: it has over 65536 bytes"),
        (("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "\udcff"}'), "argument 6: it is no UTF-8"),
        ((*WELCOME, "--key", "\udcff"), "argument 8: it is no UTF-8"),
        (("send", "welcome", "--to", "employee:7"), "'7' is no id"),
        (("send", "welcome", "--to", "pigeon:7"), "'pigeon' is no kind of recipient"),
        ((*WELCOME, "--entity", "child"), "--entity: 'child' is no entity"),
        ((*WELCOME, "--not-before", "tomorrow"), "--not-before: 'tomorrow' is no time with a zone"),
        ((*WELCOME, "--not-before", "2030-01-31T08:00:00"), "is no time with a zone"),
        ((*WELCOME, "--not-before", "2999-01-31T08:00:00+01:00"), "--not-before: it is too far ahead"),
        ((*WELCOME, "--ttl", "0"), "--ttl: 0 is too small: use 1 to 2592000"),
        ((*WELCOME, "--ttl", "soon"), "--ttl: 'soon' is no whole number: use 1 to 2592000"),
        ((*WELCOME, "--locale", "german"), "--locale: 'german' is no locale: write a language, and a region if it"),
        ((*WELCOME, "--channel", "pigeon"), "--channel: 'pigeon' is not one of its words"),
        ((*WELCOME, "--channel", "email", "--channel", "sms"), "--channel (2): the notification type 'welcome' is not"),
        ((*WELCOME, "--business-unit", "7"), "--business-unit: '7' is no id"),
        (
            (*WELCOME, "--business-unit", "57aff000-0000-4000-8000-000000000001"),
            "--business-unit: the tenant has no such business unit: name one that `clarion units list` shows",
        ),
        ((*WELCOME, "--hint", "region"), "--hint: 'region' is no hint: write NAME=VALUE; the names are region, categ"),
        ((*WELCOME, "--hint", "colour=red"), "--hint: 'colour=red' is no hint"),
        ((*WELCOME, "--hint", "region=eu", "--hint", "region=us"), "--hint region: it is given twice: give it once"),
        ((*WELCOME, "--hint", "unicode=maybe"), "--hint unicode: it is text and must be true or false"),
        ((*WELCOME, "--hint", "from=" + "x" * 201), "--hint from: it is too long: use 200 characters or less"),
        ((*WELCOME, "--hint", "region="), "--hint region: it is empty: use 1 character or more"),
        ((*WELCOME, "--lane", "fast"), "'fast' is not one of its words: choose from critical, high, normal, bulk"),
        ((*WELCOME, *("--to", "a@example.com") * 20), "--to: 21 recipients are too many: name at most 20"),
        (
            ("tenants", "create", "Bad_Name"),
            "NAME: it is not a tenant id: use 1 to 63 of a-z, 0-9 and '-', not starting",
        ),
        ((*WELCOME, "--tenant", "nobody"), "--tenant: there is no tenant 'nobody'"),
        ((*WELCOME, "--key", ""), "--key: it is empty or too long: use 1 to 255"),
        ((*WELCOME, "--key", "k" * 256), "--key: it is empty or too long: use 1 to 255"),
        (
            ("serve", "--open", "everything"),
            "--open: 'everything' cannot be opened: choose from metrics, openapi, page",
        ),
        (("serve", "--open", "page,none"), "--open: 'none' cannot be opened"),
        (("send",), "TYPE: it is missing: `clarion send --help` explains it"),
        (("send", "welcome", "--to"), "--to needs a value behind it"),
        (("send", "--tenan", "x"), "there is no option --tenan: did you mean --lane or --tenant?"),
        (("migrate", "now", "then"), "'now then' is more than it takes: `clarion migrate --help` explains it"),
        (("--version=3",), "--version takes no value"),
        (("sned",), "`clarion` has no command 'sned': did you mean send"),
        (("support", "lst"), "`clarion support` has no command 'lst': did you mean list?"),
        (("explain", "7"), "'7' is no id"),
        (("explain",), "ID: nothing is named: give the id of a job or message, the key of an"),
        (("explain", "reminder:none"), "KEY: the tenant has no occurrence 'reminder:none': `clarion automation list`"),
        (("history", "invoice:17", "--story"), "ENTITY: 'invoice:17' is no guid of an entity"),
        (("explain", "7", "--would", "welcome"), "--would: it goes with no ID and no --recipients"),
        (("explain", "7", "--user", "1"), "--user: it goes with --would"),
        (("explain", "7", "--channel", "sms"), "--channel: it goes with --would"),
        ((*WOULD, "--employee", "57aff000-0000-4000-8000-000000000001"), "--user: it is about exactly one person"),
        (("explain", "--would", "welcome"), "--user: it is about exactly one person"),
        (("explain", "--would", "welcome", "--user", " "), "--user: it is blank"),
        (("explain", "--would", "welcome", "--employee", "7"), "--employee: '7' is no id"),
        (("explain", "--would", "welcom", "--user", "1"), "did you mean welcome?"),
        ((*WOULD, "--entity", "child"), "--entity: 'child' is no entity"),
        ((*WOULD, "--channel", "sms"), "--channel (1): the notification type 'welcome' is not sent by sms"),
        (
            (*WOULD, "--business-unit", "57aff000-0000-4000-8000-000000000001"),
            "--business-unit: the tenant has no such business unit",
        ),
        (("explain", "00000000-0000-4000-8000-000000000000"), "the tenant has no job or message"),
        (("cancel", "00000000-0000-4000-8000-000000000000"), "the tenant has no job or message"),
        (("history", "nonsense"), "it names neither an entity nor a recipient"),
        (("uncertain", "retry", "7", "--version", "1", "--reason", "because"), "no longer uncertain"),
        (("uncertain", "retry", "7", "--version", "1", "--reason", " "), "--reason: it is empty"),
        (
            ("uncertain", "retry", str(2**63), "--version", "1", "--reason", "so"),
            f"ID: {2**63} is too large: use 0 to {2**63 - 1}",
        ),
        (("uncertain", "retry", "7", "--version", str(2**63), "--reason", "so"), f"--version: {2**63} is too large"),
        (("uncertain", "retry", "1_0", "--version", "1", "--reason", "so"), "ID: '1_0' is no whole number"),
        (("uncertain", "list", "--after", "7"), "--after: it is no cursor of this list"),
        (("audit", "--after", str(2**63)), "--after: it is no cursor of this list"),
        (("support", "list", "--after", write("audit", 7)), "--after: it is no cursor of this list"),
        (("history", "user:7", "--after", "\0"), "--after: it is no cursor of this list"),
        (("inbox", "sam@example.com"), "reader: it names nobody: write user:ID"),
        (("inbox", "group:00000000-0000-4000-8000-000000000001"), "reader: it names nobody"),
        (("inbox", "user:"), "reader: "),
        (("inbox", "user:7", "--after", write("inbox", "x")), "--after: it is no cursor of this list"),
        (("audit", "--limit", "101"), "--limit: 101 is too large: use 1 to 100"),
        (("outbox", "--limit", "ten"), "--limit: 'ten' is no whole number: use 1 to 200"),
        (("support", "retry", "7", "--reason", "so"), "'7' is no id"),
        (("support", "retry", "00000000-0000-4000-8000-000000000000", "--reason", " "), "--reason: it is empty"),
        (("support", "retry", "00000000-0000-4000-8000-000000000000", "--reason", "so"), "the tenant has no job"),
        (("support", "show", "7"), "use the id as `clarion support list` prints it"),
        (("support", "show", "00000000-0000-4000-8000-000000000000"), "the tenant has no case"),
        (("support", "resolve", "00000000-0000-4000-8000-000000000000", "-m", "done"), "the tenant has no case"),
        (("types", "disable", "welcom"), "did you mean welcome?"),
        (("publish", "nowhere"), "there is no such folder"),
        (("publish", "docs"), "definition.toml"),
        (("keys", "create", "--actor", " "), "actor: it does not name anybody"),
        (("keys", "create", "--actor", "shop", "--days", "99999999"), "--days: 99999999 is too large"),
        (("keys", "create", "--actor", "shop", "--role", "boss"), "--role: 'boss' is not one of its words"),
        (("keys", "revoke", "0000000000000000"), "there is no key"),
        (("tenants", "create", "The School"), "it is not a tenant id"),
        (("outbox", "--show", "7"), "the outbox has no message 7"),
        (("outbox", "--opened", "7"), "--opened: the outbox has no message 7"),
        (("outbox", "--opened", str(10**30)), "--opened: the outbox has no message 1000"),
        (("outbox", "--channel", "inbox"), "the inbox has no provider"),
        (("outbox", "--link", "--server", "localhost:80"), "--server: 'localhost:80' is no address of a server"),
        (("serve", "--channels", "pigeon"), "'pigeon' is no channel"),
        (("work", "--channels", "inbox"), "'inbox' is no channel"),
        (("serve", "--host", "no.such.host.invalid", "--port", "0"), "is no address of this machine"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_what_is_asked_wrongly_is_one_line_and_exit_code_two(
    model: Path,
    arguments: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert says in refused_here(arguments, home=model, code=2, monkeypatch=monkeypatch, capfd=capfd)


@pytest.mark.parametrize(
    "damage, says",
    [
        ("UPDATE schema_info SET min_program = '99.0.0'", "asks for Clarion 99.0.0 or newer and this is 0."),
        ("UPDATE schema_step SET checksum = 'another'", "made by another version of Clarion (its 0001_"),
        ("DROP TABLE schema_info", "not in a form this program knows: give an empty database"),
    ],
)
def test_a_database_that_this_program_cannot_live_with_is_said(
    home: Path, damage: str, says: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
        connection.execute(damage)
    assert says in refused_here(WELCOME, home=home, code=1, monkeypatch=monkeypatch, capfd=capfd)


def test_a_database_without_tables_is_to_be_migrated(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "clarion.db").write_bytes(b"")
    said = refused_here(WELCOME, home=home, code=1, monkeypatch=monkeypatch, capfd=capfd)
    assert f"run: clarion migrate --store sqlite:///{home}/clarion.db" in said


@pytest.mark.parametrize(
    "command",
    [
        "types list",
        "tenants list",
        "keys list",
        "audit",
        "uncertain list",
        "support list",
        "history user:7",
        "outbox",
        "inbox user:7",
    ],
)
def test_every_list_in_json_has_items_and_where_to_go_on(
    model: Path, command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["clarion", *command.split(), "--json"])
    monkeypatch.setenv("CLARION_HOME", str(model))
    with pytest.raises(SystemExit) as left:
        main()
    shown = msgspec.json.decode(capfd.readouterr().out)
    assert left.value.code == 0
    assert isinstance(shown.pop("items"), list)
    assert shown in ({}, {"next_cursor": None})


def deep(levels: int) -> bytes:
    """Write an object with lists inside, so many levels in all."""
    return b'{"name": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    "content, says",
    [
        (deep(DEPTH_MAX + 1), f"--data: it is nested too deeply: use at most {DEPTH_MAX} levels"),
        (deep(5000), f"--data: it is nested too deeply: use at most {DEPTH_MAX} levels"),  # some parsers give up here
        (b'{"name": "\xff"}', "is no JSON"),
    ],
    ids=["deep", "very deep", "no UTF-8"],
)
def test_a_file_of_data_that_cannot_be_read_as_json_is_one_line(
    home: Path, tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "data.json").write_bytes(content)
    to = ("send", "welcome", "--to", "sam@example.com", "--data", f"@{tmp_path}/data.json")
    assert says in refused(clarion(*to, home=home), code=2)


@pytest.mark.parametrize("levels", [40, 800, 5000])
def test_a_definition_that_is_nested_too_deeply_is_one_line(home: Path, tmp_path: Path, levels: int) -> None:
    folder = shutil.copytree(ROOT / "src/clarion/cli/definitions", tmp_path / "definitions") / "welcome"
    with (folder / "definition.toml").open("a") as file:
        file.write(f"deep = {'[' * levels}1{']' * levels}\n")
    refused(clarion("publish", str(folder), home=home), code=2)


@pytest.mark.parametrize("command", [("types",), ("types", "--json")], ids=" ".join)
def test_output_that_cannot_be_written_is_one_line(home: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, *command],
            env={**os.environ, "CLARION_HOME": str(home), "PYTHONUNBUFFERED": ""},  # so that it fails at the end
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "clarion: the output cannot be used (No space left on device): mend that and try again\n"


def test_data_may_come_from_a_file_or_from_standard_input(home: Path, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"name": "Sam"}')
    to = ("send", "welcome", "--to", "sam@example.com", "--key", "one", "--json")
    first = clarion(*to, "--data", f"@{tmp_path}/data.json", home=home)
    again = clarion(*to, "--data", "-", home=home, given='{"name": "Sam"}')
    assert msgspec.json.decode(first.stdout)["job_id"] == msgspec.json.decode(again.stdout)["job_id"]
    assert msgspec.json.decode(again.stdout)["repeated"] is True


def test_a_used_key_with_other_content_names_its_support_case(home: Path) -> None:
    assert clarion(*WELCOME, "--key", "one", home=home).returncode == 0
    other = ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Kim"}', "--key", "one")
    said = refused(clarion(*other, home=home), code=2)
    assert "it differs in data.name" in said
    assert "Kim" not in said
    assert "Sam" not in said
    assert "support case" in said
    (case,) = msgspec.json.decode(clarion("support", "list", "--json", home=home).stdout)["items"]
    shown = clarion("support", "show", case["case_id"], home=home).stdout
    assert re.search(r"^differing +recipients, data, lane or not_before_at$", shown, re.MULTILINE)
    assert re.search(rf"^about +notification {case['about'].split()[1]}$", shown, re.MULTILINE)
    assert not re.search(r"_hash|k1:|\d_", shown)


def test_a_resolved_case_shows_by_whom_when_and_with_which_words(home: Path) -> None:
    for name in ("Sam", "Kim"):
        clarion(*WELCOME[:-1], f'{{"name": "{name}"}}', "--key", "one", home=home)
    (case,) = msgspec.json.decode(clarion("support", "list", "--json", home=home).stdout)["items"]
    assert "resol" not in clarion("support", "show", case["case_id"], home=home).stdout
    assert clarion("support", "resolve", case["case_id"], "-m", "told them", home=home).returncode == 0
    shown = msgspec.json.decode(clarion("support", "show", case["case_id"], "--json", home=home).stdout)
    assert (shown["resolved_by"], shown["resolution"]) == (f"cli:{user_name()}", "told them")
    words = clarion("support", "show", case["case_id"], home=home).stdout
    assert f"by          {shown['resolved_by']}\n" in words
    assert "resolution  told them\n" in words
    assert f"resolved    {shown['resolved_at'][:10]} " in words


def test_results_are_on_standard_output_and_hints_beside_them(home: Path) -> None:
    done = clarion(*WELCOME, home=home)
    assert done.returncode == 0
    first, second = done.stdout.splitlines()
    assert first.startswith("accepted: job ")
    assert second.startswith("message ")
    assert "clarion explain" in done.stderr


def test_the_tenant_must_be_named_where_there_are_several(home: Path) -> None:
    clarion("tenants", "create", "other", home=home)
    assert "there are several tenants (other, school): name one with it" in refused(
        clarion(*WELCOME, home=home), code=2
    )
    assert clarion(*WELCOME, "--tenant", "school", home=home).returncode == 0
    assert clarion(*WELCOME, home=home, CLARION_TENANT="school").returncode == 0
    assert clarion("tenants", "list", home=home).stdout == "other\nschool\n"


def test_a_new_installation_says_how_to_make_a_tenant(tmp_path: Path) -> None:
    clarion("migrate", home=tmp_path / "new")
    assert "clarion tenants create" in refused(clarion(*WELCOME, home=tmp_path / "new"), code=2)


def test_a_port_in_use_is_said(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(clarion("serve", "--port", str(port), home=home), code=1)
    assert f"the port {port} of 127.0.0.1 is in use" in said


@pytest.mark.parametrize("command", [("work",), ("work", "--channels", "sms"), ("serve", "--port", "0")])
def test_workers_without_any_channel_are_refused(home: Path, command: tuple[str, ...]) -> None:
    said = refused(clarion(*command, home=home, CLARION_PROVIDERS=","), code=2)
    assert "CLARION_PROVIDERS: " in said


@pytest.mark.parametrize(
    "url, says",
    [
        (
            "clarion.example.com",
            "CLARION_PUBLIC_URL: it is no URL that a path can be put behind: write https://clarion",
        ),
        ("http://clarion.example.com", "CLARION_PUBLIC_URL: it is not encrypted"),
    ],
)
def test_a_public_url_that_mail_must_not_lead_to_is_refused(home: Path, url: str, says: str) -> None:
    assert says in refused(clarion("check", home=home, CLARION_PUBLIC_URL=url), code=2)
