"""A plugin of `clarion.reminders`: what is asked of a stranger's provider, and what of its answers is let in.

A provider is registered with its bounds, which are checked once. Each answer is judged where it is given, in the
plugin's own thread: it must be of the shape that its contract says, within its limits and about what was asked, and
what is let in is a copy, so that the plugin can change nothing afterwards. Anything else is PluginFailed. Reads and
writes nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, TypeGuard

import msgspec

from clarion.domain import destination
from clarion.domain.entity_event import EntityEvent
from clarion.domain.identity import IdentityDomain
from clarion.domain.misfit import read_misfit
from clarion.domain.recipient import INLINE_MAX, Target
from clarion.domain.reminder import ReminderSetting
from clarion.domain.source import SourceFacts, SourceId, SourceType, require_content
from clarion.errors import BadConfiguration, InvalidInput, PluginFailed
from clarion.ports.reminding import (
    BATCH_MAX,
    OVERLAP_MIN,
    WINDOW_DAYS_MAX,
    Delivery,
    DeliveryPolicy,
    Immediate,
    ImmediateProvider,
    InvalidationProvider,
    LongRunner,
    RecipientProvider,
    ScanBounds,
    ScanPage,
    TriggerProvider,
)
from clarion.ports.source import SourceScan
from clarion.producers.apart import PATIENCE, Apart, Patience

Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
"""The cursor of a scan: it is stored between two pages, and is an id or a few."""


class Plugin:
    """One provider of a stranger's, registered under the name of its entry point."""

    def __init__(self, name: str, provider: object, *, patience: Patience = PATIENCE) -> None:
        """Register a provider; raise BadConfiguration where it is none, or says no bounds that can be kept."""
        if not isinstance(provider, TriggerProvider):
            missing = [one for one in ("source_type", "bounds", "load", "scan") if not hasattr(provider, one)]
            raise _unusable(name, f"has no {' and no '.join(missing)}", "give it everything that TriggerProvider names")
        self.source_type = _source_type(name, provider.source_type)
        self.bounds = _bounds(name, provider.bounds)
        self.event_types = _event_types(name, provider) if isinstance(provider, InvalidationProvider) else frozenset()
        self.long_runner = isinstance(provider, LongRunner) and provider.long_runner is True
        self.names_recipients = isinstance(provider, RecipientProvider)
        self.name = name
        self._provider = provider
        self._apart = Apart(name, patience=patience)

    async def load(self, tenant_id: str, sources: Collection[str]) -> Mapping[str, SourceFacts]:
        """Return these sources as they are now, by id."""
        asked, provider = tuple(sources), self._provider

        async def question() -> dict[str, SourceFacts]:
            found: object = await provider.load(tenant_id, asked)
            if not isinstance(found, Mapping) or not found.keys() <= set(asked):
                raise self._rubbish("load", "it is no mapping of sources that were asked for")
            return {source: self._facts("load", one, source=source) for source, one in found.items()}

        return await self._apart.ask("load", question)

    async def scan(self, tenant_id: str, scan: SourceScan) -> ScanPage:
        """Return a page of active sources."""

        async def question() -> ScanPage:
            page: object = await self._provider.scan(tenant_id, scan)
            if not isinstance(page, ScanPage) or not _is_list(page.facts, most=scan.limit):
                raise self._rubbish("scan", f"it is no page of at most {scan.limit} sources")
            cursor = None if page.cursor is None else self._fit("scan", page.cursor, Cursor)
            if cursor == scan.after:
                raise self._rubbish("scan", "its cursor is the one that it was asked behind")
            return ScanPage(facts=tuple(self._facts("scan", one) for one in page.facts), cursor=cursor)

        return await self._apart.ask("scan", question)

    async def touched(self, tenant_id: str, event: EntityEvent, data: Mapping[str, object]) -> tuple[str, ...]:
        """Return the ids of the sources that an event of `event_types` changes."""
        provider = self._provider
        if not isinstance(provider, InvalidationProvider):
            return ()

        async def question() -> tuple[str, ...]:
            found = await provider.touched(tenant_id, event, data)
            if not _is_list(found, most=BATCH_MAX):
                raise self._rubbish("touched", f"it is no list of at most {BATCH_MAX} ids")
            return tuple(dict.fromkeys(self._fit("touched", one, SourceId) for one in found))

        return await self._apart.ask("touched", question)

    async def immediate(
        self, tenant_id: str, event: EntityEvent, data: Mapping[str, object], facts: SourceFacts | None
    ) -> Immediate | None:
        """Return the notification that an event asks for; None where it asks for none, or the plugin has none."""
        provider = self._provider
        if not isinstance(provider, ImmediateProvider):
            return None

        async def question() -> Immediate | None:
            found = await provider.immediate(tenant_id, event, data, facts)
            if found is None:
                return None
            one: Immediate = self._fit("immediate", found, Immediate)
            return msgspec.structs.replace(one, to=self._recipients("immediate", one.to))

        return await self._apart.ask("immediate", question)

    async def recipients(
        self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting
    ) -> tuple[Target, ...] | None:
        """Return whom a reminder is for; None where the plugin leaves it to the setting."""
        provider = self._provider
        if not isinstance(provider, RecipientProvider):
            return None

        async def question() -> tuple[Target, ...] | None:
            found = await provider.recipients(tenant_id, facts, setting)
            return None if found is None else self._recipients("recipients", found)

        return await self._apart.ask("recipients", question)

    async def delivery(self, tenant_id: str, facts: SourceFacts, setting: ReminderSetting) -> Delivery:
        """Return how a reminder goes out; as its type says where the plugin has no policy."""
        provider = self._provider
        if not isinstance(provider, DeliveryPolicy):
            return Delivery()

        async def question() -> Delivery:
            found: Delivery = self._fit("delivery", await provider.delivery(tenant_id, facts, setting), Delivery)
            return found

        return await self._apart.ask("delivery", question)

    async def close(self) -> None:
        """End its threads."""
        await self._apart.close()

    def _facts(self, what: str, given: object, *, source: str | None = None) -> SourceFacts:
        """Let facts in: of the plugin's own type and of the source that was asked for, within the limits of content."""
        facts: SourceFacts = self._fit(what, given, SourceFacts)
        self._fit(what, facts.source, SourceId)
        if facts.source_type != self.source_type or facts.source != (source or facts.source):
            raise self._rubbish(what, "a source is of another type, or another one than was asked for")
        try:
            require_content(facts.content)
        except InvalidInput as error:
            raise self._rubbish(what, f"{error.field}: {error.message}") from None
        return msgspec.structs.replace(facts, version=0)

    def _recipients(self, what: str, given: object) -> tuple[Target, ...]:
        """Let recipients in, bare addresses in their one form."""
        if not _is_list(given, most=INLINE_MAX):
            raise self._rubbish(what, f"it is no list of at most {INLINE_MAX} recipients")
        return tuple(self._target(what, self._fit(what, one, Target)) for one in given)

    def _target(self, what: str, target: Target) -> Target:
        """Hold a recipient to its form: an address says its channel, and nobody else does."""
        identity = target.identity
        if (identity.domain is IdentityDomain.ADDRESS) != (target.channel is not None):
            raise self._rubbish(what, "an address says its channel, and no other recipient does")
        if target.channel is None:
            return target
        try:
            normal = destination.normalise(target.channel, identity.id)
        except InvalidInput as error:
            raise self._rubbish(what, f"an address is none: {error.message}") from None
        return msgspec.structs.replace(target, identity=msgspec.structs.replace(identity, id=normal))

    def _fit(self, what: str, given: object, kind: Any) -> Any:  # noqa: ANN401  whatever type is asked for
        """Let a value in as a copy of its own, where it is of a type in all of its fields."""
        try:
            return msgspec.convert(msgspec.to_builtins(given, enc_hook=_plain), kind)
        except msgspec.ValidationError as error:
            misfit = read_misfit(str(error), kind)
            raise self._rubbish(what, f"{misfit.field or 'the answer'}: {misfit.what}") from None
        except InvalidInput as error:
            raise self._rubbish(what, f"{error.field}: {error.message}") from None
        except (TypeError, ValueError, OverflowError):
            raise self._rubbish(what, "it holds what no record can") from None

    def _rubbish(self, what: str, why: str) -> PluginFailed:
        return self._apart.failure(f"answered what cannot be used when it was asked {what} ({why})")


def _plain(value: object) -> object:
    """Write a mapping that is no dict as one."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _is_list(value: object, *, most: int) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) <= most


def _source_type(name: str, given: object) -> str:
    try:
        found: str = msgspec.convert(given, SourceType)
    except msgspec.ValidationError:
        raise _unusable(name, "has a source_type that is none", "name it by a word such as invoice") from None
    return found


def _bounds(name: str, given: object) -> ScanBounds:
    """Hold bounds to what they may be, so that no reconciliation ever reads a whole domain."""
    try:
        bounds = msgspec.convert(msgspec.to_builtins(given), ScanBounds) if isinstance(given, ScanBounds) else None
    except (msgspec.ValidationError, TypeError):
        bounds = None
    if bounds is None:
        raise _unusable(name, "has bounds that are no ScanBounds", "give it bounds = ScanBounds(...)")
    for is_kept, field, rule in (
        (bounds.every > timedelta(), "every", "is longer than nothing"),
        (bounds.overlap >= OVERLAP_MIN, "overlap", f"is at least {OVERLAP_MIN.total_seconds():g} seconds"),
        (0 <= bounds.window_days <= WINDOW_DAYS_MAX, "window_days", f"is 0 to {WINDOW_DAYS_MAX}"),
        (1 <= bounds.batch_size <= BATCH_MAX, "batch_size", f"is 1 to {BATCH_MAX}"),
    ):
        if not is_kept:
            raise _unusable(name, f"has bounds that cannot be kept: {field}", f"{field} {rule}")
    return bounds


def _event_types(name: str, provider: InvalidationProvider) -> frozenset[str]:
    given: object = provider.event_types
    if isinstance(given, Collection) and not isinstance(given, str | bytes):
        found = [one for one in given if isinstance(one, str) and one]
        if len(found) == len(given):
            return frozenset(found)
    raise _unusable(name, "has event_types that are no set of text", 'write event_types = {"invoice.paid"}')


def _unusable(name: str, what: str, hint: str) -> BadConfiguration:
    return BadConfiguration(f"the plugin {name!r} of clarion.reminders {what}", hint=hint)
