"""The store as a queue: receiving work and claiming its row are one act (docs/explanation/claiming.md).

Every method is one transaction, set-based and bounded by its arguments. What becomes of an outgoing row is ruled by
`domain.ruling`. Leases and due times are judged by the store's clock alone; every state change is conditional and
leaves one `Transition`, written by the same transaction. Workers claim across tenants, and every row says whose it is.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from clarion.domain.claim import (
    CallResult,
    ClaimedMessage,
    Discovery,
    FlowQuota,
    Gate,
    LowMark,
    Settlement,
    StageClaim,
    StageResult,
    UncertainSend,
)
from clarion.domain.identity import Lane
from clarion.domain.notification import Stage
from clarion.domain.one_time_code import Erasure
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.domain.worker import Heartbeat
from clarion.ports.ensure import Hold


class QueueStore(Protocol):
    """Work: taking it, finishing it, rescuing what was left behind."""

    async def claim_stage(
        self, stage: Stage, *, lanes: Sequence[Lane], limit: int, lease: timedelta, without: Collection[str] = ()
    ) -> list[StageClaim]:
        """Take due pending jobs of a stage, oldest first within a lane; return them with the urgent lanes first.

        The lanes have parts of the limit by weight (`portions`); what one does not need, the others get, the urgent
        ones first. So a backlog in one lane does not stop another. Jobs of the tenants in `without` are left.
        Ready → Processing, version + 1. Only rows whose job is there are taken; the job of a messaging job's row is the
        notification job that tells of its content. One that cannot be read is logged, stays claimed and holds up no
        other (F-50): its rescues fail it in the end.
        """
        ...

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        """Move claimed rows on where the claim still stands; return the ids of those that moved.

        One that ends in Failed opens its support case in the same transaction. A cursor is kept until the next one or
        the next stage, and with it the workers lost before are forgotten.
        """
        ...

    async def freeze_recipients(self, tenant_id: str, sets: Sequence[FrozenSet]) -> dict[int, str]:
        """Store each job's recipient set unless one is stored already; return the sets that stand, by job (I-06).

        In the same transaction the recipients of a set that is stored now are noted to have the job; together they are
        at most as many as any set.
        """
        ...

    async def note_recipients(self, tenant_id: str, hold: Hold, lines: Sequence[RecipientJob]) -> bool:
        """Note that these recipients of a set in pages have the job, each once, and return whether the claim stands.

        Where it does not, because the job was canceled or taken over, nothing is written.
        """
        ...

    async def rescue_stages(self, *, limit: int, rescues_max: int) -> int:
        """Return expired claims to Ready, rescue_count + 1; past the bound to Failed with a support case (I-23)."""
        ...

    async def discover_flows(self, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
        """Find the flows of these routes that have a row due behind their low mark, behind an open gate.

        A flow of a lane that this program does not know is left to a newer one.
        """
        ...

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        """Take due rows, at most each flow's quota; return those that are now `Sending`.

        What becomes of each row is ruled by `at_claim`; one that waits for its order key stays, in line. A gate that is
        not open yields nothing, and none is claimed after its update committed (I-16). Of those that are sent
        `attempts` is one more; an authorised replay is so for this call.
        """
        ...

    async def record_outgoing(self, results: Sequence[CallResult], *, actor: str) -> None:
        """Record what came back, by (id, claim token), as `after_result` rules; write the attempts.

        Closing a row makes the next of its order key due. Of what a provider said, what can be stored is kept, and the
        rest is no reason to lose the other results (X-30).
        """
        ...

    async def rescue_outgoing(self, *, limit: int) -> int:
        """Turn `Sending` rows whose lease ran out into `Uncertain`, each with an attempt of unknown outcome."""
        ...

    async def find_uncertain(self, *, accounts: Collection[str], limit: int) -> list[UncertainSend]:
        """Return rows in `Uncertain`, last sent through one of these accounts, that wait for a decision."""
        ...

    async def settle_uncertain(self, settlements: Sequence[Settlement], *, actor: str) -> set[int]:
        """Replay (→ RetryReady) or let rest (stays, `settle_at` cleared, reason kept), by version.

        A replay that may make a duplicate is authorised for one claim (I-10) and counted apart. What is let rest opens
        the support case of its account.
        """
        ...

    async def set_gate(self, tenant_id: str, broadcast: str, gate: Gate, *, actor: str) -> bool:
        """Open, pause or cancel a broadcast: one update, after which no claim of its rows begins.

        Audited; False where its gate stands so already. A broadcast that nobody has touched is open.
        """
        ...

    async def sweep_canceled(self, *, limit: int) -> int:
        """End waiting rows of canceled broadcasts, and waiting rows with `cancel_at`, in chunks."""
        ...

    async def erase_codes(self, *, after: int, limit: int) -> Erasure:
        """Erase the data of one-time codes that are over, as `is_spent` rules; look at so many jobs behind an id."""
        ...

    async def cancel_job(self, tenant_id: str, job_guid: UUID, *, actor: str) -> bool:
        """Cancel a direct job: its scheduler row unless finished, and `cancel_at` on every row that is not final.

        Audited, and the actor stands on the transition lines too; False where there is nothing left to cancel. A row
        that is with its provider, or uncertain, is left to cancel as long as nobody has called it off.

        Thousands of rows take several transactions. The first stops the making of more, and if the caller is lost over
        them, canceling again goes on.
        """
        ...

    async def retry_job(self, tenant_id: str, job_guid: UUID, *, actor: str, reason: str) -> bool:
        """Return a `Failed` job to `Ready` at the stage where it failed, on a person's word; False if it is not Failed.

        Audited with the reason; what it was rescued and retried before is forgiven. Raises Gone where its data was
        erased.
        """
        ...

    async def retry_outgoing(self, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str) -> bool:
        """Return a `FailedFinal` or `Uncertain` row to `RetryReady` on a person's word.

        False if it has moved on, was canceled (I-07) or is out of time: the claim would not let it out. Raises Gone
        where its job's data was erased.

        Audited with the reason, which stands on the transition line too.
        """
        ...

    async def note_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Write what a process says of itself, in the place of what it said before; sweep those lost long ago."""
        ...

    async def end_worker(self, worker_id: UUID) -> None:
        """Forget a process that has stopped."""
        ...
