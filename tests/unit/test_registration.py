"""Plugins are made when the program starts, and one that cannot be is refused by its name."""

from typing import NoReturn

import pytest

from clarion.errors import BadConfiguration
from clarion.producers.registration import event_processors, reminder_plugins
from tests.unit.plugin_house import Boats


class Unbounded(Boats):
    """Would have its whole domain scanned."""

    bounds = None  # type: ignore[assignment]  # rubbish on purpose


class Counting:
    """A post-processor of all events."""

    event_types = None

    async def process(self, *_: object) -> dict[str, int]:
        return {}


def missing() -> NoReturn:
    raise ModuleNotFoundError("no module named 'theirs'")


async def test_plugins_are_registered_under_the_names_of_their_entry_points() -> None:
    (plugin,) = reminder_plugins({"boats": lambda: Boats})
    (processor,) = event_processors({"counts": lambda: Counting})
    assert (plugin.name, plugin.source_type, processor.event_types) == ("boats", "boat", None)
    await plugin.close()
    await processor.close()


@pytest.mark.parametrize(
    "loader, said",
    [
        (missing, r"cannot be loaded \(ModuleNotFoundError: no module named 'theirs'\)"),
        (lambda: missing, r"cannot be loaded \(ModuleNotFoundError"),
        (lambda: "boats", "cannot be called"),
        (lambda: Unbounded, "has bounds that are no ScanBounds"),
        (lambda: Counting, "has no source_type and no bounds and no load and no scan"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_by_its_name(loader: object, said: str) -> None:
    with pytest.raises(BadConfiguration, match=rf"the plugin 'theirs' of clarion\.reminders {said}"):
        reminder_plugins({"theirs": loader})  # type: ignore[dict-item]  # rubbish on purpose


def test_a_post_processor_that_is_none_is_refused_too() -> None:
    with pytest.raises(BadConfiguration, match=r"the plugin 'theirs' of clarion\.events is no EventPostProcessor"):
        event_processors({"theirs": lambda: Boats})
