"""`clarion status`: what runs, what is in trouble and what waits, on one screen."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import typer

from clarion.cli import option
from clarion.cli.output import print_json, print_pairs, print_table
from clarion.cli.session import settings_with
from clarion.domain.duration import spoken

if TYPE_CHECKING:
    from clarion.client import wire_status


def status(store: option.Store = None, as_json: option.Json = False) -> None:
    """Show the workers, the provider accounts, what waits and open cases, of all tenants together."""
    import asyncio

    from clarion.bootstrap import open_platform
    from clarion.operations import Operations

    async def ask() -> "wire_status.Status":
        async with open_platform(settings_with(store)) as platform:
            return await Operations(platform, wake=lambda _: None).status.show()

    found = asyncio.run(ask())
    if as_json:
        print_json(found)
        return
    print_table(
        ("worker", "channels", "started", "heard of"),
        [(one.name, one.channels, one.started_at, _heard(one, found.at)) for one in found.workers],
        empty="no worker runs: start one with `clarion serve` or `clarion work`",
    )
    typer.echo()
    print_table(
        ("account", "workers", "state", "last call", "reason"),
        [
            (one.account, one.workers, _state(one, found.at), _ago(one.called_at, found.at), one.reason)
            for one in found.accounts
        ],
        empty="no account is in use",
    )
    typer.echo()
    print_pairs(
        [
            ("notifications", _waiting(found.notifications_waiting, found.oldest_notification_seconds)),
            ("messages", _waiting(found.messages_waiting, found.oldest_message_seconds)),
            *((f"  {one.channel}", _channel(one)) for one in found.waiting),
            ("being sent", found.sending),
            ("uncertain", _with(found.uncertain, "clarion uncertain list")),
            ("reminders and reports", _due(found.occurrences_due, found.oldest_occurrence_seconds)),
            ("  on hold", _with(found.occurrences_held, "clarion automation list held")),
            ("  failed", _with(found.occurrences_failed, "clarion automation list failed")),
            ("open cases", _with(found.open_support_cases, "clarion support list")),
        ]
    )


def _heard(worker: "wire_status.WorkerLine", now: datetime) -> str:
    ago = _ago(worker.seen_at, now)
    return f"lost, {ago}" if worker.lost else ago


def _state(account: "wire_status.AccountLine", now: datetime) -> str:
    if not account.failing:
        return "well" if account.called_at is not None else "not called yet"
    since = account.failing_since_at
    return "failing" if since is None else f"failing for {spoken(now - since)}"


def _waiting(count: int, oldest_seconds: float) -> str:
    return f"{count} waiting, the oldest for {spoken(timedelta(seconds=oldest_seconds))}" if count else "none waiting"


def _due(count: int, oldest_seconds: float) -> str:
    return f"{count} due, the oldest {spoken(timedelta(seconds=oldest_seconds))} late" if count else "none due"


def _channel(one: "wire_status.ChannelLine") -> str:
    oldest = f"the oldest waits for {spoken(timedelta(seconds=one.oldest_seconds))}"
    return oldest if one.served else f"{oldest}, and no worker sends on it"


def _with(count: int, command: str) -> str:
    return f"{count}: `{command}` shows them" if count else "none"


def _ago(at: datetime | None, now: datetime) -> str:
    return "" if at is None else f"{spoken(now - at)} ago"
