"""`clarion audit verify`: whatever was done to the audit log in the database itself is found (X-31)."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from clarion.cli.session import user_name
from tests.integration.program_use import clarion, refused

pytestmark = pytest.mark.usefixtures("warm")

PEOPLE = ("ada", "ben", "cleo")

FIELDS = "at, actor, act, subject, reason, details, previous_hash, hash"
COPY = f"INSERT INTO audit_log (tenant_id, seq, {FIELDS}) SELECT tenant_id, 5, {FIELDS} FROM audit_log WHERE seq = 4"  # noqa: S608  (a constant)

TAMPERING = {
    "an entry was changed": ("UPDATE audit_log SET actor = 'nobody' WHERE seq = 3", 3),
    "a reason was put in": ("UPDATE audit_log SET reason = 'allowed' WHERE seq = 3", 3),
    "an entry was removed": ("DELETE FROM audit_log WHERE seq = 3", 3),
    "the first entry was removed": ("DELETE FROM audit_log WHERE seq = 1", 1),
    "a hash was put in": ("UPDATE audit_log SET hash = 'h1:' || hex(zeroblob(32)) WHERE seq = 2", 2),
    "an entry was copied to the end": (COPY, 5),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An installation whose tenant has four entries: it was made, and three people got keys."""
    home = tmp_path / "home"
    makings = [("keys", "create", "--actor", name) for name in PEOPLE]
    for command in [("migrate",), ("tenants", "create", "school"), *makings]:
        assert clarion(*command, home=home).returncode == 0
    return home


def test_a_log_that_nobody_touched_holds_together_and_any_tampering_is_found(home: Path) -> None:
    done = clarion("audit", "verify", home=home)
    listed = msgspec.json.decode(clarion("audit", "--json", "--limit", "1", home=home).stdout)["items"]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"all 4 entries hold together; the hash of the last is {listed[0]['hash']}\n"
    kept = (home / "clarion.db").read_bytes()
    for statement, entry in TAMPERING.values():
        with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
            assert connection.execute(statement).rowcount == 1
        said = refused(clarion("audit", "verify", home=home), code=1)
        assert f"the audit log of 'school' does not hold together at entry {entry}" in said, statement
        (home / "clarion.db").write_bytes(kept)


def test_the_log_is_newest_first_begins_with_the_tenant_and_has_objects_for_details(home: Path) -> None:
    assert clarion("tenants", "create", "school", home=home).returncode == 0  # it is there: nothing was done
    *_, first_key, made = msgspec.json.decode(clarion("audit", "--json", home=home).stdout)["items"]
    assert (made["act"], made["subject"], made["actor"]) == ("create", "tenant school", f"cli:{user_name()}")
    assert made["details"] == {}
    assert (first_key["act"], isinstance(first_key["details"], dict)) == ("mint", True)


def test_the_setting_of_quotas_is_listed_with_the_quotas(home: Path) -> None:
    for requests in ("100", "none"):
        assert clarion("quota", "set", "--requests", requests, home=home).returncode == 0
    lines = clarion("audit", "--limit", "2", home=home).stdout.splitlines()[1:]
    assert [" ".join(line.split()[4:]) for line in lines] == [
        "limit tenant school no quota",
        "limit tenant school requests 100",
    ]
