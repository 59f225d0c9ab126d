"""Stories: `clarion explain KEY` tells of one occurrence, `clarion history ENTITY --story` of an entity."""

from typing import TYPE_CHECKING

import typer

from clarion.cli.automation import trace_in_words
from clarion.cli.output import print_json, print_pairs, print_table, say_more
from clarion.cli.session import Session, in_session, known_occurrence

if TYPE_CHECKING:
    from uuid import UUID

    from clarion.client import wire
    from clarion.client.wire_story import Explained, StoryPage

KEYS = ("reminder:", "report-subscription:")
"""How the keys of occurrences begin; an id of a message or job has no colon."""


def explain_occurrence(key: str, *, tenant: str | None, store: str | None, as_json: bool) -> None:
    """Explain one occurrence: why it is there, how it stands, what became of it and for whom it is."""

    async def work(session: Session) -> "Explained":
        return known_occurrence(await session.operations.stories.of_occurrence(session.tenant_id, key, whole=True), key)

    found = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(found)
        return
    _show(found)


def story(entity: "UUID", query: "wire.PageQuery", *, tenant: str | None, store: str | None, as_json: bool) -> None:
    """Tell what became of an entity."""

    async def work(session: Session) -> "StoryPage":
        return await session.operations.stories.of_entity(session.tenant_id, entity, query)

    page = in_session(work, store=store, tenant=tenant)
    if as_json:
        print_json(page)
        return
    print_table(
        ("at", "", "about", "by", ""),
        [(line.at, line.kind.replace("_", " "), line.subject, line.cause, line.text) for line in page.items],
        empty="nothing ever became of it",
    )
    say_more(page.next_cursor)


def _show(found: "Explained") -> None:
    one, whom = found.occurrence, found.for_whom
    local = None if one.local_date is None else f"{one.local_date} {one.local_time or ''} {one.zone}".replace("  ", " ")
    people = None if whom is None or whom.count is None else f"{whom.count}{' or more' if whom.or_more else ''}"
    print_pairs(
        [
            ("key", one.key),
            ("notification", one.notification_type),
            ("about", f"{one.source_type} {one.source}"),
            ("why", found.why),
            ("setting", f"{found.setting_name or 'gone'} ({one.setting})"),
            ("due", one.due_at),
            ("local", local),
            ("state", "on hold" if one.on_hold else one.status.lower()),
            ("because", None if one.reason is None else f"{one.reason}: {found.means}"),
            ("do", found.remedy),
            ("failure", one.failure),
            ("looked at", trace_in_words(one.diagnostics)),
            ("for", None if whom is None else people or f"whom the {whom.named_by} names"),
            ("job", one.job_id),
            ("run again as", None if one.next_rerun is None else f"number {one.next_rerun}"),
        ]
    )
    if found.lines:
        typer.echo("")
        print_table(
            ("at", "", "by", ""),
            [(line.at, line.kind.replace("_", " "), line.cause, line.text) for line in found.lines],
            empty="",
        )
