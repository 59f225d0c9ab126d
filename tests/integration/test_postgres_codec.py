"""Arrays that are written as text: what a real server reads is what was meant."""

from collections.abc import AsyncIterator
from enum import StrEnum

import asyncpg
import pytest

from clarion.adapters.stores.postgres import codec
from clarion.domain.outgoing import OutgoingStatus
from tests.integration.watched_connection import Connection


class Colour(StrEnum):
    RED = "red, or {so}"


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


TEXTS: list[str | None] = [
    "plain",
    "",
    " ",
    'a "quoted" word',
    '"',
    "\\",
    'C:\\"x\\',
    "a,b",
    "{}",
    "{a,{b}}",
    None,
    "NULL",
    "null",
    "line\nbreak\ttab",
    "ä🎉",
    "'); --",
    Colour.RED,
]


@pytest.mark.parametrize("values", [TEXTS, [], [None], [""], ["NULL"], [None, None]], ids=repr)
async def test_texts_arrive_as_they_are(connection: Connection, values: list[str | None]) -> None:
    assert await connection.fetchval("SELECT $1::text::text[]", codec.texts(values)) == values


@pytest.mark.parametrize("values", [[], ["SentToProvider", None, OutgoingStatus.SENDING], [None]], ids=repr)
async def test_words_arrive_as_they_are(connection: Connection, values: list[str | None]) -> None:
    assert await connection.fetchval("SELECT $1::text::text[]", codec.words(values)) == values


@pytest.mark.parametrize("values", [[], [0, -1, 2**63 - 1, -(2**63), None]], ids=repr)
async def test_whole_numbers_arrive_as_they_are(connection: Connection, values: list[int | None]) -> None:
    assert await connection.fetchval("SELECT $1::text::bigint[]", codec.numbers(values)) == values
