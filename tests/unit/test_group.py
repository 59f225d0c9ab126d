"""Names of groups, roles and things, and whom somebody names: what is taken, and what is refused and by which field."""

from uuid import UUID

import pytest

from clarion.domain.group import (
    Nesting,
    check_children,
    check_name,
    check_nesting,
    check_thing,
    check_word,
    read_entity,
)
from clarion.domain.identity import Identity, read_person
from clarion.errors import InvalidInput

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)


@pytest.mark.parametrize(
    "text, identity",
    [
        ("user:7", Identity.user("7")),
        ("user:a:b", Identity.user("a:b")),
        ("user:Mu\u0308ller", Identity.user("M\u00fcller")),
        (f"user:{'x' * 200}", Identity.user("x" * 200)),
        (f"employee:{A}", Identity.employee(A)),
        (f"employee:{{{str(A).upper()}}}", Identity.employee(A)),
    ],
)
def test_somebody_is_named_by_domain_and_id(text: str, identity: Identity) -> None:
    assert read_person(text, field="person") == identity


@pytest.mark.parametrize(
    "text",
    ["", "7", "user", "user:", "user: ", f"user:{'x' * 201}", "user:a\nb", "user:\u202e", "employee:7", f"group:{A}"],
)
def test_whoever_is_named_otherwise_is_nobody_in_the_callers_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_person(text, field="add[3]")
    assert refusal.value.field == "add[3]"


@pytest.mark.parametrize("name", ["Parents", "1", "Ä" * 200, " a "])
def test_a_name_is_one_line_of_200_characters_at_most(name: str) -> None:
    assert check_name(name, field="name") == name
    for wrong in ("", "   ", f"{name}\n", f"{name}\u2066", "x" * 201):
        with pytest.raises(InvalidInput):
            check_name(wrong, field="name")


@pytest.mark.parametrize(
    "word, is_one",
    [
        ("teacher", True),
        ("head of class", True),
        ("ä" * 32, True),
        ("ä" * 33, False),
        ("a:b", False),
        ("", False),
        (" ", False),
        ("x" * 65, False),
    ],
)
def test_a_role_fits_its_column_and_has_no_colon(word: str, is_one: bool) -> None:
    if is_one:
        assert check_word(word, field="role") == word
    else:
        with pytest.raises(InvalidInput):
            check_word(word, field="role")


def test_a_thing_is_read_from_its_type_and_guid() -> None:
    assert read_entity(f"child:{A}", field="entity") == ("child", A)
    assert read_entity(f"a:b:{A}", field="entity") == ("a:b", A)
    for wrong in ("child", str(A), f":{A}", "child:7", f"{'ä' * 101}:{A}", f"a\nb:{A}"):
        with pytest.raises(InvalidInput) as refusal:
            read_entity(wrong, field="entity")
        assert refusal.value.field == "entity"
    assert check_thing("ä" * 100, field="type") == "ä" * 100


def test_children_are_there_and_are_others() -> None:
    check_children(A, [B, C], [B, C, A])
    for children, known in (([A], [A]), ([B, C], [B])):
        with pytest.raises(InvalidInput) as refusal:
            check_children(A, children, known)
        assert refusal.value.field == "groups"
    with pytest.raises(InvalidInput, match="1001 groups"):
        check_children(A, [UUID(int=n) for n in range(10, 1011)], [])


@pytest.mark.parametrize(
    "above, levels, fits",
    [
        (0, [], True),
        (7, [], True),
        (8, [], False),
        (0, [1, 7], True),
        (0, [8, 1], False),
        (3, [4], True),
        (4, [4], False),
    ],
)
def test_eight_levels_are_counted_with_the_group_itself(above: int, levels: list[int], fits: bool) -> None:
    inside = [Nesting(child=B, levels=one, holds_itself=False) for one in levels]
    if fits:
        check_nesting(A, inside, above=above)
    else:
        with pytest.raises(InvalidInput, match="9 deep"):
            check_nesting(A, inside, above=above)


def test_the_child_that_leads_back_is_named() -> None:
    inside = [Nesting(child=B, levels=2, holds_itself=False), Nesting(child=C, levels=3, holds_itself=True)]
    with pytest.raises(InvalidInput, match=f"the group {C} holds the group {A} already"):
        check_nesting(A, inside, above=0)
