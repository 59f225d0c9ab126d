"""What commands print, where results and hints go to one pipe; and lists that end where they end."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clarion.cli.output import harmless, print_pairs, print_table
from clarion.cli.program import program

PRINTED = """
from clarion.cli.output import print_table, say_more
print_table(("no", "name"), [(1, "one"), (2, "two")], empty="")
say_more("abc")
"""


def test_how_to_go_on_comes_behind_the_table_also_in_a_pipe() -> None:
    """With -E, because PYTHONUNBUFFERED of whoever runs the tests would keep the order by itself."""
    done = subprocess.run(
        [sys.executable, "-E", "-c", PRINTED], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert done.stdout.splitlines() == ["no  name", "1   one", "2   two", "more: --after abc"]


def test_what_somebody_sent_does_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A name in a subject set the title of the operator's window."""
    print_table(("says",), [("a\x1b]0;b\x07\x9b31m \u202ecod\re",)], empty="")
    print_pairs([("to", "user:\x1b[2J")])
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["says", r"a\u001b]0;b\u0007\u009b31m \u202ecod\u000de", r"to  user:\u001b[2J"]
    assert harmless("two\r\nlines\tand שלום") == "two\r\nlines\tand שלום"


def test_a_list_of_tenants_goes_on_only_where_more_follow(tmp_path: Path) -> None:
    """And making a tenant says whether it was made."""

    def run(line: str) -> tuple[list[str], str]:
        done = CliRunner().invoke(program, line.split(), env={"CLARION_HOME": str(tmp_path / "home")})
        assert done.exit_code == 0, done
        return done.stdout.splitlines(), done.stderr

    run("migrate")
    assert run("tenants create oak")[0] == ["the tenant oak is created"]
    assert run("tenants create elm")[0] == ["the tenant elm is created"]
    assert run("tenants create oak")[0] == ["the tenant oak exists already; nothing was changed"]
    assert run("tenants list --limit 2") == (["elm", "oak"], "")
    assert run("tenants list --limit 1") == (["elm"], "more: --after elm\n")
    assert run("tenants list --limit 1 --after elm") == (["oak"], "")
