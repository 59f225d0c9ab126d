"""What the program refuses to open to others, and what it never shows: modes of files, and passwords."""

import sys
from pathlib import Path

import pytest

from clarion.cli import main
from tests.integration.program_use import WELCOME, clarion, home, model, refused

__all__ = ["home", "model"]  # fixtures


@pytest.mark.parametrize("command", ["migrate", "check", "serve"])
def test_a_home_that_every_user_may_write_is_refused(home: Path, command: str) -> None:
    home.chmod(0o777)
    said = refused(clarion(command, home=home), code=1)
    assert said == f"clarion: every user may write to the folder {home}: run: chmod 700 {home}\n"


def test_a_database_that_every_user_may_write_is_refused(home: Path) -> None:
    (home / "clarion.db").chmod(0o666)
    assert f"run: chmod 600 {home}/clarion.db" in refused(clarion(*WELCOME, home=home), code=1)


@pytest.mark.parametrize("setting", ["CLARION_STORE", "CLARION_BLOBS", "CLARION_VAULT", "CLARION_PROVIDERS"])
@pytest.mark.parametrize(
    "value",
    [
        *("ann:hunter2@db.example/clarion", "//ann:hunter2@db.example", "user=ann password=hunter2", "hunter2"),
        *("file://ann:hunter2@db.example/x", "postgresql://ann:hunter2@[::1/x", "smtp://ann:hunter2@mail.example"),
    ],
)
def test_no_error_about_a_setting_shows_a_password(
    home: Path, setting: str, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(setting, value)
    monkeypatch.setattr(sys, "argv", ["clarion", "check"])
    monkeypatch.setenv("CLARION_HOME", str(home))
    with pytest.raises(SystemExit) as left:
        main()
    said = capfd.readouterr()
    assert left.value.code in (1, 2)
    assert said.err.startswith("clarion: ")
    assert "hunter2" not in said.out + said.err


def test_a_password_that_every_user_of_the_machine_can_read_is_warned_of(home: Path) -> None:
    """Arguments stand in the list of processes; the environment is for its user only."""
    url = "postgresql://ann:hunter2@127.0.0.1:1/clarion"
    for done, warned in (
        (clarion("check", "--store", url, home=home), True),
        (clarion("check", "--store", "postgresql://ann@127.0.0.1:1/clarion?password=hunter2", home=home), True),
        (clarion("check", "--store", "postgresql://ann@127.0.0.1:1/clarion", home=home), False),
        (clarion("check", home=home, CLARION_STORE=url), False),
    ):
        assert done.returncode == 1
        assert ("every user of this machine can read the password of --store" in done.stderr) is warned
        assert "hunter2" not in done.stderr
