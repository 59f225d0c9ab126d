"""Compiling notifications and merging data into them.

`compile` is for publishing: it turns MJML into HTML, parses every part, finds what they need and merges the sample.
`check` is for the door: it says whether `merge` would take the data, and merges only what could fail. `merge` is for
sending: parsed parts are held in memory by the bundle's content hash, so that a message costs the merge and nothing
else. `render` makes many merges right here, in the process and the event loop that asks. Errors never repeat data, only
names, lines and pieces of the template.

Reads and writes nothing but its own memory. Definitions are read from disk by `catalog.definition`.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final

import structlog
from liquid.exceptions import ResourceLimitError

from clarion.adapters.renderers.compiling import compile_files
from clarion.adapters.renderers.formats import writing_for, writing_of
from clarion.adapters.renderers.given import check_names, given, given_at_the_door, sample_of
from clarion.adapters.renderers.limit import LOOK_STEPS_MAX, Budget, check_data, has_header_sign
from clarion.adapters.renderers.merging import LacksVariable, merge_part
from clarion.adapters.renderers.outcome import checked, content_of
from clarion.adapters.renderers.parts import PartCache, Parts
from clarion.adapters.renderers.sample import mistakes_with_sample
from clarion.adapters.renderers.schema import Schemas
from clarion.adapters.renderers.variables import find
from clarion.domain.content import Content
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration, InvalidInput, RenderFailed
from clarion.ports.renderer import LATE, Bundle, Merge, Merged, NotCompiled, NotMerged, no_url

HOLD_MAX: Final = 0.005
"""Seconds of merging after which others have a turn: a hundred small messages are merged in less."""

_NO_FILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

_TRIAL: Final = writing_of("en", "UTC")
"""How a trial writes: what can be written in one locale can be in all."""

log = structlog.get_logger("clarion.renderers")


class LiquidRenderer:
    """Liquid for every part, MJML for the HTML of a mail."""

    is_apart = False

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        """Start with nothing parsed; `seconds` is a clock that never goes back, that of the event loop if none."""
        self._seconds = seconds
        self._cache = PartCache()
        self._schemas = Schemas()
        # One: two would compete with the event loop for the interpreter, and be no faster together.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-merge-check")

    def compile(
        self,
        definition: Definition,
        files: Mapping[str, str],
        *,
        locales: Mapping[str, Mapping[str, str]] = _NO_FILES,
        schema: Mapping[str, object] | None = None,
    ) -> Bundle:
        """Make a bundle of a notification's files, or raise InvalidInput that names file and line."""
        compiled, mistakes = compile_files(definition, files, locales, schema)
        if definition.sample and compiled is not None:  # a template that cannot be merged with it is not published
            sample = sample_of(definition)
            missing = self.missing(compiled, sample.data, entity=sample.entity)
            merge = partial(self.merge, compiled)
            mistakes += mistakes_with_sample(compiled, {"": files, **locales}, missing=missing, merge=merge)
        if mistakes or compiled is None:
            raise NotCompiled(mistakes)
        return compiled

    def check(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = _NOTHING,
        briefly: bool = False,
    ) -> bool:
        """Raise InvalidInput where `merge` would refuse data and entity on one of the channels, whoever the recipient.

        With `briefly` it takes a few milliseconds at most, and returns False where they were too few to tell.
        """
        check_names(bundle, data)
        size = self.check_data(data) + self.check_data(entity)
        if not self._schemas.check(bundle, data, briefly=briefly):
            return False
        if briefly and not self.is_parsed_soon(bundle):
            return False
        absent, has_break = _absent(bundle, data, entity), has_header_sign(data) or has_header_sign(entity)
        failures: list[RenderFailed] = []
        budget = Budget(LOOK_STEPS_MAX)
        for channel, parts in self._tried(bundle):
            budget = budget if briefly else Budget()  # in the end each channel has its own, as in `merge`
            names = given_at_the_door(bundle, channel, data, entity)
            for name, part in parts.items():
                if part.needs.depends or part.is_certain(name, size, has_break=has_break):
                    continue
                try:
                    checked(channel, name, merge_part(part, names, channel, name, writing=_TRIAL, budget=budget))
                except RenderFailed as error:
                    if briefly and budget.is_spent:
                        return False
                    failures.append(error)
        absent |= {error.absent for error in failures if isinstance(error, LacksVariable)}
        if absent:
            of_the_entity = all(one.startswith("entity") for one in absent)
            raise InvalidInput(
                f"the notification type {bundle.definition.key!r} needs {', '.join(sorted(absent))}",
                field="entity" if of_the_entity else "data",
                hint="name the entity that this is about, with what is missing"
                if of_the_entity
                else "add what is missing to data and send again",
            )
        if failures:
            raise _unmergeable(failures[0].message, hint=failures[0].hint)
        return True

    def check_data(self, data: Mapping[str, object]) -> int:
        """Raise InvalidInput where no template may have the data, whatever it does with it; return its size."""
        try:
            return check_data(data)
        except ResourceLimitError as error:
            raise _unmergeable(str(error.message), hint="send less and plainer data") from None

    def is_certain(
        self, bundle: Bundle, data: Mapping[str, object], *, entity: Mapping[str, object] = _NOTHING
    ) -> bool:
        """Tell without any merge that `merge` will take the data; the bundle is parsed where it is not yet."""
        check_names(bundle, data)
        size = self.check_data(data) + self.check_data(entity)
        if not self._schemas.check(bundle, data, briefly=True):
            return False
        has_break = has_header_sign(data) or has_header_sign(entity)
        return not _absent(bundle, data, entity) and all(
            part.needs.depends or part.is_certain(name, size, has_break=has_break)
            for _, parts in self._tried(bundle)
            for name, part in parts.items()
        )

    async def check_request(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = _NOTHING,
        tenant_id: str,
        briefly: bool,
    ) -> bool:
        """Check at the door: briefly right here, and otherwise in a thread, so that others need not wait for it."""
        del tenant_id
        if briefly:
            return self.check(bundle, data, entity=entity, briefly=True)
        check = partial(self.check, bundle, data, entity=entity)
        return await asyncio.get_running_loop().run_in_executor(self._thread, check)

    async def find_missing(
        self,
        bundle: Bundle,
        data: Sequence[Mapping[str, object]],
        *,
        entities: Sequence[Mapping[str, object]] = (),
        tenant_id: str,
        seconds_max: float,
    ) -> list[tuple[str, ...] | NotMerged]:
        """Name what each data lacks, with its entity, that the bundle's channels need."""
        del tenant_id, seconds_max  # it takes a few milliseconds for each at most
        return [
            self.missing(bundle, one, entity=entity)
            for one, entity in zip(data, entities or [_NOTHING] * len(data), strict=True)
        ]

    def missing(
        self, bundle: Bundle, data: Mapping[str, object], *, entity: Mapping[str, object] = _NOTHING
    ) -> tuple[str, ...]:
        """Name the variables that the bundle's channels need and that data and entity do not have.

        Where a template reads some of them only sometimes, it is merged for a few steps to find out; what else goes
        wrong with that merge, also that it takes more steps, is left to `merge`.
        """
        absent = _absent(bundle, data, entity)
        budget = Budget(LOOK_STEPS_MAX)
        with suppress(ResourceLimitError, RenderFailed):  # the latter where a part cannot be parsed
            check_data(data)
            check_data(entity)
            for channel, parts in self._cache.tried(bundle):
                names = given_at_the_door(bundle, channel, data, entity)
                for name, part in parts.items():
                    if not (part.needs.exact or part.needs.depends):
                        with suppress(RenderFailed):
                            try:
                                merge_part(part, names, channel, name, writing=_TRIAL, budget=budget)
                            except LacksVariable as error:
                                absent.add(error.absent)
        return tuple(sorted(absent))

    def merge(self, bundle: Bundle, channel: Channel, merge: Merge) -> Content:
        """Merge into a channel's parts, or raise RenderFailed where a limit is hit or a variable is missing."""
        if bundle.lacks_url(channel, merge.public_url):
            raise no_url(bundle)
        names = given(bundle, channel, merge)
        try:
            check_data(names)
        except ResourceLimitError as error:
            raise RenderFailed(
                f"the data cannot be merged: {error.message}", hint="send less and plainer data"
            ) from None
        parts, budget = self._cache.get(bundle, channel, merge.locale), Budget()
        writing = writing_for(bundle.definition.locales, merge.locale, merge.zone)
        merged = {
            name: checked(channel, name, merge_part(part, names, channel, name, writing=writing, budget=budget))
            for name, part in parts.items()
        }
        return content_of(channel, merged)

    async def render(
        self,
        bundle: Bundle,
        channel: Channel,
        merges: Sequence[Merge],
        *,
        tenant_id: str,
        seconds_max: float,
        is_preview: bool = False,
    ) -> list[Merged]:
        """Make merges one after the other, with a turn for everybody else in the process between heavy ones."""
        del tenant_id, is_preview  # here nobody waits for anybody else's merges
        seconds = self._seconds or asyncio.get_running_loop().time
        now = held_since = seconds()
        until, longest = now + seconds_max, 0.0
        answers: list[Merged] = []
        for one in merges:
            if now + longest > until:  # what is merged already would come too late if one more took so long
                answers.append(NotMerged(LATE))
                continue
            began = now
            answers.append(self.merged(bundle, channel, one))
            now = seconds()
            longest = max(longest, now - began)
            if now - held_since > HOLD_MAX:
                await asyncio.sleep(0)
                now = held_since = seconds()
        return answers

    def merged(self, bundle: Bundle, channel: Channel, merge: Merge) -> Merged:
        """Merge, and give what came of it as a value."""
        try:
            return self.merge(bundle, channel, merge)
        except RenderFailed as error:
            return error
        except BadConfiguration as error:
            return NotMerged(str(error), is_held=True)
        except Exception:  # a defect: this message is not called, and the others beside it are
            log.exception("a merge broke", channel=channel)
            return NotMerged("it could not be merged", counts=True)

    async def parse(self, bundle: Bundle) -> None:
        """Parse what of a bundle is not in memory yet, in a thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._tried, bundle)

    def parse_here(
        self, bundle: Bundle, channel: Channel | None, locales: Collection[str], *, begin: Callable[[], None]
    ) -> None:
        """Parse what a channel's merges in these locales need, or without a channel what a check needs.

        `begin` is called before each locale of a channel that is not in memory.
        """
        if channel is None:
            list(self._cache.tried(bundle, begin=begin))
        else:
            for locale in locales:
                self._cache.get(bundle, channel, locale, begin=begin)

    def _tried(self, bundle: Bundle) -> list[tuple[Channel, Parts]]:
        """Parse what a check tries to merge, or raise InvalidInput where that cannot be."""
        try:
            return list(self._cache.tried(bundle))
        except RenderFailed as error:
            raise _unmergeable(error.message, hint=error.hint) from None

    def is_parsed_soon(self, bundle: Bundle) -> bool:
        """Tell whether a bundle is in memory, or so small that parsing it takes no time worth a thought."""
        return self._cache.is_parsed_soon(bundle)


def _absent(bundle: Bundle, data: Mapping[str, object], entity: Mapping[str, object]) -> set[str]:
    """Name what every merge reads and is not there."""
    return {
        path
        for channel, needed in bundle.variables.items()
        for names in [given_at_the_door(bundle, channel, data, entity)]
        for path in needed
        if find(names, path) is None
    }


def _unmergeable(why: str, *, hint: str) -> InvalidInput:
    return InvalidInput(f"it cannot be merged: {why}", field="data", hint=hint)
