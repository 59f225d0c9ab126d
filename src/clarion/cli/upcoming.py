"""Seeing ahead: `clarion upcoming` lists what will fire, `clarion rehearse` plays it through on a copy."""

from typing import Annotated

import typer

from clarion.cli.asked import Asked, AskedPage, asks, lists
from clarion.cli.output import print_json, print_pairs, print_table, say
from clarion.client.wire_rehearsal import Rehearsal, RehearsedLine
from clarion.client.wire_upcoming import DAYS, DAYS_MAX, UpcomingLine, UpcomingQuery
from clarion.domain.due import Named

Days = Annotated[int, typer.Option(help="How many days to look ahead.", min=1, max=DAYS_MAX)]


@lists
def upcoming(asked: AskedPage, days: Days = DAYS) -> None:
    """List what will fire in the next days: when in local time, for whom, and why. Nothing is sent by it.

    For whom it is, is found again when it is due. What waits for a person is in `clarion automation list held`.
    """
    asked.show(
        asked.run(lambda it: it.operations.upcoming.list(it.tenant_id, asked.of(UpcomingQuery, days=days))),
        head=("due", "type", "about", "why", "for", "then"),
        row=lambda one: (
            _when(one),
            one.notification_type,
            f"{one.source_type} {one.source}",
            f"{one.why} ({one.setting_name or one.setting})",
            _for_whom(one),
            _then(one),
        ),
        empty=f"nothing is due in the next {days} days",
    )


@asks
def rehearse(asked: Asked, days: Days = DAYS) -> None:
    """Play the next days through on a copy in memory, and say what would be sent. Nothing is touched.

    The workers' own rules decide, one due time after the other; it ends where messages would go to a provider. What
    plugins say of their sources and recipients is asked of them as it is now.
    """
    from clarion.operations.rehearsal import rehearse as play

    found = asked.run(lambda it: play(it.platform, it.tenant_id, days=days))
    if asked.as_json:
        print_json(found)
        return
    _show(found)


def _when(one: UpcomingLine | RehearsedLine) -> str:
    """Say when it is due: in the zone in which it was reckoned, or else in UTC."""
    if one.local_date is not None and one.local_time is not None:
        return f"{one.local_date} {one.local_time} {one.zone}"
    return f"{one.due_at:%Y-%m-%d %H:%M} UTC"


def _for_whom(one: UpcomingLine) -> str:
    """Say for whom it is, as far as that can be said now."""
    whom = one.for_whom
    if one.off is not None:
        return f"nobody: {one.off}"
    if whom is None:
        return "nobody: its setting is gone"
    if whom.count is None:
        return "whom its provider names" if whom.named_by is Named.PROVIDER else ""
    people = f"{whom.count}{' or more' if whom.or_more else ''}"
    inbox = ", inbox only" if one.inbox_only else ""
    return f"{people} ({', '.join(whom.names)}{inbox})" if whom.names else f"{people}{inbox}"


def _then(one: UpcomingLine) -> str:
    """Say how often it is due again."""
    if not one.follows_count:
        return ""
    times = "once more" if one.follows_count == 1 else f"{one.follows_count} times more"
    return f"{times}, next {one.follows[0]:%Y-%m-%d %H:%M} UTC"


def _show(found: Rehearsal) -> None:
    say("nothing was sent or stored; this is what would be")
    totals = found.totals
    print_pairs(
        [
            ("from", found.from_at),
            ("until", found.until_at),
            ("stopped", found.stopped),
            ("occurrences", _counted(totals.occurrences)),
            ("messages", _counted(totals.messages)),
            ("not sent", _counted(totals.not_sent)),
        ]
    )
    typer.echo("")
    print_table(
        ("due", "type", "about", "why", "what came of it", "messages"),
        [
            (
                _when(one),
                one.notification_type,
                f"{one.source_type} {one.source}",
                one.why,
                one.failure or one.reason or one.outcome.replace("_", " "),
                _counted(one.messages),
            )
            for one in found.items
        ],
        empty="nothing fell due",
    )


def _counted(counts: object) -> str:
    """Write counts by their names."""
    return ", ".join(f"{number} {str(name).replace('_', ' ')}" for name, number in dict(counts).items())  # type: ignore[call-overload]  # a mapping of any of several words
