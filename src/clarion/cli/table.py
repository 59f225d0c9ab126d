"""`import` and `export` of people, of members of groups, of relations and of sources: files of CSV, of any size.

A row that cannot be stored is left out and reported: the first of them on standard error, all of them in a file where
one is named. Files that are written belong to whoever runs the program, because they hold addresses.
"""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Protocol, TextIO

import typer

from clarion.cli import option
from clarion.cli.asked import Asked, asks
from clarion.cli.groups import GUID_HINT, groups
from clarion.cli.output import print_json, progress, say
from clarion.cli.people import people
from clarion.cli.relations import relations
from clarion.cli.session import guid as read_guid
from clarion.cli.sources import TYPED_AS, TypeName, sources
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.catalog.table import BadRow, ReadLine
    from clarion.cli.session import Session
    from clarion.operations.tables import Imported, Note, Progress

SHOWN_MAX: Final = 20
"""Rows that are reported on standard error: what is wrong with a column shows by then."""

SAID_EVERY: Final = 30.0
"""Seconds between two lines about a long work where there is no terminal."""

REFUSED: Final = 2
"""The exit code where rows were left out, as of every command that was given what it cannot take."""

FileName = Annotated[Path, typer.Argument(help="The file, or - for standard input.", metavar="FILE")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Store nothing, and say what would be refused.")]
Errors = Annotated[
    Path | None, typer.Option(help="Write every refused row into this file, with its reason.", metavar="FILE")
]
OutName = Annotated[Path | None, typer.Argument(help="The file to write; without it, standard output.", metavar="FILE")]


class _Import(Protocol):
    """An import of one kind of table."""

    def __call__(
        self, session: "Session", readline: "ReadLine", note: "Note", told: "Progress"
    ) -> "Awaitable[Imported]":
        """Read a table and store it."""
        ...


@people.command("import")
@asks
def import_people(
    asked: Asked,
    file: FileName,
    *,
    dry_run: DryRun = False,
    region: Annotated[
        str | None, typer.Option(help="Of phone numbers without country code, such as AT.", metavar="REGION")
    ] = None,
    errors: Errors = None,
) -> None:
    """Store the people of a CSV file: who is known already is changed, as far as the file has columns for."""

    def work(session: "Session", readline: "ReadLine", note: "Note", told: "Progress") -> "Awaitable[Imported]":
        return session.operations.tables.import_people(
            session.tenant_id,
            readline,
            actor=session.actor,
            trace=session.trace,
            note=note,
            progress=told,
            region=region,
            dry_run=dry_run,
        )

    _import(asked, work, file, errors=errors)


@people.command("export")
def export_people(file: OutName = None, tenant: option.Tenant = None, store: option.Store = None) -> None:
    """Write all people as CSV, with their addresses, to be imported again."""
    _export(lambda it: it.operations.tables.export_people(it.tenant_id), file, tenant=tenant, store=store)


@groups.command("import")
@asks
def import_members(
    asked: Asked,
    file: FileName,
    *,
    dry_run: DryRun = False,
    errors: Errors = None,
) -> None:
    """Add the people of a CSV file to the groups that it names (columns: group, person); nobody is taken out."""

    def work(session: "Session", readline: "ReadLine", note: "Note", told: "Progress") -> "Awaitable[Imported]":
        return session.operations.tables.import_members(
            session.tenant_id, readline, actor=session.actor, note=note, progress=told, dry_run=dry_run
        )

    _import(asked, work, file, errors=errors)


@groups.command("export")
def export_members(
    file: OutName = None,
    *,
    group: Annotated[str | None, typer.Option(help="Only this group.", metavar="GUID")] = None,
    tenant: option.Tenant = None,
    store: option.Store = None,
) -> None:
    """Write who is in which group as CSV; who is not known has no name, and is left out."""
    number = None if group is None else read_guid(group, field="--group", hint=GUID_HINT)
    _export(lambda it: it.operations.tables.export_members(it.tenant_id, number), file, tenant=tenant, store=store)


@relations.command("import")
@asks
def import_relations(
    asked: Asked,
    file: FileName,
    *,
    dry_run: DryRun = False,
    errors: Errors = None,
) -> None:
    """Add the relations of a CSV file (columns: entity, relation, person); none is removed."""

    def work(session: "Session", readline: "ReadLine", note: "Note", told: "Progress") -> "Awaitable[Imported]":
        return session.operations.tables.import_relations(
            session.tenant_id, readline, actor=session.actor, note=note, progress=told, dry_run=dry_run
        )

    _import(asked, work, file, errors=errors)


@sources.command("import")
@asks
def import_sources(
    asked: Asked,
    source_type: TypeName,
    file: FileName,
    *,
    dry_run: DryRun = False,
    errors: Errors = None,
) -> None:
    """Store the sources of a CSV file, each as a whole (columns: id, field:NAME, date:NAME, ...); none is removed."""

    def work(session: "Session", readline: "ReadLine", note: "Note", told: "Progress") -> "Awaitable[Imported]":
        return session.operations.source_tables.import_sources(
            session.tenant_id,
            source_type,
            readline,
            actor=session.actor,
            trace=session.trace,
            note=note,
            progress=told,
            dry_run=dry_run,
        )

    _import(asked, work, file, errors=errors)


@sources.command("export")
def export_sources(
    source_type: TypeName, file: OutName = None, tenant: option.Tenant = None, store: option.Store = None
) -> None:
    """Write all sources of a type as CSV, to be imported again."""
    _export(
        lambda it: it.operations.source_tables.export_sources(it.tenant_id, source_type),
        file,
        tenant=tenant,
        store=store,
    )


def _import(asked: Asked, work: _Import, file: Path, *, errors: Path | None) -> None:
    """Run an import, tell what is left out while it goes on, and what came of it."""
    with ExitStack() as closing:
        source = closing.enter_context(_reading(file))
        _require_another(source, errors)
        note = closing.enter_context(_noting(errors))

        async def whole(session: "Session") -> "Imported":
            with _telling(session) as told:
                return await work(session, source.readline, note, told)

        done = asked.run(whole, typed_as={"type": TYPED_AS["type"]})
    if asked.as_json:
        print_json(done)
    else:
        would = "would be " if done.dry_run else ""
        typer.echo(f"{_rows(done.rows)}: {done.accepted} {would}stored, {done.refused} refused{_more(done)}")
        if done.dry_run:
            say("nothing was stored: this was a dry run")
    if done.refused:
        raise typer.Exit(REFUSED)


def _rows(number: int) -> str:
    return f"{number} row" if number == 1 else f"{number} rows"


def _more(done: "Imported") -> str:
    if done.dry_run:
        return ""
    if done.changed is not None:
        return f"; {done.changed} changed"
    if done.added is None:
        return ""
    unknown = f", {done.unknown} of people who are not known yet" if done.unknown else ""
    return f"; {done.added} new{unknown}"


def _export(
    work: "Callable[[Session], AsyncIterator[tuple[int, str]]]",
    file: Path | None,
    *,
    tenant: str | None,
    store: str | None,
) -> None:
    """Write a table piece by piece; a file appears under its name when it is whole."""

    async def whole(session: "Session") -> int:
        rows = 0
        with _writing(file) as target, _telling(session) as told:
            async for more, text in work(session):
                target.write(text)
                rows += more
                told(rows)
        return rows

    asked = Asked(tenant=tenant, store=store)
    rows = asked.run(whole, typed_as={"type": TYPED_AS["type"]})
    if file is not None:
        say(f"{_rows(rows)} written to {file}")


@contextmanager
def _reading(file: Path) -> "Iterator[BinaryIO]":
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise InvalidInput(
            f"the file {file} cannot be read ({error.strerror})",
            field="FILE",
            hint="name another, or - for standard input",
        ) from None
    with opened:
        yield opened


@contextmanager
def _writing(file: Path | None) -> "Iterator[TextIO]":
    """Open what is written to: standard output, or a new file beside the one that it becomes in the end."""
    if file is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    if file.is_dir():
        raise InvalidInput(f"{file} is a folder", field="FILE", hint="name a file in it")
    part = file.with_name(f"{file.name}.part")
    with _private(part, field="FILE", is_new=True) as opened:
        try:
            yield opened
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    part.replace(file)


def _require_another(source: BinaryIO, errors: Path | None) -> None:
    """Refuse to report into the file that is read, by whatever name: it would be empty before its first row is read."""
    try:
        read, reported = os.fstat(source.fileno()), None if errors is None else errors.stat()
    except OSError:  # there is none yet, or standard input is no file
        return
    if reported is not None and S_ISREG(read.st_mode) and os.path.samestat(read, reported):
        raise InvalidInput("it is the file that is read", field="--errors", hint="name another")


def _private(file: Path, *, field: str, is_new: bool = False) -> "TextIO":
    """Open a file for nobody else's eyes; where it has to be new, what lies there is taken away."""
    try:
        if is_new:
            file.unlink(missing_ok=True)
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | (os.O_EXCL if is_new else os.O_TRUNC), 0o600)
        if S_ISREG(os.fstat(opened).st_mode):
            os.fchmod(opened, 0o600)
        return os.fdopen(opened, "w", encoding="utf-8", newline="")
    except OSError as error:
        raise InvalidInput(
            f"the file {file} cannot be written ({error.strerror})", field=field, hint="name another"
        ) from None


@contextmanager
def _noting(file: Path | None) -> "Iterator[Note]":
    """Give what is told of refused rows: it shows the first of them, and writes all into the file that is named."""
    from clarion.catalog.table import written

    with ExitStack() as closing:
        target = None if file is None else closing.enter_context(_private(file, field="--errors"))
        if target is not None:
            target.write(written([("row", "column", "reason", "remedy")]))
        refused = 0

        def note(bad: "BadRow") -> None:
            nonlocal refused
            refused += 1
            if target is not None:
                target.write(written([(str(bad.row), bad.column, bad.reason, bad.remedy)]))
            if refused <= SHOWN_MAX:
                where = f"row {bad.row}, {bad.column}" if bad.column else f"row {bad.row}"
                say(f"{where}: {bad.reason}: {bad.remedy}")

        yield note
        if refused > SHOWN_MAX:
            rest = f"{refused - SHOWN_MAX} more rows are refused"
            say(f"{rest}; {file} has all of them" if file is not None else f"{rest}; --errors FILE writes all of them")


@contextmanager
def _telling(session: "Session") -> "Iterator[Progress]":
    """Give what is told how far a long work is: it shows that on a terminal, and says it now and then elsewhere."""
    clock = session.platform.clock
    said = clock.monotonic()
    with progress("rows") as show:

        def told(rows: int) -> None:
            nonlocal said
            show(f"{rows:,}")
            if not sys.stderr.isatty() and clock.monotonic() - said >= SAID_EVERY:
                said = clock.monotonic()
                say(f"{rows:,} rows so far")

        yield told
