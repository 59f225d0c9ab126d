"""The program as it is installed: from a wheel, in a folder that has nothing to do with a clone."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.acceptance.house import ROOT

RUN = "from clarion.cli import main; main()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with what the wheel holds; a wheel is installed by unpacking it."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = place.glob("*.whl")
    ZipFile(wheel).extractall(place / "packages")
    return place / "packages"


def test_the_demo_of_an_installed_wheel_starts_in_any_folder(installed: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
    environment = {**kept, "PYTHONPATH": str(installed)}  # before the clone, which is installed too

    def run(*code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", *code],
            env=environment,
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    assert run("import clarion; print(clarion.__file__)").startswith(str(installed))
    assert "the tenant school is ready" in run(RUN, "demo", "--only-seed")
    assert "welcome" in run(RUN, "types")
