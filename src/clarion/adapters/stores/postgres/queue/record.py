"""Recording what came back from calls: one statement for any number of results.

A statement before it locks the rows and makes the flows that rows in doubt are pinned to, if there are any; two after
it open the support cases of accounts that are at fault and of messages that are never called. Writes
`outgoing_message`, `transition`, `delivery_attempt`, `flow_count`, `flow` and `support_case`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypedDict, assert_never
from uuid import UUID

import asyncpg

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.ensure.record import write_cases_of_tenants
from clarion.adapters.stores.query import load
from clarion.domain import trouble
from clarion.domain.call import Accepted, CallOutcome, Deferred, Misconfigured, NotCalled, Refused, Unknown
from clarion.domain.claim import CallResult, Recorded
from clarion.domain.outgoing import EVIDENCE_ORDER, OutgoingStatus, ReasonClass
from clarion.domain.support import SupportCase

if TYPE_CHECKING:
    from clarion.adapters.stores.postgres.session import Connection

_SQL: Final = load(__package__, "record.sql")

_SENT: Final[tuple[str | None, bool]] = (OutgoingStatus.SENT_TO_PROVIDER.value, True)
"""What became of the row of a plain acceptance, of which the statement says no more."""


def is_one_statement(results: Sequence[CallResult]) -> bool:
    """Tell whether these results need no other statement than their own, and so no transaction around it."""
    plain = all(isinstance(result.outcome, Accepted | Deferred | Refused) and not result.final for result in results)
    return plain and len(_rounds(results)) == 1


async def record_outgoing(connection: "Connection", results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
    """Record results; those of one row, which late replies can bring together, one after the other."""
    results = [result.storable() for result in results]
    if any(isinstance(result.outcome, Unknown | NotCalled) for result in results):
        await lock_and_pin(connection, sorted({(result.bucket, result.id) for result in results}))
    recorded: dict[int, Recorded] = {}
    troubles: list[CallResult] = []
    for round_ in _rounds(results):
        found = await _record(connection, [results[place] for place in round_], actor=actor)
        for place in round_:
            result = results[place]
            name, moved = found[result.id]
            status = None if name is None else codec.member(OutgoingStatus, name)
            recorded[place] = Recorded(id=result.id, status=status)
            if moved and _is_trouble(result):
                troubles.append(result)
    if troubles:
        await _open_cases(connection, troubles)
    return [recorded[place] for place in range(len(results))]


async def lock_and_pin(connection: "Connection", rows: Sequence[tuple[int, int]]) -> None:
    """Lock these rows, given in their order, and make the flows that they may be pinned to."""
    await connection.execute(_SQL["lock_and_pin"].sql, [bucket for bucket, _ in rows], [row_id for _, row_id in rows])


async def _record(
    connection: "Connection", results: Sequence[CallResult], *, actor: str
) -> dict[int, tuple[str | None, bool]]:
    """Record results of different rows; return each row's status, if the result is of its claim, and whether it moved.

    They are by the row's id, and read by position, for there are many.
    """
    ordered = sorted(results, key=attrgetter("bucket", "id"))
    accepted = [result for result in ordered if isinstance(result.outcome, Accepted)]
    others = [result for result in ordered if not isinstance(result.outcome, Accepted)]
    rows = await connection.fetch(
        _SQL["record_outgoing"].sql,
        *_columns(accepted),
        codec.texts([_provider_message_id(result.outcome) for result in accepted]),
        *_columns(others),
        codec.words([type(result.outcome).__name__ for result in others]),
        codec.words(map(_destination, others)),
        codec.texts([_reason(result.outcome) for result in others]),
        codec.texts(map(_reason_class, others)),
        codec.words([_seconds(result.delay) for result in others]),
        actor,
        list(EVIDENCE_ORDER),
    )
    found = dict.fromkeys([result.id for result in accepted], _SENT)
    found.update({row_id: (status, moved) for row_id, status, moved in rows})
    return found


def _columns(results: Sequence[CallResult]) -> Iterator[str]:
    """Write what every result has: bucket, id, token, attempt, hash and latency, each as one array."""
    tokens = {token: str(token) for token in {result.claim_token for result in results}}
    yield codec.numbers([result.bucket for result in results])
    yield codec.numbers([result.id for result in results])
    yield codec.words([tokens[result.claim_token] for result in results])
    yield codec.numbers([result.attempt for result in results])
    yield codec.texts([result.content_hash for result in results])
    yield codec.numbers([result.latency_ms for result in results])


async def _open_cases(connection: "Connection", results: Sequence[CallResult]) -> None:
    """Open the case of each result that a person should look at."""
    rows = await connection.fetch(
        _SQL["read_troubled_messages"].sql,
        [result.bucket for result in results],
        [result.id for result in results],
    )
    cases = [
        (row["tenant_id"], case) for result, row in zip(results, rows, strict=True) for case in _cases(result, row)
    ]
    await write_cases_of_tenants(connection, cases)


def _cases(result: CallResult, row: asyncpg.Record) -> Iterator[SupportCase]:
    tenant_id, account, what = row["tenant_id"], row["account"] or "", _what(result, row)
    if isinstance(result.outcome, NotCalled):
        yield trouble.never_called(tenant_id, pk=row["pk"], **what)
    if isinstance(result.outcome, Misconfigured):
        yield trouble.faulty_account(tenant_id, account=account, **what)
    if result.final:
        yield trouble.given_up(tenant_id, account=account, **what)


class _What(TypedDict):
    """What every case of a message says."""

    message_id: UUID
    reason: str
    correlation_id: str


def _what(result: CallResult, row: asyncpg.Record) -> _What:
    return _What(
        message_id=row["message_id"], reason=_reason(result.outcome) or "", correlation_id=row["correlation_id"]
    )


def _is_trouble(result: CallResult) -> bool:
    """Tell whether a result that moved its row is one that a person should look at."""
    if isinstance(result.outcome, NotCalled):
        return result.outcome.leads_to is OutgoingStatus.FAILED_FINAL
    return isinstance(result.outcome, Misconfigured) or result.final


def _rounds(results: Sequence[CallResult]) -> list[list[int]]:
    """Share results out so that no round has two of one row; almost always there is one round."""
    if len({result.id for result in results}) == len(results):
        return [list(range(len(results)))]
    seen: Counter[int] = Counter()
    rounds: list[list[int]] = []
    for place, result in enumerate(results):
        if seen[result.id] == len(rounds):
            rounds.append([])
        rounds[seen[result.id]].append(place)
        seen[result.id] += 1
    return rounds


def _destination(result: CallResult) -> OutgoingStatus:
    """Say where an outcome leads a row that is in flight."""
    match result.outcome:
        case Accepted():
            return OutgoingStatus.SENT_TO_PROVIDER
        case Refused():
            return OutgoingStatus.FAILED_FINAL
        case Deferred() | Misconfigured():
            return OutgoingStatus.FAILED_FINAL if result.final else OutgoingStatus.RETRY_READY
        case Unknown():
            return OutgoingStatus.UNCERTAIN
        case NotCalled():
            return result.outcome.leads_to
        case _:
            assert_never(result.outcome)


def _provider_message_id(outcome: CallOutcome) -> str | None:
    return outcome.provider_message_id if isinstance(outcome, Accepted) else None


def _reason(outcome: CallOutcome) -> str | None:
    return None if isinstance(outcome, Accepted) else outcome.reason


def _reason_class(result: CallResult) -> str:
    """Name the reason if totals tell it apart."""
    match result.outcome:
        case Refused(recipient_not_found=True):
            return ReasonClass.RECIPIENT_NOT_FOUND
        case Deferred(throttled=True) if not result.final:
            return ReasonClass.THROTTLED
        case _:
            return ""


def _seconds(delay: timedelta) -> str:
    """Write a length of time as an interval."""
    return f"PT{delay.total_seconds()}S" if delay else "PT0S"
