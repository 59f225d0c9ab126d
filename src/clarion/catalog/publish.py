"""Publishing: from notifications as their authors wrote them to stored versions.

Reads folders through `folder`, has the renderer compile what they hold, and stores each bundle as a version of its own
unless the latest one has the same content. Everything is compiled before anything is stored, and stored in one
transaction, so that one mistake keeps the whole set from being published. All mistakes are told at once.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

import msgspec

from clarion.catalog.change import Change
from clarion.catalog.folder import read_folder
from clarion.catalog.source import Written, compile_source
from clarion.domain.definition import Definition, unlike_in_category
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Channel
from clarion.errors import InvalidDefinition, InvalidInput
from clarion.ports.catalog import CatalogStore, NewTemplate
from clarion.ports.renderer import DEFINITION, Bundle, FieldMistake, Renderer, hashed

Progress = Callable[[str], None]
"""Hears the key of each notification before it is compiled."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One notification as it stands after publishing; `is_new` tells whether this made its version."""

    key: str
    title: str
    version: int
    is_new: bool
    channels: tuple[Channel, ...]


def _silent(_key: str) -> None:
    """Tell nobody."""


def compile_folder(folder: Path, renderer: Renderer, *, progress: Progress = _silent) -> list[Bundle]:
    """Compile every notification of a folder, or raise InvalidDefinition with all mistakes; needs no store."""
    written, mistakes = read_folder(folder)
    return compile_written(written, renderer, mistakes=mistakes, progress=progress)


def compile_written(
    written: Sequence[Written],
    renderer: Renderer,
    *,
    mistakes: Sequence[InvalidInput] = (),
    published: Sequence[Definition] = (),
    progress: Progress = _silent,
) -> list[Bundle]:
    """Compile notifications beside those that are published, or raise InvalidDefinition with all mistakes."""
    bundles, found = [], list(mistakes)
    unread = {one.field for one in mistakes}  # a file that cannot be read is not missing too
    own = {one.source.definition.key: one.source.definition for one in written}
    beside = [*own.values(), *(one for one in published if one.key not in own)]
    for source, placed in written:
        progress(source.definition.key)
        wrong: list[InvalidInput] = []
        bundle = compile_source(renderer, source, wrong)
        if bundle is not None:
            bundles.append(bundle)
        if (other := unlike_in_category(source.definition, beside)) is not None:
            wrong.append(_unlike(source.definition, other))
        found += [one for one in map(placed, wrong) if one.field not in unread]
    if found:
        raise InvalidDefinition(found)
    return bundles


class Publisher:
    """Publishes notifications to tenants."""

    def __init__(self, *, catalog: CatalogStore, renderer: Renderer, thread: Executor | None = None) -> None:
        """Compile with this renderer and store in this catalog.

        In this thread, if one is given: MJML in many languages takes seconds, and others would wait for them.
        """
        self._catalog = catalog
        self._renderer = renderer
        self._thread = thread

    async def publish(
        self, tenant_id: str, *, folder: Path, actor: str, progress: Progress = _silent
    ) -> list[Published]:
        """Publish the notification in a folder, or every one in its subfolders."""
        return await self.store(tenant_id, await self.compare(tenant_id, folder, progress=progress), actor=actor)

    async def compare(self, tenant_id: str, folder: Path, *, progress: Progress = _silent) -> list[Change]:
        """Say what publishing a folder would change, or raise InvalidDefinition with all mistakes; stores nothing."""
        written, mistakes = read_folder(folder)
        return await self.compare_written(tenant_id, written, mistakes=mistakes, progress=progress)

    async def compare_written(
        self,
        tenant_id: str,
        written: Sequence[Written],
        *,
        mistakes: Sequence[InvalidInput] = (),
        with_category: bool = False,
        progress: Progress = _silent,
    ) -> list[Change]:
        """Do the same for notifications that were read already, with the mistakes that were found then.

        Other published types of their categories say otherwise whether people may unsubscribe: that is a mistake or,
        `with_category`, those become like them.
        """
        rows = await self._catalog.list_templates(tenant_id)
        stored = {row.template_key: (row.version, msgspec.json.decode(row.bundle, type=Bundle)) for row in rows}
        beside = [bundle for _, bundle in stored.values()]
        definitions = [one.source.definition for one in written]
        following = list(_following(definitions, beside)) if with_category else []
        keys = {one.definition.key for one in following}
        published = [one.definition for one in beside if one.definition.key not in keys]
        compiling = partial(
            compile_written, written, self._renderer, mistakes=mistakes, published=published, progress=progress
        )
        if self._thread is None:
            bundles = compiling()
        else:
            bundles = await asyncio.get_running_loop().run_in_executor(self._thread, compiling)
        return [Change.of(stored.get(one.definition.key), one) for one in [*bundles, *following]]

    async def store(self, tenant_id: str, changes: Sequence[Change], *, actor: str) -> list[Published]:
        """Store what is new, all of it or nothing, and say what stands."""
        bundles = [one.bundle for one in changes]
        new = [
            NewTemplate(
                template_key=one.definition.key,
                content_hash=one.content_hash,
                bundle=msgspec.json.encode(one).decode(),
            )
            for one in bundles
        ]
        answers = await self._catalog.publish_templates(tenant_id, new, actor=actor)
        return [
            Published(
                key=bundle.definition.key,
                title=bundle.definition.title,
                version=answer.record.version,
                is_new=answer.outcome is Outcome.CREATED,
                channels=bundle.definition.channels,
            )
            for bundle, answer in zip(bundles, answers, strict=True)
        ]


def _following(definitions: Sequence[Definition], beside: Sequence[Bundle]) -> Iterator[Bundle]:
    """Give those of other bundles that have to change with definitions, changed so that they say the same."""
    own = {one.key for one in definitions}
    for bundle in beside:
        other = unlike_in_category(bundle.definition, definitions)
        if other is not None and bundle.definition.key not in own:
            definition = msgspec.structs.replace(bundle.definition, may_unsubscribe=other.may_unsubscribe)
            yield hashed(msgspec.structs.replace(bundle, definition=definition))


def _unlike(definition: Definition, other: Definition) -> InvalidInput:
    may = {True: "may", False: "may not"}
    return FieldMistake(
        f"people {may[definition.may_unsubscribe]} unsubscribe from it, and {may[other.may_unsubscribe]} from "
        f"{other.key!r}, which has the same category {definition.category!r}",
        file=DEFINITION,
        path=("may_unsubscribe" if definition.may_unsubscribe else "category",),
        hint="say the same of may_unsubscribe in both, or give one of them another category",
    )
