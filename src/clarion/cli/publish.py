"""`clarion publish`: notifications from their files. With `--check` and `--diff` nothing is stored."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import harmless, print_json, print_table, progress
from clarion.cli.session import Session, in_session
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.catalog.publish import Published
    from clarion.client.wire_types import TypeChange


def publish(
    folder: Annotated[
        Path, typer.Argument(help="A notification's folder, or one that holds several.", metavar="FOLDER")
    ],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only look for mistakes, and name all of them; needs no installation.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Only show what would change.")] = False,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Publish notifications from their files; what did not change keeps its version."""
    if check and diff:
        raise InvalidInput("it goes with no --check", field="--diff", hint="use one of them; --diff checks too")
    if check:
        _check(folder, as_json=as_json)
    elif diff:
        _diff(folder, tenant=tenant, store=store, as_json=as_json)
    else:
        _publish(folder, tenant=tenant, store=store, as_json=as_json)


def _publish(folder: Path, *, tenant: str | None, store: str | None, as_json: bool) -> None:
    async def work(session: Session) -> "list[Published]":
        from clarion.catalog.publish import Publisher

        publisher = Publisher(catalog=session.store, renderer=session.platform.renderer)
        with progress("publishing") as step:
            return await publisher.publish(session.tenant_id, folder=folder, actor=session.actor, progress=step)

    published = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"items": published})
        return
    print_table(
        ("type", "version", "", "channels"),
        [(one.key, one.version, "new" if one.is_new else "unchanged", one.channels) for one in published],
        empty="",
    )


def _check(folder: Path, *, as_json: bool) -> None:
    """Compile everything as publishing would. Only what other types of a tenant say is not known here."""
    from clarion.bootstrap import load_renderer
    from clarion.catalog.publish import compile_folder

    with progress("checking") as step:
        definitions = [one.definition for one in compile_folder(folder, load_renderer(), progress=step)]
    if as_json:
        items = [{"key": one.key, "channels": one.channels, "locales": one.locales} for one in definitions]
        print_json({"items": items})
        return
    print_table(
        ("type", "channels", "languages"), [(one.key, one.channels, one.locales) for one in definitions], empty=""
    )
    typer.echo("no mistakes")


def _diff(folder: Path, *, tenant: str | None, store: str | None, as_json: bool) -> None:
    async def work(session: Session) -> "list[TypeChange]":
        from clarion.catalog.publish import Publisher
        from clarion.operations.publishing import change_shape

        publisher = Publisher(catalog=session.store, renderer=session.platform.renderer)
        with progress("comparing") as step:
            changes = await publisher.compare(session.tenant_id, folder, progress=step)
        return [change_shape(one) for one in changes]

    changes = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json({"items": changes})
        return
    for change in changes:
        for line in _lines(change):
            typer.echo(harmless(line))


def _lines(change: "TypeChange") -> Sequence[str]:
    """Write what would change of one type."""
    if not change.created:
        return [f"{change.type}: unchanged, version {change.version}"]
    before = f"version {change.version - 1} becomes {change.version}" if change.version > 1 else "new, version 1"
    lines = [f"{change.type}: {before}"]
    lines += [f"  {one.field}: {_shown(one.before)} becomes {_shown(one.after)}" for one in change.fields]
    for part in change.parts:
        lines.append(f"  {part.locale} {part.channel} {part.part}")
        lines += [f"    {line}" for line in part.lines]
    return lines


def _shown(value: object) -> str:
    """Write a value of a definition on one line."""
    import msgspec

    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"
