"""The CHECK constraints of the schema steps against the state tables.

A CHECK lists the values of a column only where they are states, which change with the program's rules. Every other list
(channels, kinds, roles ...) will grow, and SQLite cannot change a CHECK without copying the table, so it has none.

The steps are read as text, in their order, and the last CHECK on a column wins; so the comparison needs no server. A
table whose step has not been written yet is compared as soon as it appears.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import clarion
from clarion.domain.attempt import DELIVERY_ATTEMPT, AttemptStatus
from clarion.domain.automation import AUTOMATION_SCHEDULER, AutomationStatus
from clarion.domain.campaign import CAMPAIGN, CampaignStatus
from clarion.domain.claim import Gate
from clarion.domain.entity_event import ENTITY_EVENT, EventStatus
from clarion.domain.machine import Cause, Machine
from clarion.domain.notification import NOTIFICATION_SCHEDULER, NotificationStatus
from clarion.domain.outgoing import DUE, LEASED, OUTGOING_MESSAGE, OutgoingStatus
from clarion.domain.support import SUPPORT_CASE, SupportStatus

STEPS = Path(clarion.__file__).parent / "adapters" / "stores" / "migration"
STORES = ("postgres", "sqlite")

STATES: dict[tuple[str, str], type[StrEnum]] = {
    ("automation_scheduler", "status"): AutomationStatus,
    ("notification_scheduler", "status"): NotificationStatus,
    ("outgoing_message", "status"): OutgoingStatus,
    ("delivery_attempt", "status"): AttemptStatus,
    ("support_case", "status"): SupportStatus,
    ("broadcast", "gate"): Gate,
    ("entity_event", "status"): EventStatus,
}
# Its table comes with the campaigns.
LATER: dict[tuple[str, str], type[StrEnum]] = {("campaign", "status"): CampaignStatus}

# Machines over different enums have no closer common type.
MACHINES: dict[str, Machine[Any]] = {
    "automation_scheduler": AUTOMATION_SCHEDULER,
    "notification_scheduler": NOTIFICATION_SCHEDULER,
    "outgoing_message": OUTGOING_MESSAGE,
    "support_case": SUPPORT_CASE,
    "delivery_attempt": DELIVERY_ATTEMPT,
    "campaign": CAMPAIGN,
    "entity_event": ENTITY_EVENT,
}

LITERALS = r"'[^']*'(?:\s*,\s*'[^']*')*"
# status IN ('A', 'B')
VALUES = re.compile(rf"(\w+)\s+IN\s*\(\s*({LITERALS})\s*\)", re.IGNORECASE)
# (due_at IS NOT NULL) = (status IN ('A', 'B')), or = 'A' for one
PRESENCE = re.compile(
    rf"\(\s*(\w+)\s+IS\s+NOT\s+NULL\s*\)\s*=\s*\(\s*status\s*(?:IN\s*\(\s*({LITERALS})\s*\)|=\s*('[^']*'))\s*\)",
    re.IGNORECASE,
)
# The statements that define a table or its checks. A table rebuilt under another name takes its checks along.
STATEMENT = re.compile(
    r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<created>\w+)\s*(?=\()"
    r"|ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?(?:ONLY\s+)?(?P<altered>\w+)\s+(?:RENAME\s+TO\s+(?P<renamed>\w+)|ADD\b)",
    re.IGNORECASE,
)


def parenthesis(text: str, start: int) -> str:
    """Give what stands between the parenthesis that opens at `start` and the one that closes it."""
    depth = 0
    for found in re.compile(r"'[^']*'|[()]").finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return text[start + 1 : found.start()]
    raise AssertionError(f"a parenthesis is never closed: {text[start : start + 60]!r}")


def checks(definition: str) -> Iterator[str]:
    """Give the condition of every CHECK in a definition."""
    for found in re.finditer(r"\bCHECK\s*(?=\()", definition, re.IGNORECASE):
        yield parenthesis(definition, found.end())


def read(sql: str) -> dict[str, list[str]]:
    """Give the CHECK conditions of each table, in the order in which the steps write them."""
    sql = re.sub(r"--[^\n]*|/\*.*?\*/", "", sql, flags=re.DOTALL)
    tables: dict[str, list[str]] = {}
    for found in STATEMENT.finditer(sql):
        if table := found["created"]:
            tables[table] = list(checks(parenthesis(sql, found.end())))
        elif name := found["renamed"]:
            tables[name] = tables.pop(found["altered"])
        else:
            end = sql.find(";", found.end())
            tables[found["altered"]] += checks(sql[found.end() : end if end >= 0 else len(sql)])
    return tables


def names(literals: str) -> set[str]:
    """Give the names in a list of SQL literals."""
    return set(re.findall(r"'([^']*)'", literals))


def values(conditions: list[str]) -> dict[str, set[str]]:
    """Give the values that each column may have, where a CHECK lists them and says nothing else."""
    return {found[1]: names(found[2]) for condition in conditions if (found := VALUES.fullmatch(condition.strip()))}


def presence(conditions: list[str]) -> dict[str, set[str]]:
    """Give the statuses in which each column is set, where a CHECK says that it is set in exactly those."""
    return {
        found[1]: names(found[2] or found[3])
        for condition in conditions
        if (found := PRESENCE.fullmatch(condition.strip()))
    }


def schema(store: str) -> dict[str, list[str]]:
    steps = sorted((STEPS / store).glob("*.sql"))
    assert steps, f"no steps for {store} in {STEPS}"
    return read("\n".join(step.read_text(encoding="utf-8") for step in steps))


@pytest.mark.parametrize("store", STORES)
def test_a_check_lists_values_exactly_where_they_are_states_and_lists_exactly_those(store: str) -> None:
    tables = schema(store)
    listed = {(name, column): found for name in tables for column, found in values(tables[name]).items()}
    states = STATES | {(name, column): states for (name, column), states in LATER.items() if name in tables}
    assert listed == {place: set(enumeration) for place, enumeration in states.items()}


@pytest.mark.parametrize("store", STORES)
def test_a_message_has_a_due_time_and_a_lease_in_exactly_the_states_that_call_for_them(store: str) -> None:
    found = presence(schema(store)["outgoing_message"])
    assert found.get("due_at") == {status.value for status in DUE}
    assert found.get("lease_until") == {status.value for status in LEASED}


@pytest.mark.parametrize("store", STORES)
def test_wherever_a_due_time_or_a_lease_hangs_on_the_status_it_follows_the_claim(store: str) -> None:
    for table, conditions in schema(store).items():
        found = presence(conditions)
        if "due_at" in found:
            assert found["due_at"] == MACHINES[table].sources(Cause.CLAIM), f"{store}: {table}.due_at"
        if "lease_until" in found:
            assert found["lease_until"] == MACHINES[table].targets(Cause.CLAIM), f"{store}: {table}.lease_until"


def test_a_check_is_read_through_comments_line_breaks_and_other_checks() -> None:
    tables = read(
        """
        CREATE TABLE lamp ( -- CHECK (status IN ('Gone'))
          name text CHECK (length(name) < 9 AND name <> ')'),
          status text NOT NULL DEFAULT 'On' CHECK (status IN (
            'On', 'Off')), /* CHECK (status IN ('Never')) */
          CONSTRAINT lit CHECK ((due_at IS NOT NULL) = (status = 'Off')),
          CHECK ((lease_until IS NOT NULL) = (status IN ('On', 'Off')))
        ) STRICT;
        """
    )
    assert values(tables["lamp"]) == {"status": {"On", "Off"}}
    assert presence(tables["lamp"]) == {"due_at": {"Off"}, "lease_until": {"On", "Off"}}


def test_the_last_definition_wins() -> None:
    tables = read(
        """
        CREATE TABLE lamp (status text CHECK (status IN ('On')));
        ALTER TABLE lamp DROP CONSTRAINT lamp_status_check;
        ALTER TABLE lamp ADD CONSTRAINT lamp_status_check CHECK (status IN ('On', 'Off')) NOT VALID;
        CREATE TABLE bell_new (status text CHECK (status IN ('Rung', 'Still')));
        DROP TABLE bell;
        ALTER TABLE bell_new RENAME TO bell;
        """
    )
    assert values(tables["lamp"]) == {"status": {"On", "Off"}}
    assert values(tables["bell"]) == {"status": {"Rung", "Still"}}
    assert "bell_new" not in tables


def test_a_check_that_says_more_than_a_list_is_not_taken_for_one() -> None:
    tables = read("CREATE TABLE lamp (status text CHECK (status IN ('On', 'Off') OR broken));")
    assert values(tables["lamp"]) == {}
