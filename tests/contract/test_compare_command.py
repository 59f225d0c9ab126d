"""The long comparison of the two engines: its examples follow from their seeds, and one that differs is shown short."""

from datetime import timedelta

from clarion.testing import compare
from clarion.testing.contracts.comparison import MESSAGES, WORKS, Compared
from clarion.testing.contracts.queue_operation import Record
from clarion.testing.store import StandIn
from tests.contract.test_comparison import Planted, later


def test_each_seed_has_examples_of_its_own_of_every_work_and_always_the_same() -> None:
    first = list(compare.drawn_examples(7, 30))
    assert first == list(compare.drawn_examples(7, 30))
    assert {work for _, work, _, _ in first} == set(WORKS)
    other = {str(example) for _, _, _, example in compare.drawn_examples(8, 30)}
    # Each begins with the simplest examples that there are.
    assert len(other - {str(example) for _, _, _, example in first}) > 20
    fixed = MESSAGES.examples(12)
    assert fixed == MESSAGES.examples(12), "those of no seed are the same at every commit"


def test_the_seeds_count_up_and_no_more_examples_are_drawn_than_were_asked_for() -> None:
    seeds = [seed for seed, _, _, _ in compare.drawn_examples(7, compare.ROUND + 5)]
    assert seeds == [7] * compare.ROUND + [8] * 5


async def test_an_example_that_differs_is_shown_with_no_more_operations_than_it_needs() -> None:
    harness = StandIn()
    sound = harness.store
    harness.store = Planted(sound, "record_outgoing", later)  # type: ignore[assignment]  # has all its methods
    compared = await Compared.open(harness, within=timedelta())
    try:
        differing = [one for one in MESSAGES.examples(10, seed=7) if await compared.run(one) is not None]
        fewer = await compare.shortened(compared, differing[0])
        difference = await compared.run(fewer)
    finally:
        await compared.close()
        await sound.close()
    assert difference is not None
    assert "due_at" in difference
    assert len(fewer) <= 5, "a type, somebody, a message, a claim and the result that is recorded wrongly"
    assert any(isinstance(one, Record) for one in fewer)


async def test_the_engines_do_not_differ_in_a_few_new_examples(postgres_url: str) -> None:
    """The command runs many more; these show that it can."""
    summary = await compare.compare(postgres_url, first_seed=7, examples=4)
    assert (summary.examples, summary.differing) == (4, [])
    assert summary.operations > 40
