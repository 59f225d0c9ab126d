"""What machines ask: health, readiness, metrics, and the description of the API."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clarion.adapters.stores.sqlite import InlineRunner, open_store
from clarion.api.app import ROUTES
from clarion.api.contract import CONTRACT
from clarion.api.metrics import Metrics
from clarion.api.pulse import FRESH_FOR, LAG_MAX, TROUBLE_FOR, Pulse
from clarion.catalog.access import GRANTS, Grant
from clarion.domain.call import Unknown
from clarion.domain.identity import Channel
from clarion.errors import OperatorError, StoreDamaged, StoreFull, StoreReadOnly, StoreUnreachable, every_error
from clarion.ports.catalog import Role
from clarion.ports.insights import Gauge
from clarion.testing.clock import ManualClock
from clarion.workers.supervisor import Supervisor
from clarion.workers.wake_up import WakeUp
from tests.integration.api_harness import WELCOME, ApiHarness, problem, running_api, seeded_api

DOWN = StoreUnreachable("the database at 10.0.0.5 does not answer", hint="start it")


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def test_a_process_that_lives_says_so_also_while_its_store_is_down(api: ApiHarness) -> None:
    api.failing.error = DOWN
    async with api.client(None) as client:
        assert (await client.get("/health")).json() == {"alive": True}


async def test_ready_means_that_the_store_answers(api: ApiHarness) -> None:
    async with api.client(None) as client:
        assert (await client.get("/ready")).json() == {"ready": True}
        api.failing.error = DOWN
        api.clock.advance(timedelta(seconds=FRESH_FOR))
        answer = await client.get("/ready")
        assert (answer.status_code, problem(answer)["code"]) == (503, "not-ready")
        assert "store-unreachable" in problem(answer)["detail"]
        assert "10.0.0.5" not in answer.text
        api.failing.error = None
        api.clock.advance(timedelta(seconds=FRESH_FOR))
        assert (await client.get("/ready")).status_code == 200


async def test_asking_often_does_not_make_the_store_work(api: ApiHarness) -> None:
    async with api.client(None) as client:
        assert (await client.get("/ready")).status_code == 200
        api.failing.error = DOWN
        assert (await client.get("/ready")).status_code == 200


@pytest.mark.parametrize("error", [StoreFull, StoreReadOnly])
async def test_a_store_that_takes_no_writes_makes_a_process_unready_although_it_can_still_read(
    api: ApiHarness, error: type[OperatorError]
) -> None:
    api.failing.error = error("nothing can be written", hint="make room")
    api.failing.only = frozenset({"ensure_notification_jobs"})
    async with api.client() as client:
        assert (await client.post("/v1/notifications", json=WELCOME)).status_code == 503
        answer = await client.get("/ready")
        assert (answer.status_code, error.code in problem(answer)["detail"]) == (503, True)
        api.clock.advance(timedelta(seconds=TROUBLE_FOR))
        assert (await client.get("/ready")).status_code == 200


async def test_a_damaged_store_makes_a_process_unready_for_good_although_it_can_still_read(api: ApiHarness) -> None:
    api.failing.error = StoreDamaged("clarion.db is damaged", hint="restore it")
    api.failing.only = frozenset({"ensure_notification_jobs"})
    async with api.client() as client:
        answer = await client.post("/v1/notifications", json=WELCOME)
        assert (answer.status_code, problem(answer)["code"]) == (503, "store-damaged")
        assert "clarion.db" not in answer.text
        api.failing.error = StoreFull("no space is left", hint="make room")  # which passes, and damage does not
        assert (await client.post("/v1/notifications", json=WELCOME)).status_code == 503
        api.failing.error = None
        api.clock.advance(timedelta(days=1))
        answer = await client.get("/ready")
    assert (answer.status_code, "store-damaged" in problem(answer)["detail"]) == (503, True)


def delete(path: Path) -> None:
    path.unlink()


async def test_a_process_is_unready_once_its_file_was_deleted(migrated_sqlite_path: Path) -> None:
    clock = ManualClock()
    store = await open_store(f"sqlite:///{migrated_sqlite_path}", clock=clock, runner=InlineRunner())
    pulse = Pulse(store, clock=clock)
    assert await pulse.why_unready() is None
    delete(migrated_sqlite_path)
    clock.advance(timedelta(seconds=FRESH_FOR))
    assert await pulse.why_unready() == "store-damaged"
    await store.close()


async def test_workers_that_cannot_write_make_their_process_unready_until_they_can(api: ApiHarness) -> None:
    # F-45: nobody may have sent a request that could have found it out.
    pulse, failed = Pulse(api.platform.store, clock=api.clock), asyncio.Event()

    def note(error: OperatorError) -> None:
        pulse.note(error)
        failed.set()

    supervisor = Supervisor(api.platform, wake_up=WakeUp(), channels=(Channel.EMAIL,), slots=1, failed=note)
    assert await pulse.why_unready() is None
    api.failing.error = StoreFull("no space left", hint="make room")
    api.failing.only = frozenset({"rescue_stages"})
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        await failed.wait()
        supervisor.stop()
    assert await pulse.why_unready() == "store-full"
    api.clock.advance(timedelta(seconds=TROUBLE_FOR))
    assert await pulse.why_unready() is None


async def test_a_late_event_loop_makes_a_process_unready() -> None:
    async with running_api() as api, api.client(None) as client:
        await asyncio.sleep(0)  # lets the watcher start
        assert (await client.get("/ready")).status_code == 200
        api.clock.advance(timedelta(seconds=LAG_MAX + 1))  # the watcher's next beat is due and has not come
        answer = await client.get("/ready")
    assert (answer.status_code, "event-loop-late" in problem(answer)["detail"]) == (503, True)


def values(text: str) -> dict[str, float]:
    """Read metrics, and hold every line to the form that Prometheus reads."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = re.fullmatch(r'(\w+(?:\{(?:\w+="[^"]*",?)*\})?) ([0-9.e+-]+|\+Inf)', line).groups()  # type: ignore[union-attr]  # else it fails, as it should
            found[name] = float(value)
    return found


async def test_metrics_count_calls_by_account_and_channel_and_tell_of_waiting_work(api: ApiHarness) -> None:
    api.line.observe = api.metrics.observe_call  # as a process wires it
    api.provider.answers = [Unknown(reason="no reply")]
    await api.sent()
    await api.sent()
    await api.line.drain()
    await api.sent()
    api.clock.advance(timedelta(seconds=42))
    async with api.client(None) as client:
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = values(answer.text)
    where = 'account="scripted",channel="email"'
    assert found[f'clarion_calls_total{{{where},outcome="accepted"}}'] == 1
    assert found[f'clarion_calls_total{{{where},outcome="unknown"}}'] == 1
    assert found[f"clarion_call_seconds_count{{{where}}}"] == 2
    assert found[f'clarion_call_seconds_bucket{{{where},le="+Inf"}}'] == 2
    assert found["clarion_outgoing_uncertain"] == 1
    assert (found["clarion_stages_waiting"], found["clarion_stages_oldest_seconds"]) == (1, 42)
    assert found["clarion_store_up"] == 1


async def test_requests_are_counted_by_route_and_never_by_path(api: ApiHarness) -> None:
    async with api.client() as client:
        for number in range(3):
            await client.get(f"/v1/notifications/00000000-0000-0000-0000-00000000000{number}")
            await client.get(f"/sam@example.com/{number}")
        await client.request("BREW", "/health")
        text = (await client.get("/metrics")).text
    found = values(text)
    route = 'method="GET",route="/v1/notifications/{job_id}"'
    assert found[f'clarion_http_requests_total{{{route},status="404"}}'] == 3
    assert found['clarion_http_requests_total{method="GET",route="unknown",status="404"}'] == 3
    assert "sam" not in text
    assert "BREW" not in text


async def test_metrics_answer_also_while_the_store_does_not(api: ApiHarness) -> None:
    api.failing.error = DOWN
    async with api.client(None) as client:
        found = values((await client.get("/metrics")).text)
    assert found["clarion_store_up"] == 0
    assert "clarion_outgoing_uncertain" not in found


async def test_metrics_name_no_tenant(api: ApiHarness) -> None:
    await api.sent()
    async with api.client(None) as client:
        assert "school" not in (await client.get("/metrics")).text


async def document(api: ApiHarness) -> dict[str, Any]:
    async with api.client(None) as client:
        answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    read: dict[str, Any] = answer.json()
    return read


def every(value: Any, name: str) -> list[Any]:
    """Find every value under a name, however deep."""
    if isinstance(value, dict):
        inner = [found for one in value.values() for found in every(one, name)]
        return ([value[name]] if name in value else []) + inner
    return [found for one in value for found in every(one, name)] if isinstance(value, list) else []


async def test_the_description_is_whole(api: ApiHarness) -> None:
    described = await document(api)
    assert described["openapi"] == "3.1.0"
    schemas = described["components"]["schemas"]
    for reference in every(described, "$ref"):
        assert reference.removeprefix("#/components/schemas/") in schemas
    operations = [operation for item in described["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) == len(ROUTES)
    for operation in operations:
        assert operation["summary"].endswith(".")
        assert {"500", "503"} <= set(operation["responses"])
    for path, item in described["paths"].items():
        for operation in item.values():
            given = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
            assert given == set(re.findall(r"\{(\w+)\}", path))


def test_every_example_can_be_read_as_the_shape_that_it_stands_for() -> None:
    shown = [one for route in ROUTES for one in (route.opt[CONTRACT].body, route.opt[CONTRACT].answer) if one]
    assert len(shown) > 20
    for one in shown:
        assert msgspec.json.decode(msgspec.json.encode(one), type=type(one)) == one


async def test_the_description_holds_no_secret_and_nobody_real(api: ApiHarness) -> None:
    text = str(await document(api))
    assert not re.search(r"clarion_[0-9a-f]{16}", text)
    for address in re.findall(r"[\w.]+@[\w.]+", text):
        assert address.endswith("@example.com")


async def test_a_request_body_says_that_unknown_fields_are_refused(api: ApiHarness) -> None:
    schemas = (await document(api))["components"]["schemas"]
    bodies = {type(route.opt[CONTRACT].body) for route in ROUTES} - {type(None)}
    assert bodies
    for body in bodies:
        assert schemas[body.__name__]["additionalProperties"] is False


async def test_the_description_has_no_name_that_only_we_know(api: ApiHarness) -> None:
    async with api.client(None) as client:
        text = (await client.get("/openapi.json")).text
    assert not re.findall(r"\b[A-Z]-[0-9]+\b|by distribute|ensured|DeadLetter|`domain\.|msgspec|litestar", text)


async def test_there_is_no_page_that_fetches_scripts_to_show_the_description(api: ApiHarness) -> None:
    async with api.client(None) as client:
        for path in ("/docs", "/schema", "/redoc", "/swagger", "/openapi.yaml", "/openapi.json/x"):
            assert (await client.get(path)).status_code == 404


PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")


def test_the_reference_lists_every_route_with_the_grant_that_it_needs() -> None:
    listed = dict(re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) \S+)` \| (\w*) ?\|", PAGE, re.MULTILINE))
    real = {}
    for route in ROUTES:
        (method,), (path,) = route.http_methods, route.paths
        plain = re.sub(r":\w+}", "}", path)
        real[f"{method} {plain}"] = route.opt[CONTRACT].grant or ""
    assert listed == real


def test_the_reference_has_the_matrix_of_roles() -> None:
    head, *rows = re.findall(rf"^\| ([\w-]+) \|((?: \w* ?\|){{{len(Grant)}}})$", PAGE, re.MULTILINE)
    grants = [Grant(name.strip()) for name in head[1].strip("|").split("|")]
    assert set(grants) == set(Grant)
    found = {
        Role(role): {grant for grant, cell in zip(grants, cells.strip("|").split("|"), strict=True) if cell.strip()}
        for role, cells in rows
    }
    assert found == GRANTS


def test_the_reference_lists_every_code_that_only_http_has() -> None:
    sources = (Path(__file__).parents[2] / "src" / "clarion" / "api").glob("*.py")
    used = {
        code
        for source in sources
        for code in re.findall(r'HTTPStatus\.\w+(?:,|: \()\s*"([a-z-]+)"', source.read_text(encoding="utf-8"))
    }
    assert used == set(re.findall(r"^\| \d{3} \| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert not used & {error.code for error in every_error()}


def test_the_reference_names_every_metric() -> None:
    gauge = Gauge(
        stages_waiting=0,
        oldest_stage_seconds=0,
        outgoing_waiting=0,
        oldest_outgoing_seconds=0,
        sending=0,
        uncertain=0,
        occurrences_due=0,
        oldest_occurrence_seconds=0.0,
        occurrences_held=0,
        occurrences_failed=0,
        open_support_cases=0,
    )
    written = set(re.findall(r"^# TYPE (\w+)", Metrics().written(gauge), re.MULTILINE))
    assert written == set(re.findall(r"`(clarion_\w+)`", PAGE))
