"""The library: published notifications in memory, by tenant, key and version.

A published version never changes, so what is here stays true; the latest version of a key does change, so it is asked
for every time. Reads templates from the store; writes nothing.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from clarion.ports.facts import FactStore
from clarion.ports.renderer import Bundle
from clarion.ports.templates import Published, TemplateName

BUNDLES_MAX: Final = 2000
"""Bundles in memory. One has some 30 kB, so all take tens of megabytes; one that was dropped is fetched again."""


class Library:
    """Bundles by name."""

    def __init__(self, facts: FactStore) -> None:
        """Start empty."""
        self._facts = facts
        self._bundles: dict[tuple[str, str, int], Bundle] = {}

    async def load(self, wanted: Collection[TemplateName]) -> dict[TemplateName, tuple[int, Bundle]]:
        """Return version and bundle of those that exist, from memory or from the store."""
        found: dict[TemplateName, tuple[int, Bundle]] = {}
        asked: list[TemplateName] = []
        for tenant_id, key, version in wanted:
            bundle = None if version is None else self._bundles.get((tenant_id, key, version))
            if bundle is None or version is None:
                asked.append((tenant_id, key, version))
            else:
                found[tenant_id, key, version] = (version, bundle)
        for name, row in (await self._facts.find_templates(asked) if asked else {}).items():
            place = (name[0], row.template_key, row.version)
            if place not in self._bundles:
                self._keep(place, msgspec.json.decode(row.bundle, type=Bundle))
            found[name] = (row.version, self._bundles[place])
        return found

    async def latest(self, wanted: Sequence[tuple[str, str]]) -> list[Published]:
        """Say what is published under these (tenant, key) names, in the order asked, and what time it is.

        Always asked of the store: what was published before the question is what counts. The bundles are mostly here.
        """
        latest = await self._facts.find_latest_versions(wanted)
        places = [(*name, latest.versions[name]) for name in dict.fromkeys(wanted) if name in latest.versions]
        loaded = {(tenant_id, key): one for (tenant_id, key, _), one in (await self.load(places)).items()}
        known = {
            name: Published(at=latest.at, version=version, bundle=bundle) for name, (version, bundle) in loaded.items()
        }
        return [known.get(name) or Published(at=latest.at) for name in wanted]

    def held(self, tenant_id: str, template_key: str, version: int) -> Bundle | None:
        """Return a bundle that is in memory already; no I/O."""
        return self._bundles.get((tenant_id, template_key, version))

    def _keep(self, place: tuple[str, str, int], bundle: Bundle) -> None:
        """Hold a bundle, dropping the one held longest where there are too many."""
        if len(self._bundles) >= BUNDLES_MAX:
            del self._bundles[next(iter(self._bundles))]
        self._bundles[place] = bundle
