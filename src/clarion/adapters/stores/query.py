"""Named SQL: statements live in `.sql` files beside their store, each with a name and a reason.

A statement begins at a line `-- name: the_name`; the comment lines that follow it are its reason, and a statement
without one is refused, so that every query in the code base says why it is as it is. Reads package files once, at
import; knows nothing of databases.
"""

from importlib.resources import files

import msgspec

from clarion.errors import BrokenInvariant

_MARK = "-- name: "


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One statement, why it is as it is, and its text."""

    name: str
    reason: str
    sql: str


def load(package: str, file: str) -> dict[str, Query]:
    """Read every named statement of one file of a package."""
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    queries: dict[str, Query] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = body.strip().splitlines()
        reason = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        sql = "\n".join(line for line in lines if not line.startswith("--")).strip().removesuffix(";")
        if not reason or not sql or name in queries:
            raise BrokenInvariant(f"the query {name!r} in {file} has no reason, no statement or a namesake")
        queries[name] = Query(name=name, reason=" ".join(reason), sql=sql)
    return queries
