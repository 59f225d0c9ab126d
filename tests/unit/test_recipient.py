"""The frozen recipient set: the same text for the same set, bounded, without addresses."""

from clarion.domain import recipient
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.recipient import Decision, FrozenRecipient, Manifest, Totals
from clarion.domain.skip import SkipRule


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


def of(n: int, *decisions: Decision) -> FrozenRecipient:
    return FrozenRecipient(
        recipient_id_hash=f"{n:032x}", domain=IdentityDomain.USER, person_id=str(n), decisions=decisions
    )


def test_what_a_set_comes_to_is_counted_by_recipients_messages_and_rules() -> None:
    """Also of decisions from before there were rules."""
    mail, push = Decision(channel=Channel.EMAIL, address_id=1), Decision(channel=Channel.SMS, address_id=2)
    people = (
        of(1, mail, push, Decision(channel=Channel.INBOX)),
        of(2, Decision(channel=Channel.INBOX), Decision(channel=Channel.EMAIL, skipped="no", rule=SkipRule.NO_ADDRESS)),
        of(3, Decision(channel=Channel.EMAIL, address_id=3, skipped="waits", rule=SkipRule.POLICY)),
        of(4, Decision(channel=Channel.EMAIL, skipped="no"), Decision(channel=Channel.SMS, skipped="no")),
    )
    skipped = {SkipRule.NO_ADDRESS: 1, SkipRule.OTHER: 2, SkipRule.POLICY: 1}
    totals = recipient.totals_of(people)
    assert totals == Totals(recipients=4, addressed=2, outgoing=2, inbox=2, skipped=skipped)
    assert recipient.totals_of(people[:2]) + recipient.totals_of(people[2:]) == totals
    assert totals.in_words == "4 recipients, 4 messages, 4 skipped"
    assert recipient.totals_of(()) == Totals()


def test_a_row_has_a_set_or_the_manifest_of_one_in_pages() -> None:
    people = tuple(frozen(n) for n in range(3))
    manifest = Manifest(totals=Totals(recipients=7), pages=("a", "b"))
    assert recipient.read(recipient.encode(people)) == people
    assert recipient.read(recipient.encode_manifest(manifest)) == manifest
    texts = (None, recipient.encode(()), recipient.encode(people), recipient.encode_manifest(manifest))
    assert [recipient.how_many(text) for text in texts] == [0, 0, 3, 7]
