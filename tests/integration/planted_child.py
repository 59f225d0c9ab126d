"""A process that merges, with a filter that does what no filter of ours can: hang, take all memory, end the process."""

import os
import re
import signal
import sys
from pathlib import Path

from clarion.adapters.renderers import child
from clarion.adapters.renderers.language import HTML, TEXT


def plant(value: object) -> object:
    """Do what the value says, and give back what is left of it."""
    what, _, where = str(value).partition(":")
    match what:
        case "spin":
            while True:
                pass
        case "regex":  # in one call of the interpreter: no signal handler written in Python would ever run
            re.match(r"(a+)+$", "a" * 60 + "b")
        case "hog":  # more than it may have; nothing of it is ever touched, so the machine has it
            return len(bytes(300 * 1024 * 1024))
        case "stop":  # no processor time passes
            os.kill(os.getpid(), signal.SIGSTOP)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "read":  # do what stands there; a pipe keeps it until somebody writes, a file does not
            return plant(Path(where).read_text(encoding="ascii"))
        case "break":
            raise RuntimeError("anybody@example.com")
        case _:
            pass
    return what


def install() -> None:
    """Let templates have the filter."""
    HTML.filters["plant"] = TEXT.filters["plant"] = plant


if __name__ == "__main__":
    install()
    child.PROCESSOR_SECONDS_MAX = 0.2  # type: ignore[misc]
    child.main(int(sys.argv[1]))
