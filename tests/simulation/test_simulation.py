"""A short run of the simulation, and the promise that a seed is a run.

The seeds of the short run are chosen: together they meet everything that 5,000 random ones must meet. Whatever changes
the steps of a run gives every seed another one; choose anew by the command that the failing test says.
"""

import json
from pathlib import Path

import msgspec
import pytest

from clarion.domain.notification import NOTIFICATION_SCHEDULER
from clarion.domain.outgoing import OUTGOING_MESSAGE
from clarion.testing import simulate
from clarion.testing.simulation.choice import TIMES, choose
from clarion.testing.simulation.coverage import EDGES, NOT_HERE
from clarion.testing.simulation.moment import ROUND
from clarion.testing.simulation.option import Fault, Options
from clarion.testing.simulation.run import run

FILE = Path(__file__).parent / "seeds.json"
SEEDS: list[int] = json.loads(FILE.read_text())
CHOOSE = "python -m clarion.testing.simulate --seeds 2000 --choose tests/simulation/seeds.json"


def test_the_chosen_seeds_lose_nothing_send_nothing_twice_invent_nothing_and_meet_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = simulate.main(["--chosen", str(FILE), "--jobs", "1", "--json"])
    said = capsys.readouterr()
    summary = json.loads(said.out)
    assert {name: summary[name] for name in ("runs", "lost", "duplicate", "phantom", "violations")} == {
        "runs": len(SEEDS),
        "lost": 0,
        "duplicate": 0,
        "phantom": 0,
        "violations": 0,
    }, said.err
    assert not summary["uncovered"], f"not met by the chosen seeds: {summary['uncovered']}; choose others by: {CHOOSE}"
    assert code == 0
    assert summary["delivered"] > summary["rows"] / 2  # otherwise nothing is lost because nothing is sent


def test_a_run_of_chosen_seeds_fails_where_something_is_not_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "seeds.json"
    few.write_text(json.dumps(SEEDS[:2]))
    assert simulate.main(["--chosen", str(few), "--jobs", "1"]) == 1
    assert "never met:" in capsys.readouterr().out


def test_a_short_run_of_any_seeds_says_that_it_need_not_meet_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate.main(["--seeds", "1", "--first", "7"]) == 0
    said = capsys.readouterr().out
    assert "so few runs need not meet everything" in said
    assert "never met:" not in said


def test_every_move_of_the_tables_is_expected_or_cannot_happen_here_for_a_reason() -> None:
    moves = {
        f"{from_} → {to}" for machine in (OUTGOING_MESSAGE, NOTIFICATION_SCHEDULER) for from_, to, _ in machine.moves()
    }
    excused = [edge for edges in NOT_HERE.values() for edge in edges]
    assert sorted([*EDGES, *excused]) == sorted(moves)


def test_chosen_are_the_seeds_that_meet_what_few_meet_each_thing_several_times() -> None:
    met = {seed: {"often"} for seed in range(20)} | {7: {"often", "rare"}, 12: {"rare", "other"}, 30: {"not asked for"}}
    chosen = choose(met, expected={"often", "rare", "other", "never"}, most=100)
    assert {7, 12} <= set(chosen)
    assert 30 not in chosen
    assert sum("often" in met[seed] for seed in chosen) == TIMES
    assert choose(met, expected={"often", "rare", "other"}, most=2) == [7, 12]


@pytest.mark.parametrize("seeds", ["0", "-5"])
def test_no_seed_at_all_is_no_proof(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        simulate.main(["--seeds", seeds, "--json"])
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert f"--seeds {seeds} proves nothing" in said.err
    assert said.err.count("\n") == 1


def test_a_seed_gives_the_same_run_in_every_interpreter() -> None:
    here = run(Options.of(8), with_digest=True).digest
    assert here
    assert {simulate.digest_elsewhere(8, hash_seed=hash_seed) for hash_seed in ("0", "1", "random")} == {here}


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


@pytest.mark.parametrize("kind, word", [(Fault.KILL, " crashes"), (Fault.PAUSE, " is paused ")])
def test_kills_and_pauses_fall_on_steps_of_a_process_and_not_only_on_rounds(kind: Fault, word: str) -> None:
    """Rounds come every three seconds, and what falls on one of them is a whole number of rounds from the others."""
    within = set[float]()
    for seed in range(5):
        dealt = Options.of(seed, automates=False)
        jobs = tuple(msgspec.structs.replace(plan, poison=False) for plan in dealt.jobs)  # which would kill as well
        options = msgspec.structs.replace(dealt, rates={kind: 0.2}, jobs=jobs)
        timeline = run(options, with_timeline=True).timeline
        times = [float(line.split()[0]) for line in timeline if word in line]
        within |= {round((at - times[0]) % ROUND, 2) for at in times}
    assert len(within) > 5


def test_some_runs_have_no_faults_and_every_kind_is_on_in_some() -> None:
    dealt = [Options.of(seed) for seed in range(300)]
    assert any(not options.rates for options in dealt)
    assert {kind for options in dealt for kind in options.rates} == set(Fault)
