"""Publishing notification types, looking at one, and trying one: from files, and from what a request holds.

Everything is compiled beside the event loop and one set at a time: a notification in fifty languages takes seconds.
Reads and writes templates through `catalog.publish`, which audits what is new. A preview stores nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.change import Change
from clarion.catalog.definition import complaints_in, misfits_of
from clarion.catalog.local_form import checked_form
from clarion.catalog.publish import Publisher
from clarion.catalog.source import Source, Written, wrong_layout, wrong_locale, wrong_text
from clarion.client import wire_types as wire
from clarion.domain.definition import RESERVED
from clarion.domain.expansion import Text
from clarion.domain.locale import choose
from clarion.domain.misfit import Misfit, misfits_in, written
from clarion.domain.person import LocalForm
from clarion.errors import InvalidInput, TooManyAtOnce
from clarion.ports.renderer import DEFINITION, SCHEMA, Bundle, FieldMistake, Merge, Renderer, render_one
from clarion.producers.direct import quarantined

WAITING_MAX: Final = 10
"""Who wait for their turn to publish; each is an open request."""

SECONDS_MAX: Final = 5.0
"""For one merge of a preview. The door answers after 8 whatever happens."""

VERSIONS_MAX: Final = 100


class Publishing:
    """The notification types of tenants, as their authors see them."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._platform = platform
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clarion-publish")  # started when it is needed
        self._publisher = Publisher(catalog=platform.store, renderer=platform.renderer, thread=thread)
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def put(self, tenant_id: str, key: str, asked: wire.TypeRequest, *, actor: str) -> wire.TypeChange:
        """Publish a type, or with `dry_run` say what that would change; InvalidDefinition has all mistakes."""
        if asked.definition.key != key:
            raise InvalidInput(
                "it is not the one that the path names", field="definition.key", hint="write the same in both"
            )
        complaints = [_of_the_definition(one) for one in complaints_in(asked.definition)]
        source = Written(_source(asked), _placed)
        if self._waiting >= WAITING_MAX:
            raise TooManyAtOnce("too many notifications are being published", hint="try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                changes = await self._publisher.compare_written(
                    tenant_id,
                    [source],
                    mistakes=[*complaints, *_wrong_names(asked)],
                    with_category=asked.with_category,
                )
                if not asked.dry_run:
                    stored = await self._publisher.store(tenant_id, changes, actor=actor)
                    changes = [
                        msgspec.structs.replace(change, version=one.version, is_new=one.is_new)
                        for change, one in zip(changes, stored, strict=True)
                    ]
        finally:
            self._waiting -= 1
        asked_for, *others = map(change_shape, changes)
        return msgspec.structs.replace(asked_for, others=tuple(others))

    async def find(self, tenant_id: str, key: str) -> wire.TypeDetails | None:
        """Show a type as it is published now, quarantined or not, with its versions; None where it is not published."""
        (published,) = await self._platform.templates.latest([(tenant_id, key)])
        version, bundle = published.version, published.bundle
        if version is None or bundle is None:
            return None
        one = (tenant_id, key, None)
        versions = await self._platform.store.list_template_versions(tenant_id, key, limit=VERSIONS_MAX)
        return wire.TypeDetails(
            type=key,
            version=version,
            enabled=(await self._platform.store.find_settings([one]))[one].enabled,
            definition=bundle.definition,
            variables=variables_of(bundle),
            schema=bundle.schema,
            versions=tuple(msgspec.convert(one, wire.TypeVersion, from_attributes=True) for one in versions),
        )

    async def preview(self, tenant_id: str, key: str, asked: wire.PreviewRequest) -> wire.TypePreview | None:
        """Merge a type's templates with data, or with its sample; None where there is no such type or version.

        A version that is quarantined is not merged here either; InvalidInput says so.
        """
        templates, version = self._platform.templates, asked.version
        if version is None:
            (published,) = await templates.latest([(tenant_id, key)])
            version = published.version
        name = (tenant_id, key, version)
        found = (await templates.load([name])).get(name) if version is not None else None
        if found is None:
            if templates.is_quarantined(name):
                raise quarantined(key, version)
            return None
        version, bundle = found
        url = self._platform.settings.public_url or ""
        return await preview_of(
            self._platform.renderer, bundle, asked, tenant_id=tenant_id, version=version, public_url=url
        )


async def preview_of(
    renderer: Renderer, bundle: Bundle, asked: wire.PreviewRequest, *, tenant_id: str, version: int, public_url: str
) -> wire.TypePreview:
    """Merge a bundle, published or not, for somebody who wants to see it; raise RenderFailed where it cannot be."""
    definition = bundle.definition
    channels: Sequence[str] = definition.channels if asked.channel is None else [asked.channel]
    if asked.channel is not None and asked.channel not in definition.channels:
        raise InvalidInput(
            f"the notification type {definition.key!r} is not sent by {asked.channel}",
            field="channel",
            hint=f"it is sent by {', '.join(definition.channels)}",
        )
    checked_form(LocalForm(tz_id=asked.zone))  # a zone that the renderer's tables have
    sample = dict(definition.sample)
    person, entity = sample.pop("recipient", {}), sample.pop("entity", {})
    merge = Merge(
        sample if asked.data is None else asked.data,
        locale=asked.locale or "",
        zone=asked.zone,
        recipient=_given(asked.recipient, person),
        entity=_given(asked.entity, entity),
        public_url=public_url,
    )
    await renderer.check_request(bundle, merge.data, entity=merge.entity, tenant_id=tenant_id, briefly=False)
    contents = {
        channel: await render_one(renderer, bundle, channel, merge, tenant_id=tenant_id, seconds_max=SECONDS_MAX)
        for channel in definition.channels
        if channel in channels
    }
    return wire.TypePreview(
        type=definition.key,
        version=version,
        locale=choose([asked.locale], definition.locales),
        contents={channel: msgspec.structs.asdict(content) for channel, content in contents.items()},
    )


def change_shape(change: Change) -> wire.TypeChange:
    """Write what publishing changes, as it is answered."""
    return wire.TypeChange(
        type=change.bundle.definition.key,
        version=change.version,
        created=change.is_new,
        fields=tuple(wire.FieldChange(field=one.field, before=one.before, after=one.after) for one in change.fields),
        parts=tuple(
            wire.PartChange(locale=one.locale, channel=one.channel, part=one.part, lines=one.lines)
            for one in change.parts
        ),
    )


def variables_of(bundle: Bundle) -> tuple[str, ...]:
    """Name what the data of a type must have."""
    paths = {*bundle.definition.required, *chain(*bundle.variables.values())}
    return tuple(sorted(path for path in paths if path.partition(".")[0] not in RESERVED))


def mistakes_of_body(read: object) -> Iterator[InvalidInput]:
    """Name everything in a body that is no request to publish a type, each with its field."""
    of_the_definition = read.get("definition") if isinstance(read, Mapping) else None
    for one in misfits_in(read, wire.TypeRequest):
        if not (one.field.startswith("definition.") and isinstance(of_the_definition, Mapping)):
            yield _refused(one)
    if isinstance(of_the_definition, Mapping):
        yield from map(_of_the_definition, misfits_of(of_the_definition))


def _of_the_definition(misfit: Misfit) -> InvalidInput:
    return _refused(misfit._replace(field=f"definition.{misfit.field}"))


def _refused(misfit: Misfit) -> InvalidInput:
    return InvalidInput(misfit.what, field=misfit.field or "body", hint=misfit.hint or "correct it and ask again")


def _source(asked: wire.TypeRequest) -> Source:
    texts = {
        locale: {name: Text(value, f"locales/{locale}/{name}", 1) for name, value in given.items()}
        for locale, given in asked.locales.items()
    }
    return Source(
        definition=asked.definition, files=asked.files, layouts=asked.layouts, texts=texts, schema=asked.schema
    )


def _wrong_names(asked: wire.TypeRequest) -> Iterator[InvalidInput]:
    """Name layouts, languages and texts that no folder could have either."""
    places = {f"layouts.{name}": wrong_layout(name) for name in asked.layouts}
    for locale, texts in asked.locales.items():
        places[f"locales.{locale}"] = wrong_locale(locale)
        for name, value in texts.items():
            wrong = wrong_text(name, value)
            places[f"locales.{locale}.{name}"] = wrong and (f"it {wrong[0]}", wrong[1])
    for field, wrong in places.items():
        if wrong is not None:
            yield InvalidInput(wrong[0], field=field, hint=wrong[1])


def _placed(error: InvalidInput) -> InvalidInput:
    """Say in which field of a request a mistake stands; a line in its text counts within that field."""
    file = error.field
    if file.startswith("locales/"):
        field = file.removesuffix(".toml").replace("/", ".")
    elif file.startswith("layouts/"):
        field = file.replace("/", ".", 1)
    else:
        field = {DEFINITION: "definition", SCHEMA: "schema"}.get(file) or f"files.{file}"
    if isinstance(error, FieldMistake):
        return InvalidInput(error.what, field=written((field, *error.path)), hint=error.hint)
    return InvalidInput(error.message, field=field, hint=error.hint)


def _given(asked: Mapping[str, object] | None, sample: object) -> Mapping[str, object]:
    """Take what was asked for, or the sample's table."""
    if asked is not None:
        return asked
    return sample if isinstance(sample, Mapping) else {}
