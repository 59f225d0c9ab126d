"""Compiling: from a notification's files, whole for each locale, to the Liquid sources of its parts.

Every file is read for itself, so that one run finds the mistakes of all. Layouts, partials and texts were put
in before; errors speak of the files as they are given here. Reads and writes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Final

import msgspec
from liquid.template import BoundTemplate

from clarion.adapters.renderers.given import needed_of, read_besides
from clarion.adapters.renderers.language import HTML, TEXT, parse
from clarion.adapters.renderers.limit import HTML_BYTES_MAX
from clarion.adapters.renderers.markup import compile_mjml
from clarion.adapters.renderers.mistakes import mistakes_in
from clarion.adapters.renderers.schema import mistakes_in as mistakes_of_schema
from clarion.adapters.renderers.variables import LIQUID, needs_of
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.renderer import FILES_OF, OPTIONAL_FILES_OF, SCHEMA, Bundle, TemplateMistake, hashed, wrong_files

Sources = dict[Channel, dict[str, str]]
"""The Liquid of each part of each channel."""

Found = list[tuple[str, InvalidInput]]
"""Mistakes, each with its locale; empty for the default one."""

MJML: Final = "email.mjml.liquid"
PREHEADER: Final = "email.preheader.liquid"

_MJML: Final = re.compile(r"<mjml\b([^>]*)>")
_LANG: Final = re.compile(r"""\slang\s*=\s*("[^"]*"|'[^']*')""")
_BODY: Final = re.compile(r"<body[^>]*>")

# As MJML writes its own <mj-preview>: clients show the text beside the subject, and not in the mail.
_HIDDEN: Final = (
    '<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;max-width:0px;opacity:0;'
    'overflow:hidden;">{}</div>'
)


def compile_files(
    definition: Definition,
    files: Mapping[str, str],
    locales: Mapping[str, Mapping[str, str]],
    schema: Mapping[str, object] | None = None,
) -> tuple[Bundle | None, Found]:
    """Make a bundle of a notification's files, and say all that is wrong with them.

    Where something is, the bundle has those channels that can be used in every language, so that the sample can be
    tried with them; None if there is no such channel.
    """
    found: Found = [] if schema is None else [("", error) for error in mistakes_of_schema(schema)]
    sources: dict[str, Sources] = {}
    needed: dict[Channel, set[str]] = {channel: {*definition.required} for channel in definition.channels}
    names: dict[Channel, set[str]] = {channel: set() for channel in definition.channels}
    usual = definition.locales[0] if locales else ""  # where there is one language, the author says which or nobody
    for locale, whole in {"": files, **locales}.items():
        found += [(locale, error) for error in (*wrong_files(definition, whole), *_second_preheaders(whole))]
        wrong = {
            file: mistakes
            for file in files_of(definition.channels)
            if file in whole and (mistakes := mistakes_in(whole[file], file=file))
        }
        found += [(locale, error) for mistakes in wrong.values() for error in mistakes]
        given = {file: text for file, text in whole.items() if file not in wrong}
        sources[locale] = {channel: {} for channel in definition.channels}
        for channel in definition.channels:
            for file in [one for one in FILES_OF[channel] if one in given]:
                try:
                    for part, source in _parts(file, given, locale or usual):
                        sources[locale][channel][part] = source
                        needs = needs_of(parse_part(part, source, file=file))
                        needed[channel].update(needed_of(definition, needs.paths))
                        names[channel] |= needs.names
                except InvalidInput as error:
                    found.append((locale, error))
    usable = tuple(channel for channel in definition.channels if _is_whole(channel, sources.values()))
    if not usable:
        return None, found
    if found:
        definition = msgspec.structs.replace(definition, channels=usable)
        schema = None if any(error.field == SCHEMA for _, error in found) else schema
        sources = {locale: {channel: parts[channel] for channel in usable} for locale, parts in sources.items()}
    reads = {channel: tuple(sorted(read_besides(definition, names[channel]))) for channel in usable}
    bundle = Bundle(
        definition=definition,
        parts=sources.pop(""),
        locales=sources,
        variables={channel: tuple(sorted(needed[channel])) for channel in usable},
        reads={channel: read for channel, read in reads.items() if read},
        schema=None if schema is None else dict(schema),
        content_hash="",
    )
    return hashed(bundle), found


def _is_whole(channel: Channel, sources: Iterable[Sources]) -> bool:
    """Tell whether a channel has its parts in every language."""
    many = channel in (Channel.PUSH, Channel.INBOX)  # one file, with a title and a body
    return all(len(parts[channel]) == (2 if many else len(FILES_OF[channel])) for parts in sources)


def parse_part(part: str, source: str, *, file: str) -> BoundTemplate:
    """Parse a part; only HTML escapes what it merges, a text message has no markup to protect."""
    return (
        parse(HTML, source, file=file, bytes_max=HTML_BYTES_MAX) if part == "html" else parse(TEXT, source, file=file)
    )


def files_of(channels: Sequence[Channel]) -> Iterator[str]:
    """Name all files that these channels may have."""
    for channel in channels:
        yield from (*FILES_OF[channel], *OPTIONAL_FILES_OF.get(channel, ()))


def file_of(channel: Channel, part: str) -> str:
    """Name the file that a part was written in."""
    return f"email.{'mjml' if part == 'html' else part}.liquid" if channel is Channel.EMAIL else f"{channel}.liquid"


def _parts(file: str, files: Mapping[str, str], locale: str) -> Iterator[tuple[str, str]]:
    """Give the name and the Liquid of each part that a file holds."""
    source = files[file]
    if file == MJML:
        html = compile_mjml(_in_language(source, locale) if locale else source, file=file)
        yield "html", html if PREHEADER not in files else _with_preheader(html, files[PREHEADER])
    elif file in (*FILES_OF[Channel.PUSH], *FILES_OF[Channel.INBOX]):
        title, _, body = source.partition("\n")
        yield "title", title
        yield "body", body
    else:
        yield "subject" if file == "email.subject.liquid" else "text", source


def _in_language(mjml: str, locale: str) -> str:
    """Have a mail say its language, for those who have it read to them; its layout is the same in all languages."""
    opening = _MJML.search(mjml)
    if opening is None:
        return mjml
    attributes = _LANG.sub("", opening[1])
    return f'{mjml[: opening.start()]}<mjml lang="{locale}"{attributes}>{mjml[opening.end() :]}'


def _second_preheaders(files: Mapping[str, str]) -> Iterator[TemplateMistake]:
    """Refuse a line for previews where the mail has one of its own."""
    if PREHEADER in files and "<mj-preview" in files.get(MJML, ""):
        what = "the mail has a line for previews already, in its <mj-preview>"
        yield TemplateMistake(what, field=PREHEADER, line=1, hint="keep one of the two")


def _with_preheader(html: str, preheader: str) -> str:
    """Put the line that clients show beside the subject at the start of the body, where it is not seen."""
    line = preheader.strip()
    texts, liquid = LIQUID.split(line), LIQUID.findall(line)
    written = "".join(escape(text) + piece for text, piece in zip_longest(texts, liquid, fillvalue=""))
    return _BODY.sub(lambda body: body[0] + _HIDDEN.format(written), html, count=1)
