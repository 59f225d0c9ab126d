"""`clarion people`: what it prints for a person, and one line for what cannot be done."""

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from clarion.cli.program import program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with one tenant."""
    monkeypatch.setenv("CLARION_HOME", str(tmp_path))
    for line in ("migrate", "tenants create school"):
        assert run(line).exit_code == 0
    return tmp_path


def run(line: str) -> Result:
    return CliRunner().invoke(program, shlex.split(line))


def said(line: str) -> str:
    done = run(line)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(line: str) -> str:
    """Give the one error of a command, which ends it before anything is stored."""
    done = run(line)
    assert done.exception is not None
    return str(done.exception)


@pytest.mark.usefixtures("home")
def test_a_person_is_put_set_shown_and_removed() -> None:
    assert "there is nobody yet" in said("people list")
    assert "none is declared yet" in said("people attributes list")
    assert said("people attributes declare grade number") == "the attribute grade is a number\n"
    said("people put user:7 --name 'Ann Archer' --contact ann@example.com --contact push:abc --attribute grade=7")
    shown = said("people set user:7 --locale de-AT --add-contact push:def --profile title=Dr. --attribute grade=8")
    assert [line.split(maxsplit=1) for line in shown.splitlines()] == [
        ["person", "user:7"],
        ["name", "Ann Archer"],
        ["profile", "title    Dr."],
        ["locale", "de-AT"],
        ["email", "ann@example.com"],
        ["push", "abc"],
        ["push", "def"],
        ["attribute", "grade  8"],
    ]
    assert said("people show user:7") == shown
    said("people set user:7 --remove-contact push:abc --locale '' --attribute grade= --profile title=")
    listed = said("people list").splitlines()
    assert listed[1].split() == ["user:7", "Ann", "Archer", "ann@example.com,", "def"]
    said("people set user:7 --contact kim@example.com")
    assert "kim@example.com, def" in said("people list")
    assert said("people remove user:7") == "user:7 is removed\n"
    assert "there is nobody yet" in said("people list")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "line, words",
    [
        ("people show user:7", "PERSON: nobody is known as user:7: `clarion people list` shows"),
        ("people remove user:7", "PERSON: nobody is known as user:7"),
        ("people set user:7 --name Ann", "PERSON: nobody is known as user:7"),
        ("people put ann", "PERSON: it names nobody: write user:ID"),
        ("people put user:7 --contact ann", "--contact: the phone number is not in international form"),
        ("people put user:7 --contact 'ann@'", "--contact: the mail address is not one well-formed address"),
        ("people put user:7 --contact push:", "--contact: it names no address"),
        ("people put user:7 --contact sms:0664123456 --region Austria", "--region: it is no region"),
        ("people put user:7 --attribute grade", "--attribute: 'grade' has no name and value: write NAME=VALUE"),
        ("people put user:7 --attribute a=1 --attribute a=2", "--attribute: 'a' is named twice"),
        ("people put user:7 --attribute level=7", "--attribute: there is no attribute of this name"),
        ("people put user:7 --attribute grade=seven", "--attribute: it is no number"),
        ("people put user:7 --locale german", "--locale: 'german' is no locale"),
        ("people put user:7 --zone Vienna", "--zone: 'Vienna' is no time zone"),
        ("people put user:7 --profile name=Ann", "--profile: the name has a field of its own"),
        ("people attributes declare Grade number", "name: it is not the name of an attribute"),
        ("people attributes declare grade text", "the attribute grade is declared as number"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(line: str, words: str) -> None:
    said("people attributes declare grade number")
    assert words in refused(line)
    assert "there is nobody yet" in said("people list")
