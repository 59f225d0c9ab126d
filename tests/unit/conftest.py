"""Fixtures of the unit tests."""

import pytest

from tests.unit.dispatch_harness import DispatchHarness


@pytest.fixture
async def harness() -> DispatchHarness:
    harness = DispatchHarness()
    await harness.dispatcher.ensure_tenant("school")
    return harness
