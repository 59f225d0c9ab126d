"""Freeze the schema's steps: note the checksum of each file that is new, and fail if an old one was edited or removed.

    python tools/freeze.py

A database that somebody has made ran the steps as they were then, and what is edited in them later never reaches it.
The checksums stand in `checksums.txt` beside the steps, one line a file, written like those of sha256sum; a test
compares them (`tests/checks/test_frozen_steps.py`).
"""

import sys

from clarion.adapters.stores.migration import HISTORY, History
from clarion.adapters.stores.migration.history import ENGINES

NAME = "checksums.txt"


def noted(history: History) -> dict[str, str]:
    """Return the checksums that were noted, by file."""
    lines = (history.folder / NAME).read_text(encoding="utf-8").splitlines()
    return {file: checksum for checksum, file in (line.split("  ") for line in lines)}


def actual(history: History) -> dict[str, str]:
    """Return the checksums of the files that are there."""
    return {f"{engine}/{name}": made for engine in ENGINES for name, made in history.checksums(engine).items()}


def complaints(history: History) -> list[str]:
    """Say of each file that was noted what is amiss with it, and what to do."""
    found = actual(history)
    return [
        f"{file} was {'edited' if file in found else 'removed'} after it was frozen: put it back as it was (git log), "
        "and add a new step for what is to change"
        for file, checksum in noted(history).items()
        if found.get(file) != checksum
    ]


def unnoted(history: History) -> list[str]:
    """Name the files whose checksum is not noted yet."""
    return sorted(actual(history).keys() - noted(history).keys())


def note(history: History) -> None:
    """Note the files that are new; lines that are there stay."""
    both = actual(history) | noted(history)
    text = "".join(f"{both[file]}  {file}\n" for file in sorted(both))
    (history.folder / NAME).write_text(text, encoding="utf-8")


def main() -> int:
    """Run from the command line."""
    note(HISTORY)
    found = complaints(HISTORY)
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
