"""The program `clarion` as it is used: what it says, to which stream, and with which exit code."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from clarion.cli.program import Program, program
from tests.integration.smtp_server import closed_port
from tests.warm import COMMANDS

pytestmark = pytest.mark.usefixtures("warm")


def clarion(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
    env = {**kept, "CLARION_HOME": str(home), **environment}
    return subprocess.run([COMMANDS[-1], *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "new" / "home"


def test_a_new_installation_is_made_by_migrate_and_found_usable(home: Path) -> None:
    first = clarion("migrate", home=home)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("migrated from nothing to ")
    assert clarion("migrate", home=home).stdout.startswith("up to date at ")
    assert clarion("check", home=home).stdout == "store, blobs, vault and providers can be used\n"
    assert home.stat().st_mode & 0o777 == 0o700


def test_migrate_and_check_speak_json(home: Path) -> None:
    done = msgspec.json.decode(clarion("migrate", "--json", home=home).stdout)
    assert done["from_revision"] is None
    assert done["steps"]
    assert msgspec.json.decode(clarion("check", "--json", home=home).stdout) == {"usable": True}


def test_check_finds_damage_in_a_file_that_still_opens(home: Path) -> None:
    clarion("migrate", home=home)
    path = home / "clarion.db"
    content = path.read_bytes()
    path.write_bytes(content[:-4096] + b"\xff" * 4096)
    answer = clarion("check", home=home)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "clarion.db is damaged" in answer.stderr
    assert answer.stderr.endswith("stop all that use it and restore it from a backup\n")


def test_check_connects_to_the_providers_and_says_which_cannot_be_used(home: Path) -> None:
    clarion("migrate", home=home)
    mail, chat = closed_port(), closed_port()
    accounts = f"email=smtp://ann:sesame@127.0.0.1:{mail}?from=a@example.com,chat=sandbox+http://127.0.0.1:{chat}"
    answer = clarion("check", home=home, CLARION_PROVIDERS=accounts)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "account smtp-127.0.0.1 (connecting: " in answer.stderr
    assert "account sandbox+http-127.0.0.1 (no reply: " in answer.stderr
    assert answer.stderr.endswith("and that CLARION_PROVIDERS names it rightly\n")
    assert "sesame" not in answer.stderr


def test_a_lost_master_key_is_asked_for_and_not_replaced(home: Path) -> None:
    clarion("migrate", home=home)
    (home / "master.key").unlink()
    for command in ("migrate", "check"):
        answer = clarion(command, home=home)
        assert (answer.returncode, answer.stdout) == (1, "")
        assert "no master key" in answer.stderr
        assert not (home / "master.key").exists()


def test_check_finds_a_master_key_that_is_not_the_installations(home: Path) -> None:
    clarion("migrate", home=home)
    clarion("tenants", "create", "school", home=home)
    (home / "master.key").write_text(f"{'5a' * 32}\n")
    answer = clarion("check", home=home)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "which this vault does not have" in answer.stderr


def test_a_list_of_tenants_that_ends_with_its_page_promises_no_more(home: Path) -> None:
    clarion("migrate", home=home)
    for name in ("other", "school"):
        clarion("tenants", "create", name, home=home)
    assert clarion("tenants", "list", "--limit", "2", home=home).stderr == ""
    assert clarion("tenants", "list", "--limit", "1", home=home).stderr == "more: --after other\n"


@pytest.mark.parametrize("command", ["outbox", "types", "check", "work", "tenants list"])
def test_a_home_that_is_not_there_is_said_and_not_made(home: Path, command: str) -> None:
    answer = clarion(*command.split(), home=home)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"there is no folder {home}: correct CLARION_HOME" in answer.stderr
    assert not home.parent.exists()


def test_looking_into_an_outbox_that_nothing_was_sent_to_makes_none(home: Path) -> None:
    clarion("migrate", home=home)
    made = set(home.iterdir())
    assert clarion("outbox", home=home).stdout.startswith("nothing was sent yet")
    assert clarion("outbox", "--opened", "1", home=home).returncode == 2
    assert set(home.iterdir()) == made


@pytest.mark.parametrize("place", ["file", "file/below"])
@pytest.mark.parametrize("command", ["migrate", "demo --only-seed"])
def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path, place: str, command: str) -> None:
    (tmp_path / "file").touch()
    answer = clarion(*command.split(), "--json", home=tmp_path / place)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert f"clarion: the folder {tmp_path / place} cannot be made" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_folder_in_the_place_of_the_demos_key_is_one_line(home: Path) -> None:
    (home / "demo-api-key").mkdir(parents=True)
    answer = clarion("demo", "--only-seed", home=home)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "demo-api-key (Is a directory): let this user write a file there" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_postgresql_is_one_url_away(home: Path, postgres_url: str) -> None:
    assert clarion("migrate", home=home, CLARION_STORE=postgres_url).returncode == 0
    checked = clarion("check", "--store", postgres_url, home=home)
    assert checked.returncode == 0
    # The server of the tests forgets on purpose, because that is faster.
    assert [line.partition(":")[2].split(" is off")[0] for line in checked.stderr.splitlines()] == [
        " fsync",
        " synchronous_commit",
    ]


@pytest.mark.parametrize(
    "url, code, says",
    [
        ("mysql://host/db", 2, "postgresql, sqlite"),
        ("sqlite:clarion.db", 2, "sqlite:///"),
        ("sqlite:////nowhere/clarion.db", 1, "does not exist"),
        ("postgresql://nobody@127.0.0.1:1/db", 1, "127.0.0.1"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line_on_standard_error(home: Path, url: str, code: int, says: str) -> None:
    clarion("migrate", home=home)
    answer = clarion("check", "--store", url, home=home)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr.startswith("clarion: ")
    assert answer.stderr.count("\n") == 1
    assert says in answer.stderr


def test_a_database_that_was_never_migrated_names_the_command(home: Path) -> None:
    clarion("migrate", home=home)
    (home / "clarion.db").unlink()
    answer = clarion("check", home=home)
    assert answer.returncode == 1
    assert "clarion migrate --store" in answer.stderr


def test_an_unknown_command_or_option_is_bad_input(home: Path) -> None:
    assert clarion("nope", home=home).returncode == 2
    assert clarion("migrate", "--nope", home=home).returncode == 2


def test_the_list_of_commands_says_of_each_what_its_own_help_says() -> None:
    group = get_command(program)
    assert isinstance(group, Program)
    for listed in group.panels.values():
        for name, one in listed.items():
            assert one.help == " ".join(group.get_command(None, name).help.split("\n\n")[0].split())


def test_help_is_for_people_and_shows_no_types_of_a_program(home: Path) -> None:
    shown = clarion("--help", home=home).stdout
    assert "<bool>" not in shown
    assert "  explain         Tell the whole timeline" in shown


def test_help_and_version_name_the_program(home: Path) -> None:
    assert "migrate" in clarion("--help", home=home).stdout
    assert clarion("--version", home=home).stdout.startswith("clarion 0.")


def test_a_shell_can_complete_commands_and_options(home: Path) -> None:
    asked = {"_CLARION_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    assert clarion(home=home, COMP_WORDS="clarion ex", **asked).stdout.split() == ["explain"]
    assert "retry" in clarion(home=home, COMP_WORDS="clarion uncertain ", **{**asked, "COMP_CWORD": "2"}).stdout


@pytest.mark.parametrize(
    "command", ["send", "serve", "work", "demo", "explain", "outbox", "publish", "uncertain retry"]
)
def test_every_command_explains_itself(command: str) -> None:
    shown = CliRunner().invoke(program, [*command.split(), "--help"])
    assert shown.exit_code == 0
    assert "--json" in shown.output


def test_a_group_of_commands_without_one_shows_its_help_and_is_bad_input(home: Path) -> None:
    shown = clarion("support", home=home)
    assert shown.returncode == 2
    assert "resolve" in shown.stdout
