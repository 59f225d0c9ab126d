"""`clarion clock`: what time it is by this machine and by the store, and setting the store's time."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import moment, print_json, print_pairs
from clarion.cli.session import acting, require_reason, settings_with
from clarion.domain.duration import spoken

if TYPE_CHECKING:
    from clarion.ports.store import ClockReading

clock = typer.Typer(help="The store's time: by it things are accepted, due and out of time.")


@clock.command()
def show(store: option.Store = None, as_json: option.Json = False) -> None:
    """Show what time it is by this machine and by the store; changes nothing."""
    import asyncio

    from clarion import bootstrap
    from clarion.operations.clock import gap_in_words

    reading = asyncio.run(bootstrap.read_clock(settings_with(store)))
    if as_json:
        print_json(_shape(reading))
        return
    print_pairs(
        [
            ("machine", reading.machine_at),
            ("store", reading.store_at),
            ("mark", reading.mark_at),
            ("", gap_in_words(reading.ahead) or "they agree"),
        ]
    )


@clock.command("set")
def set_clock(
    *,
    reason: Annotated[str, typer.Option(help="Why the store's time is wrong and this machine's is right; kept.")],
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Set the store's time to this machine's clock, while nobody else uses the store."""
    require_reason(reason)

    import asyncio

    from clarion import bootstrap

    before = asyncio.run(bootstrap.set_clock(settings_with(store), actor=acting(), reason=reason))
    if as_json:
        print_json(_shape(before))
        return
    if abs(before.ahead) < timedelta(seconds=1):
        typer.echo(f"they agreed already: it is {moment(before.machine_at)} by both")
        return
    moved = "back" if before.ahead > timedelta() else "forwards"
    typer.echo(f"set {moved} by {spoken(before.ahead)}, from {moment(before.store_at)} to {moment(before.machine_at)}")


def _shape(reading: "ClockReading") -> dict[str, object]:
    return {
        "machine_at": reading.machine_at,
        "store_at": reading.store_at,
        "mark_at": reading.mark_at,
        "ahead_seconds": reading.ahead.total_seconds(),
    }
