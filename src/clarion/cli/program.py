"""The program: every command under its name. Each opens what it needs through bootstrap and leaves errors to `main`."""

from typing import Annotated

import typer

import clarion
from clarion.cli import access, ask, catalog, clock, demo, install, option, outbox, send, serve, support, uncertain

program = typer.Typer(
    help="Clarion: tell it what happened, and everyone who should know hears of it, once.",
    pretty_exceptions_enable=False,  # `main` writes our errors on one line; anything else is a defect and shows itself
)


@program.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Print the version where that is all that is asked."""
    if version:
        typer.echo(f"clarion {clarion.__version__}")
        raise typer.Exit
    option.help_without_command(context)


_TRY, _SEND, _ASK, _MEND, _CHANGE, _RUN = "Try", "Send", "Ask", "Mend", "Change", "Install and run"

program.command(rich_help_panel=_TRY)(demo.demo)
program.command(rich_help_panel=_TRY)(outbox.outbox)
program.command(rich_help_panel=_SEND)(send.send)
program.command(rich_help_panel=_SEND)(send.cancel)
program.command(rich_help_panel=_ASK)(ask.explain)
program.command(rich_help_panel=_ASK)(ask.history)
program.command(rich_help_panel=_ASK)(catalog.audit)
program.add_typer(uncertain.uncertain, name="uncertain", rich_help_panel=_MEND)
program.add_typer(support.support, name="support", rich_help_panel=_MEND)
program.add_typer(clock.clock, name="clock", rich_help_panel=_MEND)
program.add_typer(catalog.types, name="types", rich_help_panel=_CHANGE)
program.command(rich_help_panel=_CHANGE)(catalog.publish)
program.add_typer(catalog.tenants, name="tenants", rich_help_panel=_CHANGE)
program.add_typer(access.keys, name="keys", rich_help_panel=_CHANGE)
program.command(rich_help_panel=_RUN)(install.migrate)
program.command(rich_help_panel=_RUN)(install.check)
program.command(rich_help_panel=_RUN)(serve.serve)
program.command(rich_help_panel=_RUN)(serve.work)
