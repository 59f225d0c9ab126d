"""Every invariant, fault and control that the code cites stands on its page, and what the page names exists."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "reference" / "invariants.md"

ID = re.compile(r"\b[IFX]-\d{2}\b")
LISTED = re.compile(r"^\| ([IFX]-\d{2}) \|", re.MULTILINE)
FILE = re.compile(r"`([a-z_]+/[\w/.]+\.(?:py|sql|md))`")


def citations(*folders: str) -> Iterator[tuple[str, Path]]:
    """Give every id that is cited in a text file below these folders, with the file."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".sql", ".md", ".toml", ".liquid"} and "__pycache__" not in path.parts:
                for cited in ID.findall(path.read_text(encoding="utf-8")):
                    yield cited, path.relative_to(ROOT)


def test_every_id_that_is_cited_stands_on_the_page() -> None:
    listed = set(LISTED.findall(PAGE.read_text(encoding="utf-8")))
    unknown = sorted({f"{cited} in {path}" for cited, path in citations("src", "tests", "docs") if cited not in listed})
    assert not unknown


def test_an_id_is_given_once_and_ids_stand_in_their_order() -> None:
    listed = LISTED.findall(PAGE.read_text(encoding="utf-8"))
    for kind in "IFX":
        ids = [one for one in listed if one.startswith(kind)]
        assert ids == sorted(set(ids))


def test_what_the_page_says_holds_an_invariant_exists() -> None:
    named = FILE.findall(PAGE.read_text(encoding="utf-8"))
    assert named, "the page names no file at all: the pattern is broken"
    missing = sorted(
        {name for name in named if not any((top / name).is_file() for top in (ROOT, ROOT / "src/clarion"))}
    )
    assert not missing


def test_the_search_finds_citations_in_code_and_in_sql() -> None:
    suffixes = {path.suffix for _, path in citations("src")}
    assert {".py", ".sql"} <= suffixes
