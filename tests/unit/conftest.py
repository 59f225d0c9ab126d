"""Fixtures of the unit tests."""

import pytest

from tests.unit.dispatch_desk import Desk


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    await desk.dispatcher.ensure_tenant("school")
    return desk
