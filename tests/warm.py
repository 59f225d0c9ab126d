"""The program `clarion` with everything imported already: each command is a fork of one process that waits for them.

Starting Python and importing the platform is nearly all that a command costs, a third of a second of a processor, and
tests run some hundreds. A fork is a process of its own, with its own memory, environment, folder, streams and
exit code, so that commands share no more than they do otherwise. What it leaves out, the start itself, is held by
`tests/checks/test_program_start.py`, `test_wheel.py`, and by everything that serves.
"""

import array
import gc
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import msgspec

COMMANDS = [str(Path(sys.executable).with_name("clarion"))]
"""The last of these runs commands: the program, and before it while the fixture `warm` stands what is said here."""

ASKED_MAX = 1 << 20
"""Bytes of arguments and environment: what the kernel takes for a new process is about as much."""

PROGRAM = """#!{python} -IS
import array, os, socket, sys
from json import dumps

asked = dumps([sys.argv, os.getcwd(), {{os.fsencode(k).hex(): os.fsencode(v).hex() for k, v in os.environ.items()}}])
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
    door.connect({door!r})
    door.sendmsg([asked.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    code = door.recv(4)
sys.exit(int(code) if code else 70)
"""
"""What stands for the program: it hands its arguments and streams over, and ends as the command ended."""


class Asked(msgspec.Struct, array_like=True):
    """A command, where it is given, and its environment, in hexadecimal because it need not be text."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]


@contextmanager
def warm_program(folder: Path) -> Iterator[Path]:
    """Start the process that waits, and yield what to run instead of the program."""
    program, door = folder / "clarion", folder / "door"
    program.write_text(PROGRAM.format(python=sys.executable, door=str(door)))
    program.chmod(0o755)
    waiting = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", str(door)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with waiting:
        assert waiting.stdout is not None
        assert waiting.stdin is not None
        assert waiting.stdout.readline() == b"ready\n"
        yield program
        waiting.stdin.close()  # which tells it to end, as our death would


def main() -> None:
    """Import what commands need, then fork for each of them until nobody is there to ask."""
    from clarion.cli.program import Program

    for commands in Program.panels.values():
        for listed in commands.values():
            import_module(f"clarion.cli.{listed.place.partition(':')[0]}")
    for name in ("bootstrap", "operations", "adapters.renderers", "adapters.stores.sqlite", "adapters.stores.postgres"):
        import_module(f"clarion.{name}")
    for name in ("alembic.command", "sqlalchemy.ext.asyncio"):
        import_module(name)  # which take a third of a second at every `migrate`
    gc.freeze()  # what is imported is never collected: a collection in a fork would only copy it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks but those who asked
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(sys.argv[1])
        door.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while door in select.select([door, sys.stdin], [], [])[0]:
            asking, _ = door.accept()
            with asking:
                if os.fork() == 0:
                    door.close()
                    run(asking)


def run(asking: socket.socket) -> None:
    """Be the command that is asked for, say how it ended, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    streams = array.array("i")
    text, given, _, _ = asking.recvmsg(ASKED_MAX, socket.CMSG_LEN(3 * streams.itemsize))
    asked = msgspec.json.decode(text, type=Asked)
    streams.frombytes(given[0][2])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked.folder)
    os.environb.clear()
    os.environb.update({bytes.fromhex(key): bytes.fromhex(value) for key, value in asked.environment.items()})
    sys.argv = asked.arguments
    code = 0
    try:
        from clarion.cli import main

        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # noqa: BLE001  as the interpreter would tell it
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    asking.send(str(code).encode())
    os._exit(code)


if __name__ == "__main__":
    main()
