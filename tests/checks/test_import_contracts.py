"""Every import contract catches a deliberate violation.

The violations are planted in a skeleton: a package `clarion` with empty modules in every room that the layers name, the
ones not yet built too, judged by the contracts of the real pyproject.toml.
"""

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.checks.conftest import Run


class Violation(NamedTuple):
    """A line planted in a module, and the contract that must refuse it."""

    contract: str
    module: str
    line: str


VIOLATIONS = (
    Violation("layers", "errors", "import clarion.domain"),
    Violation("layers", "domain.noun", "import clarion.ports"),
    Violation("layers", "ports.noun", "import clarion.dispatch"),
    Violation("layers", "ports.noun", "import clarion.adapters"),
    Violation("layers", "sealing.noun", "import clarion.adapters"),
    Violation("layers", "sealing.noun", "import clarion.dispatch"),
    Violation("layers", "adapters.noun", "import clarion.sealing"),
    Violation("layers", "adapters.noun", "import clarion.dispatch"),
    Violation("layers", "adapters.noun", "import clarion.bootstrap"),
    Violation("layers", "dispatch.noun", "import clarion.producers"),
    Violation("layers", "producers.noun", "import clarion.pipeline"),
    Violation("layers", "pipeline.noun", "import clarion.catalog"),
    Violation("layers", "catalog.noun", "import clarion.producers"),
    Violation("layers", "pipeline.noun", "import clarion.bootstrap"),
    Violation("layers", "bootstrap", "import clarion.testing"),
    Violation("layers", "cli.noun", "import clarion.testing"),
    Violation("layers", "sandbox.noun", "import clarion.workers"),
    Violation("layers", "client.noun", "import clarion.operations"),
    Violation("layers", "operations.noun", "import clarion.api"),
    Violation("layers", "workers.noun", "import clarion.api"),
    Violation("layers", "api.noun", "import clarion.cli"),
    Violation("adapters-by-name", "bootstrap", "import clarion.adapters.noun"),
    Violation("adapters-by-name", "dispatch.noun", "import clarion.adapters.noun"),
    Violation("adapters-by-name", "cli.noun", "import clarion.adapters.host"),
    Violation("adapters-by-name", "sandbox.noun", "import clarion.adapters.providers.http"),
    Violation("pure-domain", "domain.noun", "import asyncio"),
    Violation("pure-domain", "domain.noun", "import sqlite3"),
    Violation("pure-domain", "domain.noun", "from os import path"),
    Violation("pure-domain", "domain.noun", "from pathlib import Path"),
    Violation("pure-domain", "errors", "import time"),
    Violation("drivers-in-adapters", "dispatch.noun", "import asyncpg"),
    Violation("drivers-in-adapters", "sealing.noun", "import sqlite3"),
    Violation("drivers-in-adapters", "ports.noun", "from sqlalchemy import text"),
    Violation("drivers-in-adapters", "bootstrap", "import typer"),
    Violation("producers-blind", "producers.noun", "import clarion.pipeline.noun"),
    Violation("handlers-plan-only", "producers.planning", "import clarion.ports.renderer"),
    Violation("handlers-plan-only", "producers.planning", "import clarion.producers.pages"),
    Violation("handlers-plan-only", "producers.reminders", "import clarion.producers.sources"),
    Violation("handlers-plan-only", "producers.reminders", "import clarion.ports.provider"),
    Violation("stages-apart", "pipeline.noun", "import clarion.pipeline.verb"),
)
IMPORTED = re.compile(r"(?:import|from) (\S+)")
SINGLE_FILES = {"errors", "bootstrap"}
NAMED = (  # modules that contracts name one by one
    *(f"producers.{name}" for name in ("planning", "reminders", "direct", "pages", "records", "sources")),
    *(f"ports.{name}" for name in ("provider", "renderer", "queue", "insights")),
)
EXCEPTIONS = (("bootstrap", "adapters.host"), ("sandbox.remote", "adapters.providers.http"))


@pytest.fixture(scope="module")
def broken(run: Run, root: Path, settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What import-linter says of all the violations at once, by contract: most of its time is starting up.

    They do not hide one another: each imports a module that imports nothing.
    """
    skeleton = build_skeleton(tmp_path_factory.mktemp("violations"), root=root, settings=settings)
    for violation in VIOLATIONS:
        with (skeleton / "clarion" / f"{violation.module.replace('.', '/')}.py").open("a") as source:
            source.write(f"{violation.line}\n")
    code, report = lint_imports(run, skeleton)
    assert code == 1, report
    contracts = {contract["name"]: contract["id"] for contract in settings["tool"]["importlinter"]["contracts"]}
    heading = re.compile(rf"^({'|'.join(map(re.escape, contracts))})$", re.MULTILINE)
    _, *parts = heading.split(report)
    return {contracts[name]: section for name, section in zip(parts[::2], parts[1::2], strict=True)}


@pytest.fixture
def skeleton(tmp_path: Path, root: Path, settings: dict[str, Any]) -> Path:
    """A clarion with all its rooms and nothing in them."""
    return build_skeleton(tmp_path, root=root, settings=settings)


def build_skeleton(folder: Path, *, root: Path, settings: dict[str, Any]) -> Path:
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    for room in re.findall(r"\w+", " ".join(layers)):
        names = [room] if room in SINGLE_FILES else [f"{room}/__init__", f"{room}/noun", f"{room}/verb"]
        for name in names:
            module = folder / "clarion" / f"{name}.py"
            module.parent.mkdir(parents=True, exist_ok=True)
            module.touch()
    (folder / "clarion" / "__init__.py").touch()
    for name in NAMED:
        (folder / "clarion" / f"{name.replace('.', '/')}.py").touch()
    # The exceptions of the contracts; without them import-linter says that they excuse nothing.
    for importer, imported in EXCEPTIONS:
        for name in (importer, imported):
            module = folder / "clarion" / f"{name.replace('.', '/')}.py"
            module.parent.mkdir(exist_ok=True)
            (module.parent / "__init__.py").touch()
            module.touch()
        (folder / "clarion" / f"{importer.replace('.', '/')}.py").write_text(f"import clarion.{imported}\n")
    shutil.copy(root / "pyproject.toml", folder)
    return folder


def lint_imports(run: Run, skeleton: Path) -> tuple[int, str]:
    done = run("lint-imports", "--no-logo", "--no-cache", cwd=skeleton, env={"PYTHONPATH": str(skeleton)})
    return done.returncode, done.stdout + done.stderr


def test_a_skeleton_without_violations_keeps_every_contract(run: Run, skeleton: Path, settings: dict[str, Any]) -> None:
    code, report = lint_imports(run, skeleton)
    assert code == 0, report
    assert f"Contracts: {len(settings['tool']['importlinter']['contracts'])} kept, 0 broken." in report


@pytest.mark.parametrize(
    "violation", VIOLATIONS, ids=lambda violation: f"{violation.contract}: {violation.module}: {violation.line}"
)
def test_a_planted_import_breaks_its_contract(broken: dict[str, str], violation: Violation) -> None:
    imported = IMPORTED.search(violation.line)
    assert imported is not None
    assert f"clarion.{violation.module} -> {imported[1]} (" in broken[violation.contract]


@pytest.mark.parametrize("stray", ["utils.py", "helpers/__init__.py"])
def test_a_module_that_is_in_no_layer_breaks_the_build(run: Run, skeleton: Path, stray: str) -> None:
    path = skeleton / "clarion" / stray
    path.parent.mkdir(exist_ok=True)
    path.touch()
    code, report = lint_imports(run, skeleton)
    assert code == 1, report
    assert "clarion." + Path(stray).parts[0].removesuffix(".py") in report


@pytest.mark.parametrize("importer, imported", EXCEPTIONS)
def test_an_exception_that_excuses_nothing_breaks_the_build(
    run: Run, skeleton: Path, importer: str, imported: str
) -> None:
    (skeleton / "clarion" / f"{importer.replace('.', '/')}.py").write_text("")
    code, report = lint_imports(run, skeleton)
    assert code == 1, report
    assert f"clarion.{importer} -> clarion.{imported}" in " ".join(report.split())


def test_every_contract_has_a_planted_violation(settings: dict[str, Any]) -> None:
    contracts = {contract["id"] for contract in settings["tool"]["importlinter"]["contracts"]}
    assert {violation.contract for violation in VIOLATIONS} == contracts
