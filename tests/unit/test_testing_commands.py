"""The commands of `clarion.testing` and of the benchmark, asked wrongly: one line on what to do, and exit code 2.

Each is refused before anything runs, since a run takes minutes.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.__main__ import main as bench
from clarion.testing.compare import main as compare
from clarion.testing.simulate import main as simulate
from clarion.testing.soak.__main__ import main as soak

Command = Callable[[list[str]], object]


def refused(command: Command, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must refuse its arguments, and give its one line."""
    with pytest.raises(SystemExit) as left:
        command(arguments)
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(
    "command, arguments, words",
    [
        (simulate, ["--trace"], "--trace is about one run: add --seed N"),
        (simulate, ["--digest"], "--digest is about one run: add --seed N"),
        (simulate, ["--seeds", "5", "--choose", "no-such-folder/seeds.json"], "there is no folder no-such-folder"),
        (simulate, ["--seeds", "5", "--choose", "."], "--choose . is a folder: name a file"),
        (simulate, ["--chosen", "no-such-file.json"], "write one with --seeds 2000 --choose no-such-file.json"),
        (simulate, ["--seed", "1", "--chosen", "seeds.json"], "give one of them"),
        (compare, ["--examples", "0"], "--examples 0 proves nothing: run at least one"),
        (soak, ["--store", "sqlite", "--messages", "8", "--kills", "4"], "send at least 20"),
        (soak, ["--store", "sqlite", "--messages", "0", "--kills", "0"], "send at least 4"),
        (soak, ["--store", "sqlite", "--kills", "-1"], "--kills -1 is no number of kills"),
        (soak, ["--store", "sqlite", "--lease", "0"], "give 1 to 60 seconds"),
        (soak, ["--store", "sqlite", "--lease", "nan"], "give 1 to 60 seconds"),
        (soak, ["--store", "sqlite", "--lease", "3600"], "give 1 to 60 seconds"),
        (bench, ["--messages", "0"], "--messages 0 measures nothing: take at least 100"),
    ],
)
def test_a_command_asked_wrongly_says_what_to_do_in_one_line(
    command: Command, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(command, arguments, capsys)


@pytest.mark.parametrize("text", ["", "{}", '["seven"]', "[]"])
def test_a_file_that_holds_no_seeds_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "seeds.json"
    file.write_text(text)
    assert f"{file} holds no seeds" in refused(simulate, ["--chosen", str(file)], capsys)


def test_seeds_that_do_not_meet_everything_are_not_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is what the short run of `make test` stands on."""
    file = tmp_path / "seeds.json"
    file.write_text("[7]")
    assert simulate(["--seeds", "1", "--jobs", "1", "--choose", str(file)]) == 1
    assert file.read_text() == "[7]"
    assert "is left as it was: choose from more seeds" in capsys.readouterr().out
