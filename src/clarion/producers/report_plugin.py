"""Report providers: a registry of ours and those of strangers, and what of a stranger's answer is let in.

A stranger's provider runs apart, as every plugin does. It writes into an output of ours that takes so much and no more,
and nothing once it has answered. Reads and writes nothing itself.
"""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

import msgspec

from clarion.domain.messaging_content import DATA_BYTES_MAX
from clarion.domain.part import END
from clarion.domain.report import ReportSubscription
from clarion.domain.report_choice import PARAMETER_CHARS_MAX, PARAMETERS_MAX, ReportForm
from clarion.errors import BadConfiguration, InvalidInput, PluginFailed
from clarion.ports.reporting import (
    OUTPUT_BYTES_MAX,
    PAGE_MAX,
    DeliveryCount,
    ReportData,
    ReportFacts,
    ReportProvider,
    ReportRequest,
)
from clarion.producers.apart import Apart, Patience

T = TypeVar("T")

WRITING: Final = Patience(answer_max=timedelta(minutes=2))
"""A report goes through a database. Twice as long is left of the lease of the run that asks for it."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[a-z0-9][a-z0-9._-]*" + END)]
_Parameters = Annotated[
    frozenset[Annotated[str, msgspec.Meta(min_length=1, max_length=PARAMETER_CHARS_MAX)]],
    msgspec.Meta(max_length=PARAMETERS_MAX),
]


class Output:
    """What a provider writes into; bounded."""

    def __init__(self) -> None:
        """Be empty."""
        self._parts: list[str] = []
        self._bytes = 0
        self._is_closed = False

    def write(self, text: str) -> None:
        """Write a part; raise InvalidInput where the whole is too large, or is no text."""
        given: object = text
        if not isinstance(given, str) or self._is_closed:
            raise InvalidInput("it is no text, or comes too late", field="output", hint="write text before answering")
        try:
            self._bytes += len(text.encode())
        except UnicodeEncodeError:
            raise InvalidInput("it holds half of a surrogate pair", field="output", hint="write whole text") from None
        if self._bytes > OUTPUT_BYTES_MAX:
            raise InvalidInput(
                f"the report takes more than {OUTPUT_BYTES_MAX} bytes",
                field="output",
                hint="write less: narrow the report by a parameter, or add up its lines",
            )
        self._parts.append(text)

    def close(self) -> str:
        """Give the whole, and take nothing more."""
        self._is_closed = True
        return "".join(self._parts)


class _FactsFromHome:
    """Facts for a provider that runs apart: each is asked in the loop that the store belongs to."""

    def __init__(self, facts: ReportFacts, home: asyncio.AbstractEventLoop) -> None:
        self._facts = facts
        self._home = home

    async def count_deliveries(
        self,
        tenant_id: str,
        *,
        start_at: datetime,
        end_at: datetime,
        after: tuple[str, str] | None = None,
        limit: int = PAGE_MAX,
    ) -> Sequence[DeliveryCount]:
        """Count the messages of notifications of a period."""
        question = self._facts.count_deliveries(
            tenant_id, start_at=start_at, end_at=end_at, after=after, limit=min(limit, PAGE_MAX)
        )
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_own(question), self._home))


async def _own(question: Awaitable[T]) -> T:
    """Await what a port answers as a coroutine of our own, which is what another loop takes."""
    return await question


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What came of asking for a report."""

    output: str
    data: ReportData


class ReportPlugin:
    """One provider of reports, registered under the name of its entry point."""

    def __init__(self, name: str, provider: object, *, patience: Patience | None = WRITING) -> None:
        """Register a provider; raise BadConfiguration where it is none. One of ours needs no patience: it runs here."""
        if not isinstance(provider, ReportProvider):
            missing = [one for one in ("report", "forms", "parameters", "write") if not hasattr(provider, one)]
            raise _unusable(name, f"has no {' and no '.join(missing)}", "give it everything that ReportProvider names")
        self.name = name
        self.report: str = _fit(name, provider.report, _Name, "report", "name it by a word such as delivery-summary")
        self.forms: frozenset[ReportForm] = _fit(
            name, _listed(provider.forms), frozenset[ReportForm], "forms", "name some of ReportForm"
        )
        self.parameters: frozenset[str] = _fit(
            name, _listed(provider.parameters), _Parameters, "parameters", "name the parameters that it takes, or none"
        )
        if not self.forms:
            raise _unusable(name, "writes no form", "name some of ReportForm as its forms")
        self._provider = provider
        self._apart = Apart(name, patience=WRITING if patience is None else patience)
        self._is_ours = patience is None

    async def write(self, asked: ReportRequest, facts: ReportFacts) -> Written:
        """Have it write; raise PluginFailed where nothing comes of it."""
        output, provider = Output(), self._provider
        asked_here = facts if self._is_ours else _FactsFromHome(facts, asyncio.get_running_loop())

        async def question() -> Written:
            found: object = await provider.write(asked, asked_here, output)
            return Written(output=output.close(), data=self._data(found))

        return await (question() if self._is_ours else self._apart.ask("write", question))

    async def close(self) -> None:
        """End its threads."""
        await self._apart.close()

    def _data(self, found: object) -> ReportData:
        """Let in what templates may read: JSON within its limit."""
        try:
            data = msgspec.convert(msgspec.to_builtins(found), ReportData) if isinstance(found, ReportData) else None
            size = len(msgspec.json.encode(data))
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError):
            data, size = None, 0
        if data is None or data.lines < 0:
            raise self._rubbish("it is no ReportData of what JSON has")
        if size > DATA_BYTES_MAX:
            raise self._rubbish(f"its data takes {size} bytes, more than {DATA_BYTES_MAX}")
        return data

    def _rubbish(self, why: str) -> PluginFailed:
        return self._apart.failure(f"answered what cannot be used when it was asked write ({why})")


class Reports:
    """Every report that can be subscribed to in one process."""

    def __init__(self, plugins: Sequence[ReportPlugin] = ()) -> None:
        """Have the reports of these; refuse two of one name."""
        self._plugins: dict[str, ReportPlugin] = {}
        for plugin in plugins:
            other = self._plugins.setdefault(plugin.report, plugin)
            if other is not plugin:
                raise BadConfiguration(
                    f"the plugins {other.name!r} and {plugin.name!r} of clarion.reports both write the report "
                    f"{plugin.report!r}",
                    hint="uninstall one of them, or let it write a report of another name",
                )

    @property
    def all(self) -> tuple[ReportPlugin, ...]:
        """All of them, by name."""
        return tuple(self._plugins[name] for name in sorted(self._plugins))

    def check(self, subscription: ReportSubscription) -> None:
        """Refuse a subscription to what nobody writes, or to what its provider does not."""
        plugin = self._plugins.get(subscription.report)
        if plugin is None:
            known = ", ".join(sorted(self._plugins)) or "none"
            raise InvalidInput(f"there is no report {subscription.report!r}", field="report", hint=f"there is {known}")
        if subscription.form not in plugin.forms:
            raise InvalidInput(
                f"the report {plugin.report!r} is not written as {subscription.form}",
                field="form",
                hint=f"use {' or '.join(sorted(plugin.forms))}",
            )
        for name in sorted(subscription.parameters.keys() - plugin.parameters):
            takes = ", ".join(sorted(plugin.parameters)) or "none"
            raise InvalidInput(
                f"the report {plugin.report!r} has no parameter {name!r}",
                field=f"parameters.{name}",
                hint=f"it takes {takes}",
            )

    def get(self, report: str) -> ReportPlugin:
        """Return who writes a report, or raise BadConfiguration where nobody does any more."""
        plugin = self._plugins.get(report)
        if plugin is None:
            raise BadConfiguration(
                f"no plugin of clarion.reports writes the report {report!r}",
                hint="install the one that does on every machine that works, or deactivate the subscription",
            )
        return plugin

    async def close(self) -> None:
        """End what the plugins run in."""
        for plugin in self._plugins.values():
            await plugin.close()


def _listed(given: object) -> object:
    return list(given) if isinstance(given, Collection) and not isinstance(given, str | bytes) else given


def _fit(name: str, given: object, kind: Any, field: str, hint: str) -> Any:  # noqa: ANN401  the kind says which
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError:
        raise _unusable(name, f"has {field} that cannot be used", hint) from None


def _unusable(name: str, what: str, hint: str) -> BadConfiguration:
    return BadConfiguration(f"the plugin {name!r} of clarion.reports {what}", hint=hint)
