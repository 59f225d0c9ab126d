"""A figure: what was measured, beside its limit and the disk's latency in the same run.

A figure is made where it is measured, with its name and its meaning; the table on the screen, `results/latest.json` and
the table of docs/reference/benchmark.md are drawn from it, so that a new one needs no other place.
"""

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

RESULTS = Path(__file__).with_name("results") / "latest.json"

HEAD = ("figure", "store", "ours", "limit", "", "share", "fsync ms")

Round = dict[str, float]
"""What one round measured, by name. A figure and its limit take turns: a slow phase of the machine then hits both."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table."""

    name: str
    means: str
    store: str
    unit: str
    ours: float
    limit: str | None  # what it is held against
    of: float | None  # what the limit reached
    share: float | None  # the median of what each round's figure is to its limit in the same round
    fsync_ms: float  # a write of 4 kB that reaches the disk, just before


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a run."""

    machine: str
    messages: int
    figures: list[Figure]


def figure(
    name: str,
    rounds: Sequence[Round],
    *,
    means: str,
    unit: str,
    fsync_ms: float,
    ours: str = "ours",
    limit: str | None = None,
    by: str = "limit",
    store: str = "",
) -> Figure:
    """Make a figure of its rounds: medians of what stands in them under `ours` and, for its limit, under `by`."""
    return Figure(
        name=name,
        means=means,
        store=store,
        unit=unit,
        ours=statistics.median(one[ours] for one in rounds),
        limit=limit,
        of=statistics.median(one[by] for one in rounds) if limit else None,
        share=statistics.median(one[ours] / one[by] for one in rounds) if limit else None,
        fsync_ms=fsync_ms,
    )


def write(run: Run) -> None:
    """Keep a run."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(msgspec.to_builtins(run), indent=2) + "\n")


def lines(figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """Write the cells of the table, without its head."""
    return [
        (
            one.name,
            one.store,
            f"{_number(one.ours)} {one.unit}",
            one.limit or "",
            "" if one.of is None else _number(one.of),
            "" if one.share is None else f"{one.share:.2f}",
            f"{one.fsync_ms:.2f}",
        )
        for one in figures
    ]


def table(run: Run) -> str:
    """Write the table for a terminal."""
    cells = [HEAD, *lines(run.figures)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    left = (0, 1, 3)  # columns of words; the others hold numbers
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
