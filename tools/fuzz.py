"""Ask an API of our own everything that its description allows, and much that it does not, with Schemathesis.

    make fuzz                        # for two minutes
    make fuzz ARGS="--seconds 20"

A new installation is made in a temporary folder, with the sample notifications in it, and served on a free port of this
machine. It fails where an answer is a 5xx, is not described, or is not as described, where a request without a key is
served, and where one is served that the description forbids. A request that the description allows may be refused for a
reason that no description can express (an unknown notification type, a cursor of another list): then it must be
answered with a problem that is described, and 422 names the field.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / ".venv/bin/clarion"
SCHEMATHESIS = ROOT / ".tools/fuzz/bin/st"
SECONDS = 120

CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 410, 422]
"""
"""422 is a documented reason; Schemathesis expects that whatever fits the schema is accepted."""


def main() -> int:
    """Run it, and say what was answered how often."""
    arguments = argparse.ArgumentParser(description="Ask the API everything that its description allows.")
    arguments.add_argument("--seconds", type=int, default=SECONDS)
    arguments.add_argument("--seed", type=int, help="as an earlier run printed it")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CLARION_")}
        environment["CLARION_HOME"] = str(home)
        key = prepare(environment)
        log = Path(folder) / "log"
        with log.open("w") as stderr:
            served = subprocess.Popen(
                [PROGRAM, "serve", "--port", "0", "--json"], env=environment, stdout=subprocess.PIPE, stderr=stderr
            )
        try:
            url = json.loads(served.stdout.readline() if served.stdout else b"")["url"]
            configuration = Path(folder) / "schemathesis.toml"
            configuration.write_text(CONFIGURATION)
            seed = [] if given.seed is None else ["--seed", str(given.seed)]
            found = subprocess.run(
                [
                    *(SCHEMATHESIS, "--config-file", configuration, "run", f"{url}/openapi.json"),
                    *("--header", f"Authorization: Bearer {key}", "--max-time", str(given.seconds)),
                    *("--continue-on-failure", *seed),
                ],
                cwd=folder,
                check=False,
            ).returncode
            with urlopen(f"{url}/health") as answer:  # noqa: S310  (our own server)
                alive = answer.status == 200
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait()
        statuses = answered(log)
    print("answered:", ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items())))
    failed = sum(count for status, count in statuses.items() if status >= 500)
    if failed:
        print(f"{failed} requests were answered 5xx", file=sys.stderr)
    return 0 if found == 0 and not failed and alive else 1


def prepare(environment: dict[str, str]) -> str:
    """Make an installation, and return an API key that may do everything."""
    for command in ("migrate", "tenants create school", f"publish {ROOT}/src/clarion/cli/definitions"):
        subprocess.run([PROGRAM, *command.split()], env=environment, check=True, stdout=subprocess.DEVNULL)
    made = subprocess.run(
        [PROGRAM, "keys", "create", "--actor", "fuzz", "--role", "admin", "--json"],
        env=environment,
        check=True,
        capture_output=True,
    )
    return str(json.loads(made.stdout)["token"])


def answered(log: Path) -> Counter[int]:
    """Count the answers of a server by its log."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return Counter(line["status"] for line in lines if line.get("event") == "request")


if __name__ == "__main__":
    sys.exit(main())
