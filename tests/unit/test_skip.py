"""The rules by which something was skipped: their spelling is stored, and what a newer program wrote can be read."""

import pytest

from clarion.domain import recipient
from clarion.domain.identity import Channel, IdentityDomain
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.recipient import Decision, FrozenRecipient
from clarion.domain.skip import MEANINGS, SkipRule, rule_of

SPELLED = {
    "type_off",
    "setting",
    "nobody",
    "unknown_person",
    "no_template",
    "no_address",
    "unverified",
    "retired",
    "suppression",
    "preference",
    "policy",
    "expired",
    "canceled",
    "other",
}


def test_every_rule_keeps_its_spelling() -> None:
    assert {rule.value for rule in SkipRule} == SPELLED


def test_every_rule_says_to_people_what_it_means_and_what_to_do() -> None:
    assert set(MEANINGS) == set(SkipRule)
    assert all(part.strip() for meaning in MEANINGS.values() for part in meaning)


def test_a_rule_is_stored_in_the_frozen_set() -> None:
    decision = Decision(channel=Channel.SMS, skipped="no sms address is known", rule=SkipRule.NO_ADDRESS)
    one = FrozenRecipient(recipient_id_hash="0" * 32, domain=IdentityDomain.USER, decisions=(decision,))
    stored = recipient.encode((one,))
    assert '"rule":"no_address"' in stored
    assert recipient.decode(stored) == (one,)


@pytest.mark.parametrize(
    "stored, rule",
    [
        # As sets were written before there were rules, and as a newer program may write them.
        ('{"channel":"sms","skipped":"no sms address is known"}', None),
        ('{"channel":"sms","skipped":"it is night there","rule":"quiet_hours"}', SkipRule.OTHER),
    ],
)
def test_sets_of_older_and_newer_programs_can_be_read(stored: str, rule: SkipRule | None) -> None:
    text = f'[{{"recipient_id_hash":"{"0" * 32}","domain":"user","decisions":[{stored}]}}]'
    ((decision,),) = [one.decisions for one in recipient.decode(text)]
    assert decision.rule is rule


def test_a_message_that_was_made_and_did_not_go_out_names_its_rule() -> None:
    named = {status: rule_of(status) for status in OutgoingStatus if rule_of(status) is not None}
    assert named == {
        OutgoingStatus.EXPIRED: SkipRule.EXPIRED,
        OutgoingStatus.CANCELED: SkipRule.CANCELED,
        OutgoingStatus.SUPPRESSED: SkipRule.SUPPRESSION,
    }
