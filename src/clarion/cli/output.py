"""What commands print: one JSON object, or text and tables for a person. Results go to standard output, nothing else.

Progress and hints go to standard error, so that a script reads only results. What somebody sent is shown without what
would command a terminal, or turn its letters around.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import typer

if TYPE_CHECKING:
    from rich.table import Table  # loaded where a table is printed: a refused command prints none

_COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""Control characters but tabs and line ends, and those that change the direction of text."""

WIDE = 10_000
"""Columns of a file or a pipe: nothing is ever wrapped or cut there."""


def print_json(value: object) -> None:
    """Print one JSON object on one line; an answer of `operations` as the API sends it."""
    typer.echo(msgspec.json.encode(value).decode())


def print_line(text: str, answer: object, *, as_json: bool) -> None:
    """Print an answer: in a line for a person, or as JSON."""
    if as_json:
        print_json(answer)
    else:
        typer.echo(text)


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows in columns, or a sentence where there are none."""
    shown = [[_cell(value) for value in row] for row in rows]
    if not shown:
        typer.echo(empty)
        return

    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in head:
        table.add_column(name, overflow="fold")
    for row in shown:
        # As text, since square brackets in somebody's subject line are no markup of ours.
        table.add_row(*(Text(cell) for cell in row))
    _print(table)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, a line each, leaving out what is empty."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            table.add_row(name, Text(_cell(value)))
    _print(table)


def called_as() -> str:
    """Give the program as it was called, so that what is suggested can be typed as it stands."""
    return sys.argv[0] if "/" in sys.argv[0] and not sys.argv[0].startswith("/") else "clarion"


def say_more(cursor: object) -> None:
    """Tell a person how to get the next page, where there is one."""
    if cursor is not None:
        say(f"more: --after {cursor}")


def say(text: str) -> None:
    """Tell a person something that is no result, behind the results so far also where both go to one pipe."""
    sys.stdout.flush()
    typer.echo(text, err=True)


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """Show what a long work is at, on a terminal; the work calls what this gives with each step's name."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return

    from rich.progress import Progress, SpinnerColumn, TextColumn

    with Progress(SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True) as shown:
        task = shown.add_task(what)
        yield lambda step: shown.update(task, description=f"{what}: {step}", refresh=True)


def harmless(text: str) -> str:
    """Write what would command the terminal as its number: a message may hold anything that its sender liked."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def clock_time(at: datetime) -> str:
    """Write a time of day to the millisecond, in UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]


def moment(at: datetime) -> str:
    """Write a point in time to the second, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, tuple | list):
        return harmless(", ".join(map(str, value)))
    return harmless(str(value))


def _print(table: "Table") -> None:
    """Print a table as wide as the terminal, or as wide as it is."""
    from rich.console import Console

    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    console = Console(width=WIDE)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    sys.stdout.flush()  # a server's first lines are read while it goes on
