"""Every adapter that pyproject.toml names can be loaded, and offers what bootstrap will ask of it."""

from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction
from typing import Any

import pytest

GROUPS = ("clarion.stores", "clarion.blobs", "clarion.vaults", "clarion.providers", "clarion.renderers")


@pytest.mark.parametrize("group", GROUPS)
def test_the_installed_entry_points_are_the_ones_of_the_project(settings: dict[str, Any], group: str) -> None:
    named = settings["project"]["entry-points"][group]
    ours = {point.name: point.value for point in entry_points(group=group) if point.value.startswith("clarion.")}
    assert ours == named


def test_no_group_is_forgotten(settings: dict[str, Any]) -> None:
    assert set(settings["project"]["entry-points"]) == set(GROUPS)


@pytest.mark.parametrize("scheme", ["sqlite", "postgresql"])
def test_a_store_can_be_opened_and_migrated(settings: dict[str, Any], scheme: str) -> None:
    value = settings["project"]["entry-points"]["clarion.stores"][scheme]
    engine = EntryPoint(scheme, value, "clarion.stores").load()
    assert callable(engine.open_store)
    assert callable(engine.migrate)


def test_what_opens_a_blob_store_can_be_called(settings: dict[str, Any]) -> None:
    for name, value in settings["project"]["entry-points"]["clarion.blobs"].items():
        assert callable(EntryPoint(name, value, "clarion.blobs").load())


def test_what_opens_a_provider_is_awaited_and_what_opens_a_renderer_is_called(settings: dict[str, Any]) -> None:
    points = settings["project"]["entry-points"]
    for name, value in points["clarion.providers"].items():
        assert iscoroutinefunction(EntryPoint(name, value, "clarion.providers").load()), name
    for name, value in points["clarion.renderers"].items():
        assert callable(EntryPoint(name, value, "clarion.renderers").load()), name


def test_a_vault_can_be_opened_and_created(settings: dict[str, Any]) -> None:
    for name, value in settings["project"]["entry-points"]["clarion.vaults"].items():
        vault = EntryPoint(name, value, "clarion.vaults").load()
        assert callable(vault.open_vault)
        assert callable(vault.create_vault)


def test_the_program_can_be_called(settings: dict[str, Any]) -> None:
    assert callable(EntryPoint("clarion", settings["project"]["scripts"]["clarion"], "console_scripts").load())
