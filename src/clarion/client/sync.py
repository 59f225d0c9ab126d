"""The client for programs that do not use asyncio: every method of `Client`, waiting for its answer.

One thread with an event loop of its own serves the async client, so there is one place that makes requests and repeats
them. It may be used from several threads at once, and from a notebook whose own loop is running. What a method takes,
answers and raises is what the async one does: each is made from it by one line.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from datetime import timedelta
from functools import wraps
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from clarion.client.connection import Client
from clarion.client.transport import TIMEOUT

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncClient", P], T]:
    """Make a method that has the async one run on the client's loop, and waits for what it returns or raises."""

    @wraps(method)
    def wait(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return wait


def _waiting_for_each(
    method: Callable[Concatenate[Client, P], AsyncIterator[T]],
) -> Callable[Concatenate["SyncClient", P], Iterator[T]]:
    """Make a method that goes through what the async one gives, asking for more as it is needed."""

    @wraps(method)
    def wait(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(self._client, *args, **kwargs)
        try:
            while True:
                yield self._run(anext(items))
        except StopAsyncIteration:
            return

    return wait


class SyncClient:
    """A connection to one installation, for one API key, that waits for every answer."""

    def __init__(self, url: str, *, key: str, timeout: timedelta = TIMEOUT) -> None:
        """Speak to the API at a URL with a key; nothing is sent before the first request."""
        self._client = Client(url, key=key, timeout=timeout)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="clarion-client", daemon=True)
        self._thread.start()

    send = _waiting(Client.send)
    notification = _waiting(Client.notification)
    recipients = _waiting(Client.recipients)
    cancel = _waiting(Client.cancel)
    timeline = _waiting(Client.timeline)
    would = _waiting(Client.would)
    history = _waiting_for_each(Client.history)
    notifications = _waiting(Client.notifications)
    inbox = _waiting(Client.inbox)
    inbox_counts = _waiting(Client.inbox_counts)
    mark = _waiting(Client.mark)
    types = _waiting(Client.types)
    notification_type = _waiting(Client.notification_type)
    publish = _waiting(Client.publish)
    preview = _waiting(Client.preview)
    switch_type = _waiting(Client.switch_type)
    settings = _waiting(Client.settings)
    setting = _waiting(Client.setting)
    put_setting = _waiting(Client.put_setting)
    clear_setting = _waiting(Client.clear_setting)
    people = _waiting(Client.people)
    put_people = _waiting(Client.put_people)
    person = _waiting(Client.person)
    put_person = _waiting(Client.put_person)
    change_person = _waiting(Client.change_person)
    remove_person = _waiting(Client.remove_person)
    attributes = _waiting(Client.attributes)
    declare_attribute = _waiting(Client.declare_attribute)
    groups = _waiting(Client.groups)
    group = _waiting(Client.group)
    put_group = _waiting(Client.put_group)
    change_group = _waiting(Client.change_group)
    remove_group = _waiting(Client.remove_group)
    members = _waiting(Client.members)
    change_members = _waiting(Client.change_members)
    units = _waiting(Client.units)
    unit = _waiting(Client.unit)
    put_unit = _waiting(Client.put_unit)
    change_unit = _waiting(Client.change_unit)
    unit_members = _waiting(Client.unit_members)
    change_unit_members = _waiting(Client.change_unit_members)
    tenant = _waiting(Client.tenant)
    put_tenant = _waiting(Client.put_tenant)
    roles = _waiting(Client.roles)
    holders = _waiting(Client.holders)
    change_holders = _waiting(Client.change_holders)
    upcoming = _waiting(Client.upcoming)
    story = _waiting(Client.story)
    explain_occurrence = _waiting(Client.explain_occurrence)
    relations = _waiting(Client.relations)
    change_relations = _waiting(Client.change_relations)
    sources = _waiting(Client.sources)
    source = _waiting(Client.source)
    put_source = _waiting(Client.put_source)
    put_sources = _waiting(Client.put_sources)
    remove_source = _waiting(Client.remove_source)
    tell = _waiting(Client.tell)
    events = _waiting(Client.events)
    event = _waiting(Client.event)
    retry_event = _waiting(Client.retry_event)
    event_mappings = _waiting(Client.event_mappings)
    put_event_mapping = _waiting(Client.put_event_mapping)
    remove_event_mapping = _waiting(Client.remove_event_mapping)
    reminders = _waiting(Client.reminders)
    reminder = _waiting(Client.reminder)
    put_reminder = _waiting(Client.put_reminder)
    switch_reminder = _waiting(Client.switch_reminder)
    occurrences = _waiting(Client.occurrences)
    occurrence = _waiting(Client.occurrence)
    act = _waiting(Client.act)
    rerun = _waiting(Client.rerun)
    reports = _waiting(Client.reports)
    report_subscriptions = _waiting(Client.report_subscriptions)
    report_subscription = _waiting(Client.report_subscription)
    put_report_subscription = _waiting(Client.put_report_subscription)
    switch_report_subscription = _waiting(Client.switch_report_subscription)
    run_report = _waiting(Client.run_report)
    suppressions = _waiting(Client.suppressions)
    suppress = _waiting(Client.suppress)
    lift_suppression = _waiting(Client.lift_suppression)
    preferences = _waiting(Client.preferences)
    set_preferences = _waiting(Client.set_preferences)
    uncertain = _waiting(Client.uncertain)
    retry = _waiting(Client.retry)
    retry_notification = _waiting(Client.retry_notification)
    support_cases = _waiting(Client.support_cases)
    support_case = _waiting(Client.support_case)
    resolve = _waiting(Client.resolve)
    audit = _waiting(Client.audit)
    status = _waiting(Client.status)

    def __enter__(self) -> Self:
        """Use it for the length of a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of connections."""
        self.close()

    def close(self) -> None:
        """Let go of connections, and end the thread; closing again does nothing."""
        if self._loop.is_closed():
            return
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Awaitable[T]) -> T:
        """Have the loop do it, and wait; who stops waiting, by Ctrl-C for instance, gives the request up."""

        async def awaited() -> T:
            return await work

        future = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
