"""The compiler of shared statements: what each engine is sent, and which texts and arguments are refused."""

import asyncio
import sys
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec
import pytest

from clarion.adapters.stores.postgres import codec as postgres
from clarion.adapters.stores.query import Query
from clarion.adapters.stores.shared.statement import Statement, Statements, compiled
from clarion.adapters.stores.shared.transaction import finished
from clarion.adapters.stores.sqlite import codec as sqlite
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import BrokenInvariant


class Point(msgspec.Struct):
    """A record whose fields are named like the columns of a set."""

    y: int
    x: int


def statement(sql: str) -> Statement:
    return compiled(Query(name="the_statement", reason="a test", sql=sql))


def texts(sql: str) -> tuple[str, str]:
    made = statement(sql)
    return " ".join(made.postgres.split()), " ".join(made.sqlite.split())


def given(sql: str, **arguments: Any) -> tuple[list[object], dict[str, object]]:
    made = statement(sql)
    return list(postgres.positional(made, arguments)), sqlite.named(made, arguments)


def test_a_value_is_numbered_once_however_often_it_is_used() -> None:
    assert texts("SELECT :b, :a, CAST(:b AS text), x::text") == (
        "SELECT $1, $2, CAST($1 AS text), x::text",
        "SELECT :b, :a, CAST(:b AS text), x::text",
    )
    assert given("SELECT :b, :a", a=1, b="two") == (["two", 1], {"a": 1, "b": "two"})


def test_a_set_of_values_is_an_array_on_postgresql_and_json_on_sqlite() -> None:
    sql = "SELECT 1 WHERE a IN {some: text} AND b NOT IN {others: bytes} AND c = :c"
    assert texts(sql) == (
        "SELECT 1 WHERE a = ANY ($1::text[]) AND b <> ALL ($2::bytea[]) AND c = $3",
        (
            "SELECT 1 WHERE a IN (SELECT g.value ->> 0 FROM json_each(:some) AS g)"
            " AND b NOT IN (SELECT clarion_bytes(g.value ->> 0) FROM json_each(:others) AS g) AND c = :c"
        ),
    )
    assert given(sql, some=["x", "y"], others=[b"z"], c=3) == (
        [["x", "y"], [b"z"], 3],
        {"some": '[["x"],["y"]]', "others": '[["eg=="]]', "c": 3},
    )


def test_a_set_of_rows_is_one_json_text() -> None:
    sql = "SELECT :t, g.x FROM {points: x whole, y whole} AS g"
    assert texts(sql) == (
        "SELECT $1, g.x FROM json_to_recordset($2::json) AS g (x bigint, y bigint)",
        ("SELECT :t, g.x FROM (SELECT g.value ->> 0 AS x, g.value ->> 1 AS y FROM json_each(:points) AS g) AS g"),
    )
    expected = ["t", '[{"x":1,"y":2},{"x":3,"y":4}]'], {"t": "t", "points": "[[1,2],[3,4]]"}
    assert given(sql, t="t", points=[(1, 2), (3, 4)]) == expected
    assert given(sql, t="t", points=[Point(x=1, y=2), Point(x=3, y=4)]) == expected
    assert given(sql, t="t", points=[]) == (["t", "[]"], {"t": "t", "points": "[]"})


def test_a_set_of_rows_may_number_them() -> None:
    sql = "SELECT g.n FROM {points: x whole, n place} AS g"
    assert texts(sql) == (
        "SELECT g.n FROM ROWS FROM (json_to_recordset($1::json) AS (x bigint)) WITH ORDINALITY AS g (x, n)",
        "SELECT g.n FROM (SELECT g.value ->> 0 AS x, g.key + 1 AS n FROM json_each(:points) AS g) AS g",
    )
    assert given(sql, points=[7]) == (['[{"x":7}]'], {"points": "[[7]]"})


def test_bytes_travel_in_base64() -> None:
    sql = "SELECT 1 FROM {contents: id whole, content bytes} AS g"
    assert texts(sql) == (
        (
            "SELECT 1 FROM (SELECT id, decode(content, 'base64') AS content"
            " FROM json_to_recordset($1::json) AS g (id bigint, content text)) AS g"
        ),
        (
            "SELECT 1 FROM (SELECT g.value ->> 0 AS id, clarion_bytes(g.value ->> 1) AS content"
            " FROM json_each(:contents) AS g) AS g"
        ),
    )
    assert given(sql, contents=[(1, b"z")]) == (
        ['[{"id":1,"content":"eg=="}]'],
        {"contents": '[[1,"eg=="]]'},
    )


def test_instants_and_lengths_of_time_are_as_each_engine_stores_them() -> None:
    sql = "SELECT 1 FROM {times: at instant, long duration, on date, hash text} AS g"
    given_at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    row = (given_at, timedelta(seconds=90), date(2026, 1, 2), Fingerprint.stored("h1:00"))
    there, here = given(sql, times=[row])
    assert there == ['[{"at":"2026-01-02T03:04:05Z","long":"PT90S","on":"2026-01-02","hash":"h1:00"}]']
    assert here == {"times": '[[1767323045000000,90000000,"2026-01-02","h1:00"]]'}


def test_a_join_is_a_look_up_in_the_order_written() -> None:
    sql = """
      SELECT g.a
      FROM {set: a text} AS g
      JOIN first AS f ON f.a = g.a AND f.b = (SELECT max(l.b) FROM first AS l WHERE l.a = g.a)
      LEFT JOIN second AS s ON s.a IN {more: text}
      WHERE true
    """
    there, here = texts(sql)
    assert there == (
        "SELECT g.a FROM json_to_recordset($1::json) AS g (a text)"
        " CROSS JOIN LATERAL (SELECT * FROM first AS f"
        " WHERE f.a = g.a AND f.b = (SELECT max(l.b) FROM first AS l WHERE l.a = g.a) OFFSET 0) AS f"
        " LEFT JOIN LATERAL (SELECT * FROM second AS s WHERE s.a = ANY ($2::text[]) OFFSET 0) AS s ON true"
        " WHERE true"
    )
    assert " CROSS JOIN first AS f ON f.a = g.a" in here
    assert " LEFT JOIN second AS s ON s.a IN (SELECT" in here


def test_a_join_within_parentheses_ends_with_them() -> None:
    there, _ = texts("SELECT (SELECT b.y FROM a JOIN b AS b ON b.x = (a.x)) AS y FROM c")
    assert there == (
        "SELECT (SELECT b.y FROM a CROSS JOIN LATERAL (SELECT * FROM b AS b WHERE b.x = (a.x) OFFSET 0) AS b ) AS y"
        " FROM c"
    )


def test_the_next_id_follows_the_order_of_the_set() -> None:
    assert texts("INSERT INTO t (id) OVERRIDING SYSTEM VALUE SELECT next_id(t) FROM {rows: a text} AS g") == (
        (
            "INSERT INTO t (id) OVERRIDING SYSTEM VALUE SELECT nextval(pg_get_serial_sequence('t', 'id'))"
            " FROM json_to_recordset($1::json) AS g (a text)"
        ),
        (
            "INSERT INTO t (id) SELECT (SELECT coalesce(max(q.seq), 0) FROM sqlite_sequence AS q WHERE q.name = 't')"
            " + row_number() OVER () FROM (SELECT g.value ->> 0 AS a FROM json_each(:rows) AS g) AS g"
        ),
    )


@pytest.mark.parametrize(
    "sql, spelled",
    [
        ("SELECT now(), clock_timestamp()", "SELECT clarion_now(), clarion_now()"),
        ("SELECT a FROM t FOR UPDATE", "SELECT a FROM t"),
        ("SELECT a FROM t LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED", "SELECT a FROM t LIMIT 1"),
        ('SELECT a FROM t ORDER BY a COLLATE "C", ctid', "SELECT a FROM t ORDER BY a, rowid"),
    ],
)
def test_words_that_sqlite_spells_differently(sql: str, spelled: str) -> None:
    assert texts(sql) == (sql, spelled)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM {set: a} AS g",
        "SELECT 1 FROM {set: a colour} AS g",
        "SELECT 1 FROM {set: n place, a text} AS g",
        "SELECT 1 FROM {set: a text}",
        "SELECT 1 WHERE a IN {set: colour}",
        "SELECT :set WHERE a IN {set: text}",
    ],
)
def test_a_text_that_is_no_statement_is_refused(sql: str) -> None:
    with pytest.raises(BrokenInvariant, match="the_statement"):
        statement(sql)


def test_a_sub_select_that_reads_the_rows_before_it_is_an_array_of_json_on_sqlite() -> None:
    sql = """
    SELECT h.value FROM {some: x whole} AS s
    CROSS JOIN LATERAL (SELECT t.y AS value FROM t WHERE t.x = s.x LIMIT (SELECT 2)) AS h WHERE true
    """
    on_postgres, on_sqlite = texts(sql)
    assert on_postgres.endswith(
        "CROSS JOIN LATERAL (SELECT t.y AS value FROM t WHERE t.x = s.x LIMIT (SELECT 2)) AS h WHERE true"
    )
    assert on_sqlite.endswith(
        "CROSS JOIN json_each((SELECT json_group_array(v.value) FROM"
        " (SELECT t.y AS value FROM t WHERE t.x = s.x LIMIT (SELECT 2)) AS v)) AS h WHERE true"
    )


@pytest.mark.parametrize("arguments", [{}, {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}])
def test_names_that_are_not_the_statements_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(BrokenInvariant, match="the_statement takes"):
        given("SELECT :a, :b", **arguments)


def test_a_file_is_read_and_a_statement_compiled_when_it_is_first_used() -> None:
    missing = Statements("missing.sql")
    with pytest.raises(FileNotFoundError):
        missing["any"]
    facts = Statements("facts.sql")
    assert facts["find_members"] is facts["find_members"]
    assert set(facts) == {one.name for one in facts.values()}
    assert len(facts) == len(set(facts))


def test_a_work_that_waits_for_anything_else_is_a_broken_invariant() -> None:
    async def work() -> int:
        return sys.maxsize

    async def waits() -> None:
        await asyncio.sleep(0)

    assert finished(work()) == sys.maxsize
    with pytest.raises(BrokenInvariant, match="waited"):
        finished(waits())
