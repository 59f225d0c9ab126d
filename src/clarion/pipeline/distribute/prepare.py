"""Call preparation: from a claimed message to its call, or to the reason why none is made.

No I/O stands between a claim and its call (I-14). So keys, templates and the contents of messaging jobs are brought
into memory before the claim (`open_tenants`, `fetch`); opening, merging and judging after it happen in memory alone.
What goes into the same parts is merged together, and each job once for all of its recipients on a channel who read the
same; a profile is opened only where the parts read it. Merging takes time nevertheless: what is not merged in a quarter
of the lease goes back. A renderer in this process cannot stop a merge, so the one that ran on beyond that counts
against its row. One that merges elsewhere answers when the time is over with what was merged until then, and nobody of
those is to blame.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec
import structlog

from clarion.domain import key
from clarion.domain.backoff import not_called
from clarion.domain.call import Call, NotCalled
from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import Content
from clarion.domain.hashing import keyed_digest
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel
from clarion.domain.messaging_content import MessagingContent
from clarion.domain.one_time_code import erased
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.seal import TenantKeys
from clarion.domain.unsubscribe import unsubscribe_headers
from clarion.errors import BrokenInvariant, ClarionError, RenderFailed, SealBroken
from clarion.pipeline.distribute.accounts import Accounts
from clarion.pipeline.distribute.at_hand import AtHand
from clarion.pipeline.distribute.own_links import has_own_links, unsubscription_of, with_own_links
from clarion.ports.clock import Clock
from clarion.ports.renderer import LATE, Bundle, Merge, Merged, NotMerged, Renderer
from clarion.ports.templates import Templates
from clarion.sealing.contents import MessagingContents
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import open_destination, open_profile, payload_place

CONTENTS_MAX: Final = 200
"""Merged contents that are held for the next recipient of the same job: a few megabytes of mail."""

OTHER_BYTES: Final = "a retry repeats the same bytes, and these would differ: the program or a library is at fault"

Ready: TypeAlias = tuple[Call, str] | NotCalled
"""A message's call and its content's hash, or why there is none."""

Place: TypeAlias = tuple[UUID, Channel, str | None, str | None, int | None]
"""Whose content it is: job, channel, language, zone, and the person's version where the parts read who gets it. None of
what stands behind these ever changes, so all recipients of a job who agree in them share a content."""

T = TypeVar("T")

log = structlog.get_logger("clarion.pipeline")


class Prepared(msgspec.Struct, frozen=True):
    """What came of a claim's messages, in their order, and how many seconds each flow took.

    `out_of_time` says that some of them were not merged for want of it.
    """

    messages: list[tuple[ClaimedMessage, Ready]]
    seconds: dict[int, float]
    out_of_time: bool


class _Opened(msgspec.Struct, frozen=True):
    """A message of a claim by its position, with the keys, the template and the content that its call needs."""

    position: int
    message: ClaimedMessage
    keys: TenantKeys
    bundle: Bundle
    content: MessagingContent | None

    @property
    def is_personal(self) -> bool:
        """Whether its content reads who gets it."""
        return self.message.person_version_id is not None and self.bundle.reads_recipient(self.message.channel)

    @property
    def is_held(self) -> bool:
        """Whether its content is worth holding, and may be.

        What is personal is for nobody else, and a one-time code must lie nowhere when it is over (X-23).
        """
        return not (self.is_personal or self.bundle.definition.one_time_code)

    @property
    def place(self) -> Place:
        """Whose its content is."""
        message = self.message
        version = message.person_version_id if self.is_personal else None
        return message.job_guid, message.channel, message.locale, message.tz_id, version


class _Held(msgspec.Struct, frozen=True):
    """What a job's payload comes to on a channel: its content with the hash, and the hints for the provider."""

    content: Content
    content_hash: str
    hints: Hints | None
    has_own_links: bool


class _Batch(msgspec.Struct, frozen=True):
    """What is merged into the same parts: each content once, for all messages that are waiting for it."""

    merges: dict[Place, Merge]
    hints: dict[Place, Hints | None]
    waiting: dict[Place, list[_Opened]]


class Preparation:
    """Makes the calls of one pump."""

    def __init__(
        self,
        *,
        keyring: Keyring,
        templates: Templates,
        contents: MessagingContents,
        renderer: Renderer,
        accounts: Accounts,
        clock: Clock,
        public_url: str | None = None,
    ) -> None:
        """Merge these templates with this renderer, for calls through these accounts; links begin with this URL."""
        self._keyring = keyring
        self._at_hand = AtHand(templates=templates, contents=contents)
        self._renderer = renderer
        self._accounts = accounts
        self._clock = clock
        self._public_url = public_url
        self._contents: dict[Place, _Held] = {}
        self.is_apart = renderer.is_apart
        """Whether others can work while merges are made."""

    async def open_tenants(self, tenant_ids: Collection[str]) -> set[str]:
        """Bring the keys of tenants into memory; return the tenants whose keys do not open."""
        broken: set[str] = set()
        for tenant_id in tenant_ids:
            try:
                await self._keyring.get(tenant_id)
            except SealBroken as error:
                log.warning("a tenant's keys do not open", tenant_id=tenant_id, error=str(error))
                broken.add(tenant_id)
        return broken

    async def fetch(self) -> None:
        """Bring the templates and contents into memory that claimed messages needed and did not find."""
        await self._at_hand.fetch()

    async def prepare(self, claimed: Sequence[ClaimedMessage], *, asked_at: float, merge_max: timedelta) -> Prepared:
        """Make the calls of a claim that was asked for at `asked_at`, by the monotonic clock. No byte leaves here."""
        until = asked_at + merge_max.total_seconds()
        answers: dict[int, Ready] = {}  # by position in the claim
        batches = self._open(claimed, answers, asked_at)
        seconds: dict[int, float] = {}
        now, longest = self._clock.monotonic(), 0.0
        for batch in batches:
            merged: Sequence[Merged] = [NotMerged(LATE)] * len(batch.merges)
            began = now
            if now + longest <= until:  # or else the calls that are ready begin too late if one more takes so long
                merged = await self._render(batch, seconds_max=until - now)
                now = self._clock.monotonic()
            made = [place for place, one in zip(batch.merges, merged, strict=True) if not isinstance(one, NotMerged)]
            for place in made:
                flow_id = batch.waiting[place][0].message.flow_id
                seconds[flow_id] = seconds.get(flow_id, 0.0) + (now - began) / len(made)
                longest = max(longest, (now - began) / len(made))
            self._answer(batch, merged, answers, asked_at)
            if made and now > until and not self.is_apart:  # only the one whose own merge took the time is to blame
                self._blame(batch.waiting[made[-1]][0], answers)
        messages = [(message, answers[position]) for position, message in enumerate(claimed)]
        return Prepared(messages, seconds, out_of_time=now + longest > until)

    def _open(
        self, claimed: Sequence[ClaimedMessage], answers: dict[int, Ready], asked_at: float
    ) -> Collection[_Batch]:
        """Answer for the messages that need no merge, and put the others into batches."""
        batches: dict[tuple[str, str, Channel], _Batch] = {}
        for position, message in enumerate(claimed):
            opened = _guarded(message, partial(self._opened, position, message))
            if isinstance(opened, NotCalled):
                answers[position] = opened
            elif (held := self._contents.get(opened.place)) is not None:
                answers[position] = _guarded(message, partial(self._ready, opened, held, asked_at=asked_at))
            else:
                parts = (message.tenant_id, opened.bundle.content_hash, message.channel)
                batch = batches.setdefault(parts, _Batch({}, {}, {}))
                batch.waiting.setdefault(opened.place, []).append(opened)
        payloads: dict[UUID, _Payload] = {}
        for batch in batches.values():
            for place, waiting in [*batch.waiting.items()]:
                read = _guarded(waiting[0].message, partial(self._merge, waiting[0], payloads))
                if isinstance(read, NotCalled):
                    answers |= {one.position: not_called(one.message, reason=read.reason) for one in waiting}
                    del batch.waiting[place]
                else:
                    batch.merges[place], batch.hints[place] = read
        return [batch for batch in batches.values() if batch.merges]

    def _opened(self, position: int, message: ClaimedMessage) -> _Opened | NotCalled:
        """Find what a message's merge and call need in memory, or say what is not there yet."""
        keys = self._keyring.held(message.tenant_id)
        if keys is None:
            return not_called(message, reason="the tenant's keys were not in memory yet")
        bundle = self._at_hand.bundle(message)
        if isinstance(bundle, NotCalled):
            return bundle
        if bundle.definition.one_time_code and message.payload is None:
            return NotCalled(reason=erased().message, leads_to=OutgoingStatus.FAILED_FINAL)
        content = self._at_hand.content(message)
        if isinstance(content, NotCalled):
            return content
        return _Opened(position, message, keys, bundle, content)

    def _merge(self, one: _Opened, payloads: dict[UUID, "_Payload"]) -> tuple[Merge, Hints | None]:
        """Open what a message is merged from: its job's payload, once for all of a claim, and its profile if read."""
        message = one.message
        payload = payloads.get(message.job_guid)
        if payload is None:
            payload = payloads[message.job_guid] = _payload(one)
        merge = Merge(
            payload.data,
            locale=message.locale or "",
            zone=message.tz_id or "UTC",
            recipient=_profile(one.keys, message) if one.is_personal else {},
            entity=payload.entity,
            public_url=self._public_url or "",
        )
        return merge, payload.hints

    async def _render(self, batch: _Batch, *, seconds_max: float) -> list[Merged]:
        """Have a batch merged; a renderer with a defect leaves its messages without a call, not without an outcome."""
        first = next(iter(batch.waiting.values()))[0]
        try:
            return await self._renderer.render(
                first.bundle,
                first.message.channel,
                [*batch.merges.values()],
                tenant_id=first.message.tenant_id,
                seconds_max=seconds_max,
            )
        except Exception:  # a defect of the renderer: these messages are tried again, and others are sent
            log.exception("a batch could not be merged", tenant_id=first.message.tenant_id)
            return [NotMerged("it could not be prepared", counts=True)] * len(batch.merges)

    def _answer(self, batch: _Batch, merged: Sequence[Merged], answers: dict[int, Ready], asked_at: float) -> None:
        """Answer for the messages of a batch by what came of its merges, and hold the contents for the next claims."""
        for (place, waiting), one in zip(batch.waiting.items(), merged, strict=True):
            match one:
                case RenderFailed():
                    failed = NotCalled(reason=str(one), leads_to=OutgoingStatus.FAILED_FINAL)
                    answers |= {opened.position: failed for opened in waiting}
                case NotMerged(reason=reason, counts=True):
                    answers |= {opened.position: not_called(opened.message, reason=reason) for opened in waiting}
                case NotMerged(reason=reason, is_held=is_held):
                    waits = NotCalled(reason=reason, counts=False, is_held=is_held)
                    answers |= {opened.position: waits for opened in waiting}
                case _:
                    content_hash = keyed_digest(waiting[0].keys.identity_key, msgspec.to_builtins(one))
                    held = _Held(one, content_hash, batch.hints[place], has_own_links(one, self._public_url))
                    if waiting[0].is_held:
                        self._hold(place, held)
                    for opened in waiting:
                        ready = partial(self._ready, opened, held, asked_at=asked_at)
                        answers[opened.position] = _guarded(opened.message, ready)

    def _hold(self, place: Place, held: _Held) -> None:
        """Keep a content for the next recipient of its job, in the place of the one that came first."""
        if len(self._contents) >= CONTENTS_MAX:
            del self._contents[next(iter(self._contents))]
        self._contents[place] = held

    def _blame(self, opened: _Opened, answers: dict[int, Ready]) -> None:
        if not isinstance(answers[opened.position], NotCalled):
            answers[opened.position] = not_called(opened.message, reason="its merge took too long")

    def _ready(self, opened: _Opened, held: _Held, *, asked_at: float) -> Ready:
        """Judge whether a merged message may be called, and put its call together."""
        message = opened.message
        if message.content_hash not in (None, held.content_hash):
            # All that it is merged from is frozen, so only a defect of ours, or a changed library, can do this.
            log.critical(
                "a message would say something else than before", outgoing_id=message.id, tenant_id=message.tenant_id
            )
            return NotCalled(reason=OTHER_BYTES, counts=False, is_defect=True)
        if not self._may_call(message, asked_at):
            return NotCalled(
                reason="not repeated: an earlier call may have arrived, and a second one would not be harmless now",
                leads_to=OutgoingStatus.UNCERTAIN,
            )
        content = self._with_own_links(opened, held.content) if held.has_own_links else held.content
        return _call(opened, content, held.hints, headers=self._headers(opened)), held.content_hash

    def _headers(self, opened: _Opened) -> Mapping[str, str]:
        """Offer to unsubscribe in the head of a mail whose type lets people do so, if there is a place to do it."""
        message, definition = opened.message, opened.bundle.definition
        if message.channel is not Channel.EMAIL or not definition.may_unsubscribe or self._public_url is None:
            return {}
        wanted = unsubscription_of(message, definition)
        return unsubscribe_headers(opened.keys, wanted, public_url=self._public_url)

    def _with_own_links(self, opened: _Opened, content: Content) -> Content:
        """Write the links that are the recipient's own into a content."""
        url = self._public_url or ""
        return with_own_links(content, opened.keys, opened.message, opened.bundle.definition, public_url=url)

    def _may_call(self, message: ClaimedMessage, asked_at: float) -> bool:
        """Tell whether no earlier call may have arrived, or whether a second one would do no harm."""
        if message.unknown_for is None or message.replay_authorised:
            return True
        # The store's clock, and what has passed since the claim was asked for: this host's wall clock may be wrong.
        since_claim = timedelta(seconds=self._clock.monotonic() - asked_at)
        replay = self._accounts.providers[message.account].replay
        return replay.allows(unknown_for=message.unknown_for + since_claim)


def _guarded(message: ClaimedMessage, step: Callable[[], T]) -> T | NotCalled:
    """Take a step for one message: whatever it raises, this message is not called, and the others of its claim are."""
    try:
        return step()
    except ClarionError as error:
        return not_called(message, reason=str(error))
    except Exception:  # a defect
        log.exception("a call could not be prepared", correlation_id=message.correlation_id)
        return not_called(message, reason="it could not be prepared")


class _Payload(msgspec.Struct, frozen=True):
    """What a call needs of a job's payload; the recipients, of which there may be many, are not read."""

    data: Mapping[str, object] = {}
    entity: Mapping[str, object] = {}
    hints: Hints | None = None


_PAYLOAD: Final = msgspec.json.Decoder(_Payload)


def _payload(one: _Opened) -> _Payload:
    """Open the payload of a message's job, or take the content of its messaging job."""
    if one.content is not None:
        return _Payload(one.content.data, one.content.entity, one.content.hints)
    if one.message.payload is None:
        return _Payload()
    return _PAYLOAD.decode(payload_place(one.message.job_guid).open(one.keys, one.message.payload))


def _profile(keys: TenantKeys, message: ClaimedMessage) -> dict[str, object]:
    """Open the profile that a message was made with."""
    if message.profile is None or message.profile_hash is None:
        raise BrokenInvariant("the version of the profile that it was made with is not stored")
    names = {"recipient_id_hash": message.recipient_id_hash, "profile_hash": message.profile_hash}
    return open_profile(keys, message.profile, **names)


def _call(opened: _Opened, content: Content, hints: Hints | None, *, headers: Mapping[str, str]) -> Call:
    """Open the destination and put the call together."""
    keys, message = opened.keys, opened.message
    destination = open_destination(
        keys,
        message.ciphertext,
        recipient_id_hash=message.recipient_id_hash,
        channel=message.channel,
        key_hash=message.key_hash,
        serial=message.address_serial,
    )
    return Call(
        idempotency_key=key.idempotency_key(
            message_id=message.message_id,
            channel=message.channel,
            recipient_key_hash=message.key_hash,
            attempt_no=message.attempt_no,
        ),
        message_id=message.message_id,
        tenant_id=message.tenant_id,
        channel=message.channel,
        destination=destination,
        content=content,
        headers=headers,
        hints=hints,
        attempt=message.attempts,
        correlation_id=message.correlation_id,
        traceparent=message.traceparent,
    )
