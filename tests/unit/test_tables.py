"""Imports and exports of people, members and relations, on a store in memory: rows that are wrong, and the way back."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import pytest

from clarion.catalog.people import ContactEntry, People, PersonEntry
from clarion.catalog.table import BadRow
from clarion.dispatch.request import Trace
from clarion.domain.attribute import Kind
from clarion.domain.identity import Channel, Identity
from clarion.errors import InvalidInput
from clarion.operations.tables import Imported, Tables
from tests.integration.api_harness import ApiHarness
from tests.unit.pipeline_line import TENANT

A, B = UUID(int=101), UUID(int=102)
CHILD = UUID(int=103)
TRACE = Trace(correlation_id="import")


class Office:
    """Somebody who imports and exports."""

    def __init__(self, api: ApiHarness) -> None:
        self.api = api
        self.store = api.platform.store
        self.tables = Tables(api.platform)
        self.people = People(catalog=self.store, dispatcher=api.platform.dispatcher, keyring=api.platform.keyring)
        self.bad: list[BadRow] = []
        self.told: list[int] = []

    async def import_people(self, text: str | bytes, **options: Any) -> Imported:
        self.bad = []
        data = text.encode() if isinstance(text, str) else text
        return await self.tables.import_people(
            TENANT,
            io.BytesIO(data).readline,
            actor="sam",
            trace=TRACE,
            note=self.bad.append,
            progress=self.told.append,
            **options,
        )

    async def import_members(self, text: str, **options: Any) -> Imported:
        self.bad = []
        return await self.tables.import_members(
            TENANT,
            io.BytesIO(text.encode()).readline,
            actor="sam",
            note=self.bad.append,
            progress=self.told.append,
            **options,
        )

    async def exported(self) -> str:
        return "".join([text async for _, text in self.tables.export_people(TENANT)])

    @property
    def where(self) -> list[tuple[int, str]]:
        return [(one.row, one.column) for one in self.bad]


@pytest.fixture
async def office() -> Office:
    api = ApiHarness()
    await api.line.dispatcher.ensure_tenant(TENANT)
    office = Office(api)
    await office.people.declare(TENANT, "class", Kind.TEXT, actor="sam")
    await office.people.declare(TENANT, "fees", Kind.NUMBER, actor="sam")
    return office


def imported(rows: int, refused: int = 0, **more: Any) -> Imported:
    return Imported(**({"dry_run": False} | more), rows=rows, accepted=rows - refused, refused=refused)


async def test_people_are_stored_with_all_that_a_row_says(office: Office) -> None:
    text = (
        "person,name,locale,zone,email,sms,push,unverified email,profile,profile.title,attribute.class,attribute.fees\n"
        'user:1,Sam,de-at,Europe/Vienna,Sam@Example.com,0660 123 45 67,"token-1\ntoken-2",'
        'new@example.com,"{""age"": 9}",Dr.,3b,12.50\n'
    )
    assert await office.import_people(text, region="AT") == imported(1)
    (cells,) = [line for line in rows_of(await office.exported()) if line["person"] == "user:1"]
    assert cells == {
        "person": "user:1",
        "name": "Sam",
        "locale": "de-AT",
        "zone": "Europe/Vienna",
        "email": "sam@example.com",
        "sms": "'+436601234567",
        "push": "token-1\ntoken-2",
        "chat": "",
        "unverified email": "new@example.com",
        "unverified sms": "",
        "unverified push": "",
        "unverified chat": "",
        "profile": cells["profile"],
        "attribute.class": "3b",
        "attribute.fees": "12.5",
    }
    assert json.loads(cells["profile"]) == {"age": 9, "title": "Dr."}


def rows_of(text: str) -> Iterator[dict[str, str]]:
    import csv

    return cast("Iterator[dict[str, str]]", csv.DictReader(io.StringIO(text, newline="")))


async def test_what_a_file_has_no_column_for_stays_and_an_empty_cell_takes_away(office: Office) -> None:
    await office.import_people("person,name,email,sms,attribute.class\nuser:1,Sam,a@example.com,+43660123456,3b\n")
    await office.import_people("person,email,attribute.class\nuser:1,,\n")
    (cells,) = rows_of(await office.exported())
    assert (cells["name"], cells["sms"], cells["email"], cells["attribute.class"]) == ("Sam", "'+43660123456", "", "")


async def test_every_wrong_row_is_told_with_its_column_and_all_others_are_stored(office: Office) -> None:
    text = (
        "person,name,locale,zone,email,unverified email,sms,profile,attribute.fees\n"
        "user:1,Good,,,,,,,\n"  # 2
        "sam,Nobody,,,,,,,\n"  # 3
        "user:4,\u202e,,,,,,,\n"
        "user:5,,xx-,,,,,,\n"
        "user:6,,,Vienna,,,,,\n"
        "user:7,,,,no address,,,,\n"
        "user:8,,,,a@example.com,b@,,,\n"
        "user:9,,,,,,0660 1,,\n"
        "user:10,,,,,,,[1],\n"
        "user:11,,,,,,,,many\n"
        "user:12,too,few\n"  # 12
        f'user:13,,,,,,,"{{""x"": ""{"y" * 5000}""}}",\n'
        "user:14,Good,,,,,,,7\n"
    )
    wrong = [
        *((3, "person"), (4, "name"), (5, "locale"), (6, "zone"), (7, "email"), (8, "unverified email"), (9, "sms")),
        *((10, "profile"), (11, "attribute.fees"), (12, ""), (13, "profile")),
    ]
    assert await office.import_people(text, dry_run=True) == imported(13, 11, dry_run=True)
    assert office.where == wrong
    assert list(rows_of(await office.exported())) == [], "a dry run stores nothing"
    dry = list(office.bad)
    assert await office.import_people(text) == imported(13, 11)
    assert office.bad == dry, "and finds the same"
    assert all(one.reason and one.remedy for one in dry)
    assert sorted(row["person"] for row in rows_of(await office.exported())) == ["user:1", "user:14"]
    assert not [one for one in dry if "a@example.com" in f"{one.reason}{one.remedy}" or "0660" in one.reason], (
        "an error repeats no address"
    )


async def test_a_dry_run_merges_with_what_is_stored(office: Office) -> None:
    """A profile that fits by itself may be too much beside what is there."""
    half = json.dumps({"a": "x" * 3000}).replace('"', '""')
    await office.import_people(f'person,profile\nuser:1,"{half}"\n')
    other = f"person,profile.b\nuser:1,{'y' * 3000}\nuser:2,{'y' * 3000}\n"
    assert (await office.import_people(other, dry_run=True)).refused == 1
    dry = list(office.bad)
    assert (await office.import_people(other)).refused == 1
    assert office.bad == dry
    assert office.where == [(2, "profile")]


async def test_importing_again_changes_nothing(office: Office) -> None:
    text = "person,name,email\n" + "".join(f"user:{n},N{n},u{n}@example.com\n" for n in range(50))
    await office.import_people(text)
    before = (await office.exported(), len(await office.store.list_audit(TENANT)))
    assert await office.import_people(text) == imported(50)
    assert (await office.exported(), len(await office.store.list_audit(TENANT))) == before


async def test_of_somebody_who_comes_twice_the_later_row_stands(office: Office) -> None:
    assert await office.import_people("person,name\nuser:1,First\nuser:2,Other\nuser:1,Last\n") == imported(3)
    assert {row["person"]: row["name"] for row in rows_of(await office.exported())} == {
        "user:1": "Last",
        "user:2": "Other",
    }


async def test_what_stands_before_text_that_is_no_table_is_stored(office: Office) -> None:
    with pytest.raises(InvalidInput, match="row 4: it is not UTF-8"):
        await office.import_people(b"person,name\nuser:1,Sam\nuser:2,Kim\nuser:3,\xff\nuser:4,Robin\n")
    assert sorted(row["person"] for row in rows_of(await office.exported())) == ["user:1", "user:2"]


async def test_an_undeclared_attribute_and_an_unknown_region_are_refused_before_anything_is_stored(
    office: Office,
) -> None:
    with pytest.raises(InvalidInput, match="there is no attribute 'size'"):
        await office.import_people("person,attribute.size\nuser:1,7\n")
    with pytest.raises(InvalidInput, match="no region"):
        await office.import_people("person\nuser:1\n", region="XX")
    assert list(rows_of(await office.exported())) == []


NASTY = (
    "=1+1",
    "'=1",
    "''+1",
    "'",
    "'Abc'",
    "O'Neill",
    "\uff1d1",
    "\u22125",
    "-7",
    "+1",
    "@x",
    'a"b',
    "a,b",
    " a ",
    "ä\u0301",
)


async def test_an_export_is_imported_as_the_same_people(office: Office) -> None:
    """Names and ids that look like formulas, quotes and commas among them; into another tenant, and over themselves."""
    entries = [
        PersonEntry(
            identity=Identity.user(name),
            name=name,
            profile={"note": name, "n": 7, "list": [1, {"a": None}]},
            locale="de-AT" if place % 2 else None,
            tz_id="UTC" if place % 3 else None,
            contacts=(
                ContactEntry(channel=Channel.EMAIL, destination=f"u{place}@example.com"),
                ContactEntry(channel=Channel.SMS, destination=f"+4366012345{place:02}", verified=bool(place % 2)),
                ContactEntry(channel=Channel.PUSH, destination=f"=token-{place}"),
                ContactEntry(channel=Channel.PUSH, destination=f"-other-{place}"),
            ),
            attributes={"class": name, "fees": place / 4},
        )
        for place, name in enumerate(NASTY)
    ]
    await office.people.put(TENANT, entries, trace=TRACE)
    first = await office.exported()
    assert len(list(rows_of(first))) == len(NASTY)
    assert not [cell for row in rows_of(first) for cell in row.values() if cell and cell[0] in "=+-@\t\r\uff1d\u2212"]
    other = Office(ApiHarness())
    await other.api.line.dispatcher.ensure_tenant(TENANT)
    for name, kind in (("class", Kind.TEXT), ("fees", Kind.NUMBER)):
        await other.people.declare(TENANT, name, kind, actor="sam")
    assert await other.import_people(first) == imported(len(NASTY))
    assert sorted(rows_of(await other.exported()), key=str) == sorted(rows_of(first), key=str)
    await office.import_people(first)
    assert await office.exported() == first


async def test_members_are_added_to_groups_by_a_table(office: Office) -> None:
    await office.import_people("person\nuser:1\n")
    await office.store.put_group(TENANT, guid=A, name="a")
    text = f"group,person\n{A},user:1\n{A},user:2\n{B},user:1\nx,user:1\n{A},nobody\n{A},user:1\n"
    assert await office.import_members(text, dry_run=True) == imported(6, 3, dry_run=True, added=0, unknown=0)
    assert office.where == [(4, "group"), (5, "group"), (6, "person")]
    assert await office.store.list_members(TENANT, A) == []
    assert await office.import_members(text) == imported(6, 3, added=2, unknown=1)
    assert office.where == [(4, "group"), (5, "group"), (6, "person")]
    assert await office.import_members(text) == imported(6, 3, added=0, unknown=1)
    table = "".join([text async for _, text in office.tables.export_members(TENANT)])
    assert [tuple(row.values()) for row in rows_of(table)] == [(str(A), "user:1")]


async def test_relations_are_added_by_a_table(office: Office) -> None:
    text = f"entity,relation,person\nchild:{CHILD},guardian,user:1\nchild,guardian,user:1\nchild:{CHILD},a:b,user:1\n"
    done = await office.tables.import_relations(
        TENANT, io.BytesIO(text.encode()).readline, actor="sam", note=office.bad.append, progress=office.told.append
    )
    assert done == imported(3, 2, added=1, unknown=1)
    assert office.where == [(3, "entity"), (4, "relation")]
    assert len(await office.store.list_relations(TENANT, ("child", CHILD))) == 1


class Rows:
    """A table of so many people, made as it is read."""

    def __init__(self, number: int) -> None:
        self.number, self.next = number, -1

    def readline(self, _most: int) -> bytes:
        self.next += 1
        if self.next == 0:
            return b"person,name,push\n"
        if self.next > self.number:
            return b""
        return f"user:{self.next},Name {self.next},token-{self.next}\n".encode()


async def peak(office: Office, rows: int) -> int:
    """Read a table without storing it, and give the most memory that took."""
    tracemalloc.start()
    try:
        done = await office.tables.import_people(
            TENANT,
            Rows(rows).readline,
            actor="sam",
            trace=TRACE,
            note=office.bad.append,
            progress=office.told.append,
            dry_run=True,
        )
        assert done == imported(rows, dry_run=True)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def test_memory_does_not_grow_with_the_number_of_rows(office: Office) -> None:
    """Six times the rows, and the same chunk of a thousand in memory."""
    await peak(office, 2000)
    few, many = await peak(office, 2000), await peak(office, 12_000)
    assert many < few * 1.2, (few, many)
    assert office.told[-1] == 12_000
    assert len(office.told) >= 12
