"""Whom the addressees of a setting are in one send, with its business unit, its entity and the groups that it names."""

from uuid import UUID

import msgspec
import pytest

from clarion.domain.audience import Addressee, Audience, audience_of, require_one
from clarion.errors import InvalidInput

STAFF, PARENTS = UUID(int=1), UUID(int=2)
NORTH, CHILD = UUID(int=3), UUID(int=4)
ENTITY = ("child", CHILD)

TEACHERS, GUARDIANS = Addressee(role="teacher"), Addressee(relation="guardian")
MEMBERS, EVERYBODY = Addressee(unit=True), Addressee(group=STAFF)


@pytest.mark.parametrize(
    "addressee, unit, entity, audience",
    [
        (EVERYBODY, None, None, Audience(groups=(STAFF,))),
        # Who holds a role in the whole tenant holds it in every unit; without a unit only they do.
        (TEACHERS, NORTH, None, Audience(roles=(("teacher", ""), ("teacher", str(NORTH))))),
        (TEACHERS, None, None, Audience(roles=(("teacher", ""),))),
        (MEMBERS, NORTH, None, Audience(units=(NORTH,))),
        (MEMBERS, None, None, Audience()),
        (GUARDIANS, None, ENTITY, Audience(relations=(("child", CHILD, "guardian"),))),
        (GUARDIANS, NORTH, None, Audience()),
    ],
)
def test_an_addressee_is_somebody_in_the_light_of_a_send(
    addressee: Addressee, unit: UUID | None, entity: tuple[str, UUID] | None, audience: Audience
) -> None:
    found = audience_of([addressee], unit=unit, entity=entity)
    assert found == audience
    assert bool(found) is (audience != Audience())


def test_an_audience_has_each_part_once_and_the_groups_that_the_send_names() -> None:
    asked = [EVERYBODY, TEACHERS, EVERYBODY, TEACHERS]
    assert audience_of(asked, unit=None, entity=None, groups=(PARENTS, STAFF)) == Audience(
        groups=(PARENTS, STAFF), roles=(("teacher", ""),)
    )


@pytest.mark.parametrize(
    "addressee, text",
    [
        (EVERYBODY, f"group:{STAFF}"),
        (TEACHERS, "role:teacher"),
        (GUARDIANS, "relation:guardian"),
        (MEMBERS, "unit"),
    ],
)
def test_an_addressee_is_written_as_the_program_reads_it(addressee: Addressee, text: str) -> None:
    assert str(addressee) == text


@pytest.mark.parametrize("addressee", [Addressee(), Addressee(role="teacher", unit=True), Addressee(unit=False)])
def test_an_addressee_that_is_none_or_several_is_refused(addressee: Addressee) -> None:
    with pytest.raises(InvalidInput) as refusal:
        require_one(addressee, field="recipients[2]")
    assert refusal.value.field == "recipients[2]"


@pytest.mark.parametrize("name", ["", "  ", "a:b", "a\nb", "x" * 65])
def test_a_name_that_could_not_be_written_in_one_line_is_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"role": name}, Addressee)


def test_an_addressee_has_one_form_where_it_is_stored_and_where_it_is_sent() -> None:
    stored = msgspec.json.encode([EVERYBODY, MEMBERS])
    assert stored == f'[{{"group":"{STAFF}"}},{{"unit":true}}]'.encode()
    assert msgspec.json.decode(stored, type=list[Addressee]) == [EVERYBODY, MEMBERS]
