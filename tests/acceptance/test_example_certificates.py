"""The worked example of `examples/certificates` prints what its page shows."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/certificates"


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_certificates", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_five_weeks_of_certificates_go_as_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await loaded(EXAMPLE / "run.py").main(tmp_path / "home")
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(Fri .*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().out == shown
