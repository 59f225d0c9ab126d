"""The dicts that stand for tables, and the little that all methods need of them: time, ids, flows, support cases."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import TypeVar

import msgspec

from clarion.domain.claim import Gate
from clarion.domain.identity import Lane
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.support import SupportCase
from clarion.ports.clock import Clock
from clarion.ports.ensure import WrappedKeys
from clarion.testing.memory.record import Flow, FlowCount, Key

T = TypeVar("T")


class Tables:
    """All records of all tenants."""

    def __init__(self, clock: Clock) -> None:
        """Start empty."""
        self._clock = clock
        self._ids = count(1)
        self._rows: dict[tuple[str, type], dict[Key, object]] = {}
        self._created: dict[tuple[str, type, Key], datetime] = {}
        self._flows: dict[Key, Flow] = {}
        self.keys: dict[str, WrappedKeys] = {}
        self.gates: dict[tuple[str, str], Gate] = {}
        self.counts: Counter[tuple[int, OutgoingStatus, str]] = Counter()
        self.places: dict[int, tuple[str, Key]] = {}  # where an outgoing row is, by its id
        self.cancelers: dict[int, str] = {}  # who called an outgoing row off, by its id
        self.scheduled: dict[int, datetime] = {}  # when a pending row passed its first stage, by its id
        self.moved: dict[int, datetime] = {}  # when a pending row last moved, by its id

    def now(self) -> datetime:
        """Return the present instant, by which leases and due times are judged."""
        return self._clock.now()

    def next_id(self) -> int:
        """Return an id that no row has."""
        return next(self._ids)

    def of(self, tenant_id: str, kind: type[T]) -> dict[Key, T]:
        """Give the rows of one tenant and record type by key."""
        rows: dict[Key, T] = self._rows.setdefault((tenant_id, kind), {})  # type: ignore[assignment]  # by construction
        return rows

    def everywhere(self, kind: type[T]) -> list[tuple[str, T]]:
        """Give the rows of one record type of all tenants."""
        tenants = [tenant_id for tenant_id, stored in self._rows if stored is kind]
        return [(tenant_id, row) for tenant_id in tenants for row in self.of(tenant_id, kind).values()]

    def note_created(self, tenant_id: str, kind: type, key: Key) -> None:
        """Remember when a row was made."""
        self._created[tenant_id, kind, key] = self.now()

    def created_at(self, tenant_id: str, kind: type, key: Key) -> datetime:
        """Tell when a row was made."""
        return self._created[tenant_id, kind, key]

    def flow(self, tenant_id: str, *, lane: Lane, route: str, broadcast: str, account: str = "") -> Flow:
        """Find the flow of these names, or make it."""
        names = (tenant_id, lane, route, broadcast, account)
        if names not in self._flows:
            self._flows[names] = Flow(
                id=self.next_id(), tenant_id=tenant_id, lane=lane, route=route, broadcast=broadcast, account=account
            )
        return self._flows[names]

    def flows(self) -> list[Flow]:
        """Give all flows in the order of their ids."""
        return list(self._flows.values())

    def gate(self, tenant_id: str, broadcast: str) -> Gate:
        """Tell whether a broadcast's rows may be claimed; without a broadcast, or with one never touched, they may."""
        return self.gates.get((tenant_id, broadcast), Gate.OPEN)

    def count(self, flow: Flow, status: OutgoingStatus, reason_class: str, *, by: int) -> None:
        """Change a counter of a flow that has a broadcast."""
        if flow.broadcast:
            self.counts[flow.id, status, reason_class] += by

    def flow_counts(self, tenant_id: str) -> list[FlowCount]:
        """Give a tenant's counters."""
        flows = {flow.id: flow for flow in self.flows() if flow.tenant_id == tenant_id}
        return [
            FlowCount(
                lane=flows[flow_id].lane,
                route=flows[flow_id].route,
                broadcast=flows[flow_id].broadcast,
                pinned=flows[flow_id].account,
                status=status,
                reason_class=reason_class,
                n=n,
            )
            for (flow_id, status, reason_class), n in self.counts.items()
            if flow_id in flows
        ]

    def open_cases(self, tenant_id: str, opened: Sequence[SupportCase]) -> None:
        """Keep each case once for its cause, counting how often it was seen."""
        now = self.now()
        cases = self.of(tenant_id, SupportCase)
        for case in opened:
            known = cases.get((str(case.case_id),))
            cases[(str(case.case_id),)] = msgspec.structs.replace(
                case,
                seen_count=known.seen_count + 1 if known else 1,
                first_seen_at=known.first_seen_at if known else now,
                last_seen_at=now,
                resolved_at=known.resolved_at if known else None,
                resolved_by=known.resolved_by if known else None,
                resolution=known.resolution if known else None,
            )
