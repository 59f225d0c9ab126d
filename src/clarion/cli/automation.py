"""`clarion automation`: what waits to fall due, what came of it, and holding, releasing, running, deactivating it."""

from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli.asked import Asked, AskedPage, Reason, asks, lists
from clarion.cli.output import moment, print_json, print_pairs, say
from clarion.cli.session import hint_on_conflict, known_occurrence, require_reason
from clarion.domain.automation import AutomationType
from clarion.ports.automation import Standing

if TYPE_CHECKING:
    from clarion.cli.session import Session
    from clarion.client.wire_automation import Diagnostics, Occurrence, OccurrenceLine, OccurrencePage

automation = typer.Typer(help="What waits to fall due: reminders and reports, and what people do about one of them.")

Key = Annotated[str, typer.Argument(help="The key, as the list has it.", metavar="KEY")]


@automation.command("list")
@lists
def list_occurrences(
    asked: AskedPage,
    standing: Annotated[
        Standing,
        typer.Argument(
            help="Which: waiting (not due yet), due (not taken yet), held, failed, processing or ended.",
            metavar="[STANDING]",
        ),
    ] = Standing.WAITING,
    *,
    kind: Annotated[AutomationType | None, typer.Option("--type", help="Only these.")] = None,
    until: Annotated[
        str | None, typer.Option(help="Only those that are due by then, such as 2027-01-31T08:00:00Z.", metavar="TIME")
    ] = None,
) -> None:
    """List what stands in one way, by when it is due."""
    from clarion.cli.send import read_time

    until_at = None if until is None else read_time(until, field="--until")

    async def work(session: "Session") -> "OccurrencePage":
        from clarion.client.wire_automation import AutomationQuery

        query = asked.of(AutomationQuery, standing=standing, type=kind, until_at=until_at)
        return await session.operations.automation.list(session.tenant_id, query)

    asked.show(
        asked.run(work),
        head=("due", "about", "type", "state", "why", "key"),
        row=lambda one: (
            _due(one),
            f"{one.source_type} {one.source}",
            one.notification_type,
            _state(one),
            _why(one),
            one.key,
        ),
        empty=f"nothing is {standing}" if standing is not Standing.FAILED else "nothing has failed",
    )


@automation.command()
@asks
def show(asked: Asked, key: Key) -> None:
    """Show one with all that is known of it: why it stands as it does, and what it led to."""

    async def work(session: "Session") -> "Occurrence":
        return known_occurrence(await session.operations.automation.find(session.tenant_id, key, whole=True), key)

    _print(asked, asked.run(work))


@automation.command()
@asks
def hold(asked: Asked, key: Key, *, reason: Reason) -> None:
    """Keep one that waits from being handed over, until it is released."""
    _act(asked, key, "hold", reason)


@automation.command()
@asks
def release(asked: Asked, key: Key, *, reason: Reason) -> None:
    """Let one that is on hold go on when it is due; what failed before is forgiven."""
    _act(asked, key, "release", reason)


@automation.command()
@asks
def run(asked: Asked, key: Key, *, reason: Reason) -> None:
    """Make one that waits due now, on hold or not."""
    _act(asked, key, "run", reason)


@automation.command()
@asks
def deactivate(asked: Asked, key: Key, *, reason: Reason) -> None:
    """End one that waits, for good: no event and no setting brings it back."""
    _act(asked, key, "deactivate", reason)


@automation.command()
@asks
def rerun(
    asked: Asked,
    key: Key,
    *,
    reason: Reason,
    number: Annotated[
        int | None,
        typer.Option(help="As this re-run, which `show` names; without it, the next.", min=1),
    ] = None,
) -> None:
    """Run one that is completed again, under a key of its own; asked for twice, one number is one re-run."""
    require_reason(reason)

    async def work(session: "Session") -> "Occurrence":
        operations, tenant_id = session.operations.automation, session.tenant_id
        asked_for = number or known_occurrence(await operations.find(tenant_id, key), key).next_rerun or 1
        done = await operations.rerun(tenant_id, key, number=asked_for, actor=session.actor, reason=reason)
        return known_occurrence(done, key)

    _print(asked, asked.run(work, typed_as={"n": "--number"}))


def _act(asked: Asked, key: str, word: str, reason: str) -> None:
    require_reason(reason)

    async def work(session: "Session") -> "Occurrence":
        from clarion.client.wire_automation import Act

        with hint_on_conflict("`clarion automation show KEY` tells how it stands"):
            done = await session.operations.automation.act(
                session.tenant_id, key, Act(word), actor=session.actor, reason=reason
            )
        return known_occurrence(done, key)

    _print(asked, asked.run(work))


def _print(asked: Asked, one: "Occurrence") -> None:
    """Print one as a person reads it."""
    if asked.as_json:
        print_json(one)
        return
    print_pairs(
        [
            ("key", one.key),
            ("about", f"{one.source_type} {one.source}"),
            ("type", one.notification_type),
            ("state", _state(one)),
            ("why", _why(one)),
            ("due", _due(one)),
            ("that is", moment(one.due_at)),
            ("planned for", None if one.planned_at == one.due_at else one.planned_at),
            ("made due by hand", one.run_now_at),
            ("with a worker until", one.lease_until),
            ("failed", f"{one.retry_count} times" if one.retry_count > 1 else "once" if one.retry_count else None),
            ("date", None if one.target_date is None else f"{one.target_date}, {_offset(one.offset_days or 0)}"),
            ("metric", None if one.metric is None else f"{one.metric} of {one.scope}, {one.policy}"),
            ("threshold", one.threshold),
            ("setting", one.setting),
            ("business unit", one.business_unit),
            ("entity", one.entity),
            ("led to", one.outcome),
            ("failed before", None if _why(one) else one.failure),
            ("next re-run", one.next_rerun),
            ("notification", one.job_id),
            ("report", one.messaging_job_id),
            ("named by", one.named_by),
            ("trace", one.trace),
            ("looked at", trace_in_words(one.diagnostics)),
            ("request", one.correlation_id),
        ]
    )
    if one.job_id is not None:
        say(f"`clarion explain {one.job_id}` tells what became of it")


def trace_in_words(said: "Diagnostics | None") -> str | None:
    """Say what was looked at the last time that something was wrong."""
    if said is None:
        return None
    source = {None: "source not looked at", False: "no source", True: f"source version {said.source_version}"}
    setting = "no setting" if said.setting_version is None else f"setting version {said.setting_version}"
    error = "" if said.code is None else f"; {said.code}" + ("" if said.error is None else f": {said.error}")
    return f"{moment(said.at)}, claim {said.claim}: {setting}, {source[said.source_found]}{error}; {said.decision}"


def _due(one: "OccurrenceLine") -> str:
    """Say when it is due: in local time, where it was reckoned from one and is due as it was planned."""
    if one.local_date is None or one.local_time is None or one.due_at != one.planned_at:
        return moment(one.due_at)
    return f"{one.local_date} {one.local_time} {one.zone}"


def _state(one: "OccurrenceLine") -> str:
    return "on hold" if one.on_hold else one.status.lower()


def _why(one: "OccurrenceLine") -> str | None:
    """Say why it ended, or why the last try failed; of what was handed over after all there is nothing to say."""
    from clarion.domain.automation import AutomationStatus
    from clarion.domain.end_reason import MEANINGS

    if one.reason is None:
        return None if one.status is AutomationStatus.COMPLETED else one.failure
    return f"{one.reason}: {MEANINGS[one.reason][0]}"


def _offset(days: int) -> str:
    if days == 0:
        return "on the day"
    return f"{abs(days)} day{'s' if abs(days) > 1 else ''} {'before' if days > 0 else 'after'} it"
