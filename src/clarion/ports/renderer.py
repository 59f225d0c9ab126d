"""The renderer: from a notification's files to what a recipient sees.

Compiling happens once, when a notification is published (MJML to HTML, Liquid parsed and checked); only the merge
happens per recipient, in memory, within limits of time, size and depth. A bundle is plain data: it is stored with its
version, so that a frozen version renders the same bytes for ever.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from clarion.domain.content import Content
from clarion.domain.definition import Definition, hashed_form
from clarion.domain.hashing import digest
from clarion.domain.identity import Channel
from clarion.domain.misfit import written
from clarion.errors import BadConfiguration, Ending, InvalidInput, RenderFailed

FILES_OF: Final[Mapping[Channel, tuple[str, ...]]] = {
    Channel.EMAIL: ("email.subject.liquid", "email.mjml.liquid", "email.text.liquid"),
    Channel.SMS: ("sms.liquid",),
    Channel.PUSH: ("push.liquid",),
    Channel.CHAT: ("chat.liquid",),
    Channel.INBOX: ("inbox.liquid",),
}
"""The files of each channel; of `push` and `inbox` the first line is the title and the rest is the body."""

OPTIONAL_FILES_OF: Final[Mapping[Channel, tuple[str, ...]]] = {Channel.EMAIL: ("email.preheader.liquid",)}
"""Files that a channel may have: the preheader is the line that clients show beside a mail's subject."""


DEFINITION: Final = "definition.toml"
SCHEMA: Final = "schema.json"


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled notification: its definition, each channel's Liquid sources by part, and the variables they need.

    `parts` are those of the default locale, and `locales` has all parts of every other one. `variables` are needed in
    any of them. `reads` names what a channel's parts read in some locale besides the data, such as `recipient`; a
    bundle of a program that only had data names no channel there. `schema` is the JSON Schema that the data of a send
    has to fit, if there is one.
    """

    definition: Definition
    parts: dict[Channel, dict[str, str]]
    locales: dict[str, dict[Channel, dict[str, str]]] = {}
    variables: dict[Channel, tuple[str, ...]]
    reads: dict[Channel, tuple[str, ...]] = {}
    schema: dict[str, object] | None = None
    content_hash: str

    @property
    def size(self) -> int:
        """About the bytes that it takes in memory: nearly all of it is text."""
        channels = (parts for whole in (self.parts, *self.locales.values()) for parts in whole.values())
        texts = (text for parts in channels for text in parts.values())
        return sum(map(len, texts)) + len(msgspec.json.encode((self.definition, self.schema)))

    def reads_recipient(self, channel: Channel) -> bool:
        """Tell whether what one recipient gets on a channel may differ from what another gets."""
        return "recipient" in self.reads.get(channel, ())

    def lacks_url(self, channel: Channel, public_url: str | None) -> bool:
        """Tell whether a channel's parts have links to this installation, whose URL is not set."""
        return not public_url and "public_url" in self.reads.get(channel, ())


def hashed(bundle: Bundle) -> Bundle:
    """Give a bundle the hash of its content."""
    content: dict[str, object] = {"definition": hashed_form(bundle.definition), "parts": bundle.parts}
    # Only where there are any: what did not change keeps its version when the program is upgraded.
    content |= {"locales": bundle.locales} if bundle.locales else {}
    content |= {"reads": bundle.reads} if bundle.reads else {}
    content |= {"schema": msgspec.json.encode(bundle.schema).decode()} if bundle.schema is not None else {}
    return msgspec.structs.replace(bundle, content_hash=digest(content))


class TemplateMistake(InvalidInput):
    """A template cannot be used, because of `what` stands on a `line` of the file that `field` names."""

    def __init__(
        self, what: str, *, field: str, line: int, position: int | None = None, hint: str = "correct the template"
    ) -> None:
        """Say what is wrong and where; the position in the file's text says it more exactly, where it is known."""
        super().__init__(f"line {line}: {what}", field=field, hint=hint)
        self.what = what
        self.line = line
        self.position = position


class FieldMistake(InvalidInput):
    """What stands at a path of the definition or of the schema, which `field` names, cannot be used."""

    def __init__(self, what: str, *, file: str, path: Sequence[str | int], hint: str) -> None:
        """Say what is wrong and where; in a definition it is plain from the sentence itself."""
        super().__init__(f"{written(path)}: {what}" if file == SCHEMA and path else what, field=file, hint=hint)
        self.what = what
        self.path = tuple(path)


class NotCompiled(InvalidInput):
    """Files cannot be compiled: the first reason, and all of them in `mistakes`, each with its locale.

    The locale is empty for the default one.
    """

    def __init__(self, mistakes: Sequence[tuple[str, InvalidInput]]) -> None:
        """Speak for the first of them."""
        first = mistakes[0][1]
        super().__init__(first.message, field=first.field, hint=first.hint)
        self.mistakes = tuple(mistakes)


class Merge(msgspec.Struct, frozen=True):
    """What is merged into the parts of a channel once: the data of a job, for whom, and in which locale and zone."""

    data: Mapping[str, object]
    locale: str = ""
    """A locale that the recipient wants: the bundle's nearest one is merged; empty for its default."""
    zone: str = "UTC"
    recipient: Mapping[str, object] = {}
    entity: Mapping[str, object] = {}
    public_url: str = ""


QUARANTINED: Final = "its template version is quarantined: merging it ended a process again and again"
END_QUARANTINE: Final = "publish a corrected version, or resolve its support case (`clarion support list`)"
LATE: Final = "the merges before it took too long"
ENDING: Final = "the program is ending"


class NotMerged(msgspec.Struct, frozen=True):
    """Why there is no content though nothing is known to be wrong with template and data: it can be tried again."""

    reason: str
    counts: bool = False
    """Whether this merge itself is at fault, so that a row for which this happens again and again is given up."""
    is_held: bool = False
    """Whether it should not be tried again soon: its template version is quarantined, or a setting is missing."""


Merged = Content | RenderFailed | NotMerged
"""What came of one merge. RenderFailed is given as a value: it ends this message and none of the others beside it."""


class Renderer(Protocol):
    """Compiles and merges."""

    is_apart: bool
    """Whether merges are made outside of this process."""

    def compile(
        self,
        definition: Definition,
        files: Mapping[str, str],
        *,
        locales: Mapping[str, Mapping[str, str]] = {},
        schema: Mapping[str, object] | None = None,
    ) -> Bundle:
        """Make a bundle of a notification's files, or raise NotCompiled that names files and lines.

        `files` are those of the default locale, `locales` has all files of every other one, under the same names.
        `schema` is what `schema.json` says of the data.
        """
        ...

    def check(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = {},
        briefly: bool = False,
    ) -> bool:
        """Raise InvalidInput where `render` would refuse data and entity on one of the channels, whoever the recipient.

        What a template needs of the recipient is not known here, and not asked for. With `briefly` it takes a few
        milliseconds at most, and returns False where they were too few to tell. May be called from several threads at
        once.
        """
        ...

    def missing(
        self, bundle: Bundle, data: Mapping[str, object], *, entity: Mapping[str, object] = {}
    ) -> tuple[str, ...]:
        """Name the variables that the bundle's channels need and that data and entity do not have.

        Those of the recipient are never among them: nobody knows the recipient when this is asked.
        """
        ...

    async def check_request(
        self,
        bundle: Bundle,
        data: Mapping[str, object],
        *,
        entity: Mapping[str, object] = {},
        tenant_id: str,
        briefly: bool,
    ) -> bool:
        """Do what `check` does for somebody who waits at the door, without keeping anybody else waiting."""
        ...

    async def find_missing(
        self,
        bundle: Bundle,
        data: Sequence[Mapping[str, object]],
        *,
        entities: Sequence[Mapping[str, object]] = (),
        tenant_id: str,
        seconds_max: float,
    ) -> list[tuple[str, ...] | NotMerged]:
        """Do what `missing` does for the data of several jobs of one tenant, and their entities if they have any."""
        ...

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
        """Make the merges of one tenant, and say of each, in their order, what came of it.

        After `seconds_max` no merge is begun any more: what is left is not merged, and nobody is to blame for it. Where
        merges are made outside of this process, the answer comes then, and what is merged in it was so in time.
        What a preview does is never held against its template version.
        """
        ...


async def render_one(
    renderer: Renderer, bundle: Bundle, channel: Channel, merge: Merge, *, tenant_id: str, seconds_max: float
) -> Content:
    """Merge once, for somebody who wants to see it; raise RenderFailed where there is no content, or Ending."""
    if bundle.lacks_url(channel, merge.public_url):
        unset = no_url(bundle)
        raise RenderFailed(unset.message, hint=unset.hint)
    (merged,) = await renderer.render(
        bundle, channel, [merge], tenant_id=tenant_id, seconds_max=seconds_max, is_preview=True
    )
    match merged:
        case RenderFailed():
            raise merged
        case NotMerged(reason=reason) if reason == ENDING:
            raise ending()
        case NotMerged(reason=reason, is_held=is_held):
            hint = END_QUARANTINE if is_held else "try again in a moment"
            raise RenderFailed(f"it was not merged: {reason}", hint=hint)
        case _:
            return merged


def no_url(bundle: Bundle) -> BadConfiguration:
    """Make the error for links to this installation without its URL."""
    return BadConfiguration(
        f"the notification {bundle.definition.key!r} has links to this installation, and its URL is not set",
        hint="set CLARION_PUBLIC_URL and start again",
    )


def ending() -> Ending:
    """Make the error for whoever waits for a merge or a check when the program ends."""
    return Ending(ENDING, hint="try again in a moment")


def wrong_files(definition: Definition, files: Collection[str]) -> Iterator[InvalidInput]:
    """Name every file that a channel lacks, and every file that belongs to no channel of the definition."""
    for channel in definition.channels:
        for file in FILES_OF[channel]:
            if file not in files:
                yield InvalidInput(
                    f"the definition lists the channel {channel}, and its file is missing",
                    field=file,
                    hint="add the file, or take the channel out of the definition",
                )
    owners = {
        file: channel
        for names_of in (FILES_OF, OPTIONAL_FILES_OF)
        for channel, names in names_of.items()
        for file in names
    }
    for file in sorted(files):
        if file not in owners:
            names = ", ".join(sorted(owners))
            yield InvalidInput("no channel has a file of this name", field=file, hint=f"the names are {names}")
        elif owners[file] not in definition.channels:
            what = f"the definition does not list the channel {owners[file]}"
            yield InvalidInput(what, field=file, hint="list it, or remove the file")
