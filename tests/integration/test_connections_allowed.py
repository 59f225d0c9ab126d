"""A process that serves or sends has as many connections as the system allows."""

import subprocess
import sys

ASKED = """
import resource
from clarion.cli.long_running import run_service

async def ask():
    return resource.getrlimit(resource.RLIMIT_NOFILE)

resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
print(*run_service(ask()))
"""


def test_a_service_asks_for_the_open_files_that_it_may_have() -> None:
    """A shell gives a process 1,024, and one pump alone may make a thousand calls at once."""
    answer = subprocess.run([sys.executable, "-c", ASKED.format(hard=2048)], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["2048", "2048"]
