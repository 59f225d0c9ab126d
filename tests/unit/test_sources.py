"""Who is asked about a source: the plugin of its type, or what is stored of it."""

from collections.abc import Mapping, Sequence

import pytest

from clarion.domain.entity_event import EntityEvent
from clarion.domain.source import SourceFacts
from clarion.errors import BadConfiguration, PluginFailed
from clarion.ports.reminding import Delivery, ScanBounds
from clarion.producers.plugin import Plugin
from clarion.producers.records import Records
from clarion.producers.sources import Sources
from tests.unit.plugin_house import SETTING, Boats, boat, event


class Moorings(Boats):
    """Knows which boats a mooring is about."""

    event_types = frozenset({"mooring.closed"})
    bounds = ScanBounds(window_days=7)
    long_runner = True

    async def touched(self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]) -> Sequence[str]:
        return [f"{event.source}-{n}" for n in range(2)]


@pytest.fixture
def nothing_stored() -> Records:
    """Records of a store that nothing is to be asked of."""
    return Records(None, None)  # type: ignore[arg-type]


async def test_a_plugin_is_asked_about_sources_of_its_type_only(nothing_stored: Records) -> None:
    sources = Sources(nothing_stored, [Plugin("boats", Moorings())])
    assert await sources.load("acme", "boat", ["b1"]) == {"b1": boat()}
    assert (sources.bounds("boat").window_days, sources.bounds("invoice").window_days) == (7, 30)
    assert (sources.is_long_runner("boat"), sources.is_long_runner("invoice")) == (True, False)
    assert sources.provided == {"boat"}
    await sources.close()


async def test_what_no_plugin_provides_is_left_to_the_settings(nothing_stored: Records) -> None:
    sources, invoice = Sources(nothing_stored), SourceFacts(source_type="invoice", source="7", entity=boat().entity)
    assert await sources.recipients("acme", invoice, SETTING) is None
    assert await sources.delivery("acme", invoice, SETTING) == Delivery()
    assert await sources.immediate("acme", event(), {}, None) is None


@pytest.mark.parametrize(
    "given, touched",
    [
        (event("invoice.paid", source_type="invoice", source="7"), (("invoice", "7"),)),
        (
            event("mooring.closed", source_type="mooring", source="m"),
            (("mooring", "m"), ("boat", "m-0"), ("boat", "m-1")),
        ),
        (event("mooring.closed", source_type="boat", source="b"), (("boat", "b-0"), ("boat", "b-1"))),
        (event("boat.moored", source_type="boat", source="b"), (("boat", "b"),)),
        (event("boat.moored", source_type=None, source=None), ()),
    ],
)
async def test_an_event_touches_what_it_names_and_what_plugins_make_of_it(
    nothing_stored: Records, given: EntityEvent, touched: tuple[tuple[str, str], ...]
) -> None:
    sources = Sources(nothing_stored, [Plugin("boats", Moorings())])
    assert await sources.touched("acme", given, {}) == touched
    await sources.close()


async def test_one_plugin_fails_and_another_goes_on(nothing_stored: Records) -> None:
    async def fail() -> object:
        raise ValueError

    failing, well = Boats(fail), Boats()
    failing.source_type = "ship"
    sources = Sources(nothing_stored, [Plugin("ships", failing), Plugin("boats", well)])
    with pytest.raises(PluginFailed, match="'ships'"):
        await sources.load("acme", "ship", ["s1"])
    assert await sources.load("acme", "boat", ["b1"]) == {"b1": boat()}
    await sources.close()


def test_two_plugins_for_one_type_are_refused(nothing_stored: Records) -> None:
    with pytest.raises(BadConfiguration, match=r"'ours' and 'theirs' .* both provide sources of type 'boat'"):
        Sources(nothing_stored, [Plugin("ours", Boats()), Plugin("theirs", Boats())])
