"""The glossary against the code: every name in it exists, and no name is made of a word that it gave up."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "clarion"

ROW = re.compile(r"^\| (?P<word>[^|]+) \| [^|]+ \| `(?P<name>[\w.]+)` \| [^|]+ \|$", re.MULTILINE)
NAMES = {found["word"].strip("` "): found["name"] for found in ROW.finditer(PAGE)}
GIVEN_UP = frozenset(
    {"doubt", "doubts", "doubtful", "unproven", "bell", "bells", "ring", "rings", "rung", "pace", "desk", "desks"}
)
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words_of(name: str) -> set[str]:
    """Take a name apart: `PostgresWakeUp`, `first_unknown_at` and `STAGE_LEASE` alike."""
    return {word.lower() for word in WORD.findall(name)}


def names_in(path: Path) -> Iterator[str]:
    """Give every name that a file of the program defines or uses; what stands in texts and comments is none."""
    yield path.stem
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        yield from re.findall(r"[A-Za-z_]\w*", re.sub(r"--(?! name:).*|'[^']*'", "", text))
        return
    for node in ast.walk(ast.parse(text)):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(name := getattr(node, field, None), str):
                yield name


def given_up_in(path: Path) -> set[str]:
    """Give the names of a file that hold a word that was given up."""
    return {name for name in names_in(path) if words_of(name) & GIVEN_UP}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_every_name_of_the_glossary_is_one_of_the_code(name: str) -> None:
    module, *attributes = f"clarion.{name}".split(".")
    found: object = importlib.import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        if not hasattr(found, attribute):
            importlib.import_module(module)  # a module that nobody has imported yet
        found = getattr(found, attribute)


def test_every_row_of_the_glossary_is_read() -> None:
    """A row of another form would not be checked."""
    tables = PAGE.split("## Words that are no longer used")[0]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| word ")]
    assert len(rows) == len(ROW.findall(tables)) > 60
    assert len(NAMES) == len(rows), "a word stands in the glossary once"


def test_no_name_of_the_program_is_made_of_a_word_that_was_given_up() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".sql"}]
    found = {str(path.relative_to(SOURCE)): names for path in files if (names := given_up_in(path))}
    assert found == {}


@pytest.mark.parametrize(
    "file, text",
    [
        ("planted.py", "class AdminDesk: ..."),
        ("planted.py", "def find(*, in_doubt: bool) -> None: ..."),
        ("planted.py", "import clarion.workers.bell"),
        ("planted.py", "RING_LOST = 1"),
        ("planted.sql", "SELECT o.first_unproven_at FROM outgoing_message AS o;"),
        ("planted.sql", "-- name: find_doubts\nSELECT 1;"),
        ("pace.py", ""),
    ],
)
def test_a_planted_name_is_found(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert given_up_in(tmp_path / file)


def test_a_text_or_a_longer_word_is_no_such_name(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text('history = keyring = namespace = "the newsletter\'s stories"  # bell', "utf-8")
    (tmp_path / "plain.sql").write_text("-- The bell.\nSELECT 'desk' AS history;", "utf-8")
    assert not given_up_in(tmp_path / "plain.py") | given_up_in(tmp_path / "plain.sql")
