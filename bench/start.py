"""How long the program takes to start, as a share of bare Python that imports typer and nothing else.

    python -m bench.start [ROUNDS]

Processor time, the median of the rounds; the commands take turns, so that a busy machine slows all of them alike.
"""

import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

CLARION = str(Path(sys.executable).with_name("clarion"))

BARE = "python -c 'import typer'"
COMMANDS = {
    BARE: [sys.executable, "-c", "import typer"],
    "clarion --version": [CLARION, "--version"],
    "clarion --help": [CLARION, "--help"],
    "clarion nope": [CLARION, "nope"],
    "clarion send": [CLARION, "send"],
    "clarion outbox --limit 0": [CLARION, "outbox", "--limit", "0"],
}
"""What is measured; the last three are refused."""


def seconds(command: list[str]) -> float:
    """Run a command to its end, and give the processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603  (ours)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    taken = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in range(rounds)]
    usual = {name: median(one[name] for one in taken) for name in COMMANDS}
    for name, time in usual.items():
        print(f"{name:<26} {time * 1000:6.0f} ms {time / usual[BARE]:6.2f}")


if __name__ == "__main__":
    main()
