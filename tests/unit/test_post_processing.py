"""The seam where handlers of events hang."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from clarion.domain.entity_event import EntityEvent, EventData
from clarion.errors import BadConfiguration, PluginFailed
from clarion.producers.post_processing import ForeignProcessor, PostProcessors
from tests.unit.plugin_house import HURRIED, event


class Counting:
    """Counts the events that it gets."""

    def __init__(self, event_types: Collection[str] | None = None, answer: object = None) -> None:
        self.event_types = event_types
        self.seen: list[str] = []
        self._answer = {"seen": 1} if answer is None else answer

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        self.seen.append(event.event_type)
        return self._answer  # type: ignore[return-value]  # rubbish on purpose


class Hanging(Counting):
    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        await asyncio.Event().wait()
        return {}


async def test_everybody_who_wants_an_event_gets_it_and_what_they_count_is_added_up() -> None:
    every, some, others = Counting(), Counting(["boat.moored"]), Counting(["car.parked"])
    processors = PostProcessors([every, some, others], [ForeignProcessor("theirs", Counting())])
    assert await processors.process("acme", event("boat.moored"), EventData()) == {"seen": 2, "theirs.seen": 1}
    assert (every.seen, some.seen, others.seen) == (["boat.moored"], ["boat.moored"], [])
    await processors.close()


@pytest.mark.parametrize("rubbish", ["seen", {"seen": "1"}, {str(n): n for n in range(21)}])
async def test_counts_that_are_none_are_a_failure_of_the_plugin(rubbish: object) -> None:
    foreign = ForeignProcessor("theirs", Counting(answer=rubbish))
    with pytest.raises(PluginFailed, match="'theirs' answered no mapping"):
        await foreign.process("acme", event(), EventData())
    await foreign.close()


async def test_a_post_processor_that_hangs_fails_its_event_only() -> None:
    foreign = ForeignProcessor("theirs", Hanging(["boat.moored"]), patience=HURRIED)
    processors = PostProcessors([], [foreign])
    with pytest.raises(PluginFailed, match="did not answer"):
        await processors.process("acme", event("boat.moored"), EventData())
    assert await processors.process("acme", event("car.parked"), EventData()) == {}
    await processors.close()


def test_what_is_no_post_processor_is_refused_by_name() -> None:
    with pytest.raises(BadConfiguration, match=r"'theirs' of clarion\.events"):
        ForeignProcessor("theirs", object())
