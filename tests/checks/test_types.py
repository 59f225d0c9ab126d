"""Mypy, as pyproject.toml sets it, catches what a stricter reader would."""

from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import Run

# One file each; the name is the error code that must come back.
PLANTED = {
    "no-untyped-def": "def f(x):\n    return x\n",
    "type-arg": "def f(x: list) -> None:\n    print(x)\n",
    "no-any-return": "import json\n\n\ndef f(x: str) -> str:\n    return json.loads(x)\n",
    "arg-type": 'def f(x: int) -> int:\n    return x\n\n\nf("1")\n',
    "union-attr": "def f(x: str | None) -> str:\n    return x.upper()\n",
    "unused-ignore": "LIMIT: int = 1  # type: ignore[assignment]\n",
    "ignore-without-code": 'LIMIT: int = "1"  # type: ignore\n',
    "unreachable": "def f(x: int) -> int:\n    if isinstance(x, str):\n        return 0\n    return x\n",
    "possibly-undefined": "def f(x: int) -> int:\n    if x:\n        y = 1\n    return y\n",
    "unused-coroutine": "async def f() -> None: ...\n\n\nasync def g() -> None:\n    f()\n",
    "exhaustive-match": "def f(x: bool) -> None:\n    match x:\n        case True:\n            print(x)\n",
}


@pytest.fixture(scope="module")
def report(run: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of all the planted files: one run, since most of its time is reading the standard library."""
    folder = tmp_path_factory.mktemp("types")
    for code, source in PLANTED.items():
        (folder / f"{code.replace('-', '_')}.py").write_text(source)
    (folder / "nothing_wrong.py").write_text("def f(x: int) -> int:\n    return x\n")
    config = str(root / "pyproject.toml")
    return run("mypy", "--config-file", config, "--cache-dir", str(folder / "cache"), str(folder), cwd=folder).stdout


@pytest.mark.parametrize("code", PLANTED)
def test_a_planted_mistake_is_caught(report: str, code: str) -> None:
    lines = [line for line in report.splitlines() if line.startswith(f"{code.replace('-', '_')}.py:")]
    assert any(f"[{code}]" in line for line in lines), report


def test_a_file_with_nothing_wrong_is_let_through(report: str) -> None:
    assert "nothing_wrong" not in report


def test_every_folder_with_python_in_it_is_checked(settings: dict[str, Any], root: Path) -> None:
    folders = {path.relative_to(root).parts[0] for pattern in ("*/*.py", "*/*/*.py") for path in root.glob(pattern)}
    assert {folder for folder in folders if not folder.startswith(".")} == set(settings["tool"]["mypy"]["files"])
