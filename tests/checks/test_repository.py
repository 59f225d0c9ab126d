"""The repository keeps its own rules: hashed pins without addresses, a Makefile that explains itself, plain names."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checks.conftest import Run

# Written so that this pattern does not find itself.
INDEX_ADDRESS = re.compile(r"https?://[^\s\"'<>)]*(pypi|pythonhosted|npmjs|yarnpkg|artifactory|[.]pkg[.]dev|/simple\b)")
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "manager", "managers", "service", "services", "misc"}
LINES_MAX = 400  # CONTRIBUTING.md: over it a file needs a reason, and none has had one yet
ENVIRONMENT = re.compile(r"os[.](environ|getenv)|from os import .*(environ|getenv)")
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def committed(run: Run, root: Path) -> Iterator[Path]:
    """The files that are or would be committed; in a copy without git, all but what the tools made."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=root)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    paths = [root / name for name in names if name] or [
        path for path in root.rglob("*") if not re.search(r"/([.](?!ci|git|editor)[^/]+|__pycache__)/", f"{path}/")
    ]
    yield from (path for path in paths if path.is_file())


def pins(path: Path) -> dict[str, str]:
    """The names and versions that a requirements file pins."""
    return dict(PIN.findall(path.read_text()))


def names(requirements: list[str]) -> set[str]:
    """The normalised names of requirements as pyproject.toml writes them."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~; ]", requirement)[0]).lower() for requirement in requirements}


def test_no_committed_file_names_the_address_of_a_package_index(run: Run, root: Path) -> None:
    found = {}
    for path in committed(run, root):
        if match := INDEX_ADDRESS.search(path.read_text(errors="replace")):
            found[str(path.relative_to(root))] = match[0]
    assert found == {}


def test_the_pins_name_no_address_at_all(root: Path) -> None:
    files = sorted((root / "requirements").glob("*.txt"))
    assert [path.name for path in files] == ["base.txt", "fuzz.txt", "test.txt", "uv.txt"]
    assert [path.name for path in files if re.search(r"://|^-", path.read_text(), re.MULTILINE)] == []


@pytest.mark.parametrize("name", ["base.txt", "fuzz.txt", "test.txt", "uv.txt"])
def test_every_pin_is_exact_and_has_a_hash(root: Path, name: str) -> None:
    entries = re.split(r"\n(?=\S)", (root / "requirements" / name).read_text().strip())
    assert [entry for entry in entries if not re.match(r"[a-z0-9-]+==\S+", entry)] == []
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)] == []


def test_every_dependency_is_pinned(root: Path, settings: dict[str, Any]) -> None:
    project = settings["project"]
    base, test = pins(root / "requirements" / "base.txt"), pins(root / "requirements" / "test.txt")
    assert names(project["dependencies"]) <= base.keys()
    assert names(project["optional-dependencies"]["test"]) <= test.keys()
    assert names(settings["build-system"]["requires"]) <= test.keys()  # the project is built without fetching
    assert names(settings["dependency-groups"]["bootstrap"]) == pins(root / "requirements" / "uv.txt").keys()


def test_what_is_shipped_is_what_is_tested(root: Path) -> None:
    base, test = pins(root / "requirements" / "base.txt"), pins(root / "requirements" / "test.txt")
    assert base.items() <= test.items()


def test_every_target_of_the_makefile_has_a_line_in_help(run: Run, root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    targets = re.findall(r"^([\w.-]+):(?!=)", makefile, re.MULTILINE)
    phony = re.findall(r"^\.PHONY: (.*)", makefile, re.MULTILINE)
    helped = re.findall(r"^make (\S+) +\S", run("make", "help").stdout, re.MULTILINE)
    assert {"setup", "test", "check", "clean"} <= set(targets)
    assert helped == [target for target in targets if target != ".PHONY"]
    assert " ".join(phony).split() == helped


@pytest.mark.parametrize(
    "gate",
    ["ruff check", "ruff format --check", "mypy", "lint-imports", "python tools/docs.py --check", "python -m pytest"],
)
def test_make_test_runs_every_gate(run: Run, gate: str) -> None:
    commands = run("make", "--dry-run", "test").stdout.splitlines()
    assert [command for command in commands if command.startswith(f".venv/bin/{gate}")] != []


def test_continuous_integration_runs_what_a_developer_runs(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def test_the_environment_does_not_change_what_make_runs(run: Run) -> None:
    leaks = {"ARGS": "--co", "WORKERS": "9", "PYTHON": "false", "UPGRADE": "1", "CI": "true"}
    assert run("make", "--dry-run", "test", "lock", env=leaks).stdout == run("make", "--dry-run", "test", "lock").stdout


def test_only_bootstrap_and_what_starts_processes_for_tests_read_the_environment(root: Path) -> None:
    package = root / "src" / "clarion"
    readers = {str(path.relative_to(package)) for path in package.rglob("*.py") if ENVIRONMENT.search(path.read_text())}
    assert readers <= {"bootstrap.py", "testing/postgres.py", "testing/simulate.py", "testing/soak/program.py"}


def test_no_module_has_a_name_that_says_nothing(root: Path) -> None:
    modules = [path for folder in ("src", "tools") for path in (root / folder).rglob("*.py")]
    assert modules
    assert [path for path in modules if VAGUE & {path.stem, path.parent.name}] == []


def test_no_file_is_longer_than_a_reader_can_hold(root: Path) -> None:
    files = [path for folder in ("src", "tests", "tools") for path in (root / folder).rglob("*.py")]
    lengths = {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > LINES_MAX} == {}
