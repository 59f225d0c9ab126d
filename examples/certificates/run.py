"""From a table of certificates to mails and lines in an inbox, five weeks in a few seconds: see README.md.

Everything is the real thing: the store, the planner, the workers, the templates, and the sandbox as the provider of
mail. Only the clock is not. It stands until it is set, so the workers find what is due at each moment and nothing else.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from clarion.bootstrap import Platform, load_settings, open_platform, prepare
from clarion.catalog.people import ContactEntry, People, PersonEntry
from clarion.catalog.publish import Publisher
from clarion.client.wire import NotificationQuery
from clarion.client.wire_automation import AutomationQuery
from clarion.client.wire_events import EventQuery
from clarion.client.wire_inbox import InboxQuery
from clarion.client.wire_reminders import ReminderRequest
from clarion.dispatch.request import Trace
from clarion.domain.audience import Addressee
from clarion.domain.content import EmailContent
from clarion.domain.entity_event import EventStatus
from clarion.domain.identity import Channel, Identity
from clarion.domain.local_time import to_local
from clarion.domain.person import LocalForm
from clarion.domain.reminder import DateRule
from clarion.domain.result import Result
from clarion.operations import Operations
from clarion.ports.automation import Standing
from clarion.sandbox.ledger import Ledger
from clarion.testing.clock import ManualClock
from clarion.workers.supervisor import Supervisor
from clarion.workers.wake_up import Topic, WakeUp

HERE = Path(__file__).parent
TENANT, ZONE = "school", "Europe/Vienna"
START = datetime(2026, 3, 20, 9, 0, tzinfo=UTC)  # nine days before the clocks go forward in Vienna
RENEWAL = datetime(2026, 3, 25, 12, 0, tzinfo=UTC)
END = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
JUST = timedelta(milliseconds=1)  # behind the moment at which something is due, as workers always come

OFFICE, DESK = Identity.user("office"), Identity.user("desk")
BY_MAIL = ReminderRequest(
    name="Two weeks before, and on the day",
    source_type="certificate",
    rule=DateRule(field="expires", offsets=(14, 0)),
    send_time="09:00",
    notification_type="certificate-expires",
    recipients=(Addressee(role="office"),),
)
AT_NIGHT = ReminderRequest(
    name="For whoever has the night shift",
    source_type="certificate",
    rule=DateRule(field="expires", offsets=(14,)),
    send_time="02:30",
    notification_type="certificate-expires",
    recipients=(Addressee(role="desk"),),
    inbox_only=True,
)


class Office:
    """One installation of its own, whose time passes when it is told to."""

    def __init__(self, platform: Platform, clock: ManualClock, home: Path, wake_up: WakeUp) -> None:
        """Work on this platform by this clock; what is sent is found in the sandbox's file in the home."""
        self._platform = platform
        self._clock = clock
        self._outbox = Ledger(home / "sandbox.db")
        self._wake_up = wake_up
        self._operations = Operations(platform, wake=lambda _: None)
        self._trace = Trace(correlation_id="example")
        self._told: set[object] = set()

    async def set_up(self) -> None:
        """Make the tenant with its people, its notification and its reminder settings."""
        store, e = self._platform.store, self._platform
        await e.dispatcher.ensure_tenant(TENANT)
        await store.set_tenant_form(TENANT, LocalForm(tz_id=ZONE), actor="example")
        await Publisher(catalog=store, renderer=e.renderer).publish(TENANT, folder=HERE, actor="example")
        people = People(catalog=store, dispatcher=e.dispatcher, keyring=e.keyring)
        mail = ContactEntry(channel=Channel.EMAIL, destination="office@example.com")
        office = PersonEntry(identity=OFFICE, name="Kim Sample", contacts=(mail,))
        await people.put(
            TENANT, [office, PersonEntry(identity=DESK, name="Sam Sample", contacts=())], trace=self._trace
        )
        keys = await e.keyring.get(TENANT)
        for role, who in (("office", OFFICE), ("desk", DESK)):
            await store.change_holders(TENANT, role, unit=None, add=[keys.hash_of(who)], remove=[], actor="example")
        for number, setting in enumerate((BY_MAIL, AT_NIGHT), start=1):
            await self._operations.reminders.put(TENANT, UUID(int=number), setting, actor="example")

    async def bring_in(self, table: str) -> None:
        """Import a table of certificates, have them planned, and say what came of it."""
        with (HERE / table).open("rb") as file:
            counted = await self._operations.source_tables.import_sources(
                TENANT,
                "certificate",
                file.readline,
                actor="example",
                trace=self._trace,
                note=lambda bad: self._say(f"{table}, row {bad.row}, {bad.column}: {bad.reason}"),
                progress=lambda _rows: None,
            )
        await self._work()
        waiting = await self._operations.automation.list(TENANT, AutomationQuery(limit=100))
        self._say(f"{table}: {counted.changed} changed, {counted.refused} refused; {len(waiting.items)} reminders wait")

    async def pass_until(self, end: datetime) -> None:
        """Let the time pass from one due moment to the next, and say what happens at each."""
        while True:
            following = await self._platform.store.list_occurrences(
                TENANT, standing=Standing.WAITING, until=end, limit=1
            )
            moment = (following[0].due_at if following else end) + JUST
            self._clock.advance(moment - self._clock.now())
            await self._work()
            await self._tell()
            if not following:
                return

    async def _work(self) -> None:
        """Let the workers do all that there is to do now."""
        while not await self._is_idle():
            for topic in Topic:
                self._wake_up.hear(topic)
            await asyncio.sleep(0.01)

    async def _is_idle(self) -> bool:
        """Tell whether nothing is left to do: asked in the order in which one thing leads to the next."""
        settings = await self._platform.store.list_reminders(TENANT, limit=10)
        if any(one.planned_version != one.version for one in settings):
            return False
        for status in (EventStatus.READY, EventStatus.PROCESSING):
            if (await self._operations.events.list(TENANT, EventQuery(status=status, limit=1), whole=False)).items:
                return False
        for standing in (Standing.DUE, Standing.PROCESSING):
            if (await self._operations.automation.list(TENANT, AutomationQuery(standing=standing, limit=1))).items:
                return False
        waiting = NotificationQuery(result=Result.WAITING, limit=1)
        return not (await self._operations.notifications.list(TENANT, waiting, whole=False)).items

    async def _tell(self) -> None:
        """Say what came since the last look."""
        for mail in reversed(self._outbox.page(limit=100).messages):
            if isinstance(mail.content, EmailContent):
                self._once(mail.id, f"mail to {mail.destination}: {mail.content.subject}")
        for who in (OFFICE, DESK):
            found = await self._operations.inboxes.list(TENANT, who, InboxQuery(limit=100), whole=True)
            for line in reversed(found.items):
                self._once(line.message_id, f"inbox of {who.id}: {line.title}")

    def _once(self, what: object, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._say(text)

    def _say(self, text: str) -> None:
        now = self._clock.now()
        print(f"{to_local(now, ZONE):%a %Y-%m-%d %H:%M %Z} ({now:%H:%M} UTC)  {text}")

    def close(self) -> None:
        """Let go of the sandbox's file."""
        self._outbox.close()


@asynccontextmanager
async def working(platform: Platform, wake_up: WakeUp) -> AsyncIterator[None]:
    """Run the workers of `clarion work` beside what is done meanwhile."""
    supervisor = Supervisor(platform, wake_up=wake_up, channels=(Channel.EMAIL,))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        try:
            yield
        finally:
            supervisor.stop()


async def main(home: Path) -> None:
    """Play five weeks through in a folder."""
    clock, wake_up = ManualClock(START), WakeUp()
    settings = load_settings({"CLARION_HOME": str(home)})
    await prepare(settings)
    async with open_platform(settings, by=clock) as platform, working(platform, wake_up):
        office = Office(platform, clock, home, wake_up)
        try:
            await office.set_up()
            await office.bring_in("certificates.csv")
            await office.pass_until(RENEWAL)
            await office.bring_in("renewed.csv")
            await office.pass_until(END)
            await office.bring_in("renewed.csv")  # again: nothing changes, and nobody is told twice
        finally:
            office.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
