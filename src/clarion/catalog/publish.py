"""Publishing: from folders of files to stored versions of notifications.

Reads the files through `definition`, has the renderer compile them, and stores each bundle as a version of its own
unless the latest one has the same content. Everything is compiled before anything is stored,
so one broken template keeps the whole set from being published.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from clarion.catalog.definition import DEFINITION, load_definition, load_definitions
from clarion.domain.definition import Definition
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.catalog import CatalogStore
from clarion.ports.renderer import Bundle, Renderer


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One notification as it stands after publishing; `is_new` tells whether this made its version."""

    key: str
    title: str
    version: int
    is_new: bool
    channels: tuple[Channel, ...]


class Publisher:
    """Publishes notifications to tenants."""

    def __init__(self, *, catalog: CatalogStore, renderer: Renderer) -> None:
        """Compile with this renderer and store in this catalog."""
        self._catalog = catalog
        self._renderer = renderer

    async def publish(
        self, tenant_id: str, *, folder: Path, actor: str, progress: Callable[[str], None] = lambda _: None
    ) -> list[Published]:
        """Publish the notification in a folder, or every one in its subfolders; `progress` hears each key before it."""
        bundles = []
        for place, definition, files in _load(folder):
            progress(definition.key)
            bundles.append(self._compile(place, definition, files))
        return await self._store(tenant_id, bundles, actor=actor)

    def _compile(self, place: Path, definition: Definition, files: dict[str, str]) -> Bundle:
        """Compile one notification; an error names the file that it is in."""
        try:
            return self._renderer.compile(definition, files)
        except InvalidInput as error:
            file = error.field if error.field in files else DEFINITION
            raise InvalidInput(error.message, field=str(place / file), hint=error.hint) from None

    async def _store(self, tenant_id: str, bundles: Sequence[Bundle], *, actor: str) -> list[Published]:
        """Store what is new, and say what stands."""
        published = []
        for bundle in bundles:
            definition = bundle.definition
            answer = await self._catalog.publish_template(
                tenant_id,
                template_key=definition.key,
                content_hash=bundle.content_hash,
                bundle=msgspec.json.encode(bundle).decode(),
                actor=actor,
            )
            published.append(
                Published(
                    key=definition.key,
                    title=definition.title,
                    version=answer.record.version,
                    is_new=answer.outcome is Outcome.CREATED,
                    channels=definition.channels,
                )
            )
        return published


def _load(folder: Path) -> list[tuple[Path, Definition, dict[str, str]]]:
    """Read one notification or a folder of them, each with its own folder."""
    if not folder.is_dir():
        raise InvalidInput(
            "there is no such folder", field=str(folder), hint="name the folder of a notification, or of several"
        )
    if (folder / DEFINITION).exists():
        return [(folder, *load_definition(folder))]
    return load_definitions(folder)
