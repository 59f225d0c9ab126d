"""What the tests of the gates share: the repository, its settings, and a way to run its programs apart from ours."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def settings() -> dict[str, Any]:  # TOML holds anything
    """The parsed pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a program of this environment and keep what it said."""

    def run_program(
        name: str, *arguments: str, cwd: Path = ROOT, text: str = "", env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        program = BIN / name
        # make tells its children about itself, and so would change what a make started from a test prints.
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS", "PYTEST"))
        }
        return subprocess.run(
            [str(program) if program.exists() else name, *arguments],
            cwd=cwd,
            input=text,
            env={**inherited, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_program
