"""Attacks at the doors that need a real store: connections that are cut, processes that count together."""

import asyncio
from collections import Counter
from contextlib import suppress

import asyncpg
import pytest

from clarion.catalog.quota import Meter
from clarion.domain.quota import Amount, Limits
from clarion.errors import QuotaExceeded
from tests.integration.api_harness import WELCOME
from tests.integration.test_api_stores import api_on, each_engine
from tests.unit.pipeline_line import TENANT

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ~* 'notification_job'
"""
"""Ends every connection on which something is being accepted."""

KEYS = [f"k{number}" for number in range(40)]


async def test_a_database_that_is_cut_off_in_the_middle_of_a_set_answers_everybody_and_doubles_nothing(
    request: pytest.FixtureRequest, migrated_postgres_url: str
) -> None:
    admin = await asyncpg.connect(migrated_postgres_url)
    try:
        async with api_on("postgres", request) as api, api.client(timeout=60) as client:

            async def send(key: str) -> int:
                body = WELCOME | {"to": [{"address": f"{key}@example.com"}]}
                answer = await client.post("/v1/notifications", json=body, headers={"idempotency-key": key})
                return answer.status_code

            async def cut() -> None:
                for _ in range(30):
                    await admin.fetch(CUT)

            *first, _ = await asyncio.gather(*map(send, KEYS), cut())
            assert set(first) <= {202, 503}
            await asyncio.gather(*map(send, KEYS))  # a connection of the pool may still be one that was cut
            assert Counter(await asyncio.gather(*map(send, KEYS))) == {202: len(KEYS)}
            for table in ("notification_job", "notification_scheduler", "idempotency_guard"):
                assert await admin.fetchval(f"SELECT count(*) FROM {table}") == len(KEYS)  # noqa: S608  ours
            await api.line.drain()
            assert len(api.provider.calls) == len({call.message_id for call in api.provider.calls}) == len(KEYS)
    finally:
        await admin.close()


@each_engine
async def test_processes_that_tell_what_they_counted_at_the_same_time_lose_nothing(
    engine: str, request: pytest.FixtureRequest
) -> None:
    async with api_on(engine, request) as api:
        meters = [Meter(api.memory, clock=api.clock) for _ in range(4)]
        key = "0123456789abcdef"
        await api.memory.set_quota(TENANT, "", Limits(requests=100), actor="ada")

        async def ask(meter: Meter) -> int:
            through = 0
            for number in range(60):
                try:
                    await meter.count_request(TENANT, key)
                except QuotaExceeded:
                    continue
                finally:
                    if number % 7 == 0:
                        await meter.tell()
                through += 1
            await meter.tell()
            return through

        through = sum(await asyncio.gather(*map(ask, meters)))
        used = {one.key_id: one.used for one in await api.memory.list_usage(TENANT)}
        assert used == {"": Amount(requests=through), key: Amount(requests=through)}
        assert 100 <= through <= 100 + 3 * 7  # at most what the others counted since they told
        for meter in meters:
            with suppress(QuotaExceeded):  # one that has not heard of the others' last requests lets one through
                await meter.count_request(TENANT, key)
            await meter.tell()
            with pytest.raises(QuotaExceeded):
                await meter.count_request(TENANT, key)
