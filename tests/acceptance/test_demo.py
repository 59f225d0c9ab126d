"""`clarion demo`, which is what `make demo` runs."""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tests.acceptance.house import PATIENCE, PROGRAM, Answer, House, until


@contextmanager
def printing_demo(house: House) -> Iterator[list[str]]:
    """Run the demo as a person would, up to the last line that it prints; Ctrl-C must end it with success."""
    process = subprocess.Popen(
        [PROGRAM, "demo", "--port", "0"],
        env=house.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=house.home.parent,  # any folder will do
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        while not lines or not lines[-1].startswith("  curl "):
            lines.append(process.stdout.readline())
            assert lines[-1], f"it ended: {lines}"
        yield lines
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def request(
    url: SplitResult, *, method: str = "GET", token: str = "", body: str | None = None, kind: str = ""
) -> Answer:
    """Make one request as it was printed; `kind` is a header as curl takes it."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if kind:
        name, _, value = kind.partition(": ")
        headers[name] = value
    connection = HTTPConnection(url.netloc, timeout=PATIENCE)
    try:
        connection.request(method, url.path, body=body, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, {}, response.read())
    finally:
        connection.close()


def test_the_demo_is_ready_to_be_tried_and_keeps_its_data(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    with house.serving(command="demo") as first:
        key = Path(first.ready["key_file"])
        assert key.stat().st_mode & 0o777 == 0o600
        token = key.read_text().strip()
        # One welcome, an incident by mail and text to two guardians and by mail to the head of school, an invoice by
        # both, a code, a newsletter to eleven of twelve, a lost reply that was delivered all the same:
        # 1 + 5 + 2 + 1 + 11 + 1. Reminders: of a certificate to two, of two invoices, of a class: 2 + 2 + 1.
        until(house.outbox, so=lambda sent: len(sent) == 26)
        (send,) = until(lambda: house.ask("uncertain", "list")["items"])
        assert send["channel"] == "email"
        (held,) = house.ask("automation", "list", "held")["items"]
        assert (held["source_type"], held["source"]) == ("certificate", "vetting-coach")
        assert first.call("GET", "/v1/types", token=token).status == 200
        sent = house.ask("send", "welcome", "--to", "user@example.com", "--data", '{"name": "you"}')
        until(lambda: house.sent(sent["message_id"]))
        assert first.stop() == 0
    with house.serving(command="demo") as second:
        assert key.read_text().strip() == token
        again = house.ask("send", "welcome", "--to", "user@example.com", "--data", '{"name": "you"}')
        until(lambda: house.sent(again["message_id"]))
        assert second.stop() == 0
    assert len(house.outbox()) == 28
    assert len(house.ask("keys", "list")["items"]) == 1


def test_who_heard_of_what_on_the_first_day_is_what_settings_relations_and_preferences_say(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    house.ask("demo", "--only-seed")
    with house.serving():
        sent = until(house.outbox, so=lambda sent: len(sent) == 26)
        listed = {one["type"]: one for one in house.ask("list")["items"] if one["type"] != "welcome"}
        incident, newsletter = (house.ask("explain", listed[name]["job_id"]) for name in ("incident", "newsletter"))
    ada, hugo = "employee:57aff000-0000-4000-8000-000000000001", "user:parent-12"
    assert {one["recipient"] for one in incident["recipients"]} == {"user:parent-1", "user:parent-2", ada}
    assert listed["invoice-due"]["recipients"] == 1
    refused = {one["recipient"]: one["skipped"] for one in newsletter["recipients"] if one["skipped"]}
    assert [(who, [one["rule"] for one in skipped]) for who, skipped in refused.items()] == [(hugo, ["preference"])]
    assert not [one for one in sent if one.destination.startswith("hugo")]


def test_everything_that_the_demo_prints_can_be_used_as_it_stands(tmp_path: Path) -> None:
    house = House(tmp_path / "a home")  # with a blank, as anybody may have
    with printing_demo(house) as lines:
        text = "".join(lines)
        urls = [urlsplit(word) for line in lines for word in line.split()[-1:] if word.startswith("http://")]
        assert [url.path.rpartition("/")[0] for url in urls] == ["", "/sandbox/outbox/link", "", ""]
        for url in urls:
            assert request(url).status == 200
        (token,) = re.findall(r"^  (clarion_\w+)$", text, flags=re.MULTILINE)
        assert request(urls[0]._replace(path="/v1/types"), token=token).status == 200
        assert text.count("clarion_") == 1  # one key, in one place
        shell = "curl() { printf '%s\\n' \"$@\"; }\n" + lines[-1]  # what curl would be given by the shell
        given = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()
        url, key, kind, body = urlsplit(given[1]), given[3], given[5], given[7]
        answer = request(url, method="POST", token=key.removeprefix("Authorization: Bearer "), body=body, kind=kind)
        assert answer.status == 202
        until(lambda: house.sent(answer.json["message_id"]))


def test_a_demo_whose_port_is_in_use_makes_nothing(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = house.run("demo", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "is in use" in done.stderr
    assert not house.home.exists()


def test_a_person_gets_it_on_every_channel_and_in_the_inbox(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    house.ask("demo", "--only-seed")
    invoice = '{"invoice":{"number":"1","total":"1.00","currency":"EUR","due":"2030-03-05","items":[]}}'
    sent = house.ask("send", "invoice-due", "--to", "user:parent-4", "--data", invoice)
    with house.serving():
        until(lambda: house.sent(sent["message_id"]), so=lambda found: len(found) == 2)
    assert {one.channel for one in house.sent(sent["message_id"])} == {"email", "sms"}
    assert "put into the inbox" in house.timeline(sent["message_id"])
