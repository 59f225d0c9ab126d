"""Write the generated blocks of the documentation, or check that they are up to date.

    python tools/docs.py            writes every block again
    python tools/docs.py --check    changes nothing, names what would change, and fails if anything would

A block is what stands between two lines of a Markdown file, and is drawn from the code, or from the last benchmark:

    <!-- generated: NAME -->
    <!-- end: NAME -->

To add one, write a function that returns its text, enter it in BLOCKS, and put the two lines where it belongs. Reads
and writes the Markdown files at the root of the repository and under docs/; the prose around the blocks is written by
hand and left alone. The schema is read from a database that is migrated in a temporary folder.
"""

import argparse
import contextlib
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec
from typer.main import get_command

from clarion import errors
from clarion.adapters.stores.migration import migrate_sqlite
from clarion.cli.program import program
from clarion.domain import outgoing
from clarion.domain.attempt import DELIVERY_ATTEMPT
from clarion.domain.automation import AUTOMATION_SCHEDULER
from clarion.domain.campaign import CAMPAIGN, recipient_code
from clarion.domain.definition import Definition
from clarion.domain.end_reason import MEANINGS as END_REASONS
from clarion.domain.entity_event import ENTITY_EVENT
from clarion.domain.machine import Cause, Machine
from clarion.domain.notification import NOTIFICATION_SCHEDULER
from clarion.domain.outgoing import OUTGOING_MESSAGE, OutgoingStatus, ReasonClass
from clarion.domain.skip import MEANINGS
from clarion.domain.support import SUPPORT_CASE
from clarion.testing.schema import Table, describe_sqlite

ROOT = Path(__file__).resolve().parent.parent

Block = Callable[[], str]
S = TypeVar("S", bound=StrEnum)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    lines = [list(head), *(list(row) for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def machine(drawn: Machine[S], *, without: Collection[Cause] = ()) -> str:
    """Draw a machine, and list its moves with their conditions, leaving out what happens by these causes."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for from_, to, move in drawn.moves():
        causes = [cause for cause in move.by if cause not in without]
        if causes:
            grouped.setdefault((from_, " or ".join(causes), move.note), []).append(to)
    rows = ([from_, ", ".join(to), causes, note] for (from_, causes, note), to in grouped.items())
    return f"```mermaid\n{drawn.mermaid(without=without)}\n```\n\n{table(['from', 'to', 'by', 'condition'], rows)}"


def evidence() -> str:
    """List, for each state that evidence can show, the states from which it moves a row there."""
    rows = []
    for status, rank in outgoing.RANK.items():
        sources = [s for s in OutgoingStatus if Cause.EVIDENCE in _causes(s, status)]
        rows.append([str(rank), status, ", ".join(sources)])
    return table(["rank", "evidence shows", "moves a row from"], rows)


def _causes(from_: OutgoingStatus, to: OutgoingStatus) -> tuple[Cause, ...]:
    """Give the causes of a move, none if there is no such move."""
    move = OUTGOING_MESSAGE.table[from_].get(to)
    return move.by if move else ()


def outgoing_states() -> str:
    """List what follows from each state of an outgoing row: its times, whether it is over, its recipient code."""
    rows = []
    for status in OutgoingStatus:
        times = ["`due_at`"] * (status in outgoing.DUE) + ["`lease_until`"] * (status in outgoing.LEASED)
        kind = "open" if status in outgoing.OPEN else "final" if status in outgoing.FINAL else "neither"
        rows.append([status, kind, ", ".join(times), _codes(status)])
    return table(["state", "open or final", "has", "recipient code"], rows)


def _codes(status: OutgoingStatus) -> str:
    """Write the recipient code of a state, with the reasons that change it."""
    usual = recipient_code(status)
    if usual is None:
        return "a column of its own"
    special = [(reason, recipient_code(status, reason)) for reason in ReasonClass]
    return f"`{usual:d}`" + "".join(f", `{code:d}` when {why}" for why, code in special if code not in (usual, None))


FAULTS: Mapping[type[errors.ClarionError], str] = {
    errors.CallerError: "caller",
    errors.OperatorError: "operator",
    errors.Superseded: "nobody",
    errors.Bug: "Clarion",
}


def error_codes() -> str:
    """List every error code, whose fault it is, and what it means."""
    rows = []
    for kind in errors.every_error():
        fault = next((name for group, name in FAULTS.items() if issubclass(kind, group)), "")
        rows.append([f"`{kind.code}`", fault, (kind.__doc__ or "").strip().splitlines()[0]])
    return table(["code", "whose fault", "meaning"], rows)


_NOTHING: tuple[object, ...] = (None, "", (), {})


def definition_fields() -> str:
    """List every field of a definition file: what it is where it is left out, and what it means."""
    usual = Definition(key="", title="", channels=())
    hints = get_type_hints(Definition, include_extras=True)
    rows = []
    for field in msgspec.structs.fields(Definition):
        default = getattr(usual, field.name)
        without = "it is needed" if field.required else "" if default in _NOTHING else f"`{json.dumps(default)}`"
        meta = next(one for one in hints[field.name].__metadata__ if isinstance(one, msgspec.Meta))
        rows.append([f"`{field.name}`", without, meta.description or ""])
    return table(["field", "without it", "meaning"], rows)


def schema() -> str:
    """Describe every table of a new SQLite database that all schema steps were applied to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clarion.db"
        migrate_sqlite(path)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            tables = describe_sqlite(connection)
    return "\n\n".join(_table_section(name, described) for name, described in sorted(tables.items()))


def _table_section(name: str, described: Table) -> str:
    """Write one database table: its columns, then what is unique in it, what it refers to and its indexes."""
    rows = []
    for column, kind in described.columns.items():
        default = "" if kind.default is None else f"`{kind.default}`"
        rows.append([f"`{column}`", kind.type, "yes" if kind.nullable else "", default])
    keys = [f"- primary key {_columns(described.primary_key)}"] if described.primary_key else []
    keys += [f"- unique {_columns(columns)}" for columns in sorted(described.uniques)]
    keys += sorted(f"- {_columns(key.columns)} refers to `{key.table}`" for key in described.foreign_keys)
    for index_name, index in sorted(described.indexes.items()):
        where = f" where `{index.predicate}`" if index.predicate else ""
        keys.append(f"- {'unique ' if index.unique else ''}index `{index_name}` {_columns(index.columns)}{where}")
    columns = table(["column", "type", "may be null", "default"], rows)
    return "\n\n".join([f"### {name}", columns, *(["\n".join(keys)] if keys else [])])


def _columns(names: Iterable[str]) -> str:
    """Write the columns of a key in their order."""
    return f"({', '.join(f'`{name}`' for name in names)})"


SHARED_OPTIONS = ("tenant", "store", "as_json")
"""Options that mean the same everywhere and are explained once, above the commands."""


def commands() -> str:
    """Describe every command of the program, with its arguments and options."""
    return "\n\n".join(_command_sections(get_command(program), path="clarion"))


def _command_sections(group: Any, *, path: str) -> Iterator[str]:  # noqa: ANN401  (typer's commands have no public type)
    """Describe the commands of a group, those of the groups in it after their own group."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield f"### {path} {name}\n\n{command.help}"
            yield from _command_sections(command, path=f"{path} {name}")
        else:
            yield _command_section(command, path=f"{path} {name}")


def _command_section(command: Any, *, path: str) -> str:  # noqa: ANN401  (as above)
    """Describe one command."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in SHARED_OPTIONS]
    shared = [one.opts[0] for one in command.params if one.name in SHARED_OPTIONS]
    usage = " ".join([path, *(one.metavar or one.name.upper() for one in arguments)])
    rows = [[f"`{one.metavar or one.name.upper()}`", one.help or "", ""] for one in arguments]
    for one in options:
        spelled = "`, `".join([*one.opts, *one.secondary_opts])
        rows.append([f"`{spelled}{_value(one)}`", one.help or "", _default(one)])
    parts = [f"#### `{usage}`", command.help, table(["", "", "without it"], rows) if rows else ""]
    parts.append(f"Also {', '.join(f'`{option}`' for option in shared)}." if shared else "")
    return "\n\n".join(part for part in parts if part)


def _value(option: Any) -> str:  # noqa: ANN401  (as above)
    """Name what an option takes: as it is called, or the words to choose from."""
    kind = option.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " " + "|".join(kind)
    return f" {option.metavar}" if option.metavar else ""


def _default(option: Any) -> str:  # noqa: ANN401  (as above)
    """Say what an option is where it is left out."""
    if option.required:
        return "it is needed"
    if option.default in (None, "", False, 0):
        return ""
    return "on" if option.is_flag else f"`{option.default}`"


def end_reasons() -> str:
    """List why occurrences end without anybody being told."""
    return table(
        ["reason", "what happened", "what to do"],
        [(f"`{reason}`", said, remedy) for reason, (said, remedy) in END_REASONS.items()],
    )


def skip_rules() -> str:
    """List the rules by which something is not sent, in the order in which they are asked."""
    rows = [[f"`{rule}`", *meaning] for rule, meaning in MEANINGS.items()]
    return table(["rule", "asked", "means", "what to do"], rows)


def decisions() -> str:
    """List every decision by the title of its page."""
    lines = []
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}](decisions/{page.name})")
    return "\n".join(lines)


BENCH_MESSAGES = 20_000
"""What `make bench` takes unless told otherwise."""


def benchmark() -> str:
    """Show the last run of the benchmark that was kept, as it is."""
    kept = json.loads((ROOT / "bench" / "results" / "latest.json").read_text(encoding="utf-8"))
    rows = [
        [
            one["name"],
            one["store"],
            f"{_figure(one['ours'])} {one['unit']}",
            one["limit"] or "",
            "" if one["of"] is None else _figure(one["of"]),
            "" if one["share"] is None else f"{one['share']:.2f}",
            f"{one['fsync_ms']:.2f}",
        ]
        for one in kept["figures"]
    ]
    head = ["figure", "store", "ours", "held against", "its figure", "share", "fsync, ms"]
    meanings = {one["name"]: one["means"] for one in kept["figures"]}
    run = f"{kept['messages']:,} messages a measurement, {kept['machine']}."
    if kept["messages"] < BENCH_MESSAGES:
        run += f" Fewer than the usual {BENCH_MESSAGES:,}: this run shows that everything works, and measures nothing."
    return "\n\n".join([run, table(head, rows), table(["figure", "means"], meanings.items())])


def _figure(value: float) -> str:
    """Write a number with as many digits as it is worth."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


BLOCKS: Mapping[str, Block] = {
    "benchmark": benchmark,
    "commands": commands,
    "decisions": decisions,
    "definition": definition_fields,
    "end-reasons": end_reasons,
    "errors": error_codes,
    "schema": schema,
    "skip-rules": skip_rules,
    "automation-scheduler": partial(machine, AUTOMATION_SCHEDULER),
    "entity-event": partial(machine, ENTITY_EVENT),
    "notification-scheduler": partial(machine, NOTIFICATION_SCHEDULER),
    # Evidence leads from nearly everywhere to nearly everywhere: sixty more arrows would hide the rest.
    "outgoing-message": partial(machine, OUTGOING_MESSAGE, without={Cause.EVIDENCE}),
    "outgoing-evidence": evidence,
    "outgoing-states": outgoing_states,
    "delivery-attempt": partial(machine, DELIVERY_ATTEMPT),
    "campaign": partial(machine, CAMPAIGN),
    "support-case": partial(machine, SUPPORT_CASE),
}

OPENING = re.compile(r"^<!-- generated: ([\w-]+) -->$", re.MULTILINE)
BLOCK = re.compile(r"^<!-- generated: ([\w-]+) -->\n.*?^<!-- end: \1 -->$", re.MULTILINE | re.DOTALL)


class BrokenMarker(ValueError):
    """A marker in a Markdown file names no block, or is not closed by its own end."""


def pages(root: Path) -> Iterator[Path]:
    """Give the Markdown files that may hold blocks."""
    yield from sorted(root.glob("*.md"))
    yield from sorted((root / "docs").rglob("*.md"))


def fill(text: str, blocks: Mapping[str, Block]) -> str:
    """Give the text with each of its blocks written anew."""
    opened, closed = OPENING.findall(text), BLOCK.findall(text)
    if unknown := set(opened) - set(blocks):
        raise BrokenMarker(f"no block is called {', '.join(sorted(unknown))}; the names are in BLOCKS of tools/docs.py")
    if opened != closed:
        raise BrokenMarker(f"each of {', '.join(opened)} needs its own line <!-- end: NAME --> before the next begins")
    return BLOCK.sub(
        lambda found: f"<!-- generated: {found[1]} -->\n{_body(found[1], blocks)}<!-- end: {found[1]} -->", text
    )


def _body(name: str, blocks: Mapping[str, Block]) -> str:
    """Give a block with blank lines around it: Markdown would take what follows a comment's line for its part."""
    return f"\n{blocks[name]()}\n\n"


def run(root: Path, blocks: Mapping[str, Block], *, write: bool) -> list[str]:
    """Bring every page up to date, or with `write` off only look; give a complaint for each thing that is amiss."""
    complaints = []
    unused = set(blocks)
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(root)
        try:
            filled = fill(text, blocks)
        except BrokenMarker as error:
            complaints.append(f"{name}: {error}")
            continue
        unused -= set(OPENING.findall(text))
        if filled != text and write:
            page.write_text(filled, encoding="utf-8")
        elif filled != text:
            complaints.append(f"{name}: a generated block is out of date; run python tools/docs.py")
    complaints += [f"{name}: no page has this block" for name in sorted(unused)]
    return complaints


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Write the generated blocks of the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if anything would change")
    complaints = run(ROOT, BLOCKS, write=not parser.parse_args().check)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
