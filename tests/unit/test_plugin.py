"""Plugins of reminders: whatever they do, nobody but what needs them is held up, and only what fits is let in."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import date, timedelta
from threading import Event

import msgspec
import pytest

from clarion.domain.identity import Channel, Identity
from clarion.domain.recipient import Target
from clarion.domain.source import SourceContent, SourceFacts
from clarion.errors import PluginFailed
from clarion.ports.reminding import Delivery, Immediate, ScanPage
from clarion.ports.source import SourceScan
from clarion.producers.apart import PATIENCE, Patience
from clarion.producers.plugin import Plugin
from tests.unit.plugin_house import ENTITY, HURRIED, SETTING, Boats, Everything, boat, event

SCAN = SourceScan(source_type="boat", limit=2)


@asynccontextmanager
async def registered(provider: object, patience: Patience = PATIENCE) -> AsyncIterator[Plugin]:
    plugin = Plugin("boats", provider, patience=patience)
    try:
        yield plugin
    finally:
        await plugin.close()


def answering(value: object) -> Callable[[], Awaitable[object]]:
    async def answer() -> object:
        return value

    return answer


async def test_a_plugin_answers_what_it_is_asked_in_a_loop_of_its_own() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def look() -> object:
        loops.append(asyncio.get_running_loop())
        return {"b1": boat(name="Grace")}

    async with registered(Boats(look)) as plugin:
        assert await plugin.load("acme", ["b1"]) == {"b1": boat(name="Grace")}
        assert await plugin.load("acme", ["b1"]) == {"b1": boat(name="Grace")}
    assert loops[0] is loops[1]
    assert loops[0] is not asyncio.get_running_loop()


def in_turn(*answers: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[object]]:
    """Answer each question otherwise."""
    turns = iter(answers)

    async def answer() -> object:
        return await next(turns)()

    return answer


async def failing(error: BaseException) -> object:
    raise error


@pytest.mark.parametrize(
    "error",
    [ValueError("Mia's birthday"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), TimeoutError()],
)
async def test_what_a_plugin_raises_is_told_without_its_words_and_the_next_question_is_answered(
    error: BaseException,
) -> None:
    turns = in_turn(lambda: failing(error), answering({"b1": boat()}))
    async with registered(Boats(turns)) as plugin:
        with pytest.raises(PluginFailed) as raised:
            await plugin.load("acme", ["b1"])
        assert f"'boats' raised {type(error).__name__} at test_plugin.py:" in str(raised.value)
        assert "Mia" not in str(raised.value)
        assert await plugin.load("acme", ["b1"]) == {"b1": boat()}


async def test_a_plugin_that_hangs_fails_after_its_time_and_answers_the_next_question() -> None:
    canceled = Event()

    async def hang() -> object:
        try:
            return await asyncio.Event().wait()
        finally:
            canceled.set()

    turns = in_turn(hang, answering({"b1": boat()}))
    async with registered(Boats(turns), HURRIED) as plugin:
        with pytest.raises(PluginFailed, match="did not answer within"):
            await plugin.load("acme", ["b1"])
        assert canceled.is_set()
        assert await plugin.load("acme", ["b1"]) == {"b1": boat()}


async def test_a_blocked_thread_is_replaced_until_too_many_are_and_one_that_comes_back_opens_the_way() -> None:
    gates = [Event(), Event()]
    blocked = iter(gates)

    async def block() -> object:
        gate = next(blocked, None)
        if gate is not None:
            gate.wait()
        return {"b1": boat()}

    async with registered(Boats(block), HURRIED) as plugin:
        for _ in gates:
            with pytest.raises(PluginFailed, match="did not answer within"):
                await plugin.load("acme", ["b1"])
        with pytest.raises(PluginFailed, match="is not asked any more: 2 of its threads are stuck"):
            await plugin.load("acme", ["b1"])
        gates[0].set()
        await answered_again(plugin)
        gates[1].set()


async def test_a_plugin_that_answers_nothing_rests_and_is_asked_again_afterwards() -> None:
    async def hang() -> object:
        return await asyncio.Event().wait()

    turns = in_turn(hang, hang, answering({"b1": boat()}), hang)
    patience = msgspec.structs.replace(HURRIED, unanswered_max=2, rest=timedelta(milliseconds=50))
    async with registered(Boats(turns), patience) as plugin:
        for _ in range(2):
            with pytest.raises(PluginFailed, match="did not answer within"):
                await plugin.load("acme", ["b1"])
        with pytest.raises(PluginFailed, match="rests for a while"):
            await plugin.load("acme", ["b1"])
        await answered_again(plugin)
        with pytest.raises(PluginFailed, match="did not answer within"):
            await plugin.load("acme", ["b1"])  # one such question in a row is no reason to rest again


async def answered_again(plugin: Plugin) -> None:
    """Ask until the plugin answers again."""
    found: object = None
    while found is None:
        with suppress(PluginFailed):
            found = await plugin.load("acme", ["b1"])
        await asyncio.sleep(0)
    assert found == {"b1": boat()}


async def test_a_neighbour_and_our_own_loop_go_on_while_a_plugin_blocks_its_thread() -> None:
    gate, before = Event(), threading.enumerate()  # those of other tests may still be ending

    async def block() -> object:
        gate.wait()
        return {}

    async with registered(Boats(block)) as blocked, registered(Boats()) as well, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(blocked.load("acme", ["b1"]))
        assert await well.load("acme", ["b1"]) == {"b1": boat()}
        assert not waiting.done()
        threads = [one for one in threading.enumerate() if one.name == "clarion-plugin-boats" and one not in before]
        assert len(threads) == 2
        assert all(one.daemon for one in threads), "the program would not end before a plugin that never does"
        gate.set()


async def test_a_question_whose_asker_is_canceled_is_canceled_too() -> None:
    home, begun, canceled = asyncio.get_running_loop(), asyncio.Event(), Event()

    async def hang() -> object:
        home.call_soon_threadsafe(begun.set)
        try:
            return await asyncio.Event().wait()
        finally:
            canceled.set()

    async with registered(Boats(hang)) as plugin:
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(plugin.load("acme", ["b1"]))
            await begun.wait()
            asking.cancel()
        assert asking.cancelled()
    assert canceled.is_set()


async def test_a_plugin_that_ends_its_thread_is_given_another() -> None:
    async def end_the_thread() -> object:
        asyncio.get_running_loop().call_soon(sys.exit)
        return await asyncio.Event().wait()

    turns = in_turn(end_the_thread, answering({"b1": boat()}))
    async with registered(Boats(turns)) as plugin:
        with pytest.raises(PluginFailed, match="CancelledError"):
            await plugin.load("acme", ["b1"])
        await answered_again(plugin)


@pytest.mark.parametrize(
    "rubbish",
    [
        None,
        [boat()],
        {"b2": boat("b2")},
        {"b1": boat("b2")},
        {"b1": "a boat"},
        {"b1": msgspec.structs.replace(boat(), source_type="car")},
        {"b1": msgspec.structs.replace(boat(), entity="guid")},
        {"b1": msgspec.structs.replace(boat(), content=SourceContent(dates={"on": "soon"}))},  # type: ignore[dict-item]
        {"b1": msgspec.structs.replace(boat(), content=SourceContent(metrics={"berths": float("nan")}))},
        {"b1": boat(note="x" * 20_000)},
    ],
)
async def test_sources_that_are_none_or_were_not_asked_for_are_refused(rubbish: object) -> None:
    async with registered(Boats(answering(rubbish))) as plugin:
        with pytest.raises(PluginFailed, match="answered what cannot be used when it was asked load"):
            await plugin.load("acme", ["b1"])


async def test_what_is_let_in_is_a_copy_that_the_plugin_cannot_change_any_more() -> None:
    fields = {"name": "Grace"}
    facts = SourceFacts(
        source_type="boat",
        source="b1",
        entity=ENTITY,
        version=7,
        content=SourceContent(fields=fields, dates={"on": date(2026, 5, 1)}),
    )
    async with registered(Boats(answering({"b1": facts}))) as plugin:
        found = (await plugin.load("acme", ["b1"]))["b1"]
    fields["name"] = "Hope"
    assert found.content.fields == {"name": "Grace"}
    assert found.content.dates == {"on": date(2026, 5, 1)}
    assert found.version == 0


async def test_a_page_of_a_scan_is_let_in_with_its_cursor() -> None:
    async with registered(Boats(page=ScanPage(facts=[boat("b1"), boat("b2")], cursor="b2"))) as plugin:
        assert await plugin.scan("acme", SCAN) == ScanPage(facts=(boat("b1"), boat("b2")), cursor="b2")


@pytest.mark.parametrize(
    "rubbish",
    [
        [boat()],
        ScanPage(facts=[boat("b1"), boat("b2"), boat("b3")], cursor=None),
        ScanPage(facts=[boat()], cursor=""),
        ScanPage(facts=[boat()], cursor=7),  # type: ignore[arg-type]
        ScanPage(facts=["b1"], cursor=None),  # type: ignore[list-item]
    ],
)
async def test_a_page_that_is_none_too_long_or_never_ends_is_refused(rubbish: object) -> None:
    async with registered(Boats(page=rubbish)) as plugin:
        with pytest.raises(PluginFailed, match="asked scan"):
            await plugin.scan("acme", SCAN)


async def asked(plugin: Plugin, contract: str) -> object:
    match contract:
        case "touched":
            return await plugin.touched("acme", event(), {})
        case "immediate":
            return await plugin.immediate("acme", event(), {}, boat())
        case "recipients":
            return await plugin.recipients("acme", boat(), SETTING)
        case _:
            return await plugin.delivery("acme", boat(), SETTING)


USER = Target(identity=Identity.user("mia"))
SHOUTED = Target(identity=Identity.address("Mia@EXAMPLE.com"), channel=Channel.EMAIL)
WRITTEN = Target(identity=Identity.address("mia@example.com"), channel=Channel.EMAIL)


@pytest.mark.parametrize(
    "contract, given, let_in",
    [
        ("touched", ["b1", "b2", "b1"], ("b1", "b2")),
        ("touched", [], ()),
        ("immediate", None, None),
        (
            "immediate",
            Immediate(notification_type="boat-due", to=(SHOUTED,)),
            Immediate(notification_type="boat-due", to=(WRITTEN,)),
        ),
        ("recipients", None, None),
        ("recipients", [], ()),
        ("recipients", [USER, SHOUTED], (USER, WRITTEN)),
        (
            "delivery",
            Delivery(channels=(Channel.INBOX,), data={"berth": 7}),
            Delivery(channels=(Channel.INBOX,), data={"berth": 7}),
        ),
    ],
)
async def test_each_contract_lets_in_what_fits_it(contract: str, given: object, let_in: object) -> None:
    async with registered(Everything(given)) as plugin:
        assert await asked(plugin, contract) == let_in


@pytest.mark.parametrize(
    "contract, rubbish",
    [
        ("touched", "b1"),
        ("touched", [7]),
        ("touched", ["b"] * 1001),
        ("immediate", "boat-due"),
        ("immediate", Immediate(notification_type=7)),  # type: ignore[arg-type]
        ("immediate", Immediate(notification_type="boat-due", data={"of": object()})),
        ("recipients", USER),
        ("recipients", [USER] * 1001),
        ("recipients", [Target(identity=Identity.address("mia@example.com"))]),
        ("recipients", [Target(identity=Identity.user("mia"), channel=Channel.SMS)]),
        ("recipients", [Target(identity=Identity.address("no address"), channel=Channel.EMAIL)]),
        ("delivery", None),
        ("delivery", Delivery(channels=("pigeon",))),  # type: ignore[arg-type]
    ],
)
async def test_each_contract_refuses_what_does_not_fit_it(contract: str, rubbish: object) -> None:
    async with registered(Everything(rubbish)) as plugin:
        with pytest.raises(PluginFailed, match=f"asked {contract}"):
            await asked(plugin, contract)


async def test_a_contract_that_a_plugin_does_not_have_leaves_it_to_the_settings() -> None:
    async with registered(Boats()) as plugin:
        found = [await asked(plugin, contract) for contract in ("touched", "immediate", "recipients", "delivery")]
    assert found == [(), None, None, Delivery()]
