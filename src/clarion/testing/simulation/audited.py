"""The audit log at the end of a run, held against what people were told: every act of theirs, and no other."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from clarion.ports.catalog import AuditEntry
from clarion.testing.simulation.founding import FOUNDER
from clarion.testing.simulation.notes import Notes
from clarion.testing.simulation.verdict import Violation

_WORDS = {"clear": "set"}
"""A setting that says nothing any more is cleared by whoever sets it so."""

_OF_PEOPLE = frozenset({"cancel", "retry", "enable", "disable", "set", "suppress", "lift", "change"})
"""What nobody but a person does in a run."""


def judge(log: Sequence[AuditEntry], notes: Notes) -> Iterator[Violation]:
    """I-42: every act that a person was told of stands in the audit log, and no act that nobody asked for."""
    if [entry.seq for entry in log] != list(range(1, len(log) + 1)):
        yield Violation("I-42", f"the audit log has the entries {[entry.seq for entry in log]}")
    found = Counter((_WORDS.get(entry.act, entry.act), entry.subject) for entry in log if entry.actor != FOUNDER)
    asked = {(act.kind, act.subject) for act in notes.asked if act.kind not in ("move", "publish")}
    for kind, subject in sorted(asked):
        acts = list(notes.of(kind, subject))
        sure = sum(act.answer is True for act in acts)
        if not sure <= found[kind, subject] <= sure + sum(act.done_at is None for act in acts):
            yield Violation(
                "I-42", f"{sure} times {kind} {subject} was done, and {found[kind, subject]} are in the log"
            )
    for kind, subject in sorted(found):
        if kind in _OF_PEOPLE and (kind, subject) not in asked:
            yield Violation("I-42", f"the audit log has {kind} {subject}, which nobody asked for")
    versions = Counter((one.subject, json.loads(one.details)["version"]) for one in log if one.act == "publish")
    for act in notes.asked:
        if act.kind == "publish" and act.done_at is not None and versions[act.subject, act.answer] != 1:
            yield Violation("I-42", f"version {act.answer} of {act.subject} was published, and the audit log differs")
