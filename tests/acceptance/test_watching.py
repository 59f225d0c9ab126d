"""What a process that only works shows of itself, to those who watch it."""

from urllib.parse import urlsplit

import pytest

from tests.acceptance.house import House, Served, until

DATA = '{"name": "Sam"}'


def metrics(served: Served) -> dict[str, float]:
    """Read the metrics of a process by name and labels."""
    lines = served.call("GET", "/metrics", token="").content.decode().splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def test_a_worker_counts_its_calls_by_provider_channel_and_outcome(house: House) -> None:
    house.ask("send", "welcome", "--to", "sam@example.com", "--data", DATA)
    house.ask("send", "welcome", "--to", "unknown1@example.com", "--data", DATA)
    house.ask("send", "one-time-code", "--to", "+12025550101", "--data", '{"code": "1"}')
    where = 'account="sandbox",channel="email"'
    with house.serving("--metrics", "0", command="work") as worker:
        assert urlsplit(worker.url).hostname == "127.0.0.1"
        seen = until(lambda: metrics(worker), so=lambda all_: all_.get("clarion_outgoing_uncertain") == 1)
        assert seen[f'clarion_calls_total{{{where},outcome="accepted"}}'] == 1
        assert seen[f'clarion_calls_total{{{where},outcome="unknown"}}'] == 1
        assert seen[f"clarion_call_seconds_count{{{where}}}"] == 2
        until(
            lambda: metrics(worker),
            so=lambda all_: all_.get('clarion_calls_total{account="sandbox",channel="sms",outcome="accepted"}') == 1,
        )
        assert worker.call("GET", "/health", token="").json == {"alive": True}
        # A worker serves no route that needs a key, so a key opens nothing.
        assert worker.call("GET", "/v1/types").status == 404
        assert worker.stop() == 0


def test_a_worker_opens_no_port_unless_asked(house: House) -> None:
    with house.serving(command="work") as worker:
        assert (worker.ready["url"], worker.ready["reached_by"]) == (None, None)


def test_a_server_shows_its_metrics_where_it_is_told_to(house: House) -> None:
    with house.serving("--metrics", "0", "--open", "page") as server:
        assert server.ready["open"] == ["page"]
        for reached_by in ("reached_by", "metrics_reached_by"):
            assert server.ready[reached_by] == "programs on this machine, and whoever a proxy here passes on"
        paths = ("/", "/metrics", "/openapi.json")
        assert [server.call("GET", path, token="").status for path in paths] == [200, 404, 404]
        server.url = server.ready["metrics_url"]
        assert [server.call("GET", path, token="").status for path in paths] == [404, 200, 200]
        assert server.stop() == 0


@pytest.mark.parametrize("command", [("work", "--metrics"), ("serve", "--port"), ("demo", "--port")])
def test_a_port_in_use_is_one_line_that_says_what_to_do(house: House, command: tuple[str, str]) -> None:
    with house.serving("--metrics", "0", command="work") as worker:
        port = urlsplit(worker.url).port
        done = house.run(*command, str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"clarion: the port {port} of 127.0.0.1 is in use: "
        f"stop what uses it (another Clarion?), or choose another with {command[1]}\n"
    )


@pytest.mark.parametrize("place", ["here", "65536", "127.0.0.1:", "1:2:x", "٣"])
def test_a_place_that_names_no_port_is_refused(house: House, place: str) -> None:
    done = house.run("work", "--metrics", place)
    assert done.returncode == 2
    assert f"clarion: --metrics: {place!r} names no port" in done.stderr
