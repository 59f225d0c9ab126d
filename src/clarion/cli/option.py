"""Options that several commands share, so that each is spelled and explained the same way everywhere."""

from typing import Annotated

import typer

from clarion.client.wire import PAGE_MAX, ROW_ID_MAX, PageQuery

Store = Annotated[str | None, typer.Option(help="The store's URL, instead of CLARION_STORE.", metavar="URL")]
Tenant = Annotated[
    str | None,
    typer.Option(help="Whose data; without it CLARION_TENANT, or the only tenant there is.", metavar="TENANT"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Limit = Annotated[int, typer.Option(help=f"How many to show, {PAGE_MAX} at most.", min=1, max=PAGE_MAX)]
After = Annotated[str, typer.Option(help="Go on where a page ended; its end names it.", metavar="CURSOR")]

Locale = Annotated[
    str | None,
    typer.Option(help="The language of people who have none of their own, such as de-AT.", metavar="LOCALE"),
]
Zone = Annotated[
    str | None,
    typer.Option(help="The time zone of people who have none of their own, such as Europe/Vienna.", metavar="ZONE"),
]

RowId = Annotated[int, typer.Argument(help="The id in the list.", metavar="ID", min=0, max=ROW_ID_MAX)]


def page(limit: int, after: str) -> PageQuery:
    """Say which page of a list is asked for."""
    return PageQuery(limit=limit, cursor=after or None)
