"""The commands. Each opens what it needs through bootstrap, prints its result, and leaves errors to `main`."""

import asyncio
from typing import Annotated

import msgspec
import typer

import clarion
from clarion.bootstrap import Settings, load_settings, open_platform, prepare

program = typer.Typer(
    help="Clarion: tell it what happened, and everyone who should know hears of it, once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # `main` writes our errors on one line; anything else is a defect and shows itself
)

Store = Annotated[str | None, typer.Option(help="The store's URL, instead of CLARION_STORE.", metavar="URL")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@program.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Print the version where that is all that is asked."""
    if version:
        typer.echo(f"clarion {clarion.__version__}")
        raise typer.Exit


@program.command()
def migrate(store: Store = None, as_json: Json = False) -> None:
    """Bring the store's schema up to date and set up a new installation; safe to run again and at once."""
    done = asyncio.run(prepare(_settings(store)))
    if as_json:
        typer.echo(msgspec.json.encode(done).decode())
    elif done.steps:
        typer.echo(f"migrated from {done.from_revision or 'nothing'} to {done.to_revision}: {', '.join(done.steps)}")
    else:
        typer.echo(f"up to date at {done.to_revision}")


@program.command()
def check(store: Store = None, as_json: Json = False) -> None:
    """Open store, blobs and vault as the program would, and say whether they can be used."""
    settings = _settings(store)

    async def opened() -> None:
        async with open_platform(settings):
            pass

    asyncio.run(opened())
    typer.echo(msgspec.json.encode({"usable": True}).decode() if as_json else "store, blobs and vault can be used")


def _settings(store: str | None) -> Settings:
    """Take the settings of the environment, and the store that the command names."""
    settings = load_settings()
    return settings if store is None else msgspec.structs.replace(settings, store=store)
