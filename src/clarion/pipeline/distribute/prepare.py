"""Call preparation: from a claimed message to its call, or to the reason why none is made.

No I/O stands between a claim and its call (I-14). So keys and templates are brought into memory before the claim
(`open_tenants`, `load_templates`); opening, merging and judging after it happen in memory alone. Merging takes time
nevertheless: what is not merged in a quarter of the lease goes back, and between heavy merges everybody else in the
process has a turn, such as the requests of a server that works too.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
import structlog

from clarion.domain import key
from clarion.domain.backoff import not_called
from clarion.domain.call import Call, NotCalled
from clarion.domain.claim import ClaimedMessage
from clarion.domain.content import Content
from clarion.domain.hashing import keyed_digest
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.seal import TenantKeys
from clarion.errors import ClarionError, RenderFailed, SealBroken
from clarion.pipeline.distribute.accounts import Accounts
from clarion.ports.clock import Clock
from clarion.ports.renderer import Bundle, Renderer
from clarion.ports.templates import TemplateName, Templates
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import destination_place, payload_place

CONTENTS_MAX: Final = 200
"""Merged contents that are held for the next recipient of the same job: a few megabytes of mail."""

HOLD_MAX: Final = 0.005
"""Seconds of merging after which others have a turn: a hundred small messages are merged in less."""

Ready: TypeAlias = tuple[Call, str] | NotCalled
"""A message's call and its content's hash, or why there is none."""

log = structlog.get_logger("clarion.pipeline")


class Prepared(msgspec.Struct, frozen=True):
    """What came of a claim's messages, in their order, and how many seconds each flow took.

    `out_of_time` says that some of them were not merged for want of it.
    """

    messages: list[tuple[ClaimedMessage, Ready]]
    seconds: dict[int, float]
    out_of_time: bool


class Preparation:
    """Makes the calls of one pump."""

    def __init__(
        self, *, keyring: Keyring, templates: Templates, renderer: Renderer, accounts: Accounts, clock: Clock
    ) -> None:
        """Merge these templates with this renderer, for calls through these accounts."""
        self._keyring = keyring
        self._templates = templates
        self._renderer = renderer
        self._accounts = accounts
        self._clock = clock
        self._wanted: set[TemplateName] = set()
        self._missing: set[TemplateName] = set()  # asked for, and not in the store
        self._contents: dict[tuple[UUID, Channel], tuple[Content, str]] = {}

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

    async def load_templates(self) -> None:
        """Bring the templates into memory that claimed messages needed and did not find."""
        if self._wanted:
            loaded = await self._templates.load(self._wanted)
            self._missing = (self._missing | self._wanted) - loaded.keys()
            self._wanted = set()

    async def prepare(self, claimed: Sequence[ClaimedMessage], *, asked_at: float, merge_max: timedelta) -> Prepared:
        """Make the calls of a claim that was asked for at `asked_at`, by the monotonic clock. No byte leaves here."""
        until, now = asked_at + merge_max.total_seconds(), self._clock.monotonic()
        held_since = now
        messages: list[tuple[ClaimedMessage, Ready]] = []
        seconds: dict[int, float] = {}
        longest = 0.0
        for message in claimed:
            if now + longest > until:  # the calls that are ready would begin too late if one more merge took so long
                messages.append((message, NotCalled(reason="the merges before it took too long", counts=False)))
                continue
            ready, began = self._ready(message, asked_at), now
            now = self._clock.monotonic()
            longest = max(longest, now - began)
            seconds[message.flow_id] = seconds.get(message.flow_id, 0.0) + now - began
            if now > until and not isinstance(ready, NotCalled):
                ready = not_called(message, reason="its merge took too long")
            messages.append((message, ready))
            if now - held_since > HOLD_MAX:
                await asyncio.sleep(0)
                now = held_since = self._clock.monotonic()
        return Prepared(messages, seconds, out_of_time=now + longest > until)

    def _ready(self, message: ClaimedMessage, asked_at: float) -> Ready:
        """Put a message's call together, or say why there is none."""
        try:
            return self._put_together(message, asked_at)
        except RenderFailed as error:
            return NotCalled(reason=str(error), leads_to=OutgoingStatus.FAILED_FINAL)
        except ClarionError as error:
            return not_called(message, reason=str(error))
        except Exception:  # a defect: this message is not called, and the others of its claim are
            log.exception("a call could not be prepared", correlation_id=message.correlation_id)
            return not_called(message, reason="it could not be prepared")

    def _put_together(self, message: ClaimedMessage, asked_at: float) -> Ready:
        """Open and merge in memory, and judge whether the call may be made."""
        keys = self._keyring.held(message.tenant_id)
        name = message.template_key or message.event_type
        bundle = self._templates.held(message.tenant_id, name, message.template_version or 0)
        if keys is None:
            return not_called(message, reason="the tenant's keys were not in memory yet")
        if bundle is None:
            template = (message.tenant_id, name, message.template_version)
            self._wanted.add(template)
            if template in self._missing:
                return not_called(message, reason=f"there is no template {name!r} in its version")
            # This never ends the row, however often it happens: a worker that was just started has no template.
            return NotCalled(reason="the template was not in memory yet", counts=False)
        content, content_hash = self._merged(keys, bundle, message)
        if message.content_hash not in (None, content_hash):
            return NotCalled(
                reason="a retry repeats the same bytes or nothing, and these would differ",
                leads_to=OutgoingStatus.FAILED_FINAL,
            )
        if not self._may_call(message, asked_at):
            return NotCalled(
                reason="not repeated: an earlier call may have arrived, and a second one would not be harmless now",
                leads_to=OutgoingStatus.UNCERTAIN,
            )
        return _call(keys, message, content), content_hash

    def _merged(self, keys: TenantKeys, bundle: Bundle, message: ClaimedMessage) -> tuple[Content, str]:
        """Merge a job's data once for all of its recipients on a channel; job, data and version never change."""
        place = (message.job_guid, message.channel)
        merged = self._contents.get(place)
        if merged is None:
            content = self._renderer.render(bundle, message.channel, _data(keys, message))
            merged = content, keyed_digest(keys.identity_key, msgspec.to_builtins(content))
            if len(self._contents) >= CONTENTS_MAX:
                del self._contents[next(iter(self._contents))]
            self._contents[place] = merged
        return merged

    def _may_call(self, message: ClaimedMessage, asked_at: float) -> bool:
        """Tell whether no earlier call may have arrived, or whether a second one would do no harm."""
        if message.unknown_for is None or message.replay_authorised:
            return True
        # The store's clock, and what has passed since the claim was asked for: this host's wall clock may be wrong.
        since_claim = timedelta(seconds=self._clock.monotonic() - asked_at)
        replay = self._accounts.providers[message.account].replay
        return replay.allows(unknown_for=message.unknown_for + since_claim)


def _data(keys: TenantKeys, message: ClaimedMessage) -> dict[str, object]:
    """Open the merge data of a message's job."""
    if message.payload is None:
        return {}
    opened = payload_place(message.job_guid).open(keys, message.payload)
    data: dict[str, object] = msgspec.json.decode(opened)["data"]
    return data


def _call(keys: TenantKeys, message: ClaimedMessage, content: Content) -> Call:
    """Open the destination and put the call together."""
    place = destination_place(
        recipient_id_hash=message.recipient_id_hash, channel=message.channel, serial=message.address_serial
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
        destination=place.open(keys, message.ciphertext).decode(),
        content=content,
        attempt=message.attempts,
        correlation_id=message.correlation_id,
        traceparent=message.traceparent,
    )
