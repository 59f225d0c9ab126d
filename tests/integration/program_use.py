"""The program as people use it: each command in a process of its own, in an installation of its own."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import COMMANDS

PROGRAM = Path(sys.executable).with_name("clarion")
ROOT = Path(__file__).parents[2]
WELCOME = ("send", "welcome", "--to", "sam@example.com", "--data", '{"name": "Sam"}')


def clarion(
    *arguments: str, home: Path, given: str | None = None, file_bytes_max: int | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    def limit() -> None:
        if file_bytes_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
    env = {**kept, "CLARION_HOME": str(home), **environment}
    return subprocess.run(
        [PROGRAM if file_bytes_max else COMMANDS[-1], *arguments],
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        preexec_fn=limit,
    )


@pytest.fixture(scope="module")
def model(warm: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001  for what it does
    """An installation with one tenant and one published type, for making copies of."""
    home = tmp_path_factory.mktemp("model") / "home"
    for command in (("migrate",), ("tenants", "create", "school"), ("publish", "src/clarion/cli/definitions/welcome")):
        done = clarion(*command, home=home)
        assert done.returncode == 0, done
    return home


@pytest.fixture
def home(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "home"))


def refused(done: "subprocess.CompletedProcess[str]", *, code: int) -> str:
    """Check that a command was refused as every command is, and return what it said."""
    assert (done.returncode, done.stdout) == (code, ""), done
    assert done.stderr.startswith("clarion: ")
    assert done.stderr.count("\n") == 1
    return done.stderr
