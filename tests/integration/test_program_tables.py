"""`import` and `export` from the shell: what is said where, what is written, and what is refused."""

import csv
import json
import stat
from pathlib import Path

import pytest

from tests.integration.program_use import clarion, home, model, refused

__all__ = ["home", "model"]

GROUP = "6f1c2c7e-0001-4000-8000-000000000001"
CHILD = "6f1c2c7e-0002-4000-8000-000000000001"


def table(folder: Path, text: str | bytes, name: str = "table.csv") -> str:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def test_people_go_in_and_come_out_again(home: Path, tmp_path: Path) -> None:
    people = table(tmp_path, "person,name,sms\nuser:1,=1+1,0660 1234567\nuser:2,Kim,\nsam,Sam,\n")
    dry = clarion("people", "import", people, "--region", "AT", "--dry-run", "--json", home=home)
    assert (dry.returncode, json.loads(dry.stdout)["accepted"], json.loads(dry.stdout)["dry_run"]) == (2, 2, True)
    assert (
        dry.stderr == "row 4, person: it names nobody: write user:ID, with 200 characters at most, or employee:GUID\n"
    )
    assert clarion("people", "export", home=home).stdout.count("\n") == 1, "a dry run stores nothing"
    wrong = tmp_path / "wrong.csv"
    done = clarion("people", "import", people, "--region", "AT", "--errors", str(wrong), home=home)
    assert (done.returncode, done.stdout) == (2, "3 rows: 2 stored, 1 refused\n")
    assert list(csv.reader(wrong.read_text().splitlines())) == [
        ["row", "column", "reason", "remedy"],
        ["4", "person", "it names nobody", "write user:ID, with 200 characters at most, or employee:GUID"],
    ]
    out = tmp_path / "out.csv"
    exported = clarion("people", "export", str(out), home=home)
    assert (exported.returncode, exported.stdout, exported.stderr) == (0, "", f"2 rows written to {out}\n")
    assert [stat.S_IMODE(file.stat().st_mode) for file in (out, wrong)] == [0o600, 0o600]
    assert not out.with_name("out.csv.part").exists()
    assert {row["name"]: row["sms"] for row in csv.DictReader(out.read_text().splitlines())} == {
        "'=1+1": "'+436601234567",
        "Kim": "",
    }
    again = clarion("people", "import", "-", given=out.read_text(), home=home)
    assert (again.returncode, again.stdout, again.stderr) == (0, "2 rows: 2 stored, 0 refused\n", "")


def test_of_many_wrong_rows_some_are_shown_and_all_are_written(home: Path, tmp_path: Path) -> None:
    people = table(tmp_path, "person\n" + "nobody\n" * 1500)
    done = clarion("people", "import", people, home=home)
    assert done.stdout == "1500 rows: 0 stored, 1500 refused\n"
    assert done.stderr.splitlines()[20:] == ["1480 more rows are refused; --errors FILE writes all of them"]
    wrong = tmp_path / "wrong.csv"
    done = clarion("people", "import", people, "--errors", str(wrong), home=home)
    assert done.stderr.splitlines()[20:] == [f"1480 more rows are refused; {wrong} has all of them"]
    assert len(wrong.read_text().splitlines()) == 1501


def test_members_and_relations_come_from_files_too(home: Path, tmp_path: Path) -> None:
    assert clarion("groups", "put", GROUP, "--name", "all", home=home).returncode == 0
    members = table(tmp_path, f"group,person\n{GROUP},user:1\n{CHILD},user:1\n")
    done = clarion("groups", "import", members, home=home)
    assert (done.returncode, done.stdout) == (
        2,
        "2 rows: 1 stored, 1 refused; 1 new, 1 of people who are not known yet\n",
    )
    assert done.stderr == f"row 3, group: there is no group {CHILD}: put it first: clarion groups put\n"
    assert clarion("groups", "export", home=home).stdout == '"group","person"\n', "nobody of them has a name"
    clarion("people", "import", "-", given="person\nuser:1\n", home=home)
    out = clarion("groups", "export", "--group", GROUP, home=home).stdout
    assert out == f'"group","person"\n"{GROUP}","user:1"\n'
    relations = table(tmp_path, f"entity,relation,person\nchild:{CHILD},guardian,user:1\n")
    done = clarion("relations", "import", relations, home=home)
    assert (done.returncode, done.stdout) == (0, "1 row: 1 stored, 0 refused; 1 new\n")


@pytest.fixture(scope="module")
def empty(model: Path) -> Path:
    return model


@pytest.mark.parametrize(
    "text, says",
    [
        (b"person,size\n", "row 1: there is no column 'size': the columns are person, name"),
        (b"person,attribute.size\nuser:1,7\n", "row 1: there is no attribute 'size': declare it first"),
        (b"person\nuser:\xff\n", "row 2: it is not UTF-8: save the file as CSV in UTF-8"),
        (b"person\n" + b"x" * 300_000, "row 2: it is longer than 256 kB"),
        (b"", "row 1: the file is empty"),
    ],
)
def test_what_is_no_table_is_refused_in_a_line(empty: Path, tmp_path: Path, text: bytes, says: str) -> None:
    assert says in refused(clarion("people", "import", table(tmp_path, text), home=empty), code=2)


def test_files_that_cannot_be_used_are_named(empty: Path, tmp_path: Path) -> None:
    people = table(tmp_path, "person\nuser:1\n")
    nowhere = str(tmp_path / "no" / "file.csv")
    for arguments, says in (
        (("people", "import", nowhere), f"FILE: the file {nowhere} cannot be read (No such file or directory)"),
        (("people", "import", str(tmp_path)), "cannot be read (Is a directory)"),
        (("people", "import", people, "--errors", nowhere), f"--errors: the file {nowhere} cannot be written"),
        (("people", "export", nowhere), f"FILE: the file {nowhere}.part cannot be written"),
        (("people", "export", str(tmp_path)), f"FILE: {tmp_path} is a folder: name a file in it"),
        (("people", "export", "/"), "FILE: / is a folder"),
        (("people", "import", people, "--region", "XX"), "region: it is no region that has phone numbers"),
        (("groups", "export", "--group", "x"), "--group: 'x' is no id"),
    ):
        assert says in refused(clarion(*arguments, home=empty), code=2)
    assert not tmp_path.with_name(f"{tmp_path.name}.part").exists()


def test_refused_rows_are_not_reported_into_the_file_that_is_read(empty: Path, tmp_path: Path) -> None:
    people = table(tmp_path, "person\nnobody\n")
    (tmp_path / "other.csv").hardlink_to(people)
    for name in (people, str(tmp_path / "other.csv")):
        says = refused(clarion("people", "import", people, "--errors", name, home=empty), code=2)
        assert says == "clarion: --errors: it is the file that is read: name another\n"
    assert Path(people).read_text() == "person\nnobody\n"


def test_files_with_addresses_are_for_nobody_else_whoever_made_them_before(home: Path, tmp_path: Path) -> None:
    wrong, out, part, elsewhere = (tmp_path / name for name in ("wrong", "out", "out.part", "elsewhere"))
    wrong.touch(mode=0o666)
    part.symlink_to(elsewhere)
    clarion("people", "import", table(tmp_path, "person\nnobody\n"), "--errors", str(wrong), home=home)
    assert clarion("people", "export", str(out), home=home).returncode == 0
    assert [stat.S_IMODE(file.lstat().st_mode) for file in (wrong, out)] == [0o600, 0o600]
    assert not elsewhere.exists(), "nothing is written where a link leads to that somebody has laid"


def test_sources_go_in_and_come_out_again(home: Path, tmp_path: Path) -> None:
    invoices = table(tmp_path, "id,field:payer,date:due_on\n2026/17,=Sam,2026-12-01\n18,Kim,2026-02-30\n")
    done = clarion("sources", "import", "invoice", invoices, home=home)
    assert (done.returncode, done.stdout) == (2, "2 rows: 1 stored, 1 refused; 1 changed\n")
    assert done.stderr == "row 3, date:due_on: it is no date that there is: write a day such as 2026-03-31\n"
    out = tmp_path / "out.csv"
    exported = clarion("sources", "export", "invoice", str(out), home=home)
    assert (exported.returncode, exported.stderr) == (0, f"1 row written to {out}\n")
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert (row["id"], row["field:payer"], row["date:due_on"]) == ("2026/17", "'=Sam", "2026-12-01")
    again = clarion("sources", "import", "invoice", "-", given=out.read_text(), home=home)
    assert (again.returncode, again.stdout) == (0, "1 row: 1 stored, 0 refused; 0 changed\n")
    for line in (("import", "In voice", invoices), ("export", "In voice"), ("put", "In voice", "1")):
        assert refused(clarion("sources", *line, home=home), code=2).startswith(
            "clarion: TYPE: it is no type of a source"
        )
