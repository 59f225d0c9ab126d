"""Steps of the schema are frozen: a file that was edited or removed is refused, and a new one must be noted."""

from pathlib import Path

import pytest

from clarion.adapters.stores.migration import HISTORY, History
from tests.integration.toy_history import GROUND, WIDER, both, write_history
from tools import freeze


@pytest.fixture
def frozen(tmp_path: Path) -> History:
    """A history of two steps whose files are noted."""
    history = write_history(tmp_path / "history", GROUND, WIDER)
    (history.folder / freeze.NAME).touch()
    freeze.note(history)
    return history


def test_every_step_is_as_it_was_when_it_was_frozen() -> None:
    assert freeze.complaints(HISTORY) == []
    assert freeze.unnoted(HISTORY) == [], "run python tools/freeze.py"


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_an_edited_step_is_refused_with_what_to_do_and_noting_again_does_not_help(frozen: History, engine: str) -> None:
    (frozen.folder / engine / "0002_toy.sql").write_text("ALTER TABLE job ADD COLUMN remark text;")
    freeze.note(frozen)
    (complaint,) = freeze.complaints(frozen)
    assert complaint.startswith(f"{engine}/0002_toy.sql was edited after it was frozen: put it back")
    assert complaint.endswith("and add a new step for what is to change")


def test_a_removed_step_is_refused(frozen: History) -> None:
    (frozen.folder / "sqlite/0002_toy.sql").unlink()
    (complaint,) = freeze.complaints(frozen)
    assert complaint.startswith("sqlite/0002_toy.sql was removed")


def test_a_new_step_is_asked_for_and_noted_without_touching_the_others(frozen: History, tmp_path: Path) -> None:
    before = freeze.noted(frozen)
    grown = write_history(tmp_path / "grown", GROUND, WIDER, both("CREATE TABLE note (a integer);"))
    (grown.folder / freeze.NAME).write_bytes((frozen.folder / freeze.NAME).read_bytes())
    assert freeze.unnoted(grown) == ["postgres/0003_toy.sql", "sqlite/0003_toy.sql"]
    freeze.note(grown)
    assert (freeze.unnoted(grown), freeze.complaints(grown)) == ([], [])
    assert before.items() < freeze.noted(grown).items()


def test_line_ends_of_another_system_are_no_edit(frozen: History) -> None:
    path = frozen.folder / "sqlite/0001_toy.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert freeze.complaints(frozen) == []
