"""Ruff catches what we forbid: time, chance and ids out of hand, and the habits that CONTRIBUTING.md leaves behind."""

from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import Run

HOST = "src/clarion/adapters/host.py"
HEAD = '"""A planted module."""\n\n'

# The name of the banned-api rule; each name in its list is planted below.
BANNED = "TID251"
DISGUISES = (
    "from time import monotonic\n",
    "import time as clock\n",
    "from datetime import UTC, datetime as moment\n\nNOW = moment.now(UTC)\n",
    "import datetime as dt\n\nNOW = dt.datetime.now(dt.UTC)\n",
    "from uuid import uuid4\n",
    "import uuid\n\nID = uuid.uuid4()\n",
    "from random import random\n",
    "from os import urandom\n",
    "from secrets import token_bytes\n",
    "from cryptography.fernet import Fernet\n",
    "from cryptography.hazmat.primitives.ciphers.aead import AESGCM\n\nKEY = AESGCM.generate_key(256)\n",
)
HABITS = {
    "ANN401": 'from typing import Any\n\n\ndef f(x: Any) -> None:\n    """Do."""\n    x()\n',
    "BLE001": "try:\n    import msgspec\nexcept Exception:\n    msgspec = None\n",
    "D100": "",
    "DTZ001": "from datetime import datetime\n\nTHEN = datetime(2026, 1, 1)\n",
    "ERA001": "# f(1)\n",
    "FIX002": "# TODO: later\n",
    "PGH003": "import msgspec  # type: ignore\n",
    "RUF100": "LIMIT = 1  # noqa: S101\n",
    "S608": 'NAME = "t"\nQUERY = f"SELECT id FROM {NAME}"\n',
    "T201": 'print("here")\n',
    "TID252": "from . import key\n",
    "TID251": "import asyncio\n\nasyncio.create_task(f())\n",
}


def lint(run: Run, source: str, *, path: str = "src/clarion/domain/planted.py") -> str:
    return run(
        "ruff", "check", "--no-cache", "--output-format=concise", "--stdin-filename", path, "-", text=source
    ).stdout


def banned(settings: dict[str, Any]) -> dict[str, str]:
    rules = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    return {name: rule["msg"] for name, rule in rules.items()}


def test_every_banned_name_is_caught_and_the_message_says_what_to_use(run: Run, settings: dict[str, Any]) -> None:
    missed = []
    for name, message in banned(settings).items():
        module = name.split(".", maxsplit=1)[0]
        report = lint(run, f"{HEAD}import {name if name.startswith('cryptography') else module}\n\nUSED = {name}\n")
        if f"{BANNED} `{name}` is banned: {message}" not in report:
            missed.append(name)
    assert missed == []


@pytest.mark.parametrize("source", DISGUISES)
def test_another_way_to_write_the_import_is_caught_too(run: Run, source: str) -> None:
    assert BANNED in lint(run, HEAD + source)


def test_the_host_adapter_is_the_only_file_of_the_program_that_may_read_the_clock(
    run: Run, root: Path, settings: dict[str, Any]
) -> None:
    assert BANNED not in lint(run, f"{HEAD}import time\n\nREAD = time.time\n", path=HOST)
    ignores = settings["tool"]["ruff"]["lint"]["per-file-ignores"]
    exempt = [pattern for pattern, rules in ignores.items() if BANNED in rules and pattern.startswith("src")]
    # What is shipped for testing draws chance from seeds of its own, and never runs in production.
    assert [pattern for pattern in exempt if not pattern.startswith("src/clarion/testing/")] == [HOST]
    core = [
        path for room in ("domain", "ports", "dispatch") for path in (root / "src" / "clarion" / room).rglob("*.py")
    ]
    assert [path for path in core if f"noqa: {BANNED}" in path.read_text()] == []


@pytest.mark.parametrize("rule", HABITS)
def test_a_habit_we_left_behind_is_caught(run: Run, rule: str) -> None:
    source = HABITS[rule]
    assert f" {rule} " in lint(run, HEAD + source if source else "LIMIT = 1\n")


def test_what_we_do_write_is_let_through(run: Run) -> None:
    source = (
        '"""Names derived from names."""\n\nfrom uuid import UUID, uuid5\n\n\n'
        'def derive(space: UUID, name: str) -> UUID:\n    """Derive an id."""\n    return uuid5(space, name)\n'
    )
    assert lint(run, source) == "All checks passed!\n"


def test_a_file_that_is_not_formatted_is_caught(run: Run) -> None:
    options = ("format", "--no-cache", "--check", "--stdin-filename", "src/clarion/planted.py", "-")
    assert run("ruff", *options, text="LIMIT = 1\n").returncode == 0
    assert run("ruff", *options, text="LIMIT=1\n").returncode == 1
    assert run("ruff", *options, text=f"NAMES = [{'1, ' * 60}]\n").returncode == 1
