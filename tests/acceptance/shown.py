"""The commands and outputs that the documentation shows, read from its pages and run as a reader would run them.

How a page is read:

- A block marked `sh` is run, in one shell for the whole page, in a folder where `.venv` is ours.
- A block without a mark that follows it is what the command prints, on both streams. Of it only this may differ: ids,
  keys and keyed hashes, times and durations, the numbers of rows and of messages in the sandbox, the steps of a schema,
  the name of whoever runs it, and how many blanks stand between columns. A line `...` stands for any number of lines.
  A block of JSON that follows it is the same; it may be laid out otherwise.
- An id or a number that the page shows stands for the real one in the commands below it.
- A block of another language after a sentence that begins with a file's name in backticks is that file. An indented
  one of Python goes to the end of `main` in the program before it.
- `<!-- not run: why -->` before a block leaves it out. A block for which nothing is shown must succeed.

A command that only reads is repeated until it prints what is shown, because workers need a moment.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.acceptance.house import PATIENCE, until

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)$")
_FILE = re.compile(r"^(?:Save this as )?`(?P<name>[\w./-]+\.\w+)`(?: in `\$(?P<folder>\w+)`)?.*:$")
_READS = re.compile(
    r"^\S*clarion (explain|outbox(?! --opened)|history|inbox|list|types|audit|uncertain list|support list|status"
    r"|upcoming|automation list)\b"
)

_GUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_KEPT = rf"{_GUID}|clarion_[0-9a-f]+_[0-9a-f]+|^\d+(?= )|(?<=^\d )\d+(?= )|(?<=^\d\d )\d+(?= )"
"""What is remembered, so that a command below can name it."""
_DIFFERS = re.compile(
    rf"(?P<kept>{_KEPT})"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|\d{4}-\d\d-\d\d(?!\d)"
    r"|\b\d\d:\d\d(?= [A-Z]\w+/\w+)"
    r"|\d\d:\d\d:\d\d\.\d+|\b\d+ ms\b|\b[0-9a-f]{8}-\d+(?=-)|\bsandbox-\d+|--before \d+|\bcli:\w+"
    r"|\bk1:[0-9a-f]+(?:\.\.\.)?|(?<=<)[0-9a-f]{32}(?=@)|\b00\d\d(?:, 00\d\d)*\b"
)


LACKING = ("curl", "jq")
"""What a bare machine may lack: a block that uses it is run where it is there."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a page: a file to write, or commands to run and what they print."""

    line: int
    text: str
    file: str = ""
    shown: str | None = None


def steps_of(page: Path, *, only: str = "") -> list[Step]:
    """Read a page, or one section of it by its heading."""
    steps: list[Step] = []
    reading = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    inside, said = not only, ""  # what was said last: a sentence, or the kind of the block before
    for number, line in reading:
        if only and line.startswith("## "):
            inside = line == f"## {only}"
        fence = _FENCE.match(line)
        if fence is None:
            said = line.strip() or said
            continue
        text = "".join(f"{one.removeprefix(fence['indent'])}\n" for one in _block(reading))
        if inside and not said.startswith("<!-- not run: "):
            _take(steps, Step(line=number, text=text), language=fence["language"], said=said)
            said = fence["language"]
    return steps


def _block(reading: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in reading:
        if line.strip() == "```":
            return
        yield line


def _take(steps: list[Step], step: Step, *, language: str, said: str) -> None:
    """Add what a block asks for to the steps of its page."""
    file = _FILE.match(said)
    if language == "sh":
        steps.append(step)
    elif language in ("", "json") and said == "sh":
        text = step.text if language == "" else msgspec.json.encode(msgspec.json.decode(step.text)).decode()
        steps[-1] = msgspec.structs.replace(steps[-1], shown=text)
    elif language == "python" and step.text.startswith(" "):
        program = next(one for one in reversed(steps) if one.file)
        head, end, tail = program.text.rpartition("\n\n\nasyncio.run(")
        whole = f"{head}\n\n{step.text.rstrip()}{end}{tail}"
        steps.append(msgspec.structs.replace(program, line=step.line, text=whole))
    elif file:
        name = f"${file['folder']}/{file['name']}" if file["folder"] else file["name"]
        steps.append(msgspec.structs.replace(step, file=name))


class Reader:
    """Somebody who follows a page, in a folder of their own."""

    def __init__(self, folder: Path, environment: dict[str, str], *, shown_port: str = "", port: str = "") -> None:
        self._folder = folder
        self._environment = environment
        self._ports = (shown_port, port)
        self._state = folder / ".state"
        self._state.write_text("")
        self._meant: dict[str, str] = {}

    def follow(self, step: Step) -> str | None:
        """Do one step; return what is not as the page says, or None."""
        if step.file:
            self._write(step)
            return None
        if any(f"{word} " in step.text and shutil.which(word) is None for word in LACKING):
            return None
        command = self._in_real_words(step.text)
        if step.shown is None:
            try:
                self._run(f"set -e\n{command}")
            except subprocess.CalledProcessError as error:
                return f"{step.text}--- it ends with {error.returncode} and prints\n{error.stdout}"
            return None
        first = self._run(f"{command}true\n")
        if self._fits(step.shown, first):
            return None
        if all(_READS.match(line) for line in step.text.splitlines() if line and not line.startswith(" ")):
            shown, seen = step.shown, [first]

            def again() -> bool:
                seen[0] = self._run(f"{command}true\n")
                return self._fits(shown, seen[0])

            try:
                until(again)
            except AssertionError:
                first = seen[0]
            else:
                return None
        return f"{step.text}--- the page shows\n{step.shown}--- it prints\n{first}"

    def _write(self, step: Step) -> None:
        path = self._folder / self._run(f'printf %s "{step.file}"')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._at_real_port(step.text), encoding="utf-8")

    def _run(self, command: str) -> str:
        """Run commands after all that came before, and give what they print on either stream."""
        script = f". {self._state}\n{command}\nexport -p > {self._state}\n"
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
            check=True,
        )
        return done.stdout

    def _in_real_words(self, command: str) -> str:
        for shown, real in self._meant.items():
            command = re.sub(rf"(?<![\w-]){re.escape(shown)}(?![\w-])", real, command)
        return self._at_real_port(command)

    def _at_real_port(self, text: str) -> str:
        shown_port, port = self._ports
        return re.sub(rf":{shown_port}(?=[/?\"])", f":{port}", text) if port else text

    def _fits(self, shown: str, printed: str) -> bool:
        """Compare line by line, and remember what stands for what."""
        expected, got = ([_plain(line) for line in text.strip().splitlines()] for text in (shown, printed))
        meant: dict[str, str] = {}
        if not _same(expected, got, meant):
            return False
        self._meant |= meant
        return True


def _plain(line: str) -> str:
    return " ".join(line.split())


def _same(expected: list[str], got: list[str], meant: dict[str, str]) -> bool:
    if not expected:
        return not got
    if expected[0] == "...":
        return any(_same(expected[1:], got[skip:], meant) for skip in range(len(got) + 1))
    if not got or _DIFFERS.sub("~", expected[0]) != _DIFFERS.sub("~", got[0]):
        return False
    pairs = zip(_DIFFERS.finditer(expected[0]), _DIFFERS.finditer(got[0]), strict=True)
    meant |= {one["kept"]: other["kept"] for one, other in pairs if one["kept"] and other["kept"]}
    return _same(expected[1:], got[1:], meant)
