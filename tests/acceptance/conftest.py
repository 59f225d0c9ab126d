"""Fixtures of the acceptance tests: one installation is built, and every test has a copy of its own."""

from pathlib import Path

import pytest

from tests.acceptance.house import House, build


@pytest.fixture(scope="session", autouse=True)
def _commands(warm: None) -> None:
    """Have commands run at once."""


@pytest.fixture(scope="session")
def model_house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """An installation for making copies of; nothing runs in it."""
    return build(tmp_path_factory.mktemp("model") / "home")


@pytest.fixture
def house(model_house: House, tmp_path: Path) -> House:
    return model_house.copy(tmp_path / "home")
