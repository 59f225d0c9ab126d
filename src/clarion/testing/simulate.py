"""The door of the seeded simulation: many seeds and one JSON object, or one seed and its timeline.

    python -m clarion.testing.simulate --seeds 5000 [--first 0] [--jobs 2] [--json]
    python -m clarion.testing.simulate --seed 42 [--trace] [--json]
    python -m clarion.testing.simulate --seeds 2000 --choose tests/simulation/seeds.json
    python -m clarion.testing.simulate --chosen tests/simulation/seeds.json [--json]

It ends with 1 where a promise was broken: something lost, delivered twice or invented, an invariant violated, a seed
that gave two different runs, or, over 5,000 runs and more and over chosen ones, something expected that was never met.
A failing seed is shown with its options, the faults that it needs, and the end of its timeline. `kills` counts how
often a process was made to vanish.

`--choose` writes down those of the seeds that meet together everything which any of them met. `make test` runs them
with `--chosen`. Every change of the simulation, and many a change of the program, gives the seeds other runs: where the
chosen ones do not meet everything any more, choose anew.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec

from clarion.testing.simulation.choice import choose
from clarion.testing.simulation.coverage import EXPECTED, RUNS_FOR_ALL, missing
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.run import Report, run, shrink

CHUNK: Final = 25
"""Seeds that a process gets at once: some seconds of work."""

SELF_CHECK_EVERY: Final = 100
"""Every hundredth seed is run twice and must give the same steps."""

HASH_CHECK_EVERY: Final = 1000
"""Every thousandth is run in new interpreters, whose sets and dicts of text are ordered differently."""

KILLS: Final = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.KILL, Fault.POISON)
"""Faults by which a process vanishes without a word."""

SHOWN_MAX: Final = 3
"""Failing seeds that are shown in full; of the others only the number is."""

TIMELINE_MAX: Final = 60
"""Lines of a timeline that are shown without --trace: the last ones."""


CHOSEN_MAX: Final = 100
"""Seeds of the run of every day: about half a minute."""


class Summary(msgspec.Struct, kw_only=True):
    """What all runs came to."""

    runs: int = 0
    lost: int = 0
    duplicate: int = 0
    phantom: int = 0
    uncertain: int = 0
    violations: int = 0
    promised: int = 0
    rows: int = 0
    calls: int = 0
    kills: int = 0
    delivered: int = 0
    failing: list[tuple[int, tuple[str, ...]]] = []
    uncovered: list[str] = []
    demanding: bool = False  # whether everything must be met

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        broken = self.failing or self.lost or self.duplicate or self.phantom or self.violations
        return bool(broken or (self.demanding and self.uncovered))

    def add(self, report: Report) -> None:
        """Count one run."""
        tally = report.tally
        self.runs += 1
        for name in ("lost", "duplicate", "phantom", "uncertain", "promised", "rows", "calls", "delivered"):
            setattr(self, name, getattr(self, name) + getattr(tally, name))
        self.kills += sum(report.coverage.get(f"fault: {kind}", 0) for kind in KILLS)
        self.violations += len(report.violations)
        if report.failed:
            self.failing.append((report.seed, report.violations))


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m clarion.testing.simulate", description="The seeded simulation.")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes to use")
    parser.add_argument("--seed", type=int, help="one seed only")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell its whole timeline")
    parser.add_argument("--digest", action="store_true", help="with --seed: print what two runs of it have in common")
    parser.add_argument("--choose", type=Path, metavar="FILE", help="write down seeds that meet everything together")
    parser.add_argument("--chosen", type=Path, metavar="FILE", help="run the seeds that were chosen so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    if (wrong := _wrong(given)) is not None:
        parser.exit(2, f"{parser.prog}: {wrong}\n")
    if given.digest:
        say(run(Options.of(given.seed), with_digest=True).digest)
        return 0
    if given.seed is not None:
        return replay(given.seed, whole=given.trace, as_json=given.json)
    seeds: Sequence[int] = range(given.first, given.first + given.seeds)
    if given.choose is not None:
        return choose_seeds(seeds, jobs=given.jobs, path=given.choose)
    if given.chosen is not None:
        seeds = _read_seeds(given.chosen)
    demanding = given.chosen is not None or len(seeds) >= RUNS_FOR_ALL
    return simulate(seeds, jobs=given.jobs, as_json=given.json, demanding=demanding)


def choose_seeds(seeds: Sequence[int], *, jobs: int, path: Path) -> int:
    """Run many seeds and write those down that meet everything together; say what none of them met."""
    met = {report.seed: report.coverage.keys() for report in _reports(seeds, jobs=jobs) if not report.failed}
    chosen = choose(met, expected=frozenset(EXPECTED), most=CHOSEN_MAX)
    uncovered = missing(Counter(name for seed in chosen for name in met[seed]))
    if uncovered:
        say(f"never met: {', '.join(uncovered)}; {path} is left as it was: choose from more seeds")
        return 1
    path.write_bytes(msgspec.json.encode(chosen) + b"\n")
    say(f"{len(chosen)} of {len(met)} clean seeds are chosen, and meet everything together")
    return 0


def simulate(seeds: Sequence[int], *, jobs: int, as_json: bool, demanding: bool) -> int:
    """Run many seeds and say what they came to; a demanding run must have met everything."""
    summary, coverage = Summary(demanding=demanding), Counter[str]()
    for report in _reports(seeds, jobs=jobs):
        summary.add(report)
        coverage.update(report.coverage)
    summary.uncovered = missing(coverage)
    if as_json:
        say(msgspec.json.encode(msgspec.to_builtins(summary) | {"coverage": dict(sorted(coverage.items()))}).decode())
    else:
        say(
            f"{summary.runs} runs, {summary.kills} kills, {summary.rows} messages, {summary.calls} calls: "
            f"{summary.lost} lost, "
            f"{summary.duplicate} duplicate, {summary.phantom} phantom, {summary.uncertain} uncertain, "
            f"{summary.violations} violations"
        )
        if summary.uncovered and demanding:
            say(f"never met: {', '.join(summary.uncovered)}")
        elif summary.uncovered:
            say(
                f"so few runs need not meet everything: {len(summary.uncovered)} of {len(EXPECTED)} things were not "
                "met; --json lists them"
            )
    for seed, _ in summary.failing[:SHOWN_MAX]:
        sys.stderr.write(f"{explain(seed)}\n")
    return int(summary.failed)


def replay(seed: int, *, whole: bool, as_json: bool) -> int:
    """Run one seed and tell its timeline."""
    options = Options.of(seed)
    report = run(options, with_timeline=True)
    lines = report.timeline if whole else report.timeline[-TIMELINE_MAX:]
    if as_json:
        say(msgspec.json.encode(msgspec.structs.replace(report, timeline=tuple(lines) if whole else ())).decode())
    else:
        say("\n".join([_shown(options), *lines, *report.violations, str(msgspec.to_builtins(report.tally))]))
    return int(report.failed)


def explain(seed: int) -> str:
    """Show a failing seed: its options, what it needs to fail, and how it went with only that."""
    options = Options.of(seed)
    fewer = shrink(options)
    report = run(fewer, with_timeline=True)
    return "\n".join(
        [
            f"seed {seed} fails; replay it with: python -m clarion.testing.simulate --seed {seed} --trace",
            f"its options: {_shown(options)}",
            f"it still fails with only: {', '.join(fewer.rates) or 'no fault at all'}",
            *report.timeline[-TIMELINE_MAX:],
            *report.violations,
        ]
    )


def run_seed(seed: int) -> Report:
    """Run one seed; now and then twice, and in other interpreters, which must change nothing."""
    options = Options.of(seed)
    if seed % SELF_CHECK_EVERY:
        return run(options)
    report, again = run(options, with_digest=True), run(options, with_digest=True)
    digests = {report.digest, again.digest}
    if seed % HASH_CHECK_EVERY == 0:
        digests |= {digest_elsewhere(seed, hash_seed=hash_seed) for hash_seed in ("0", "1")}
    if len(digests) > 1:
        text = "determinism: the same seed gave two different runs"
        return msgspec.structs.replace(report, violations=(*report.violations, text))
    return report


def digest_elsewhere(seed: int, *, hash_seed: str) -> str:
    """Run a seed in a new interpreter and return its digest."""
    done = subprocess.run(  # noqa: S603  this very program
        [sys.executable, "-m", "clarion.testing.simulate", "--seed", str(seed), "--digest"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    return done.stdout.strip()


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def _wrong(given: argparse.Namespace) -> str | None:
    """Say what is wrong with the arguments and what to do, before minutes are spent on them."""
    if given.seeds < 1:
        return f"--seeds {given.seeds} proves nothing: run at least one"
    for name in ("trace", "digest"):
        if getattr(given, name) and given.seed is None:
            return f"--{name} is about one run: add --seed N"
    if sum(one is not None for one in (given.seed, given.choose, given.chosen)) > 1:
        return "--seed, --choose and --chosen each say which seeds to run: give one of them"
    if given.choose is not None and given.choose.is_dir():
        return f"--choose {given.choose} is a folder: name a file"
    if given.choose is not None and not given.choose.parent.is_dir():
        return f"there is no folder {given.choose.parent}: make it, or name another file"
    if given.chosen is not None and not given.chosen.is_file():
        return f"there is no file {given.chosen}: write one with --seeds 2000 --choose {given.chosen}"
    if given.chosen is not None and not _read_seeds(given.chosen):
        return f"{given.chosen} holds no seeds: write it anew with --seeds 2000 --choose {given.chosen}"
    return None


def _read_seeds(path: Path) -> list[int]:
    """Read what `--choose` wrote; a file that holds anything else holds no seeds."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[int])
    except msgspec.DecodeError:
        return []


def _reports(seeds: Sequence[int], *, jobs: int) -> Iterator[Report]:
    """Run seeds here, or in several processes where there are many."""
    if jobs <= 1 or len(seeds) <= CHUNK:
        yield from map(run_seed, seeds)
        return
    with ProcessPoolExecutor(max_workers=jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seed, seeds, chunksize=CHUNK)


def _shown(options: Options) -> str:
    return msgspec.json.encode(options).decode()


if __name__ == "__main__":
    sys.exit(main())
