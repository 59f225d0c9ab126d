"""Compiling notifications and merging data into them.

`compile` is for publishing: it turns MJML into HTML, parses every part, finds what they need and merges the sample.
`check` is for the door: it says whether `merge` would take the data, and merges only what could fail. `merge` is for
sending: parsed parts are held in memory by the bundle's content hash, so that a message costs the merge and nothing
else. `render` makes many merges right here, in the process and the event loop that asks. Errors never repeat data, only
names, lines and pieces of the template.

Reads and writes nothing but its own memory. Definitions are read from disk by `catalog.definition`.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Final, assert_never

import msgspec
import structlog
from liquid.exceptions import LiquidError, ResourceLimitError, UndefinedError
from liquid.template import BoundTemplate

from clarion.adapters.renderers.filters import DateRefused
from clarion.adapters.renderers.language import HTML, TEXT, merge, parse
from clarion.adapters.renderers.limit import HTML_BYTES_MAX, LOOK_STEPS_MAX, Budget, check_data, has_line_break, said_of
from clarion.adapters.renderers.links import has_wrong_link, written_links
from clarion.adapters.renderers.markup import compile_mjml
from clarion.adapters.renderers.outcome import NOT_EMPTY, ONE_LINE, checked, content_of
from clarion.adapters.renderers.variables import Needs, has, needs_of
from clarion.domain.content import Content
from clarion.domain.definition import Definition, hashed_form
from clarion.domain.hashing import digest
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge, Merged, NotMerged, check_files

PARSED_MAX: Final = 256
"""Channels of bundles held parsed. A large mail's tree takes some 300 kB, a text message's next to nothing."""

CERTAIN_MAX: Final = 10_000
"""Characters that a plain part can write at most for its merge not to be tried: far below every limit."""

SMALL_MAX: Final = 120
"""Braces in the sources of a bundle that is parsed at once: some eighty variables and tags, two milliseconds."""

HOLD_MAX: Final = 0.005
"""Seconds of merging after which others have a turn: a hundred small messages are merged in less."""

# What python-liquid lets through besides its own errors, for values that a filter did not expect.
MERGE_ERRORS: Final = (LiquidError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

log = structlog.get_logger("clarion.renderers")


class _Part(msgspec.Struct, frozen=True):
    """One parsed part: its tree, what its merges need, and the links that it wrote itself if data writes others."""

    tree: BoundTemplate
    needs: Needs
    written_links: frozenset[str] | None
    is_one_line: bool

    def is_certain(self, name: str, size: int, *, has_break: bool) -> bool:
        """Tell without a merge that none can fail with complete data of a size, and with a line break in it or none."""
        return (
            self.needs.plain
            and self.written_links is None
            and (name not in ONE_LINE or (self.is_one_line and not has_break))
            and (self.needs.has_text or name not in NOT_EMPTY)
            and self.needs.outputs * size <= CERTAIN_MAX
        )


class _LacksVariable(RenderFailed):
    """A merge read a variable that the data does not have."""

    def __init__(self, channel: Channel, part: str, absent: str) -> None:
        super().__init__(f"{channel} {part}: there is no {absent}", part=part, hint="add it to the data")
        self.absent = absent


class LiquidRenderer:
    """Liquid for every part, MJML for the HTML of a mail."""

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        """Start with nothing parsed; `seconds` is a clock that never goes back, that of the event loop if none."""
        self._seconds = seconds
        self._parsed: dict[tuple[str, Channel], dict[str, _Part]] = {}
        self._lock = Lock()
        # One: two would compete with the event loop for the interpreter, and be no faster together.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-merge-check")

    def compile(self, definition: Definition, files: Mapping[str, str]) -> Bundle:
        """Make a bundle of a notification's files, or raise InvalidInput that names file and line."""
        check_files(definition, files)
        parts: dict[Channel, dict[str, str]] = {}
        variables: dict[Channel, tuple[str, ...]] = {}
        for channel in definition.channels:
            parts[channel] = {}
            needed = {*definition.required}
            for name, source, file in _sources(channel, files):
                parts[channel][name] = source
                needed |= needs_of(_parse(name, source, file=file)).paths
            variables[channel] = tuple(sorted(needed))
        content = {"definition": hashed_form(definition), "parts": parts}
        bundle = Bundle(definition=definition, parts=parts, variables=variables, content_hash=digest(content))
        self._try_sample(bundle)
        return bundle

    def check(self, bundle: Bundle, data: Mapping[str, object], *, briefly: bool = False) -> bool:
        """Raise InvalidInput where `merge` would refuse the data on one of the channels.

        With `briefly` it takes a few milliseconds at most, and returns False where they were too few to tell.
        """
        size = self.check_data(data)
        if briefly and not self.is_parsed_soon(bundle):
            return False
        absent, has_break = _absent(bundle, data), has_line_break(data)
        failures: list[RenderFailed] = []
        budget = Budget(LOOK_STEPS_MAX)
        for channel in bundle.definition.channels:
            budget = budget if briefly else Budget()  # in the end each channel has its own, as in `merge`
            for name, part in self._parts(bundle, channel).items():
                if part.is_certain(name, size, has_break=has_break):
                    continue
                try:
                    checked(channel, name, _merge(part, data, channel, name, budget=budget))
                except RenderFailed as error:
                    if briefly and budget.is_spent:
                        return False
                    failures.append(error)
        absent |= {error.absent for error in failures if isinstance(error, _LacksVariable)}
        if absent:
            raise InvalidInput(
                f"the notification type {bundle.definition.key!r} needs {', '.join(sorted(absent))}",
                field="data",
                hint="add what is missing to data and send again",
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

    def is_certain(self, bundle: Bundle, data: Mapping[str, object]) -> bool:
        """Tell without any merge that `merge` will take the data; the bundle is parsed where it is not yet."""
        size, has_break = self.check_data(data), has_line_break(data)
        return not _absent(bundle, data) and all(
            part.is_certain(name, size, has_break=has_break)
            for channel in bundle.definition.channels
            for name, part in self._parts(bundle, channel).items()
        )

    async def check_request(self, bundle: Bundle, data: Mapping[str, object], *, tenant_id: str, briefly: bool) -> bool:
        """Check at the door: briefly right here, and otherwise in a thread, so that others need not wait for it."""
        del tenant_id
        if briefly:
            return self.check(bundle, data, briefly=True)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self.check, bundle, data)

    async def find_missing(
        self, bundle: Bundle, data: Sequence[Mapping[str, object]], *, tenant_id: str, seconds_max: float
    ) -> list[tuple[str, ...] | NotMerged]:
        """Name what each data lacks that the bundle's channels need."""
        del tenant_id, seconds_max  # it takes a few milliseconds for each at most
        return [self.missing(bundle, one) for one in data]

    def missing(self, bundle: Bundle, data: Mapping[str, object]) -> tuple[str, ...]:
        """Name the variables that the bundle's channels need and the data does not have.

        Where a template reads some of them only sometimes, it is merged for a few steps to find out; what else goes
        wrong with that merge, also that it takes more steps, is left to `merge`.
        """
        absent = _absent(bundle, data)
        budget = Budget(LOOK_STEPS_MAX)
        with suppress(ResourceLimitError):
            check_data(data)
            for channel in bundle.definition.channels:
                for name, part in self._parts(bundle, channel).items():
                    if not part.needs.exact:
                        with suppress(RenderFailed):
                            try:
                                _merge(part, data, channel, name, budget=budget)
                            except _LacksVariable as error:
                                absent.add(error.absent)
        return tuple(sorted(absent))

    def merge(self, bundle: Bundle, channel: Channel, merge: Merge) -> Content:
        """Merge into a channel's parts, or raise RenderFailed where a limit is hit or a variable is missing."""
        try:
            check_data(merge.data)
        except ResourceLimitError as error:
            raise RenderFailed(
                f"the data cannot be merged: {error.message}", hint="send less and plainer data"
            ) from None
        parts, budget = self._parts(bundle, channel), Budget()
        merged = {
            name: checked(channel, name, _merge(part, merge.data, channel, name, budget=budget))
            for name, part in parts.items()
        }
        return content_of(channel, merged)

    async def render(
        self, bundle: Bundle, channel: Channel, merges: Sequence[Merge], *, tenant_id: str, seconds_max: float
    ) -> list[Merged]:
        """Make merges one after the other, with a turn for everybody else in the process between heavy ones."""
        del tenant_id  # here nobody waits for anybody else's merges
        seconds = self._seconds or asyncio.get_running_loop().time
        now = held_since = seconds()
        until, longest = now + seconds_max, 0.0
        answers: list[Merged] = []
        for one in merges:
            if now + longest > until:  # what is merged already would come too late if one more took so long
                answers.append(NotMerged("the merges before it took too long"))
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
        except Exception:  # a defect: this message is not called, and the others beside it are
            log.exception("a merge broke", channel=channel)
            return NotMerged("it could not be merged", counts=True)

    def _try_sample(self, bundle: Bundle) -> None:
        """Merge the sample, if there is one, so that a template which cannot be merged is not published."""
        if not bundle.definition.sample:
            return
        absent = self.missing(bundle, bundle.definition.sample)
        if absent:
            raise InvalidInput(
                f"the sample has no {', '.join(absent)}, which the templates need", field="sample", hint="add it"
            )
        for channel in bundle.definition.channels:
            try:
                self.merge(bundle, channel, Merge(bundle.definition.sample))
            except RenderFailed as error:
                file = "sample" if error.part is None else _file_of(channel, error.part)
                raise InvalidInput(f"with the sample, {error.message}", field=file, hint=error.hint) from error

    async def parse(self, bundle: Bundle) -> None:
        """Parse what of a bundle is not in memory yet, in a thread."""
        for channel in bundle.definition.channels:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._parts, bundle, channel)

    def is_parsed_soon(self, bundle: Bundle) -> bool:
        """Tell whether a bundle is in memory, or so small that parsing it takes no time worth a thought."""
        if all((bundle.content_hash, channel) in self._parsed for channel in bundle.definition.channels):
            return True
        return sum(source.count("{") for parts in bundle.parts.values() for source in parts.values()) <= SMALL_MAX

    def _parts(self, bundle: Bundle, channel: Channel) -> dict[str, _Part]:
        """Return a channel's parts from memory, or parse them and keep them in place of those held longest."""
        place = (bundle.content_hash, channel)
        parts = self._parsed.get(place)
        if parts is None:
            if channel not in bundle.parts:
                raise RenderFailed(
                    f"the notification {bundle.definition.key!r} has nothing for {channel}",
                    hint="add the channel to it",
                )
            parts = {name: _part(name, source) for name, source in bundle.parts[channel].items()}
            with self._lock:  # the door may parse in a thread
                if len(self._parsed) >= PARSED_MAX:
                    del self._parsed[next(iter(self._parsed))]
                self._parsed[place] = parts
        return parts


def _sources(channel: Channel, files: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Give the name, the Liquid and the file of each part of a channel."""
    match channel:
        case Channel.EMAIL:
            yield "subject", files["email.subject.liquid"], "email.subject.liquid"
            # Here and below: parsed as it was written first, so that an error names a line that its author knows.
            parse(HTML, files["email.mjml.liquid"], file="email.mjml.liquid")
            yield "html", compile_mjml(files["email.mjml.liquid"], file="email.mjml.liquid"), "email.mjml.liquid"
            yield "text", files["email.text.liquid"], "email.text.liquid"
        case Channel.SMS | Channel.CHAT:
            yield "text", files[f"{channel}.liquid"], f"{channel}.liquid"
        case Channel.PUSH | Channel.INBOX:
            parse(TEXT, files[f"{channel}.liquid"], file=f"{channel}.liquid")
            title, _, body = files[f"{channel}.liquid"].partition("\n")
            yield "title", title, f"{channel}.liquid"
            yield "body", body, f"{channel}.liquid"
        case _:
            assert_never(channel)


def _file_of(channel: Channel, part: str) -> str:
    """Name the file that a part was written in."""
    return f"email.{'mjml' if part == 'html' else part}.liquid" if channel is Channel.EMAIL else f"{channel}.liquid"


def _parse(name: str, source: str, *, file: str) -> BoundTemplate:
    """Parse a part; only HTML escapes what it merges, a text message has no markup to protect."""
    return (
        parse(HTML, source, file=file, bytes_max=HTML_BYTES_MAX) if name == "html" else parse(TEXT, source, file=file)
    )


def _part(name: str, source: str) -> _Part:
    """Parse a part of a bundle, and note what there is to know about it."""
    tree = _parse(name, source, file=name)
    links = written_links(source) if name == "html" else None
    return _Part(tree, needs_of(tree), links, is_one_line=len(source.strip().splitlines()) == 1)


def _absent(bundle: Bundle, data: Mapping[str, object]) -> set[str]:
    """Name what every merge reads and the data does not have."""
    return {path for needed in bundle.variables.values() for path in needed if not has(data, path)}


def _unmergeable(why: str, *, hint: str) -> InvalidInput:
    return InvalidInput(f"it cannot be merged: {why}", field="data", hint=hint)


def _merge(part: _Part, data: Mapping[str, object], channel: Channel, name: str, *, budget: Budget) -> str:
    """Merge one part."""
    try:
        text = merge(part.tree, data, budget=budget).strip()
    except UndefinedError as error:
        raise _LacksVariable(channel, name, str(error.message)) from None
    except ResourceLimitError as error:
        raise RenderFailed(
            f"{channel} {name}: {said_of(error)}", part=name, hint="simplify the template or send less data"
        ) from None
    except MERGE_ERRORS as error:
        # The library's own text may quote the data; the piece of the template does not.
        token = error.token if isinstance(error, LiquidError) else None
        why = f"the merge failed near {token.value[:60]!r}" if token else "the merge failed"
        raise RenderFailed(
            f"{channel} {name}: {error.message if isinstance(error, DateRefused) else why}",
            part=name,
            hint="check that the data has the right types",
        ) from None
    if part.written_links is not None and has_wrong_link(text, part.written_links):
        raise RenderFailed(
            f"{channel} {name}: a link that comes from the data is neither https: nor mailto: nor tel:",
            part=name,
            hint="give whole addresses, such as https://example.com; any other scheme has to stand in the template",
        )
    return text
