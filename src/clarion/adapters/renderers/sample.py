"""What is wrong with templates when they are merged with their sample, told where its author can mend it.

A variable that the sample lacks is more often misspelled in a template than forgotten in the sample, so it is told at
the place that reads it. Reads and writes nothing; the merge itself is the renderer's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from clarion.adapters.renderers.compiling import file_of, files_of
from clarion.adapters.renderers.given import link_paths, sample_of
from clarion.adapters.renderers.language import TEXT, line_of, parse
from clarion.adapters.renderers.merging import BrokenMerge, LacksVariable
from clarion.adapters.renderers.schema import misfits_of
from clarion.domain.identity import Channel
from clarion.domain.misfit import written
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import (
    DEFINITION,
    OPTIONAL_FILES_OF,
    Bundle,
    FieldMistake,
    Merge,
    TemplateMistake,
)

LACKING_MAX: Final = 20
"""Variables that one channel lacks, which are found one after the other."""

_HINT: Final = "correct the name, or add it to the definition's sample"

Files = Mapping[str, Mapping[str, str]]
"""The files of a notification by locale, empty for the default one, and name."""


def mistakes_with_sample(
    bundle: Bundle, files: Files, *, missing: Sequence[str], merge: Callable[[Channel, Merge], object]
) -> Iterator[tuple[str, InvalidInput]]:
    """Merge every channel in every locale with the sample; `missing` is what is known to be lacking without a merge."""
    sample = sample_of(bundle.definition)
    for misfit in [] if bundle.schema is None else misfits_of(bundle.schema, sample.data):
        place = misfit.field.removeprefix("data").removeprefix(".")
        what = f"the sample does not fit the schema, {misfit.field}: {misfit.message}"
        path = ("sample", place) if place else ("sample",)
        yield "", FieldMistake(what, file=DEFINITION, path=path, hint=misfit.hint)
    absent = dict.fromkeys(missing)
    for locale in files:
        for channel in bundle.definition.channels:
            tried = msgspec.structs.replace(sample, locale=locale)
            for _ in range(LACKING_MAX):
                try:
                    merge(channel, tried)
                except LacksVariable as error:
                    absent[error.absent] = None
                    before, tried = tried, _with(tried, error.absent)
                    if tried != before:
                        continue  # to find what else it lacks
                except RenderFailed as error:
                    if tried.data == sample.data:  # with what stands in for a variable anything may fail
                        yield locale, _failed(error, channel, files[locale])
                break
    for name in absent:
        yield from _lacks(bundle, files, name)


def _with(sample: Merge, name: str) -> Merge:
    """Give a sample with something in the place of a variable that it lacks, if it has such a place."""
    root, *steps = name.split(".") if name.partition(".")[0] in ("recipient", "entity") else ["data", *name.split(".")]
    filled = {**getattr(sample, root)}
    inside = filled
    for step in steps[:-1]:
        found = inside.get(step, {})
        if not isinstance(found, Mapping):
            return sample
        inside[step] = inside = {**found}
    if not steps or steps[-1] in inside:
        return sample
    inside[steps[-1]] = "x"
    return msgspec.structs.replace(sample, **{root: filled})


def _lacks(bundle: Bundle, files: Files, name: str) -> Iterator[tuple[str, InvalidInput]]:
    """Say where something is read that the sample does not have: in a template, in a link, or in what is required."""
    definition, what, is_read = bundle.definition, f"it reads {name}, which the sample does not have", False
    for locale, whole in files.items():
        for file in files_of(definition.channels):
            position = None if file not in whole else _position(whole[file], name)
            if position is not None:
                line = line_of(whole[file], position)
                yield locale, TemplateMistake(what, field=file, line=line, position=position, hint=_HINT)
                is_read = True
    path = next((("links", link) for link, url in definition.links.items() if name in link_paths(url)), None)
    if path is not None:
        what = f"this link reads {name}, which the sample does not have"
        yield "", FieldMistake(what, file=DEFINITION, path=path, hint=_HINT)
    elif not is_read:
        required = name in definition.required
        what = f"the sample has no {name}, {'which is required' if required else 'which the templates need'}"
        yield "", FieldMistake(what, file=DEFINITION, path=("required" if required else "sample",), hint="add it")


def _position(source: str, name: str) -> int | None:
    """Return the place in a template that reads a variable first."""
    read = parse(TEXT, source, file="").analyze(include_partials=False).variables
    places = [one.span.index for found in read.values() for one in found if _dotted(one.segments) == name]
    return min(places, default=None)


def _dotted(segments: Sequence[object]) -> str:
    """Write a path as an error of a merge does; one that is looked up by a variable has no place of its own."""
    return written([one for one in segments if isinstance(one, str | int)])


def _failed(error: RenderFailed, channel: Channel, files: Mapping[str, str]) -> InvalidInput:
    """Say in which file a merge failed, and on which line if the piece of Liquid is known."""
    what, file = f"with the sample, {error.message}", file_of(channel, error.part or "")
    near = error.near if isinstance(error, BrokenMerge) else ""
    for name in (file, *OPTIONAL_FILES_OF.get(channel, ())) if near else ():
        position = files.get(name, "").find(near)
        if position >= 0:
            line = line_of(files[name], position)
            return TemplateMistake(what, field=name, line=line, position=position, hint=error.hint)
    return InvalidInput(what, field=file, hint=error.hint)
