"""The library: published notifications in memory, by tenant, key and version.

A published version never changes, so what is here stays true; the latest version of a key does change, so it is asked
for every time. Reads templates from the store; writes nothing.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from clarion.domain.held import Held
from clarion.ports.facts import FactStore
from clarion.ports.renderer import Bundle
from clarion.ports.templates import Published, TemplateName

BUNDLES_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bundles in memory: two thousand of an ordinary size, which is 30 kB, and fewer of those with many languages. One that
was dropped is fetched again."""


class Library:
    """Bundles by name."""

    def __init__(self, facts: FactStore) -> None:
        """Start empty."""
        self._facts = facts
        self._bundles = Held[tuple[str, str, int], Bundle](BUNDLES_BYTES_MAX)
        self._quarantined: set[TemplateName] = set()

    async def load(
        self, wanted: Collection[TemplateName], *, also_quarantined: bool = False
    ) -> dict[TemplateName, tuple[int, Bundle]]:
        """Return version and bundle of those that exist, from memory or from the store."""
        found = await self._find(wanted, held=self._quarantined)
        if also_quarantined:
            return found
        return {name: one for name, one in found.items() if (*name[:2], one[0]) not in self._quarantined}

    async def _find(
        self, wanted: Collection[TemplateName], *, held: Collection[TemplateName]
    ) -> dict[TemplateName, tuple[int, Bundle]]:
        """Return version and bundle of those that exist; of those that were held back the store is asked again."""
        found: dict[TemplateName, tuple[int, Bundle]] = {}
        asked: list[TemplateName] = []
        for tenant_id, key, version in wanted:
            bundle = None if version is None else self._bundles.get((tenant_id, key, version))
            if bundle is None or version is None or (tenant_id, key, version) in held:
                asked.append((tenant_id, key, version))
            else:
                found[tenant_id, key, version] = (version, bundle)
        for name, row in (await self._facts.find_templates(asked) if asked else {}).items():
            place = (name[0], row.template_key, row.version)
            bundle = self._bundles.get(place)
            if bundle is None:
                bundle = msgspec.json.decode(row.bundle, type=Bundle)
                self._bundles.put(place, bundle, size=bundle.size)
            self._note(place, quarantined=row.quarantined)
            found[name] = (row.version, bundle)
        return found

    def _note(self, place: tuple[str, str, int], *, quarantined: bool) -> None:
        if quarantined:
            self._quarantined.add(place)
        else:
            self._quarantined.discard(place)

    async def latest(self, wanted: Sequence[tuple[str, str]]) -> list[Published]:
        """Say what is published under these (tenant, key) names, in the order asked, and what time it is.

        Always asked of the store: what was published before the question is what counts. The bundles are mostly here.
        """
        latest = await self._facts.find_latest_versions(wanted)
        places = [(*name, latest.versions[name]) for name in dict.fromkeys(wanted) if name in latest.versions]
        loaded = {(tenant_id, key): one for (tenant_id, key, _), one in (await self._find(places, held=())).items()}
        for name, (version, _) in loaded.items():
            self._note((*name, version), quarantined=name in latest.quarantined)
        known = {
            name: Published(at=latest.at, version=version, bundle=bundle, quarantined=name in latest.quarantined)
            for name, (version, bundle) in loaded.items()
        }
        return [known.get(name) or Published(at=latest.at) for name in wanted]

    def is_quarantined(self, name: TemplateName) -> bool:
        """Tell whether a template was quarantined when it was last asked for; no I/O."""
        return name in self._quarantined

    def note_quarantine(self, tenant_id: str, bundle: Bundle) -> None:
        """Know from now on that a template version is quarantined, so that the store is asked whether it still is."""
        for place in self._bundles.names():
            found = self._bundles.get(place)
            if place[0] == tenant_id and found is not None and found.content_hash == bundle.content_hash:
                self._quarantined.add(place)

    def held(self, tenant_id: str, template_key: str, version: int) -> Bundle | None:
        """Return a bundle that is in memory already and not quarantined; no I/O."""
        place = (tenant_id, template_key, version)
        return None if place in self._quarantined else self._bundles.get(place)
