"""What people look after: uncertain messages and retrying them, support cases, the audit log."""

from uuid import UUID

from clarion.client import wire, wire_support
from clarion.domain import audit
from clarion.domain.support import (
    KIND_IN_WORDS,
    RECORD_IN_WORDS,
    SupportCase,
    SupportStatus,
    about,
    differing_in_words,
)
from clarion.errors import AuditBroken, Conflict
from clarion.operations import page
from clarion.operations.shape import as_wire, read_details
from clarion.operations.wake import Wake
from clarion.ports.catalog import AuditEntry
from clarion.ports.insights import PAGE_MAX
from clarion.ports.store import Store

UNCERTAIN = "uncertain"
AUDIT = "audit, newest first"


class Support:
    """What people do when something went wrong, and what they did."""

    def __init__(self, store: Store, *, wake: Wake) -> None:
        """Work on this store, and wake workers."""
        self._store = store
        self._wake = wake

    async def list_uncertain(self, tenant_id: str, query: wire.PageQuery) -> wire_support.UncertainPage:
        """List the messages of which nobody knows whether they arrived, with the version that a retry asks for."""
        after = page.read(UNCERTAIN, query.cursor, start=0)
        found = await self._store.list_uncertain(tenant_id, after=after, limit=query.limit + 1)
        lines, following = page.cut(UNCERTAIN, found, query.limit, lambda line: line.id)
        items = tuple(as_wire(line, wire_support.UncertainLine) for line in lines)
        return wire_support.UncertainPage(items=items, next_cursor=following)

    async def retry_message(
        self, tenant_id: str, outgoing_id: int, *, version: int, actor: str, reason: str
    ) -> wire_support.Retried | None:
        """Send a failed or uncertain message again, unless it has moved on since its version was read."""
        if await self._store.retry_outgoing(tenant_id, outgoing_id, version=version, actor=actor, reason=reason):
            self._wake("outgoing")
            return wire_support.Retried(id=outgoing_id)
        found = await self._store.list_uncertain(tenant_id, after=max(outgoing_id - 1, 0), limit=1)
        if found and found[0].id == outgoing_id:
            raise Conflict(
                f"the message was canceled, is out of time, or has moved on (its version is {found[0].version})",
                hint="look at it again before you retry it",
            )
        return None

    async def list_cases(self, tenant_id: str, query: wire_support.SupportCaseQuery) -> wire_support.SupportCasePage:
        """List what a person should look at, one case for each cause."""
        name = f"support-cases {query.status}"
        after = page.read_guid(name, query.cursor)
        status = None if query.status == wire_support.EVERY_CASE else SupportStatus(query.status)
        found = await self._store.list_support_cases(tenant_id, status=status, after=after, limit=query.limit + 1)
        cases, following = page.cut(name, found, query.limit, lambda case: case.case_id.hex)
        return wire_support.SupportCasePage(items=tuple(map(_case, cases)), next_cursor=following)

    async def find_case(self, tenant_id: str, case_id: UUID) -> wire_support.SupportCase | None:
        """Show one support case with all that is known of it."""
        case = await self._store.find_support_case(tenant_id, case_id)
        return None if case is None else _case(case)

    async def resolve_case(
        self, tenant_id: str, case_id: UUID, *, actor: str, resolution: str
    ) -> wire_support.SupportCase | None:
        """Close a support case; the same trouble, seen again, opens it again."""
        resolved = await self._store.resolve_support_case(tenant_id, case_id, actor=actor, resolution=resolution)
        case = await self.find_case(tenant_id, case_id)
        if case is not None and not resolved:
            raise Conflict("the case is not open", hint="read it again: somebody has resolved it")
        return case

    async def list_audit(self, tenant_id: str, query: wire.PageQuery) -> wire_support.AuditPage:
        """List what people did, newest first; each entry's hash covers the one before it."""
        before = page.read(AUDIT, query.cursor, start=0) or None
        found = await self._store.list_newest_audit(tenant_id, before=before, limit=query.limit + 1)
        entries, following = page.cut(AUDIT, found, query.limit, lambda entry: entry.seq)
        items = tuple(as_wire(one, wire_support.AuditLine, details=read_details(one.details)) for one in entries)
        return wire_support.AuditPage(items=items, next_cursor=following)

    async def verify_audit(self, tenant_id: str) -> tuple[int, str | None]:
        """Compute every hash of the audit log again; return how many entries there are and the hash of the last.

        Raises AuditBroken at the first entry that does not follow from the one before it.
        """
        last: AuditEntry | None = None
        while entries := await self._store.list_audit(tenant_id, after=0 if last is None else last.seq, limit=PAGE_MAX):
            broken = audit.broken_link(tenant_id, entries, after=last)
            if broken is not None:
                raise AuditBroken(
                    f"the audit log of {tenant_id!r} does not hold together at entry {broken}, where something was "
                    "changed, removed or put in after it was written",
                    hint="compare it with a backup of the store, and find out who can write to the database",
                )
            last = entries[-1]
        return (0, None) if last is None else (last.seq, last.hash)


def _case(case: SupportCase) -> wire_support.SupportCase:
    details = read_details(case.details)
    if isinstance(fields := details.get("differing"), list | dict):
        details |= {"differing": differing_in_words(map(str, fields))}
    return as_wire(
        case,
        wire_support.SupportCase,
        about=about(case),
        kind=KIND_IN_WORDS[case.kind],
        record=RECORD_IN_WORDS.get(case.record, case.record),
        details=details,
    )
