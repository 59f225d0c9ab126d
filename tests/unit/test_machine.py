"""The table type by itself, on a machine small enough to be checked by eye."""

from enum import StrEnum

import pytest

from clarion.domain.machine import Cause, Machine, by
from clarion.errors import Bug, IllegalMove


class Door(StrEnum):
    AJAR = "Ajar"
    SHUT = "Shut"
    LOCKED = "Locked"
    BRICKED_UP = "BrickedUp"


DOOR = Machine(
    name="Door",
    initial=frozenset({Door.AJAR, Door.SHUT}),
    table={
        Door.AJAR: {Door.AJAR: by(Cause.REQUEST), Door.SHUT: by(Cause.REQUEST, Cause.RULE)},
        Door.SHUT: {Door.AJAR: by(Cause.REQUEST), Door.LOCKED: by(Cause.CLAIM, note="with the key")},
        Door.LOCKED: {Door.SHUT: by(Cause.AUDITED), Door.BRICKED_UP: by(Cause.EVIDENCE)},
        Door.BRICKED_UP: {},
    },
)


def test_a_move_in_the_table_is_legal_and_any_other_is_not() -> None:
    legal = {(from_, to) for from_ in Door for to in Door if DOOR.may(from_=from_, to=to)}
    assert legal == {
        (Door.AJAR, Door.AJAR),
        (Door.AJAR, Door.SHUT),
        (Door.SHUT, Door.AJAR),
        (Door.SHUT, Door.LOCKED),
        (Door.LOCKED, Door.SHUT),
        (Door.LOCKED, Door.BRICKED_UP),
    }


def test_staying_in_a_state_is_a_move_like_any_other() -> None:
    DOOR.require(from_=Door.AJAR, to=Door.AJAR)
    with pytest.raises(IllegalMove):
        DOOR.require(from_=Door.SHUT, to=Door.SHUT)


def test_an_illegal_move_names_the_record_both_states_and_the_legal_ones() -> None:
    with pytest.raises(IllegalMove) as caught:
        DOOR.require(from_=Door.SHUT, to=Door.BRICKED_UP)
    assert caught.value.message == "Door cannot move from Shut to BrickedUp; from Shut it may move to Ajar, Locked"
    assert isinstance(caught.value, Bug)


def test_an_illegal_move_out_of_a_state_without_exits_says_so() -> None:
    with pytest.raises(IllegalMove, match="from BrickedUp it may move to no other state"):
        DOOR.require(from_=Door.BRICKED_UP, to=Door.SHUT)


def test_a_state_that_only_evidence_or_an_audited_act_can_leave_is_final() -> None:
    assert DOOR.final == {Door.LOCKED, Door.BRICKED_UP}


def test_a_move_with_a_second_cause_that_is_no_correction_keeps_its_state_from_being_final() -> None:
    reopened = Machine(
        name="Door",
        initial=frozenset({Door.LOCKED}),
        table={Door.LOCKED: {Door.SHUT: by(Cause.AUDITED, Cause.RULE)}, Door.SHUT: {}},
    )
    assert reopened.final == {Door.SHUT}


def test_sources_and_targets_of_a_cause_are_the_two_ends_of_its_moves() -> None:
    assert DOOR.sources(Cause.REQUEST) == {Door.AJAR, Door.SHUT}
    assert DOOR.targets(Cause.REQUEST) == {Door.AJAR, Door.SHUT}
    assert DOOR.sources(Cause.RULE) == {Door.AJAR}
    assert DOOR.targets(Cause.RULE) == {Door.SHUT}
    assert DOOR.sources(Cause.REPLAY) == frozenset()


def test_what_can_be_reached_includes_the_start_and_follows_every_move() -> None:
    assert DOOR.reachable({Door.LOCKED}) == set(Door)
    assert DOOR.reachable({Door.BRICKED_UP}) == {Door.BRICKED_UP}
    assert DOOR.reachable(()) == frozenset()


def test_a_drawing_has_every_beginning_every_move_with_its_causes_and_every_end() -> None:
    assert DOOR.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> Ajar",
        "    [*] --> Shut",
        "    Ajar --> Ajar : request",
        "    Ajar --> Shut : request or rule",
        "    Shut --> Ajar : request",
        "    Shut --> Locked : claim",
        "    Locked --> Shut : audited",
        "    Locked --> BrickedUp : evidence",
        "    Locked --> [*]",
        "    BrickedUp --> [*]",
    ]


def test_a_drawing_without_some_causes_keeps_the_moves_that_have_another_and_no_state_that_lost_all() -> None:
    assert DOOR.mermaid(without={Cause.REQUEST, Cause.EVIDENCE}).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> Ajar",
        "    [*] --> Shut",
        "    Ajar --> Shut : rule",
        "    Shut --> Locked : claim",
        "    Locked --> Shut : audited",
        "    Locked --> [*]",
    ]
