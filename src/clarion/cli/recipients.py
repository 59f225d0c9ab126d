"""Whom a notification is for, page by page: `clarion explain ID --recipients`. Changes nothing."""

from typing import TYPE_CHECKING
from uuid import UUID

from clarion.cli import option
from clarion.cli.output import print_json, print_pairs, print_table, say_more
from clarion.cli.session import in_session, known
from clarion.domain.outgoing import STATUS_IN_WORDS, OutgoingStatus

if TYPE_CHECKING:
    from clarion.client import wire_explain
    from clarion.client.wire_rule import Totals


def show_recipients(
    named: UUID, *, limit: int, after: str, tenant: str | None, store: str | None, as_json: bool
) -> None:
    """Show a page of the recipients of a job: what was made for each, and where nothing was."""
    query = option.page(limit, after)
    page = in_session(
        lambda session: session.operations.notifications.recipients(session.tenant_id, named, query, whole=True),
        store=store,
        tenant=tenant,
    )
    found = known(page, str(named))
    if as_json:
        print_json(found)
        return
    print_pairs([("recipients", found.totals.recipients), ("not sent", not_sent(found.totals))])
    print_table(
        ("to", "channel", "", "rule"),
        [row for one in found.items for row in _rows(one)],
        empty="it is not decided yet who gets it, or nobody does",
    )
    say_more(found.next_cursor)


def not_sent(totals: "Totals") -> str | None:
    """Say how much was not sent, by the rules, the most first."""
    counted = sorted(totals.not_sent.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{number} {rule}" for rule, number in counted) or None


def _rows(one: "wire_explain.RecipientOutcome") -> list[tuple[object, ...]]:
    """List what became of one recipient, channel by channel."""
    rows: list[tuple[object, ...]] = [
        (one.recipient, row.channel, STATUS_IN_WORDS[OutgoingStatus(row.status)], row.rule) for row in one.messages
    ]
    rows += [(one.recipient, "inbox", "put into the inbox", None)] if one.in_inbox else []
    return rows + [(one.recipient, skip.channel, f"not sent: {skip.reason}", skip.rule) for skip in one.skipped]
