"""The frozen recipient set: the same text for the same set, bounded, without addresses."""

import pytest

from clarion.domain import recipient
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.recipient import RECIPIENTS_MAX, Decision, FrozenRecipient
from clarion.errors import InvalidInput


def frozen(n: int) -> FrozenRecipient:
    decision = Decision(channel=Channel.EMAIL, address_id=n)
    return FrozenRecipient(
        recipient_id_hash=f"{n:032x}", domain=IdentityDomain.USER, person_id=str(n), decisions=(decision,)
    )


def test_a_set_is_read_as_it_was_written_whatever_its_order() -> None:
    people = tuple(frozen(n) for n in range(5))
    assert recipient.encode(people) == recipient.encode(people[::-1])
    assert recipient.decode(recipient.encode(people[::-1])) == people


def test_a_person_has_an_inbox_and_a_bare_address_has_none() -> None:
    assert frozen(7).inbox_identity == Identity.user("7")
    bare = FrozenRecipient(recipient_id_hash="0" * 32, domain=IdentityDomain.ADDRESS, decisions=())
    assert bare.inbox_identity is None


def test_an_audience_that_is_too_large_is_told_to_be_a_campaign() -> None:
    with pytest.raises(InvalidInput, match="campaign"):
        recipient.encode(tuple(frozen(n) for n in range(RECIPIENTS_MAX + 1)))
