"""What the program loads before it knows what to do, by the list of modules: times would differ from run to run.

Loading the platform takes several times as long as all the rest, and nobody should wait for it who mistyped an option.
Decision 0042 has the measured times.
"""

import subprocess
import sys

import pytest

from clarion.cli.program import Program

ALWAYS = {"clarion", "clarion.cli", "clarion.cli.lazy", "clarion.cli.program", "clarion.cli.value", "clarion.errors"}
"""Modules of ours that every start loads."""

TYPER = {"typer", "annotated_doc", "shellingham"}
"""typer, and what it imports by itself."""

LIGHT = {*TYPER, "msgspec", "typing_extensions"}
"""Packages of others that a command may load before its arguments are read."""

SLOW = ("asyncio", "concurrent", "email", "http", "importlib.metadata", "logging", "ssl")
"""Modules of Python itself that take their time."""

HEAVY = (
    "adapters",
    "api",
    "bootstrap",
    "catalog",
    "dispatch",
    "operations",
    "pipeline",
    "producers",
    "sealing",
    "workers",
)
"""Rooms of ours that no refusal needs."""

RUN = """
import sys
from clarion.cli import main

for line in sys.stdin.read().splitlines():
    sys.argv = ["clarion", *line.split()]
    try:
        main()
    except SystemExit as left:
        print("left", left.code)
print("loaded", *sys.modules)
"""

REFUSED = """
audit --limit 0
audit verify --nope
automation hold
cancel
check --nope
clock set
clock show --nope
demo --port x
event member.joined --data x
event-mappings set member.joined
events retry
explain
groups change x
groups put
history
inbox
keys create
keys list --nope
keys revoke
list --limit 0
migrate --nope
new
outbox --channel pigeon
people list --limit 0
people put
people set user:1 --attribute grade
preview
publish
quota
relations change child:1
reminders put 7
rehearse --days x
reports put 7
reports list --limit 0
relations list --limit 0
roles change teacher
roles list --limit 0
send
send welcome --lane fast
serve --port 70000
settings set welcome --to bob
sources put invoice 17 --metric open=x
status --nope
suppress add
support
support list --limit x
support nope
support resolve
support retry
support show
tenants create
tenants list --limit 0
types enable
uncertain list --limit 0
uncertain retry
units put
upcoming --days x
work --slots 0
"""
"""Each command, asked wrongly."""


def run(commands: str) -> tuple[list[str], set[str]]:
    """Run commands in one process, one after the other; give their exit codes and the modules that are loaded then."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=commands.strip(), capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stdout.splitlines()
    codes = [line.removeprefix("left ") for line in lines if line.startswith("left ")]
    return codes, set(lines[-1].removeprefix("loaded ").split())


def strangers(loaded: set[str]) -> set[str]:
    """Packages that are neither ours nor Python's; Debian's Python loads its own `sitecustomize` before everything."""
    ours = {"__main__", "clarion", "sitecustomize"}
    return {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - ours


@pytest.mark.parametrize("command, code", [("--version", "0"), ("--help", "0"), ("nope", "2"), ("--nope", "2")])
def test_the_version_the_list_and_an_unknown_command_load_nothing_but_typer(command: str, code: str) -> None:
    codes, loaded = run(command)
    assert codes == [code]
    assert {name for name in loaded if name.partition(".")[0] == "clarion"} == ALWAYS
    assert strangers(loaded) <= TYPER
    assert not loaded & set(SLOW)


def test_every_command_is_asked_wrongly_below() -> None:
    named = {line.split()[0] for line in REFUSED.strip().splitlines()}
    assert named == {name for listed in Program.panels.values() for name in listed}


def test_a_command_that_is_asked_wrongly_does_not_load_the_platform() -> None:
    codes, loaded = run(REFUSED)
    assert codes == ["2"] * len(REFUSED.strip().splitlines())
    assert not {name for name in loaded if name.startswith(tuple(f"clarion.{room}" for room in HEAVY))}
    assert strangers(loaded) <= LIGHT
    assert not loaded & set(SLOW)
