"""Pytest, as pyproject.toml sets it, does not let a test pass by accident."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.checks.conftest import Run

PLANTED = """
import asyncio
import warnings

import pytest


async def test_an_async_test_runs_without_a_marker() -> None:
    await asyncio.sleep(0)


async def test_an_async_test_can_fail() -> None:
    raise AssertionError


def test_a_warning_is_an_error() -> None:
    warnings.warn("old", DeprecationWarning, stacklevel=1)


@pytest.mark.xfail(reason="mended since")
def test_a_mended_expected_failure_is_an_error() -> None:
    pass
"""
UNKNOWN_MARKER = """
import pytest


@pytest.mark.slwo
def test_a_misspelt_marker_is_an_error() -> None:
    pass
"""


@pytest.fixture(scope="module")
def report(run: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of the planted tests."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "test_planted.py").write_text(PLANTED)
    (folder / "test_marker.py").write_text(UNKNOWN_MARKER)
    options = ("-rA", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    config = ("-c", str(root / "pyproject.toml"), "--rootdir", str(folder))
    return run("pytest", *options, *config, str(folder), cwd=folder).stdout


@pytest.mark.parametrize(
    "line",
    [
        "PASSED test_planted.py::test_an_async_test_runs_without_a_marker",
        "FAILED test_planted.py::test_an_async_test_can_fail",
        "FAILED test_planted.py::test_a_warning_is_an_error",
        "FAILED test_planted.py::test_a_mended_expected_failure_is_an_error",
        "ERROR test_marker.py",
    ],
)
def test_a_planted_test_ends_as_it_should(report: str, line: str) -> None:
    assert line in report


def test_the_profile_that_make_names_draws_the_same_examples_every_time(root: Path) -> None:
    assert "--hypothesis-profile=ci" in (root / "Makefile").read_text()
    assert settings.get_profile("ci").derandomize
