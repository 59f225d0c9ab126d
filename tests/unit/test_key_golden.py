"""The golden vectors: every key byte for byte, in this process and in others, and the docs' table drawn from them.

Run as a program, this file writes the table into docs/reference/keys.md.
"""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from clarion.domain import derived_id, hashing, key, part
from clarion.domain.identity import Channel, Identity, IdentityDomain, Lane

ROOT = Path(__file__).parents[2]
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests/golden/keys.json").read_text())  # Any: JSON, as it comes
DOCS = ROOT / "docs/reference/keys.md"
BEGIN, END = "<!-- drawn from tests/golden/keys.json -->", "<!-- end of the drawing -->"

MODULES = {"key": key, "derived_id": derived_id, "part": part, "hashing": hashing}
TYPES: dict[str, Callable[[Any], object]] = {
    "$guid": UUID,
    "$at": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$bytes": bytes.fromhex,
    "$channel": Channel,
    "$lane": Lane,
    "$policy": key.FiringPolicy,
    "$identity": lambda pair: Identity(domain=IdentityDomain(pair[0]), id=pair[1]),
}


CASES: list[tuple[str, dict[str, Any], object]] = [
    (name, case["args"], case["expect"]) for name, entry in GOLDEN["keys"].items() for case in entry["cases"]
]


def typed(value: object) -> object:
    """Give a JSON argument the type that its tag names."""
    match value:
        case {**members} if len(members) == 1 and (tag := next(iter(members))) in TYPES:
            return TYPES[tag](members[tag])
        case {**members}:
            return {name: typed(member) for name, member in members.items()}
        case [*items]:
            return [typed(item) for item in items]
        case _:
            return value


def computed(name: str, args: dict[str, Any]) -> object:
    """Call the named function, and write its result as JSON would."""
    module, function = name.split(".")
    result = getattr(MODULES[module], function)(**{field: typed(value) for field, value in args.items()})
    match result:
        case UUID():
            return str(result)
        case bytes():
            return result.decode()
        case tuple():
            return list(result)
        case _:
            return result


def table() -> str:
    """Draw the docs' table: every key, its formula, and its first case."""
    rows = ["| what | function | formula | example |", "|---|---|---|---|"]
    for name, entry in GOLDEN["keys"].items():
        expect = entry["cases"][0]["expect"]
        example = f"({', '.join(map(str, expect))})" if isinstance(expect, list) else expect
        rows.append(f"| {entry['record']} | `{name}` | `{entry['formula']}` | `{example}` |")
    return "\n".join([BEGIN, *rows, END])


def public_functions(module: ModuleType) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }


@pytest.mark.parametrize("name, args, expect", CASES, ids=[name for name, _, _ in CASES])
def test_a_key_is_what_it_always_was(name: str, args: dict[str, Any], expect: object) -> None:
    assert computed(name, args) == expect


@pytest.mark.parametrize("module", ["key", "derived_id"])
def test_every_function_that_makes_a_key_has_a_vector(module: str) -> None:
    with_vectors = {name.split(".")[1] for name in GOLDEN["keys"] if name.startswith(f"{module}.")}
    makers = {name for name in public_functions(MODULES[module]) if not name.startswith("read_")}
    assert with_vectors == makers


@pytest.mark.parametrize("module", ["key", "derived_id"])
def test_arguments_are_named_where_there_are_several(module: str) -> None:
    for name in public_functions(MODULES[module]):
        signature = inspect.signature(getattr(MODULES[module], name))
        named = [p.kind is inspect.Parameter.KEYWORD_ONLY for p in signature.parameters.values()]
        assert all(named) or len(named) == 1, f"{name} takes arguments by position"


def test_the_namespace_and_the_key_version_are_what_the_vectors_were_made_with() -> None:
    assert GOLDEN["namespace"] == str(derived_id.NAMESPACE)
    assert GOLDEN["key_version"] == key.KEY_VERSION


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_another_process_with_another_hash_seed_makes_the_same_keys(hash_seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    program = [sys.executable, __file__, "--compute"]
    answer = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    assert json.loads(answer) == [expect for _, _, expect in CASES]


def test_the_docs_show_the_golden_vectors() -> None:
    assert table() in DOCS.read_text(), f"run `python {Path(__file__).relative_to(ROOT)}` to draw the table again"


if __name__ == "__main__":
    if "--compute" in sys.argv:
        sys.stdout.write(json.dumps([computed(name, args) for name, args, _ in CASES]))
    else:
        before, _, rest = DOCS.read_text().partition(BEGIN)
        DOCS.write_text(before + table() + rest.partition(END)[2])
