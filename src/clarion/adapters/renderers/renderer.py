"""Compiling notifications and merging data into them.

`compile` is for publishing: it turns MJML into HTML, parses every part, finds what they need and merges the sample.
`render` is for sending: parsed parts are held in memory by the bundle's content hash, so that a message costs the merge
and nothing else. Errors never repeat data, only names, lines and pieces of the template.

Reads and writes nothing but its own memory. Definitions are read from disk by `catalog.definition`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, assert_never

import msgspec
from liquid.exceptions import LiquidError, ResourceLimitError, UndefinedError
from liquid.template import BoundTemplate

from clarion.adapters.renderers.language import HTML, TEXT, merge, parse
from clarion.adapters.renderers.limit import HTML_BYTES_MAX, Budget, check_data
from clarion.adapters.renderers.markup import compile_mjml
from clarion.adapters.renderers.variables import has, needs_of
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.hashing import digest
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Definition, check_files

PARSED_MAX: Final = 256
"""Channels of bundles held parsed. A large mail's tree takes some 300 kB, a text message's next to nothing."""

_ONE_LINE: Final = frozenset({"subject", "title"})
"""Parts that become a header or a heading: a line break in one is an attack or a mistake (X-16)."""

_NOT_EMPTY: Final = frozenset({"subject", "title", "text"})

# What python-liquid lets through besides its own errors, for values that a filter did not expect.
MERGE_ERRORS: Final = (LiquidError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class _Parsed(msgspec.Struct, frozen=True):
    """One channel's parts as trees, and whether their needs tell all that a merge reads."""

    parts: dict[str, BoundTemplate]
    exact: bool


class LiquidRenderer:
    """Liquid for every part, MJML for the HTML of a mail."""

    def __init__(self) -> None:
        """Start with nothing parsed."""
        self._parsed: dict[tuple[str, Channel], _Parsed] = {}

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
        content = {"definition": msgspec.to_builtins(definition), "parts": parts}
        bundle = Bundle(definition=definition, parts=parts, variables=variables, content_hash=digest(content))
        self._try_sample(bundle)
        return bundle

    def check(self, data: Mapping[str, object]) -> None:
        """Raise InvalidInput where `render` would refuse the data whatever the template."""
        try:
            check_data(data)
        except ResourceLimitError as error:
            raise InvalidInput(
                f"it cannot be merged: {error.message}", field="data", hint="send less and plainer data"
            ) from None

    def missing(self, bundle: Bundle, data: Mapping[str, object]) -> tuple[str, ...]:
        """Name the variables that the bundle's channels need and the data does not have.

        Where a template reads some of them only sometimes, it is merged to find out; what else goes wrong with that
        merge, also that all of them together do too much work, is left to `render`.
        """
        absent = {path for needed in bundle.variables.values() for path in needed if not has(data, path)}
        parsed = [self._trees(bundle, channel) for channel in bundle.definition.channels]
        trees = [tree for one in parsed if not one.exact for tree in one.parts.values()]
        if trees:
            with suppress(ResourceLimitError):
                check_data(data)
                absent |= _absent(trees, data)
        return tuple(sorted(absent))

    def render(self, bundle: Bundle, channel: Channel, data: Mapping[str, object]) -> Content:
        """Merge data into a channel's parts, or raise RenderFailed where a limit is hit or a variable is missing."""
        try:
            check_data(data)
        except ResourceLimitError as error:
            raise RenderFailed(
                f"the data cannot be merged: {error.message}", hint="send less and plainer data"
            ) from None
        trees, budget = self._trees(bundle, channel).parts, Budget()
        merged = {name: _merge(tree, data, channel, name, budget=budget) for name, tree in trees.items()}
        return _content(channel, merged)

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
                self.render(bundle, channel, bundle.definition.sample)
            except RenderFailed as error:
                file = "sample" if error.part is None else _file_of(channel, error.part)
                raise InvalidInput(f"with the sample, {error.message}", field=file, hint=error.hint) from error

    def _trees(self, bundle: Bundle, channel: Channel) -> _Parsed:
        """Return a channel's trees from memory, or parse them and keep them in place of those held longest."""
        place = (bundle.content_hash, channel)
        parsed = self._parsed.get(place)
        if parsed is None:
            if channel not in bundle.parts:
                raise RenderFailed(
                    f"the notification {bundle.definition.key!r} has nothing for {channel}",
                    hint="add the channel to it",
                )
            trees = {name: _parse(name, source, file=name) for name, source in bundle.parts[channel].items()}
            parsed = _Parsed(trees, exact=all(needs_of(tree).exact for tree in trees.values()))
            if len(self._parsed) >= PARSED_MAX:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[place] = parsed
        return parsed


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


def _absent(trees: Sequence[BoundTemplate], data: Mapping[str, object]) -> set[str]:
    """Merge parts for nothing but the names of the variables that they lack, for one budget of work."""
    absent: set[str] = set()
    budget = Budget()
    for tree in trees:
        try:
            merge(tree, data, budget=budget)
        except UndefinedError as error:
            absent.add(str(error.message))
        except MERGE_ERRORS:
            pass
    return absent


def _merge(tree: BoundTemplate, data: Mapping[str, object], channel: Channel, part: str, *, budget: Budget) -> str:
    """Merge one part."""
    try:
        return merge(tree, data, budget=budget).strip()
    except UndefinedError as error:
        raise RenderFailed(
            f"{channel} {part}: there is no {error.message}", part=part, hint="add it to the data"
        ) from None
    except ResourceLimitError as error:
        raise RenderFailed(
            f"{channel} {part}: {error.message}", part=part, hint="simplify the template or send less data"
        ) from None
    except MERGE_ERRORS as error:
        # The error's own text may quote the data; the piece of the template does not.
        token = error.token if isinstance(error, LiquidError) else None
        near = f" near {token.value[:60]!r}" if token else ""
        raise RenderFailed(
            f"{channel} {part}: the merge failed{near} ({type(error).__name__})",
            part=part,
            hint="check that the data has the right types",
        ) from None


def _content(channel: Channel, parts: dict[str, str]) -> Content:
    """Make a channel's content of its merged parts."""
    for name, text in parts.items():
        if name in _NOT_EMPTY and not text:
            raise RenderFailed(
                f"{channel} {name}: nothing is left of it", part=name, hint="give the template some text"
            )
        if name in _ONE_LINE and len(text.splitlines()) > 1:
            raise RenderFailed(
                f"{channel} {name}: it has more than one line",
                part=name,
                hint="take the line break out of the template or of the data",
            )
    match channel:
        case Channel.EMAIL:
            return EmailContent(subject=parts["subject"], html=parts["html"], text=parts["text"])
        case Channel.SMS:
            return SmsContent(text=parts["text"])
        case Channel.PUSH:
            return PushContent(title=parts["title"], body=parts["body"])
        case Channel.CHAT:
            return ChatContent(text=parts["text"])
        case Channel.INBOX:
            return InboxContent(title=parts["title"], body=parts["body"])
        case _:
            assert_never(channel)
