"""A short run of the simulation, the seeds that once failed, and the promise that a seed is a run."""

import json
from pathlib import Path

import pytest

from clarion.testing import simulate
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.run import run

SEEDS = 60
ONCE_FAILED: list[int] = json.loads((Path(__file__).parent / "seeds.json").read_text())


def test_the_first_seeds_lose_nothing_send_nothing_twice_and_invent_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert simulate.main(["--seeds", str(SEEDS), "--first", "1", "--jobs", "1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert {name: summary[name] for name in ("runs", "lost", "duplicate", "phantom", "violations")} == {
        "runs": SEEDS,
        "lost": 0,
        "duplicate": 0,
        "phantom": 0,
        "violations": 0,
    }
    assert summary["calls"] > SEEDS  # otherwise the run would prove nothing
    assert summary["kills"] > SEEDS
    assert summary["uncertain"] > 0
    assert summary["delivered"] > summary["rows"] / 2


@pytest.mark.parametrize("seeds", ["0", "-5"])
def test_no_seed_at_all_is_no_proof(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        simulate.main(["--seeds", seeds, "--json"])
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert f"--seeds {seeds} proves nothing" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_a_seed_that_once_failed_is_clean(seed: int) -> None:
    report = run(Options.of(seed), with_timeline=True)
    assert not report.failed, "\n".join([*report.timeline[-60:], *report.violations])


def test_a_seed_gives_the_same_run_in_every_interpreter() -> None:
    here = run(Options.of(7), with_digest=True).digest
    assert here
    assert {simulate.digest_elsewhere(7, hash_seed=hash_seed) for hash_seed in ("0", "1", "random")} == {here}


def test_another_seed_gives_another_run() -> None:
    assert run(Options.of(7), with_digest=True).digest != run(Options.of(8), with_digest=True).digest


def test_a_run_can_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--seed", "7", "--trace"]) == 0
    timeline = capsys.readouterr().out
    assert '"seed":7' in timeline
    assert "everything heals" in timeline


def test_switching_a_kind_of_fault_off_leaves_the_others_as_they_were() -> None:
    options = next(options for options in map(Options.of, range(100)) if len(options.rates) > 5)
    kind = next(iter(options.rates))
    fewer = options.without(kind)
    assert kind not in fewer.rates
    assert fewer.rates == {one: rate for one, rate in options.rates.items() if one is not kind}
    assert fewer.jobs == options.jobs


def test_some_runs_have_no_faults_and_every_kind_is_on_in_some() -> None:
    dealt = [Options.of(seed) for seed in range(300)]
    assert any(not options.rates for options in dealt)
    assert {kind for options in dealt for kind in options.rates} == set(Fault)
