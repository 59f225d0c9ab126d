"""What claiming and making messages cost now, as a share of what they cost at an earlier commit.

    python -m bench.before_and_now COMMIT [ROUNDS]

The earlier program is set up in a folder of its own, and both take turns, round by round, on databases of their own, so
that a busy machine slows both alike. Processor time counts the server's with ours; the clock is told beside it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from statistics import median

TREE = Path(__file__).parent.parent
ROUNDS = 7
"""A round scatters by a tenth around the median."""

ENGINES = ("sqlite", "postgres")

SUPPRESSED = (0, 100_000)
"""Suppressions of others, among which every claim looks: none, and as many as a large tenant gathers in years."""

Round = dict[str, float]


@contextmanager
def _tree_of(commit: str) -> Iterator[Path]:
    """Set up the program as it was at a commit, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", tree, commit], cwd=TREE, check=True)  # noqa: S603, S607  (git)
        try:
            subprocess.run(["make", "--silent", "setup"], cwd=tree, check=True)  # noqa: S607  (make)
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=TREE, check=True)  # noqa: S603, S607  (git)


class Program:
    """The program of one tree, which measures a round whenever it is asked."""

    def __init__(self, tree: Path, engine: str, suppressed: int) -> None:
        """Start it."""
        self._process = subprocess.Popen(  # noqa: S603  (ours)
            [tree / ".venv/bin/python", TREE / "bench/costs.py", engine, str(suppressed)],
            cwd=tree,
            env={"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            raise SystemExit(f"the program ended with {self._process.wait()}")
        return said

    def round(self) -> Round:
        """Have it measure one round."""
        assert self._process.stdin is not None
        self._process.stdin.write("round\n")
        self._process.stdin.flush()
        answer: Round = json.loads(self._read())
        return answer

    def end(self) -> None:
        """End it: it stops where its input does."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(before: Path, engine: str, rounds: int, suppressed: int) -> list[tuple[Round, Round]]:
    """Have both programs measure so many rounds in turn."""
    with ExitStack() as stack:
        programs = [Program(before, engine, suppressed), Program(TREE, engine, suppressed)]
        for one in programs:
            stack.callback(one.end)
        return [(programs[0].round(), programs[1].round()) for _ in range(rounds)]


def main() -> None:
    """Measure and print."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m bench.before_and_now COMMIT [ROUNDS]")
    rounds = int(sys.argv[2]) if sys.argv[2:] else ROUNDS
    with _tree_of(sys.argv[1]) as before:
        print(
            f"{'store':<10}{'suppressed':>10}  {'act':<20}{'before':>10}{'now':>10}{'share':>8}"
            f"   µs a message, medians of {rounds} rounds"
        )
        for engine, suppressed in product(ENGINES, SUPPRESSED):
            pairs = compare(before, engine, rounds, suppressed)
            for act in pairs[0][0]:
                was, now = median(b[act] for b, _ in pairs), median(n[act] for _, n in pairs)
                share = median(n[act] / b[act] for b, n in pairs)
                print(f"{engine:<10}{suppressed:>10,}  {act:<20}{was:>10.1f}{now:>10.1f}{share:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
