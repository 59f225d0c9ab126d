"""Tables of a law as they stand in the tests: lines of words in columns, read into dictionaries.

A law is written from the documents, by hand and in words, so that it shares neither form nor code with the rules.
"""

from collections.abc import Iterator, Mapping

from clarion.domain.queue_row import Ruling

Line = Mapping[str, str]


def lines(law: str) -> list[Line]:
    """Read a table: its first line names the columns, `|` divides what is given from what follows; `-` is nothing."""
    head, *rows = [one for one in law.strip().splitlines() if one.strip()]
    names = [name.strip() for name in head.replace("|", "  ").split("  ") if name.strip()]
    return [dict(zip(names, _words(row), strict=True)) for row in rows]


def matching(law: str, **given: str) -> Line:
    """Find the one line for what is given; `*` in it stands for anything. A law with none or two lines is broken."""
    (found,) = [line for line in lines(law) if all(line[name] in ("*", value) for name, value in given.items())]
    return found


def _words(row: str) -> Iterator[str]:
    return (word.strip() for word in row.replace("|", "  ").split("  ") if word.strip())


def told_cases(ruling: Ruling) -> str:
    """Name the support cases that a ruling opens, in the words of the tables."""
    return ", ".join(trouble.name.lower().replace("_", " ") for trouble in ruling.troubles) or "-"
