"""The same on PostgreSQL: one URL changes, and several processes share the work."""

from pathlib import Path

from tests.acceptance.house import build, until

WELCOME = {"type": "welcome", "data": {"name": "Sam"}}


def test_on_postgresql_an_api_process_and_two_workers_send_everything_once(tmp_path: Path, postgres_url: str) -> None:
    house = build(tmp_path / "home", CLARION_STORE=postgres_url)
    with (
        house.serving("--no-workers") as served,
        house.serving("--slots", "4", command="work") as one,
        house.serving("--slots", "4", command="work") as other,
    ):
        messages = [
            served.send({**WELCOME, "to": [{"address": f"sam{number}@example.com"}]}).json["message_id"]
            for number in range(40)
        ]
        sent = until(house.outbox, so=lambda found: len(found) >= len(messages))
        assert sorted(str(found.message_id) for found in sent) == sorted(messages)
        # The API's process brings the receipts to itself, and the workers apply them.
        until(
            lambda: [served.timeline(found)[-1] for found in messages],
            so=lambda last: set(last) <= {"delivered", "called"},
        )
        assert [one.stop(), other.stop(), served.stop()] == [0, 0, 0]
