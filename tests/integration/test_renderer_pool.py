"""Merging in processes of their own: what one template does to its process costs no message, and nobody else anything.

The processes have one filter more than ours (`planted_child`), because none of ours can hang or take all memory.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer, process
from clarion.adapters.renderers.language import HTML, TEXT
from clarion.adapters.renderers.pool import ENDED, HELD, KILLS_MAX, PoolRenderer
from clarion.domain.content import Content, EmailContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import Ending, InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge, Merged, NotMerged, render_one
from tests.integration.planted_child import install
from tests.unit.test_renderer import MJML
from tests.unit.test_renderer_limits import BOMBS, DATA, EVIL

PLANTED = "tests.integration.planted_child"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let templates with the filter be published, and never hear of a process that says nothing."""
    monkeypatch.setattr(process, "SILENT_MAX", 60.0)
    install()
    yield
    del TEXT.filters["plant"], HTML.filters["plant"]


@pytest.fixture
async def pool() -> AsyncIterator[PoolRenderer]:
    opened = PoolRenderer(processes=2, module=PLANTED)
    yield opened
    await opened.close()


def bundle_of(template: str, *, key: str = "a") -> Bundle:
    definition = Definition(key=key, title="A", channels=(Channel.SMS,))
    return open_renderer().compile(definition, {"sms.liquid": template})


async def texts(pool: PoolRenderer, bundle: Bundle, values: Sequence[object], *, tenant_id: str = "a") -> list[Merged]:
    merges = [Merge({"x": value}) for value in values]
    return await pool.render(bundle, Channel.SMS, merges, tenant_id=tenant_id, seconds_max=30)


def sms(*values: object) -> list[Content]:
    return [SmsContent(text=f"{value}") for value in values]


async def test_a_batch_is_answered_in_its_order_and_a_failure_is_its_own(pool: PoolRenderer) -> None:
    answers = await texts(pool, bundle_of("{{ x.y }}"), [{"y": 1}, {}, {"y": 3}, 2**70])
    assert [*answers[:1], *answers[2:3]] == sms(1, 3)
    assert [type(answers[place]) for place in (1, 3)] == [RenderFailed, RenderFailed]
    assert str(answers[1]) == "sms text: there is no x.y: add it to the data"


async def test_template_bombs_are_refused_and_end_no_process(pool: PoolRenderer) -> None:
    assert await texts(pool, bundle_of("x"), [1]) == sms("x")
    pids, compiled = pool.pids, 0
    for name, template in BOMBS.items():
        try:
            bundle = bundle_of(template)
        except InvalidInput:
            continue
        compiled += 1
        (answer,) = await pool.render(bundle, Channel.SMS, [Merge(DATA)], tenant_id="a", seconds_max=30)
        assert isinstance(answer, RenderFailed), name
    assert compiled > 20
    assert {*pids} <= {*pool.pids}


async def test_markup_and_line_breaks_of_the_data_are_data(pool: PoolRenderer) -> None:
    definition = Definition(key="a", title="A", channels=(Channel.EMAIL,))
    files = {"email.subject.liquid": "{{ s }}", "email.text.liquid": "{{ x }}"}
    files["email.mjml.liquid"] = MJML.replace("{}", "{{ x }}")
    bundle = open_renderer().compile(definition, files)
    merges = [Merge({"s": "Hi", "x": EVIL}), Merge({"s": "Hi\r\nBcc: eve@x.example", "x": "-"})]
    mail, injected = await pool.render(bundle, Channel.EMAIL, merges, tenant_id="a", seconds_max=30)
    assert isinstance(mail, EmailContent)
    assert "&lt;img src=x onerror=alert(1)&gt;" in mail.html
    assert "<img src=x" not in mail.html
    assert EVIL in mail.text
    assert isinstance(injected, RenderFailed)
    assert "more than one line" in injected.message


@pytest.mark.parametrize("trouble", ["spin", "regex", "hog", "stop", "die"])
async def test_only_the_merge_that_ends_its_process_has_no_content(
    pool: PoolRenderer, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble == "stop":  # the one that no limit of the process itself ends
        monkeypatch.setattr(process, "SILENT_MAX", 1.0)
    values = [*range(17), trouble, *range(17, 30)]
    answers = await texts(pool, bundle_of("{{ x | plant }}"), values)
    assert answers.pop(17) == NotMerged(ENDED)
    assert answers == sms(*range(30))


async def test_a_defect_costs_only_its_own_merge_and_no_process(pool: PoolRenderer) -> None:
    answers = await texts(pool, bundle_of("{{ x | plant }}"), [1, "break", 2])
    pids = pool.pids
    assert [answers[0], answers[2]] == sms(1, 2)
    assert isinstance(answers[1], NotMerged)
    assert answers[1].counts
    assert await texts(pool, bundle_of("{{ x | plant }}"), [3]) == sms(3)
    assert pool.pids == pids


async def test_a_stored_template_that_cannot_be_parsed_any_more_is_named_and_ends_no_process(
    pool: PoolRenderer,
) -> None:
    """As after a filter was taken out of the language: each message fails, with the place in the template."""
    assert await texts(pool, bundle_of("x"), [1]) == sms("x")
    pids, says = pool.pids, "sms text: line 1: there is no filter 'gone'"
    stored = msgspec.structs.replace(bundle_of("{{ x }}"), parts={Channel.SMS: {"text": "{{ x | gone }}"}})
    for renderer in (pool, open_renderer()):
        merges = [Merge({"x": 1}), Merge({"x": 2})]
        answers = await renderer.render(stored, Channel.SMS, merges, tenant_id="a", seconds_max=30)
        assert [str(answer).partition(";")[0] for answer in answers] == [says] * 2
        assert {type(answer) for answer in answers} == {RenderFailed}
        assert await renderer.find_missing(stored, [{"x": 1}], tenant_id="a", seconds_max=30) == [()]
        for briefly in (True, False):
            with pytest.raises(InvalidInput, match=f"it cannot be merged: {says}"):
                await renderer.check_request(stored, {"x": 1}, tenant_id="a", briefly=briefly)
    assert pool.pids == pids


async def test_a_process_that_somebody_kills_costs_nothing(pool: PoolRenderer, tmp_path: Path) -> None:
    """In the middle of a batch, four times: it counts against nobody, for every merge is made in the end."""
    bundle, place = bundle_of("{{ x | plant }}"), tmp_path / "place"
    for _ in range(4):
        place.unlink(missing_ok=True)
        os.mkfifo(place)
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(texts(pool, bundle, [1, f"read:{place}", *range(2, 50)]))
            pipe = await asyncio.get_running_loop().run_in_executor(None, open_writer, place)
            place.unlink()
            place.write_text("0")
            for pid in pool.pids:
                os.kill(pid, signal.SIGKILL)
            os.close(pipe)
        assert asked.result() == sms(1, 0, *range(2, 50))


def open_writer(place: Path) -> int:
    """Open a pipe, once somebody reads from it."""
    return os.open(place, os.O_WRONLY)


async def test_three_ends_quarantine_a_template_version() -> None:
    heard: list[tuple[str, str]] = []
    pool = PoolRenderer(
        processes=2, module=PLANTED, quarantined=lambda tenant_id, one: heard.append((tenant_id, one.definition.key))
    )
    bundle, other = bundle_of("{{ x | plant }}", key="bad"), bundle_of("{{ x }}", key="good")
    try:
        for _ in range(2):
            assert await texts(pool, bundle, ["die", 1]) == [NotMerged(ENDED), *sms(1)]
        assert not heard
        assert (await texts(pool, bundle, ["die"])) == [NotMerged(ENDED)]
        assert heard == [("a", "bad")]
        assert await texts(pool, bundle, [1, 2]) == [HELD] * 2
        with pytest.raises(InvalidInput, match="its template version is quarantined"):
            await pool.check_request(bundle, {"x": 1}, tenant_id="a", briefly=True)
        assert await texts(pool, other, [1]) == sms(1)
        assert await texts(pool, bundle, [1], tenant_id="b") == sms(1)  # who published the same content
        assert heard == [("a", "bad")]
    finally:
        await pool.close()


async def test_ends_of_checks_and_previews_quarantine_nothing() -> None:
    """Whoever sends strange data, or looks at what it would become, hears that it cannot be; others send on."""
    heard: list[Bundle] = []
    pool = PoolRenderer(processes=2, module=PLANTED, quarantined=lambda _tenant_id, one: heard.append(one))
    bundle = bundle_of("{{ x | plant }}")
    try:
        for number in range(KILLS_MAX):
            for briefly in (True, False):
                with pytest.raises(InvalidInput, match=f"{ENDED}: simplify the template or send less data"):
                    await pool.check_request(bundle, {"x": "die"}, tenant_id="a", briefly=briefly)
            with pytest.raises(RenderFailed, match=f"{ENDED}: simplify the template or send less data"):
                await render_one(pool, bundle, Channel.SMS, Merge({"x": "die"}), tenant_id="a", seconds_max=30)
            assert await texts(pool, bundle, [number]) == sms(number)
        assert not heard
    finally:
        await pool.close()


async def test_another_tenants_code_comes_before_a_hundred_heavy_jobs() -> None:
    """In order, not in time: with one process, one turn of the heavy ones goes before it, which is a few of them."""
    pool = PoolRenderer(processes=1)
    heavy = bundle_of("{% for i in (1..1000) %}{{ i | plus: 1 | times: 2 | minus: i }}{% endfor %}")
    code = bundle_of("{{ x }}")
    done = 0

    async def heavy_job() -> None:
        nonlocal done
        (answer,) = await pool.render(heavy, Channel.SMS, [Merge({})], tenant_id="heavy", seconds_max=60)
        assert isinstance(answer, SmsContent)
        done += 1

    try:
        await texts(pool, code, [1])
        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(heavy_job())
            await asyncio.sleep(0)  # they are in line now
            assert await texts(pool, code, ["123456"], tenant_id="other") == sms("123456")
            assert done < 30
        assert done == 100
    finally:
        await pool.close()


async def test_a_check_that_hangs_is_refused_and_others_are_answered_meanwhile(pool: PoolRenderer) -> None:
    bundle = bundle_of("{{ x | plant }}")

    async def hang() -> None:
        with pytest.raises(InvalidInput, match=ENDED):
            await pool.check_request(bundle, {"x": "spin"}, tenant_id="a", briefly=True)
        ended.append("a")

    ended: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hang())
        assert await pool.check_request(bundle, {"x": 1}, tenant_id="b", briefly=True)
        assert not ended
    with pytest.raises(InvalidInput, match="needs x"):
        await pool.check_request(bundle, {}, tenant_id="a", briefly=True)
    assert await pool.find_missing(bundle, [{}, {"x": 1}], tenant_id="a", seconds_max=30) == [("x",), ()]


async def test_who_waits_for_an_answer_when_the_program_ends_is_asked_to_try_again(pool: PoolRenderer) -> None:
    """Nothing is wrong with the template or the data; so it is for whoever comes a moment later."""
    bundle = bundle_of("{{ x | plant }}")

    async def check() -> None:
        with pytest.raises(Ending, match="the program is ending: try again in a moment"):
            await pool.check_request(bundle, {"x": "spin"}, tenant_id="a", briefly=False)

    async def merge() -> None:
        merge = Merge({"x": "spin"})
        with pytest.raises(Ending, match="the program is ending: try again in a moment"):
            await render_one(pool, bundle, Channel.SMS, merge, tenant_id="a", seconds_max=30)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(check())
        tasks.create_task(merge())
        await asyncio.sleep(0)
        await pool.close()
    await check()
    await merge()


async def test_a_process_knows_nothing_and_ends_with_the_pool(
    pool: PoolRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLARION_VAULT", "file:///secret")
    await texts(pool, bundle_of("{{ x }}"), [1])
    (pid,) = pool.pids
    assert environment(pid) == {"PYTHONPATH", "PYTHONUTF8"}
    assert {name for name in open_files(pid) if not name.startswith("pipe:")} <= {"/dev/null", *open_files("self")}
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(texts(pool, bundle_of("{{ x | plant }}"), ["spin"]))
        await asyncio.sleep(0)
        await pool.close()
    assert waiting.result() == [NotMerged("the program is ending")]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert isinstance((await texts(pool, bundle_of("{{ x }}"), [1]))[0], NotMerged)


def environment(pid: int) -> set[str]:
    """Name the variables of a process's environment."""
    entries = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8").split("\0")
    return {entry.partition("=")[0] for entry in entries if entry}


def open_files(pid: int | str) -> set[str]:
    """Name a process's open files; of ourselves only what errors are written to."""
    files = [Path("/proc/self/fd/2")] if pid == "self" else Path(f"/proc/{pid}/fd").iterdir()
    return {str(file.readlink()) for file in files}


PARENT = f"""
import asyncio, sys
from clarion.adapters.renderers.pool import PoolRenderer
from tests.integration import test_renderer_pool as planted
async def main():
    planted.install()
    pool = PoolRenderer(processes=2, module={PLANTED!r})
    bundle = planted.bundle_of("{{{{ x | plant }}}}")
    await planted.texts(pool, bundle, [1])
    stuck = asyncio.create_task(planted.texts(pool, bundle, ["read:" + sys.argv[1]]))
    await planted.texts(pool, bundle, [1], tenant_id="b")
    print(*pool.pids, flush=True)
    await stuck
asyncio.run(main())
"""


def test_no_process_outlives_a_program_that_was_killed(tmp_path: Path) -> None:
    """Neither the idle one nor the one in the middle of a merge, which reads nothing from its pipe."""
    os.mkfifo(tmp_path / "never")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "never")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        handles = [os.pidfd_open(pid) for pid in pids]
        parent.kill()
    for handle in handles:
        assert select.select([handle], [], [], 10)[0], "a process is still there ten seconds later"
        os.close(handle)
