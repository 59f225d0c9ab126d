"""PostgreSQL compared with SQLite: whatever is done, both answer and hold the same, to the microsecond.

Always the same examples, which take some tens of seconds. `python -m clarion.testing.compare` draws others, as many as
it is asked for; its end is tried here too.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
import pytest_asyncio

from clarion.testing.contracts.comparison import ComparisonContract
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.set_clock import SetHarness, open_set_clock
from clarion.testing.postgres import PostgresServer
from tests.contract.test_comparison import Planted, later


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(url: str) -> AsyncIterator[SetHarness]:
    async with open_set_clock(url) as harness:
        yield harness


@pytest.mark.asyncio(loop_scope="module")
class TestTwoEngines(ComparisonContract):
    WITHIN = timedelta()

    @pytest_asyncio.fixture(loop_scope="module")
    async def harness(self, engine: SetHarness) -> StoreHarness:
        await engine.empty_queue()
        return engine

    async def test_a_wrong_delay_on_one_engine_is_seen(self, harness: SetHarness) -> None:
        """As every planted bug is: see test_comparison.py."""
        sound = harness.store
        harness.store = Planted(sound, "record_outgoing", later)  # type: ignore[assignment]  # has all its methods
        try:
            with pytest.raises(AssertionError, match=r"due_at: .* against .* from now"):
                await self.test_any_work_on_messages_comes_to_the_same_as_on_sqlite(harness)
        finally:
            harness.store = sound
