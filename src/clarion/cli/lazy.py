"""Groups of commands: one that loads a command only when it is asked for, and the words for a command there is not.

A command's module brings the whole platform with it. The list of commands, the version, and a refusal need none of it.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from clarion.cli.value import read_plainly
from clarion.errors import CallerError

# typer has no public names for what it calls a context, a command and a formatter, so they are `Any` below.


class Listed(NamedTuple):
    """A command that is not loaded yet."""

    place: str
    """`module:name`, below `clarion.cli`, of its function or of its own group."""
    help: str
    """The first sentences of its own help, so that the list can be shown without loading it."""


class Group(TyperGroup):
    """Commands under one name; without one of them it shows its help, unless it has something to do by itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the group's own options."""
        if not (args or self.invoke_without_command or ctx.resilient_parsing):
            show_help(ctx)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:  # noqa: ANN401
        """Find the command that the first argument names, or say which come near."""
        name, *rest = args
        command = self.get_command(ctx, name)
        if command is None and not ctx.resilient_parsing:
            near = get_close_matches(name, self.list_commands(ctx), n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"`{ctx.command_path} --help` lists them"
            raise CallerError(f"`{ctx.command_path}` has no command {name!r:.80}", hint=hint)
        return (name if command else None), command, rest


class LazyGroup(Group):
    """The program's own group: its list is a table, and a command is loaded when somebody names it."""

    panels: ClassVar[Mapping[str, Mapping[str, Listed]]] = {}
    """The commands under their headings, in the order in which they are listed."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Read the program's own options, those of typer among them, as all the others."""
        params = super().get_params(ctx)
        for one in params:
            read_plainly(one)
        return params

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Name every command."""
        return [name for listed in self.panels.values() for name in listed]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """Load a command; None where there is none of this name."""
        if cmd_name not in self.commands:
            found = {name: one for listed in self.panels.values() for name, one in listed.items()}.get(cmd_name)
            if found is None:
                return None
            self.commands[cmd_name] = _load(cmd_name, found.place)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """List the commands under their headings, loading none."""
        width = max(map(len, self.list_commands(ctx)))
        for panel, listed in self.panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), one.help) for name, one in listed.items()])


def show_help(context: Any) -> NoReturn:  # noqa: ANN401
    """Show the help of a group of commands where none of them is named."""
    typer.echo(context.get_help())
    raise typer.Exit(2)


def _load(name: str, place: str) -> Any:  # noqa: ANN401
    """Import a command or a group, and have its values read plainly."""
    module, _, attribute = place.partition(":")
    found = getattr(import_module(f"clarion.cli.{module}"), attribute)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)  # help as plain text, which needs no `rich`
    alone.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, cls=Group)
    else:
        alone.command(name)(found)
    command = get_command(alone).commands[name]  # type: ignore[attr-defined]  # with a callback it is a group
    for one in _with_commands_below(command):
        for parameter in one.get_params(typer.Context(one)):  # `--help` among them, which typer adds by itself
            read_plainly(parameter)
    return command


def _with_commands_below(command: Any) -> Iterator[Any]:  # noqa: ANN401
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from _with_commands_below(one)
