"""Reading notifications from folders: a definition and template files for each type, layouts and texts beside them.

    definitions/
      layouts/school.mjml.liquid, school.text.liquid    around the mails that name the layout `school`
      layouts/_signature.mjml.liquid                    a partial
      locales/en.toml, de.toml                          texts, by type
      incident/definition.toml, email.subject.liquid, … a type
      incident/schema.json                              what its data looks like, as JSON Schema

Every mistake that can be found is found in one run, each with its file. Files are read through `open_folder`, which
follows no link. Writes nothing.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from clarion.catalog import definition as form
from clarion.catalog.definition import parse_toml
from clarion.catalog.json_line import line_of as json_line_of
from clarion.catalog.open_folder import OpenFolder, open_folder
from clarion.catalog.source import Source, Written, read_schema, wrong_layout, wrong_locale, wrong_text
from clarion.catalog.toml_line import line_of
from clarion.domain.definition import Definition
from clarion.domain.expansion import Text
from clarion.domain.misfit import written
from clarion.errors import InvalidDefinition, InvalidInput
from clarion.ports.renderer import DEFINITION, SCHEMA, FieldMistake

LAYOUTS: Final = "layouts"
LOCALES: Final = "locales"
SHARED: Final = "shared"
"""The table of texts for all types."""

Texts = dict[str, dict[str, dict[str, Text]]]
"""By language, by table, by name."""


def read_folder(folder: Path) -> tuple[list[Written], list[InvalidInput]]:
    """Read one notification, or all in the subfolders of a folder; give what can be used, and every mistake."""
    with open_folder(folder) as given:
        if given.has(DEFINITION):
            with open_folder(folder.parent if folder.name not in ("", "..") else folder / "..") as above:
                reader = _Reader(above)
            reader.notification(given)
            return reader.found, reader.mistakes
        names = [name for name in given.names() if given.has(name, DEFINITION)]
        if not names:
            hint = "name the folder that holds the notifications"
            raise InvalidInput(f"no folder in it has a {DEFINITION}", field=str(folder), hint=hint)
        reader = _Reader(given)
        for name in names:
            try:
                with given.folder(name) as place:
                    reader.notification(place)
            except InvalidInput as error:
                reader.mistakes.append(error)
        reader.check_tables()
        return reader.found, reader.mistakes


class _Reader:
    """Reads files, and keeps every mistake."""

    def __init__(self, root: OpenFolder) -> None:
        self.mistakes: list[InvalidInput] = []
        self.found: list[Written] = []
        self._root = root.path
        self._places: dict[str, Path] = {}
        self._layouts: dict[str, str] = {}
        self._texts: Texts = {}
        for name, read in ((LAYOUTS, self._read_layouts), (LOCALES, self._read_texts)):
            if root.has(name):
                try:
                    with root.folder(name) as folder:
                        read(folder)
                except InvalidInput as error:
                    self.mistakes.append(error)

    def notification(self, folder: OpenFolder) -> None:
        """Read one notification; where its definition cannot be used, its files are only looked at."""
        texts_of: dict[str, str | None] = {
            name: self._read(folder, name) for name in (DEFINITION, SCHEMA) if name in folder.names()
        }
        definition = self._definition(folder, texts_of.get(DEFINITION))
        names = [name for name in folder.names() if name.endswith(".liquid")]
        files = {name: text for name in names if (text := self._read(folder, name)) is not None}
        if definition is not None:
            key = definition.key
            texts = {one: tables.get(SHARED, {}) | tables.get(key, {}) for one, tables in self._texts.items()}
            source = Source(
                definition=definition,
                files=files,
                layouts=self._layouts,
                texts=texts,
                schema=self._schema(folder, texts_of.get(SCHEMA)),
            )
            self.found.append(Written(source, partial(self._placed, folder.path, texts_of)))

    def check_tables(self) -> None:
        """Refuse texts of a type that there is not: nobody would ever read them."""
        if self.mistakes:
            return  # of a definition that cannot be read nobody knows the key
        for locale, tables in self._texts.items():
            for table, texts in tables.items():
                if table not in {SHARED, *self._places}:
                    line = min((text.line for text in texts.values()), default=1)
                    what = f"line {line}: there is no type {table!r}"
                    self._wrong(self._root / LOCALES / f"{locale}.toml", what, f"name a type, or {SHARED} for all")

    def _placed(self, folder: Path, texts: Mapping[str, str | None], error: InvalidInput) -> InvalidInput:
        """Say where the file lies that a mistake speaks of, and on which line of a definition or a schema it stands."""
        place = (self._root if error.field.startswith((f"{LAYOUTS}/", f"{LOCALES}/")) else folder) / error.field
        what = error.message
        if isinstance(error, FieldMistake) and (text := texts.get(error.field)) is not None:
            if error.field == SCHEMA:
                what = f"line {json_line_of(text, error.path)}: {what}"
            else:
                what = f"line {line_of(text, written(error.path).partition('[')[0])}: {what}"
        return InvalidInput(what, field=str(place), hint=error.hint)

    def _read_layouts(self, folder: OpenFolder) -> None:
        for name in [one for one in folder.names() if one.endswith(".liquid")]:
            if (wrong := wrong_layout(name)) is not None:
                self._wrong(folder.path / name, *wrong)
            elif (text := self._read(folder, name)) is not None:
                self._layouts[name] = text

    def _read_texts(self, folder: OpenFolder) -> None:
        for name in [one for one in folder.names() if one.endswith(".toml")]:
            locale = name.removesuffix(".toml")
            if (wrong := wrong_locale(locale)) is not None:
                self._wrong(folder.path / name, *wrong)
            elif (text := self._read(folder, name)) is not None:
                self._texts[locale] = self._tables(folder.path / name, text)

    def _tables(self, path: Path, text: str) -> dict[str, dict[str, Text]]:
        """Read the texts of one language, each with its line."""
        try:
            read = parse_toml(text, file=str(path))
        except InvalidDefinition as error:
            self.mistakes += error.mistakes
            return {}
        tables: dict[str, dict[str, Text]] = {}
        for table, texts in read.items():
            if not isinstance(texts, dict):
                line = line_of(text, table)
                self._wrong(path, f"line {line}: {table!r} stands in no table", f"put it below [{SHARED}] or [TYPE]")
                continue
            tables[table] = {}
            for name, value in texts.items():
                line = line_of(text, f"{table}.{name}")
                if (wrong := wrong_text(name, value)) is not None:
                    self._wrong(path, f"line {line}: {name!r} {wrong[0]}", wrong[1])
                else:
                    tables[table][name] = Text(value, f"{LOCALES}/{path.name}", line)
        return tables

    def _definition(self, folder: OpenFolder, text: str | None) -> Definition | None:
        path = folder.path / DEFINITION
        if text is None:
            return None
        try:
            definition = form.parse_definition(text, file=str(path))
        except InvalidDefinition as error:
            self.mistakes += error.mistakes
            return None
        taken = self._places.setdefault(definition.key, path)
        if taken is not path:
            what = f"line {line_of(text, 'key')}: the key {definition.key!r} is already that of {taken}"
            self._wrong(path, what, "give each notification a key of its own")
        return definition

    def _schema(self, folder: OpenFolder, text: str | None) -> Mapping[str, object] | None:
        if text is None:
            return None
        path = folder.path / SCHEMA
        try:
            return read_schema(text)
        except InvalidInput as error:
            self._wrong(path, error.message, error.hint)
            return None

    def _read(self, folder: OpenFolder, name: str) -> str | None:
        """Read a file, or note why not."""
        try:
            return folder.read(name)
        except InvalidInput as error:
            self.mistakes.append(error)
            return None

    def _wrong(self, path: Path, what: str, hint: str) -> None:
        self.mistakes.append(InvalidInput(what, field=str(path), hint=hint))
