"""Fixtures of the acceptance tests: one installation is built, and every test has a copy of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.house import COMMANDS, House, build
from tests.acceptance.warm import warm_program


@pytest.fixture(scope="session", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run commands without starting Python for each."""
    with warm_program(tmp_path_factory.mktemp("warm")) as program:
        COMMANDS.append(str(program))
        yield
        COMMANDS.pop()


@pytest.fixture(scope="session")
def model_house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """An installation for making copies of; nothing runs in it."""
    return build(tmp_path_factory.mktemp("model") / "home")


@pytest.fixture
def house(model_house: House, tmp_path: Path) -> House:
    return model_house.copy(tmp_path / "home")
