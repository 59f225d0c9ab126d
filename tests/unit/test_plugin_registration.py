"""Registering a plugin: what it must have, and bounds that bound its scans."""

from datetime import timedelta

import pytest

from clarion.errors import BadConfiguration
from clarion.ports.reminding import ScanBounds
from clarion.producers.plugin import Plugin
from tests.unit.plugin_house import ENTITY, Boats, Everything


class Without:
    """Tells of nothing."""


class Unbound:
    source_type = "boat"
    load = Boats.load
    scan = Boats.scan


@pytest.mark.parametrize(
    "provider, why, remedy",
    [
        (Without(), "has no source_type and no bounds and no load and no scan", "TriggerProvider"),
        (Unbound(), "has no bounds", "TriggerProvider"),
    ],
)
def test_a_provider_without_what_it_needs_is_refused_by_name(provider: object, why: str, remedy: str) -> None:
    with pytest.raises(BadConfiguration, match=f"'boats' of clarion.reminders {why}: .*{remedy}"):
        Plugin("boats", provider)


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        ScanBounds(every=timedelta()),
        ScanBounds(overlap=timedelta(seconds=59)),
        ScanBounds(window_days=367),
        ScanBounds(window_days=-1),
        ScanBounds(batch_size=0),
        ScanBounds(batch_size=1001),
        ScanBounds(units=("vienna",)),  # type: ignore[arg-type]
        ScanBounds(window_days="all"),  # type: ignore[arg-type]
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds: object) -> None:
    provider = Boats()
    provider.bounds = bounds  # type: ignore[assignment]
    with pytest.raises(BadConfiguration, match="has bounds that"):
        Plugin("boats", provider)


def test_bounds_at_their_limits_are_kept() -> None:
    provider = Boats()
    provider.bounds = ScanBounds(
        every=timedelta(seconds=1), overlap=timedelta(minutes=1), window_days=366, units=(ENTITY,), batch_size=1000
    )
    assert Plugin("boats", provider).bounds == provider.bounds


@pytest.mark.parametrize(
    "field, value", [("source_type", "Boat 7"), ("event_types", "boat.moored"), ("event_types", [7])]
)
def test_a_source_type_and_event_types_are_words(field: str, value: object) -> None:
    provider = Everything(None)
    setattr(provider, field, value)
    with pytest.raises(BadConfiguration, match=field):
        Plugin("boats", provider)


def test_a_long_runner_says_so() -> None:
    provider = Boats()
    assert not Plugin("boats", provider).long_runner
    provider.long_runner = True  # type: ignore[attr-defined]
    assert Plugin("boats", provider).long_runner
