"""`clarion migrate` and `check`: making an installation, and finding out whether it can be used."""

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, say
from clarion.cli.session import settings_with


def migrate(store: option.Store = None, as_json: option.Json = False) -> None:
    """Bring the store's schema up to date and set up a new installation; safe to run again and at once."""
    import asyncio

    from clarion import bootstrap

    done = asyncio.run(bootstrap.prepare(settings_with(store)))
    if as_json:
        print_json(done)
    elif done.steps:
        typer.echo(f"migrated from {done.from_revision or 'nothing'} to {done.to_revision}: {', '.join(done.steps)}")
    else:
        typer.echo(f"up to date at {done.to_revision}")


def check(store: option.Store = None, as_json: option.Json = False) -> None:
    """Open store, blobs and vault, look for damage, connect to the providers, and say if all can be used."""
    import asyncio

    from clarion import bootstrap
    from clarion.operations.clock import gap_warning

    settings = settings_with(store)
    asyncio.run(bootstrap.check(settings))
    gap = gap_warning(asyncio.run(bootstrap.read_clock(settings)).ahead)
    if gap is not None:
        say(gap)
    for warning in asyncio.run(bootstrap.store_warnings(settings)):
        say(f"warning: {warning}")
    print_line("store, blobs, vault and providers can be used", {"usable": True}, as_json=as_json)
