"""Inboxes: what stands in one, how many lines it has, and what its reader makes of them.

What a line says is stored sealed. It is opened in memory, within the tenant, for those who may see messages as their
recipients do. A mark is the reader's own doing, told by the application that shows them their inbox, and is no act of
the people who look after the system: the audit log has none of them.
"""

from typing import Final
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform
from clarion.client import wire_inbox
from clarion.domain.content import InboxContent
from clarion.domain.identity import Identity, read_person
from clarion.domain.inbox import Counts, Marking
from clarion.domain.seal import TenantKeys
from clarion.errors import InvalidInput, SealBroken
from clarion.operations import page
from clarion.operations.shape import as_wire
from clarion.ports.inbox import InboxLine
from clarion.ports.insights import PAGE_MAX
from clarion.sealing.place import inbox_place

LOOKED_MAX: Final = 2000
"""Lines that one request looks at for a filter, as for the list of notifications."""

SWEPT_MAX: Final = 1000
"""Expired lines that are counted out at once."""

SWEEPS_MAX: Final = 5
"""Sweeps before a count is told: five thousand lines that expired in one inbox before the janitor came."""


class Inboxes:
    """What can be done with inboxes."""

    def __init__(self, platform: Platform) -> None:
        """Work on this platform."""
        self._store = platform.store
        self._keyring = platform.keyring

    async def list(
        self, tenant_id: str, reader: Identity, query: wire_inbox.InboxQuery, *, whole: bool
    ) -> wire_inbox.InboxPage:
        """List the lines of an inbox, newest first, or those that a filter lets through; `whole` shows what they say.

        How a line stands follows from its own row and from what was done to all, so a filter is asked of one page of
        lines after the other, and a request looks at a bounded number of them.
        """
        keys = await self._keyring.get(tenant_id)
        inbox = keys.hash_of(reader)
        name = f"inbox {inbox} {query.category} {query.unread} {query.archived}"
        after, looked, found = page.read(name, query.cursor, start=""), 0, []
        size = query.limit + 1 if query == _plain(query) else PAGE_MAX
        while True:
            lines = await self._store.list_inbox(tenant_id, inbox, after=after, limit=size)
            found += [line for line in lines if _is_asked_for(line, query)]
            shown, following = page.cut(name, found, query.limit, lambda line: line.row_key)
            if following is not None or len(lines) < size:
                break
            after, looked = lines[-1].row_key, looked + len(lines)
            if looked >= LOOKED_MAX:
                following = page.write(name, after)
                break
        named = [(line.bucket, line.id) for line in shown] if whole else []
        contents = await self._store.find_contents(tenant_id, named) if named else {}
        items = tuple(_message(line, contents.get(line.id), keys) for line in shown)
        return wire_inbox.InboxPage(items=items, next_cursor=following)

    async def count(self, tenant_id: str, reader: Identity) -> wire_inbox.InboxCounts:
        """Count an inbox: by one row, unless lines of it have expired that are counted still."""
        inbox = (await self._keyring.get(tenant_id)).hash_of(reader)
        found, sweeps = await self._store.count_inbox(tenant_id, inbox), 0
        while found.has_expired and sweeps < SWEEPS_MAX:
            await self._store.sweep_inbox(tenant_id, inbox, limit=SWEPT_MAX)
            found, sweeps = await self._store.count_inbox(tenant_id, inbox), sweeps + 1
        return _counts(found)

    async def mark(
        self, tenant_id: str, reader: Identity, message_id: UUID, marking: Marking
    ) -> wire_inbox.InboxCounts | None:
        """Mark one line, which may be so already, and count the inbox; None where the inbox has no such line."""
        inbox = (await self._keyring.get(tenant_id)).hash_of(reader)
        if not await self._store.mark_lines(tenant_id, inbox, [message_id], marking):
            return None
        return await self.count(tenant_id, reader)

    async def mark_all(self, tenant_id: str, reader: Identity, marking: Marking) -> wire_inbox.InboxCounts:
        """Mark all lines of an inbox, archived ones too, however many, and count it."""
        inbox = (await self._keyring.get(tenant_id)).hash_of(reader)
        await self._store.mark_inbox(tenant_id, inbox, marking)
        return await self.count(tenant_id, reader)


def read_reader(text: str) -> Identity:
    """Read whose inbox is meant: `user:ID` or `employee:GUID`."""
    return read_person(text, field="reader")


def read_marking(word: str) -> Marking:
    """Read what is to be made of a line."""
    try:
        return Marking(word)
    except ValueError:
        raise InvalidInput("it is no mark", field="mark", hint=f"use {', '.join(Marking)}") from None


def _plain(query: wire_inbox.InboxQuery) -> wire_inbox.InboxQuery:
    """Take the filters out of a query."""
    return wire_inbox.InboxQuery(limit=query.limit, cursor=query.cursor)


def _is_asked_for(line: InboxLine, query: wire_inbox.InboxQuery) -> bool:
    return (
        query.category in (None, line.category)
        and (line.state.archived_at is not None) == query.archived
        and not (query.unread and line.state.read_at is not None)
    )


def _counts(found: Counts) -> wire_inbox.InboxCounts:
    return wire_inbox.InboxCounts(
        lines=found.lines - found.archived,
        unseen=found.unseen - found.archived_unseen,
        unread=found.unread - found.archived_unread,
        archived=found.archived,
    )


def _message(line: InboxLine, sealed: bytes | None, keys: TenantKeys) -> wire_inbox.InboxMessage:
    """Give a line as it may be seen; one that cannot be opened says nothing."""
    said = None
    if sealed is not None:
        place = inbox_place(partition_key=line.partition_key, row_key=line.row_key)
        try:
            said = msgspec.json.decode(place.open(keys, sealed), type=InboxContent)
        except (SealBroken, msgspec.DecodeError):
            said = None
    return as_wire(
        line,
        wire_inbox.InboxMessage,
        type=line.event_type,
        title=said and said.title,
        body=said and said.body,
        **msgspec.structs.asdict(line.state),
    )
