"""Sources: who tells of a source is chosen by its type, a plugin or the provider of stored records.

Whoever plans or hands over asks here and knows nothing of plugins. Reads what they read; writes nothing.
"""

from collections.abc import Collection, Mapping, Sequence

from clarion.domain.entity_event import EntityEvent
from clarion.domain.recipient import Target
from clarion.domain.reminder import ReminderSetting
from clarion.domain.source import SourceFacts
from clarion.errors import BadConfiguration
from clarion.ports.reminding import Delivery, Immediate, ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from clarion.producers.plugin import Plugin
from clarion.producers.records import BOUNDS, Records


class Sources:
    """All that is known of sources in one process."""

    def __init__(self, records: Records, plugins: Sequence[Plugin] = ()) -> None:
        """Ask these plugins about sources of their types, and the records about all others."""
        self._records = records
        self._plugins: dict[str, Plugin] = {}
        for plugin in plugins:
            other = self._plugins.setdefault(plugin.source_type, plugin)
            if other is not plugin:
                raise BadConfiguration(
                    f"the plugins {other.name!r} and {plugin.name!r} of clarion.reminders both provide sources of type "
                    f"{plugin.source_type!r}",
                    hint="uninstall one of them, or let it provide another type",
                )

    def over(self, records: Records) -> "Sources":
        """Ask the same plugins, and other records; those who close the plugins close these sources."""
        return Sources(records, list(self._plugins.values()))

    @property
    def provided(self) -> frozenset[str]:
        """The source types that plugins provide; sources of these types are not stored."""
        return frozenset(self._plugins)

    def bounds(self, source_type: str) -> ScanBounds:
        """Say how far a reconciliation of a type may look."""
        plugin = self._plugins.get(source_type)
        return BOUNDS if plugin is None else plugin.bounds

    def is_long_runner(self, source_type: str) -> bool:
        """Tell whether the provider of a type declares that it may be away for days."""
        plugin = self._plugins.get(source_type)
        return plugin is not None and plugin.long_runner

    def names_recipients(self, source_type: str) -> bool:
        """Tell whether the provider of a type says itself for whom reminders are."""
        plugin = self._plugins.get(source_type)
        return plugin is not None and plugin.names_recipients

    async def load(self, tenant_id: str, source_type: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these sources as they are now, by id; those that are not there are left out."""
        plugin = self._plugins.get(source_type)
        if plugin is None:
            return await self._records.load(tenant_id, source_type, sources)
        return await plugin.load(tenant_id, sources)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of active sources within the bounds of a scan."""
        plugin = self._plugins.get(scan.source_type)
        return await (self._records if plugin is None else plugin).scan(tenant_id, scan)

    async def touched(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]
    ) -> tuple[tuple[str, str], ...]:
        """Return the type and id of each source that an event changes.

        That is the one that it names, unless the plugin of its type says otherwise, and what other plugins make of it.
        """
        asked = [plugin for plugin in self._plugins.values() if event.event_type in plugin.event_types]
        found: list[tuple[str, str]] = []
        says_otherwise = any(plugin.source_type == event.source_type for plugin in asked)
        if event.source_type is not None and event.source is not None and not says_otherwise:
            found.append((event.source_type, event.source))
        for plugin in asked:
            found += [(plugin.source_type, source) for source in await plugin.touched(tenant_id, event, data)]
        return tuple(dict.fromkeys(found))

    async def immediate(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object], facts: SourceFacts | None
    ) -> Immediate | None:
        """Return what the plugin of an event's source type has to say at once; None where there is nothing."""
        plugin = self._plugins.get(event.source_type or "")
        return None if plugin is None else await plugin.immediate(tenant_id, event, data, facts)

    async def recipients(
        self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting
    ) -> tuple[Target, ...] | None:
        """Return whom a reminder is for; None where that is left to the setting."""
        plugin = self._plugins.get(facts.source_type)
        return None if plugin is None else await plugin.recipients(tenant_id, facts, setting)

    async def delivery(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Delivery:
        """Return how a reminder goes out."""
        plugin = self._plugins.get(facts.source_type)
        return Delivery() if plugin is None else await plugin.delivery(tenant_id, facts, setting)

    async def close(self) -> None:
        """End what the plugins run in."""
        for plugin in self._plugins.values():
            await plugin.close()
