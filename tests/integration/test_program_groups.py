"""Groups, business units, roles and relations from the shell: what a person reads, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.program_use import clarion, home, model, refused

__all__ = ["home", "model"]

A, B = (f"6f1c2c7e-000{n}-4000-8000-000000000001" for n in (1, 2))


def said(home: Path, *arguments: str) -> str:
    done = clarion(*arguments, home=home)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(scope="module")
def empty(model: Path) -> Iterator[Path]:
    """One installation for all that is refused, which has no group in the end."""
    yield model
    assert "no group yet" in said(model, "groups", "list")


def test_groups_are_made_filled_and_removed(home: Path) -> None:
    assert "no group yet" in said(home, "groups", "list")
    said(home, "groups", "put", B, "--name", "Class 3")
    shown = said(home, "groups", "put", A, "--name", "Parents", "--group", B)
    assert shown.split() == ["guid", A, "name", "Parents", "group", "inside", B, "members", "0"]
    changed = clarion("groups", "change", A, "--add", "user:1", "--add", "user:2", "--remove", "user:3", home=home)
    assert changed.stdout == "2 added, 0 removed, 1 unchanged\n"
    assert changed.stderr == "not known yet: 2; they get messages as soon as `clarion people` knows them\n"
    assert said(home, "groups", "members", A).split() == ["person", *["(not", "known)"] * 2]
    assert said(home, "groups", "members", B) == "the group has no members of its own\n"
    assert B not in said(home, "groups", "set", A, "--group", "")
    assert said(home, "groups", "remove", A) == f"the group {A} is removed\n"
    assert A not in said(home, "groups", "list")


def test_units_roles_and_relations_are_said_and_shown(home: Path) -> None:
    assert said(home, "units", "put", A, "--name", "North") == "the business unit North is stored\n"
    shown = said(home, "units", "set", A, "--zone", "Europe/Vienna", "--locale", "de-at")
    assert shown.split() == ["guid", A, "name", "North", "locale", "de-AT", "zone", "Europe/Vienna"]
    assert "Vienna" not in said(home, "units", "set", A, "--zone", "", "--name", "Northern")
    assert "Northern" in said(home, "units", "show", A)
    assert said(home, "units", "change", A, "--add", "user:1").startswith("1 added")
    assert "nobody holds a role yet" in said(home, "roles", "list")
    said(home, "roles", "change", "teacher", "--business-unit", A, "--add", "user:1")
    assert said(home, "roles", "list").splitlines()[1].split() == ["teacher", A, "1"]
    assert said(home, "roles", "holders", "teacher") == "nobody holds this role there\n"
    assert "there is no such relation" in said(home, "relations", "list", "user:1")
    said(home, "relations", "change", f"child:{B}", "guardian", "--add", "user:1")
    for whose in ("user:1", f"child:{B}"):
        assert said(home, "relations", "list", whose).splitlines()[1].split()[:2] == [f"child:{B}", "guardian"]


@pytest.mark.parametrize(
    "line, says",
    [
        (f"groups show {A}", f"GUID: the tenant has no group {A}: `clarion groups list` shows those there are"),
        (f"groups remove {A}", f"the tenant has no group {A}"),
        (f"groups members {A}", f"the tenant has no group {A}"),
        (f"groups change {A} --add user:1", f"the tenant has no group {A}"),
        (f"groups change {A}", "--add: nobody is named"),
        (f"groups change {A} --add sam@example.com", "--add (1): it names nobody: write user:ID"),
        (f"groups change {A} --remove user:", "--remove (1): it names nobody"),
        ("groups show 7", "GUID: '7' is no id"),
        (f"groups set {A}", "--name: nothing is named"),
        (f"groups put {A} --name x --group {A}", "a group cannot be inside itself"),
        (f"groups put {A} --name x --group {B}", f"there is no group {B}: put that group first"),
        (f"units change {A} --add user:1", f"the tenant has no business unit {A}: `clarion units list`"),
        (f"units show {A}", f"the tenant has no business unit {A}: `clarion units list`"),
        (f"units set {A} --name x", f"the tenant has no business unit {A}"),
        (f"units set {A}", "--name: nothing is named"),
        (f"units set {A} --zone Vienna", "--zone: 'Vienna' is no time zone"),
        (f"units put {A} --name x --zone Vienna", "--zone: 'Vienna' is no time zone"),
        ("roles change a:b --add user:1", "ROLE: it is no name of a role"),
        (f"roles change teacher --business-unit {A} --add user:1", f"--business-unit: there is no business unit {A}"),
        ("relations change child guardian --add user:1", "TYPE:GUID: it names no thing"),
        (f"relations change child:{A} a:b --add user:1", "RELATION: it is no name"),
        ("relations list child", "THING|PERSON: it names no thing"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_and_changes_nothing(empty: Path, line: str, says: str) -> None:
    assert says in refused(clarion(*line.split(), home=empty), code=2)


def test_a_group_of_commands_without_a_command_shows_them_also_below_another(empty: Path) -> None:
    for line in ("groups", "people attributes"):
        done = clarion(*line.split(), home=empty)
        assert (done.returncode, done.stderr) == (2, "")
        assert f"Usage: clarion {line} [OPTIONS] COMMAND" in done.stdout
