"""The documentation against the code: generated blocks, links, `make` targets, error codes, causes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from clarion.client import wire
from clarion.domain.machine import Cause
from clarion.domain.outgoing import RANK, STATUS_IN_WORDS
from clarion.errors import every_error
from clarion.sandbox import report
from tools import docs

PAGES = tuple(docs.pages(docs.ROOT))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(docs.ROOT)))

FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
# `make test`, `$ make setup check`, `make -j2 test`; variables and options are no targets
MAKE = re.compile(r"(?:^|[$;&|]\s*)make((?:[ \t]+[-\w.=]+)+)", re.MULTILINE)


def links(text: str) -> Iterator[str]:
    """Give the targets of the relative links in a page; what stands in code is no link."""
    prose = SPAN.sub("", FENCE.sub("", text))
    for inline, reference in LINK.findall(prose):
        target = (inline or reference).split("#")[0]
        if target and not re.match(r"[a-z][a-z0-9+.-]*:", target):
            yield target


def make_targets(text: str) -> Iterator[str]:
    """Give the targets of the `make` commands in a page's code; the verb in its prose is none."""
    fences = [found[0] for found in FENCE.finditer(text)]
    for code in (*fences, *SPAN.findall(FENCE.sub("", text))):
        for words in MAKE.findall(code):
            yield from (word for word in words.split() if "=" not in word and not word.startswith("-"))


def rules(makefile: str) -> set[str]:
    """Give the targets that a Makefile has rules for."""
    heads = re.findall(r"^([A-Za-z][\w .-]*?)\s*:(?![:=])", makefile, re.MULTILINE)
    return {target for head in heads for target in head.split()}


def test_the_generated_blocks_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(docs.ROOT / "tools" / "docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=docs.ROOT,
    )
    assert done.returncode == 0, done.stderr


@each_page
def test_every_relative_link_points_to_something_that_exists(page: Path) -> None:
    missing = [target for target in links(page.read_text(encoding="utf-8")) if not (page.parent / target).exists()]
    assert not missing, f"{page.relative_to(docs.ROOT)} links to {missing}"


@each_page
def test_every_make_target_that_is_mentioned_exists(page: Path) -> None:
    mentioned = set(make_targets(page.read_text(encoding="utf-8")))
    known = rules((docs.ROOT / "Makefile").read_text(encoding="utf-8")) if mentioned else set()
    assert mentioned <= known, f"{page.relative_to(docs.ROOT)} names {sorted(mentioned - known)}"


STORES = docs.ROOT / "src/clarion/adapters/stores"
FOLDERS = (
    docs.ROOT,
    docs.ROOT / "src/clarion",
    STORES,
    STORES / "migration",
    STORES / "shared/queue",
    STORES / "postgres",
)
CONTRIBUTING = (docs.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def found(name: str) -> Path | None:
    """Find a file as CONTRIBUTING names it: from the root, from the package, or from the stores' folder."""
    return next((folder / name for folder in FOLDERS if (folder / name).exists()), None)


def test_every_file_that_contributing_names_exists() -> None:
    named = re.findall(r"(?<![\w/])([\w-]+(?:/[\w.-]+)*\.(?:py|sql|json|txt))\b", CONTRIBUTING)
    real = {name for name in named if not re.search("N{4}|NAME", name)}  # these stand for a name of the reader's own
    assert len(real) > 60
    assert sorted(name for name in real if found(name) is None) == []


def test_every_name_that_contributing_places_in_a_file_stands_there() -> None:
    placed = re.findall(r"`(\w+)`(?: and `(\w+)`)?\s+(?:in|of)\s+`([\w./]+\.(?:py|sql))`", CONTRIBUTING)
    names = [(name, file) for *names, file in placed for name in names if name and "NNNN" not in file]
    assert len(names) > 10
    for name, file in names:
        path = found(file)
        assert path is not None, file
        assert re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")), f"{name} in {file}"


def test_every_error_code_is_public_once_and_stands_in_the_reference() -> None:
    codes = [kind.code for kind in every_error()]
    assert len(set(codes)) == len(codes), "two errors share a code"
    listed = re.findall(
        r"^\| `([a-z-]+)` \|", (docs.ROOT / "docs/reference/errors.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(codes)


def test_every_cause_of_a_move_is_explained() -> None:
    explained = re.findall(
        r"^\| `([a-z ]+)` \| \w", (docs.ROOT / "docs/reference/states.md").read_text("utf-8"), re.MULTILINE
    )
    assert explained == [cause.value for cause in Cause]


# The generator itself, on a small set of pages.
BLOCKS: dict[str, docs.Block] = {"greeting": lambda: "Good morning."}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "README.md").write_text("Nothing generated here.\n", encoding="utf-8")
    return tmp_path


def page_of(root: Path, text: str) -> Path:
    page = root / "docs" / "deep" / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_it_writes_between_the_markers_and_leaves_the_rest_alone(root: Path) -> None:
    page = page_of(root, "Before\n<!-- generated: greeting -->\nold\n<!-- end: greeting -->\nAfter\n")
    assert docs.run(root, BLOCKS, write=True) == []
    assert page.read_text(encoding="utf-8") == (
        "Before\n<!-- generated: greeting -->\n\nGood morning.\n\n<!-- end: greeting -->\nAfter\n"
    )
    assert docs.run(root, BLOCKS, write=False) == []


def test_a_check_complains_of_a_stale_block_and_writes_nothing(root: Path) -> None:
    stale = "<!-- generated: greeting -->\nold\n<!-- end: greeting -->\n"
    page = page_of(root, stale)
    assert docs.run(root, BLOCKS, write=False) == [
        "docs/deep/page.md: a generated block is out of date; run python tools/docs.py"
    ]
    assert page.read_text(encoding="utf-8") == stale


@pytest.mark.parametrize(
    "text,complaint",
    [
        ("<!-- generated: farewell -->\n<!-- end: farewell -->\n", "no block is called farewell"),
        ("<!-- generated: greeting -->\n", "needs its own line"),
        ("<!-- generated: greeting -->\n<!-- end: farewell -->\n", "needs its own line"),
        ("No marker at all.\n", "greeting: no page has this block"),
    ],
)
def test_a_broken_marker_is_named_and_its_page_left_alone(root: Path, text: str, complaint: str) -> None:
    page = page_of(root, text)
    assert complaint in "\n".join(docs.run(root, BLOCKS, write=True))
    assert page.read_text(encoding="utf-8") == text


def test_the_answers_that_pages_show_have_every_field_that_the_api_answers_with() -> None:
    shown = {"docs/how-to/send-over-http.md": wire.SendAnswer, "docs/reference/api.md": wire.Problem}
    for name, shape in shown.items():
        block = re.search(r"```json\n(.*?)```", (docs.ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
        assert block is not None
        answer = msgspec.json.decode(block[1])
        assert set(answer) == set(shape.__struct_fields__) - {"mistakes"}, name  # an answer has them only sometimes
        msgspec.convert(answer, shape)


def test_the_ends_of_a_timeline_that_a_page_explains_are_those_there_are() -> None:
    """Nothing is explained that a timeline cannot end with."""
    page = (docs.ROOT / "docs/how-to/why-did-it-not-arrive.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| the timeline ends with .*?\n\n", page, re.MULTILINE | re.DOTALL)
    explained = {word for row in table.strip().splitlines()[2:] for word in SPAN.findall(row.split("|")[1])}
    source = (docs.ROOT / "src/clarion/domain/timeline.py").read_text(encoding="utf-8")
    said = {*STATUS_IN_WORDS.values(), *re.findall(r'"([a-z ]+)"', source)}
    made = {"waiting to be scheduled", "generate failed"}  # put together from parts
    assert explained - said == made
    # What a message passes through on its way, and what only a claim or a receipt of ours shows.
    assert set(STATUS_IN_WORDS.values()) - explained == {
        *("waiting to be sent", "being sent", "not supported"),
    }


def test_the_receipt_that_a_page_shows_can_be_read_and_its_states_are_those_there_are() -> None:
    page = (docs.ROOT / "docs/reference/receipts.md").read_text(encoding="utf-8")
    (body,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ((tenant_id, (event,)),) = report.read("sandbox", body.encode()).items()
    assert (tenant_id, event.status) == ("school", "Delivered")
    ranked = re.findall(r"^\| (\d) \| `(\w+)` \|", page, re.MULTILINE)
    assert ranked == [(str(rank), status.value) for status, rank in RANK.items()]


def test_links_are_found_in_prose_and_not_in_code() -> None:
    text = "[a](a.md#part) `[b](b.md)` [c](https://example.org) [d](#here)\n```\n[e](e.md)\n```\n[f]: ../f.md\n"
    assert list(links(text)) == ["a.md", "../f.md"]


def test_make_is_a_command_in_code_and_a_verb_in_prose() -> None:
    text = (
        "We make sure: `make test`, not `remake it`.\n```sh\n$ make setup check\nmake -j2 demo V=1 && make clean\n```\n"
    )
    assert sorted(make_targets(text)) == ["check", "clean", "demo", "setup", "test"]


def test_a_variable_of_the_makefile_is_no_target() -> None:
    assert rules("UV := uv\n.PHONY: all\ntest check: setup\n\techo a: b\nsetup:\n") == {"test", "check", "setup"}
