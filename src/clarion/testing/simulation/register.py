"""The register: what an application itself knows of its rooms, and the plugin that tells the platform of them.

It lies outside of the platform: nothing is ever lost in it, and what it says is true. A transaction of the application
may commit a while after it has stamped its rows. The plugin is asked in the process itself instead of in a thread of
its own, behind the weather as any port is.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from clarion.domain.source import SourceContent, SourceFacts
from clarion.errors import PluginFailed
from clarion.ports.reminding import ScanBounds, ScanPage
from clarion.ports.source import SourceScan
from clarion.producers.apart import Apart, Question, T
from clarion.producers.plugin import Plugin
from clarion.testing.simulation import society
from clarion.testing.simulation.agenda import METRIC, ROOM, Said, SourcePlan
from clarion.testing.simulation.notes import Asked, Setting
from clarion.testing.simulation.option import Fault
from clarion.testing.simulation.weather import Weather

PAGE: Final = 1
"""Rooms on a page of a scan, so that one takes several."""

EVERY: Final = timedelta(seconds=30)
"""Rounds of repairs are so near that some come between the stamp of a change and its commit."""

TRANSACTION_MAX: Final = 600.0
"""Seconds by the clock of the stamps that a transaction of the application may take; the overlap is longer."""

NOWHERE: Final = Said(there=False, day=None, amount=0, unit=None)
"""A source that nobody has told of."""


class Register:
    """The rooms as their application knows them."""

    source_type = ROOM
    bounds = ScanBounds(every=EVERY, batch_size=PAGE)

    def __init__(self, *, seconds: Callable[[], float], store_seconds: Callable[[], float]) -> None:
        """Know of no rooms; rows are stamped by the clock that the platform has too."""
        self._seconds = seconds
        self._store_seconds = store_seconds
        self._rows: dict[str, list[tuple[float, float, Said]]] = {}  # when it is committed, its stamp
        self._plans: dict[str, SourcePlan] = {}

    def write(self, plan: SourcePlan, said: Said, history: Setting[Said], *, late_by: float) -> None:
        """Change a room; the change is seen when its transaction has committed."""
        self._plans[plan.id] = plan
        at = self._seconds() + late_by
        self._rows.setdefault(plan.id, []).append((at, self._store_seconds(), said))
        committed = Asked("commit", plan.id, at=at)
        committed.done(True, at=at)
        history.change(committed, said)

    def committed(self, plan: SourcePlan) -> None:
        """Stamp the last change of a room anew where the clock says that its transaction took longer than is allowed.

        The platform finds only what commits within the overlap; the clock may have leaped meanwhile.
        """
        at, stamp, said = self._rows[plan.id][-1]
        if self._store_seconds() - stamp > TRANSACTION_MAX:
            self._rows[plan.id][-1] = (at, self._store_seconds(), said)

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these rooms as they are now."""
        found = {source: self._seen(source) for source in sources}
        return {source: self._facts(source, row[2]) for source, row in found.items() if row is not None}

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of the rooms that changed; none of them has a date."""
        since = datetime.min.replace(tzinfo=UTC) if scan.changed_since is None else scan.changed_since
        found = {source: self._seen(source) for source in sorted(self._rows) if source > scan.after}
        changed = [
            self._facts(source, row[2])
            for source, row in found.items()
            if row is not None and row[2].there and datetime.fromtimestamp(row[1], UTC) >= since
        ]
        page = changed[: scan.limit]
        return ScanPage(facts=page, cursor=page[-1].source if len(changed) > len(page) else None)

    def _seen(self, source: str) -> tuple[float, float, Said] | None:
        """Return the last row of a room that is committed."""
        committed = [row for row in self._rows.get(source, ()) if row[0] <= self._seconds()]
        return max(committed, key=lambda row: row[0], default=None)

    def _facts(self, source: str, said: Said) -> SourceFacts:
        return SourceFacts(
            source_type=ROOM,
            source=source,
            entity=self._plans[source].entity,
            business_unit=None if said.unit is None else society.UNITS[said.unit],
            active=said.there,
            content=SourceContent(metrics={METRIC: float(said.amount)}),
        )


class Here(Apart):
    """Asks a plugin in the process itself; now and then it raises."""

    def __init__(self, weather: Weather) -> None:
        """Ask behind the weather."""
        super().__init__("register")
        self._weather = weather

    async def ask(self, what: str, question: Question[T]) -> T:
        """Return what the plugin answers."""
        await self._weather.before(f"plugin {what}")
        if self._weather.strikes(Fault.PLUGIN):
            raise PluginFailed("the plugin of the rooms raised something", hint="ask again")
        answer = await question()
        await self._weather.after(f"plugin {what}", answer)
        return answer


class RoomPlugin(Plugin):
    """The plugin of the rooms in one process."""

    def __init__(self, register: Register, weather: Weather) -> None:
        """Tell of this register."""
        super().__init__("rooms", register)
        self._apart = Here(weather)
