"""The whole line in one place: every stage over SQLite in memory, drained by hand, with a scripted provider."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from uuid import UUID

import msgspec

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.catalog.change import Change
from clarion.catalog.library import Library
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.catalog.publish import Publisher, compile_folder
from clarion.client.wire import Recipient, SendAnswer, SendRequest
from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.request import Trace
from clarion.domain.call import Accepted, Call, CallOutcome, Replay
from clarion.domain.call_times import CALL_TIMES, CallTimes
from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import Content, EmailContent
from clarion.domain.identity import Channel, Identity
from clarion.domain.timeline import JobTimeline, TimelineLine, timeline_lines
from clarion.operations.notification import answer_of, read_request
from clarion.pipeline.distribute import Accounts, CallObserver, Distribute, OpenCalls, Preparation, Slots
from clarion.pipeline.generate import Generate
from clarion.pipeline.schedule import Schedule
from clarion.pipeline.settle import Settle
from clarion.pipeline.track import Track
from clarion.ports.catalog import CatalogStore
from clarion.ports.provider import EVERY_CHANNEL
from clarion.ports.renderer import Bundle, Merge, Renderer
from clarion.producers.direct import DirectSends, origin_of
from clarion.sealing.contents import MessagingContents
from clarion.sealing.keyring import Keyring
from clarion.sealing.recipients import RecipientSets
from clarion.testing.blobs import MemoryBlobs
from clarion.testing.clock import ManualClock, SeededIds
from clarion.testing.store import SqliteInMemory
from clarion.testing.vault import SeededVault
from clarion.workers.janitor import Janitor

DEFINITIONS = Path(__file__).parents[2] / "src/clarion/cli/definitions"
TENANT = "school"
TRACE = Trace(correlation_id="c-1")
STAFF = UUID("6f1c2c7e-0000-4000-8000-0000000000aa")


@cache
def compiled(folder: Path) -> Sequence[Bundle]:
    """Compile the notifications of a folder that no test changes: once, because it takes longer than most tests."""
    return compile_folder(folder, open_renderer())


async def publish_compiled(store: CatalogStore, tenant_id: str, *, folder: Path = DEFINITIONS) -> None:
    """Publish the notifications of such a folder, as `Publisher` stores what it compiled."""
    changes = [Change.of(None, bundle) for bundle in compiled(folder)]
    await Publisher(catalog=store, renderer=open_renderer()).store(tenant_id, changes, actor="test")


class Scripted:
    """A provider that answers as the test says, and keeps what it was asked."""

    channels = EVERY_CHANNEL

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: list[CallOutcome | Callable[[], Coroutine[None, None, CallOutcome]]] = []
        self.replay = Replay()

    async def send(self, call: Call) -> CallOutcome:
        self.calls.append(call)
        if not self.answers:
            return Accepted(provider_message_id=f"p-{len(self.calls)}")
        answer = self.answers.pop(0)
        return await answer() if callable(answer) else answer

    async def close(self) -> None:
        pass


class Newer(LiquidRenderer):
    """The renderer of a newer program, which writes something else."""

    def merge(self, bundle: Bundle, channel: Channel, merge: Merge) -> Content:
        content = super().merge(bundle, channel, merge)
        if isinstance(content, EmailContent):
            return msgspec.structs.replace(content, subject=f"{content.subject}!")
        return content


class Line:
    """One process's stages over one store."""

    def __init__(
        self,
        store: SqliteInMemory,
        clock: ManualClock,
        provider: Scripted,
        *,
        account: str = "scripted",
        renderer: Renderer | None = None,
        slots: int | None = 10,
        times: CallTimes = CALL_TIMES,
        tenant_id: str = TENANT,
        public_url: str | None = None,
    ) -> None:
        self.public_url = public_url
        self.preparations: list[Preparation] = []
        self.store, self.clock, self.provider, self.account = store, clock, provider, account
        self.renderer = renderer or open_renderer()
        self.slots, self.times = slots, times
        self.keyring = Keyring(store, SeededVault())
        self.templates = Library(store)
        self.blobs = MemoryBlobs()
        self.dispatcher = DeliveryDispatcher(store=store, blobs=self.blobs, keyring=self.keyring)
        self.recipient_sets = RecipientSets(blobs=self.blobs, keyring=self.keyring)
        self.contents = MessagingContents(blobs=self.blobs, keyring=self.keyring)
        self.tenant_id, self.ids = tenant_id, SeededIds(tenant_id)
        self.sends = DirectSends(dispatcher=self.dispatcher, templates=self.templates, renderer=self.renderer)
        self.observe: CallObserver = lambda _message, _outcome, _took: None
        self.tasks: set[asyncio.Task[None]] = set()
        self.accounts = Accounts({account: provider}, clock=clock)
        self.pumps = [self._pump(channel) for channel in (Channel.EMAIL, Channel.SMS)]

    def _pump(self, channel: Channel) -> Distribute:
        preparation = Preparation(
            keyring=self.keyring,
            templates=self.templates,
            contents=self.contents,
            renderer=self.renderer,
            accounts=self.accounts,
            clock=self.clock,
            public_url=self.public_url,
        )
        self.preparations.append(preparation)
        calls = OpenCalls(
            accounts=self.accounts,
            slots=Slots(self.slots),
            spawn=self._spawn,
            clock=self.clock,
            wake=asyncio.Event(),
            timeout=self.times.timeout,
            observe=self._observed,
        )
        return Distribute(
            queue=self.store,
            routes={channel: self.account},
            preparation=preparation,
            calls=calls,
            clock=self.clock,
            ids=SeededIds(f"pump-{channel}"),
            times=self.times,
        )

    def _observed(self, message: ClaimedMessage, outcome: CallOutcome, took: float) -> None:
        self.observe(message, outcome, took)

    def _spawn(self, call: Coroutine[None, None, None]) -> None:
        self.tasks.add(asyncio.get_running_loop().create_task(call))

    async def seed(self, *, definitions: Path = DEFINITIONS) -> None:
        """Make the tenant with its notifications and a few people."""
        await self.dispatcher.ensure_tenant(self.tenant_id)
        await publish_compiled(self.store, self.tenant_id, folder=definitions)
        people = People(catalog=self.store, dispatcher=self.dispatcher, keyring=self.keyring)
        mail = ContactEntry(channel=Channel.EMAIL, destination="sam@example.com")
        phone = ContactEntry(channel=Channel.SMS, destination="+447700900001")
        await people.put(
            self.tenant_id,
            [
                PersonEntry(identity=Identity.user("1"), name="Sam Sample", contacts=(mail, phone)),
                PersonEntry(identity=Identity.user("2"), name="Kim Sample", contacts=()),
            ],
            trace=TRACE,
        )
        group = GroupEntry(guid=STAFF, name="Staff", members=(Identity.user("1"), Identity.user("2")))
        await people.put_group(self.tenant_id, group)

    async def send(
        self,
        type_: str = "welcome",
        to: str | Recipient = "sam@example.com",
        *,
        also: tuple[Recipient, ...] = (),
        key: str | None = None,
        **changes: object,
    ) -> SendAnswer:
        """Accept one notification."""
        recipient = Recipient(address=to) if isinstance(to, str) else to
        values: dict[str, object] = {"data": {"name": "Sam"}, **changes}
        return await self.accept(SendRequest(type=type_, to=(recipient, *also), **values), key=key)  # type: ignore[arg-type]

    async def accept(
        self, asked: SendRequest, *, key: str | None = None, tenant_id: str | None = None, may_raise: bool = True
    ) -> SendAnswer:
        """Accept a notification as the doors do."""
        tenant_id = tenant_id or self.tenant_id
        published, origin = await self.sends.look_up(tenant_id, asked.type), origin_of(key, self.ids)
        request = read_request(asked, origin=origin, source_at=published.at, actor="test", trace=TRACE)
        return answer_of(await self.sends.send(tenant_id, request, published, may_raise=may_raise))

    def generate(self) -> Generate:
        """Make the second stage."""
        return Generate(
            queue=self.store,
            facts=self.store,
            templates=self.templates,
            renderer=self.renderer,
            dispatcher=self.dispatcher,
            keyring=self.keyring,
            sets=self.recipient_sets,
            contents=self.contents,
            clock=self.clock,
        )

    async def queue(self) -> None:
        """Run the stages before the calls."""
        for step in (Schedule(queue=self.store, facts=self.store).step, self.generate().step):
            while await step():
                pass

    async def drain(self) -> None:
        """Run every stage until none has anything to do."""
        steps = [
            Schedule(queue=self.store, facts=self.store).step,
            self.generate().step,
            Track(events=self.store).step,
            Settle(queue=self.store, providers={self.account: self.provider}).step,
            Janitor(self.store).step,
            *(pump.step for pump in self.pumps),
        ]
        while True:
            for pump in self.pumps:
                pump.hint()
            done = sum([await step() for step in steps])
            if tasks := [*self.tasks]:
                await asyncio.gather(*tasks, return_exceptions=True)  # as the supervisor's guard, which logs them
                self.tasks.difference_update(tasks)  # what is merged apart starts its calls meanwhile
            elif not done:
                return

    async def wait(self, seconds: float) -> None:
        """Let time pass, then drain."""
        self.clock.advance(timedelta(seconds=seconds))
        await self.drain()

    async def timeline(self, sent: SendAnswer) -> JobTimeline:
        """Return all that is stored about a job."""
        timeline = await self.store.find_job_timeline(self.tenant_id, sent.job_id)
        assert timeline is not None
        return timeline

    async def told(self, sent: SendAnswer) -> list[TimelineLine]:
        """Return the timeline of a job."""
        return list(timeline_lines(await self.timeline(sent)))
