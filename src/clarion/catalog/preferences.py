"""Preferences: which categories somebody gets on which channels, as the tenant's published types allow.

What is off is a row of `suppression`, what is on is none (`domain.suppression`). A category is required where its types
do not let people unsubscribe; it cannot be switched off. Nobody needs to be logged in to call these: a page that works
by a link acts as `recipient`.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from clarion.catalog.category import Category, list_categories
from clarion.domain.identity import Channel
from clarion.domain.suppression import EVERYTHING, RECIPIENT, Cause, Change, is_off
from clarion.errors import InvalidInput
from clarion.ports.catalog import CatalogStore
from clarion.ports.facts import FactStore
from clarion.ports.suppression import PreferencesSet, SuppressionStore


class Store(CatalogStore, FactStore, SuppressionStore, Protocol):
    """What preferences are made of."""


class CategoryPreference(msgspec.Struct, frozen=True, kw_only=True):
    """One category as somebody has it: on or off on each channel that a type of it uses."""

    category: Category
    channels: Mapping[Channel, bool]


class PreferenceSheet(msgspec.Struct, frozen=True, kw_only=True):
    """All that somebody can choose. `stopped` is why they get nothing at all, whatever is chosen, or None."""

    stopped: Cause | None
    categories: tuple[CategoryPreference, ...]


class Preferences:
    """The preferences of a tenant's people, by recipient hash."""

    def __init__(self, store: Store) -> None:
        """Read types, and read and write suppressions."""
        self._store = store

    async def show(self, tenant_id: str, recipient_id_hash: str) -> PreferenceSheet:
        """Show what somebody can choose, and how it stands; the required categories last."""
        stored = (await self._store.find_suppressions(tenant_id, [recipient_id_hash])).get(recipient_id_hash, {})
        return PreferenceSheet(
            stopped=stored.get(EVERYTHING),
            categories=tuple(
                CategoryPreference(
                    category=one,
                    channels={
                        channel: one.required or not is_off(stored, one.name, channel) for channel in one.channels
                    },
                )
                for one in await list_categories(self._store, tenant_id)
            ),
        )

    async def set(
        self,
        tenant_id: str,
        recipient_id_hash: str,
        changes: Sequence[Change],
        *,
        actor: str = RECIPIENT,
        cause: Cause = Cause.PREFERENCE,
        reason: str | None = None,
    ) -> PreferencesSet:
        """Set preferences, all of them or none; refuse a category that there is not, and to switch off a required one.

        A category that is not published any more can still be switched on, so that nothing stays off for ever.
        """
        offered = {one.name: one for one in await list_categories(self._store, tenant_id)}
        for place, change in enumerate(changes):
            self._check(change, offered.get(change.category), field=f"changes[{place}]")
        return await self._store.set_preferences(
            tenant_id, recipient_id_hash, changes, cause=cause, actor=actor, reason=reason
        )

    def _check(self, change: Change, offered: Category | None, *, field: str) -> None:
        if change.on:
            return
        if offered is None:
            raise InvalidInput(
                "no published type has this category", field=f"{field}.category", hint="use one that is shown"
            )
        if offered.required:
            raise InvalidInput(
                f"the category {change.category!r} is required and cannot be switched off",
                field=f"{field}.category",
                hint="leave it out; its types say may_unsubscribe = false",
            )
        if change.channel is not None and change.channel not in offered.channels:
            raise InvalidInput(
                f"no type of the category {change.category!r} goes by {change.channel}",
                field=f"{field}.channel",
                hint=f"use {', '.join(offered.channels)}, or leave it out for all of them",
            )
