"""What nearly every command takes and does alike: where it works, how it answers, pages of lists, reasons.

`asks` and `lists` give a command the options for that, behind its own, and hand them over as one value, which runs the
command's work and prints what came of it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Annotated, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec
import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_line, print_table, say_more
from clarion.cli.session import Session, in_session
from clarion.client.wire import PageQuery
from clarion.errors import InvalidInput, InvalidItems

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
Q = TypeVar("Q", bound=PageQuery)

Reason = Annotated[str, typer.Option(help="Why; the audit log keeps it.")]


class Listing(Protocol[R_co]):
    """A page of a list, as operations answer it."""

    @property
    def items(self) -> Sequence[R_co]:
        """What is on it."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next one begins, if there is one."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command works, and how it answers."""

    tenant: str | None = None
    store: str | None = None
    as_json: bool = False

    def run(self, work: Callable[[Session], Awaitable[T]], *, typed_as: Mapping[str, str] | None = None) -> T:
        """Do the work in a session; what is wrong with a field of a request is said of what was typed for it."""
        try:
            return in_session(work, store=self.store, tenant=self.tenant)
        except InvalidItems as error:
            raise type(error)([_as_typed(one, typed_as or {}) for one in error.mistakes]) from None
        except InvalidInput as error:
            raise _as_typed(error, typed_as or {}) from None

    def line(self, text: str, answer: object) -> None:
        """Print an answer: in a line for a person, or as JSON."""
        print_line(text, answer, as_json=self.as_json)


class AskedPage(Asked, frozen=True, kw_only=True):
    """Where a list is read, how it is answered, and which page of it."""

    limit: int = 50
    after: str = ""

    @property
    def query(self) -> PageQuery:
        """The page that is asked for, of a list without filters."""
        return option.page(self.limit, self.after)

    def of(self, shape: type[Q], **filters: object) -> Q:
        """Ask for the page of a list with these filters."""
        return shape(limit=self.limit, cursor=self.after or None, **filters)

    def show(self, page: Listing[T], *, head: Sequence[str], row: Callable[[T], Iterable[object]], empty: str) -> None:
        """Print a page: as a table, with the way to the next one, or as JSON."""
        if self.as_json:
            print_json(page)
            return
        print_table(head, [tuple(row(one)) for one in page.items], empty=empty)
        say_more(page.next_cursor)


def _where(tenant: option.Tenant = None, store: option.Store = None, as_json: option.Json = False) -> None: ...


def _which_page(limit: option.Limit = 50, after: option.After = "") -> None: ...


def asks(command: Callable[Concatenate[Asked, P], None]) -> Callable[..., None]:
    """Give a command the options that say where it works and how it answers."""
    return _with_options(command, Asked, _where)


def lists(command: Callable[Concatenate[AskedPage, P], None]) -> Callable[..., None]:
    """Give a command these options, and those for a page."""
    return _with_options(command, AskedPage, _which_page, _where)


def _with_options(
    command: Callable[..., None], asked: type[Asked], *templates: Callable[..., None]
) -> Callable[..., None]:
    """Make the command as typer reads it: with its own parameters and those of the templates behind them."""
    _, *own = signature(command, eval_str=True).parameters.values()
    added = [one for template in templates for one in signature(template).parameters.values()]
    parameters = [
        *own,
        *(one.replace(kind=Parameter.KEYWORD_ONLY) for one in added),
    ]

    def called(**given: object) -> None:
        where = msgspec.convert({one.name: given.pop(one.name, one.default) for one in added}, asked)
        command(where, **given)

    called.__doc__, called.__name__ = command.__doc__, command.__name__
    called.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]  # which inspect reads
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def _as_typed(error: InvalidInput, typed_as: Mapping[str, str]) -> InvalidInput:
    return type(error)(error.message, field=typed_name(error.field, typed_as), hint=error.hint)


def typed_name(field: str, typed_as: Mapping[str, str]) -> str:
    """Name a field of a request as it was typed; of one of several, with its number there or its name."""
    name, _, place = field.partition("[")
    if name not in typed_as:
        kind, dot, rest = field.partition(".")
        return f"{typed_as[kind]} {rest}" if dot and kind in typed_as else field
    number = place.partition("]")[0]
    return f"{typed_as[name]} ({int(number) + 1})" if number.isdecimal() else typed_as[name]
