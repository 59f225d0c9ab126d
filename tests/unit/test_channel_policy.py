"""The channel policy: on which of the channels that lead to somebody a notification goes, for any person and order.

The law is stated against the decision of `all`, which `test_decision` spells out case by case.
"""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.decision import Known, Terms, decide
from clarion.domain.definition import ChannelPolicy
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import Contact, Person
from clarion.domain.recipient import Decision, Target
from clarion.domain.skip import SkipRule

ALL, FIRST, CASCADE = ChannelPolicy.ALL, ChannelPolicy.FIRST, ChannelPolicy.CASCADE
EMAIL, SMS, PUSH, INBOX = Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.INBOX
SAM = Identity.user("sam")
STAFF = UUID(int=1)

orders = st.permutations(list(Channel)).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda many: tuple(order[:many]))
)
contacts = st.lists(st.sampled_from([one for one in Channel if one is not INBOX]), max_size=6).map(
    lambda channels: tuple((channel, number) for number, channel in enumerate(channels, start=1))
)


def contacts_at(addresses: Sequence[tuple[Channel, int]]) -> tuple[Contact, ...]:
    return tuple(Contact(channel=channel, address_id=number, destination_index="") for channel, number in addresses)


def decided(
    policy: ChannelPolicy, order: Sequence[Channel], known_at: tuple[tuple[Channel, int], ...] | None
) -> tuple[Decision, ...]:
    """Decide for one person with these addresses, or for a stranger where there are none to have."""
    people = {}
    if known_at is not None:
        sam = Person(recipient_id_hash="sam", domain=SAM.domain, person_id=SAM.id, contacts=contacts_at(known_at))
        people["sam"] = sam
    (one,) = decide(
        [Target(identity=SAM)],
        terms=Terms(channels=tuple(order), policy=policy),
        known=Known(people=people),
        hash_of=lambda identity: identity.id,
    )
    return one.decisions


def going(decisions: Sequence[Decision]) -> list[Decision]:
    return [one for one in decisions if one.skipped is None]


@given(order=orders, known_at=st.none() | contacts)
def test_what_goes_by_first_or_cascade_is_all_that_goes_on_the_first_channel_that_leads_to_somebody(
    order: tuple[Channel, ...], known_at: tuple[tuple[Channel, int], ...] | None
) -> None:
    everything = going(decided(ALL, order, known_at))
    leading = [channel for channel in order if any(one.channel is channel for one in everything)]
    wanted = [one for one in everything if one.channel in leading[:1]]
    assert going(decided(FIRST, order, known_at)) == wanted
    assert going(decided(CASCADE, order, known_at)) == wanted


@given(policy=st.sampled_from(ChannelPolicy), order=orders, known_at=st.none() | contacts)
def test_every_channel_is_accounted_for_and_one_that_leads_nowhere_says_so_whatever_the_policy(
    policy: ChannelPolicy, order: tuple[Channel, ...], known_at: tuple[tuple[Channel, int], ...] | None
) -> None:
    decisions, everything = decided(policy, order, known_at), decided(ALL, order, known_at)
    assert tuple(dict.fromkeys(one.channel for one in decisions)) == order
    nowhere = [one for one in everything if one.skipped is not None]
    assert [one for one in decisions if one in nowhere] == nowhere


@given(order=orders, known_at=contacts)
def test_cascade_keeps_the_addresses_that_it_may_fall_back_to_and_first_keeps_none(
    order: tuple[Channel, ...], known_at: tuple[tuple[Channel, int], ...]
) -> None:
    def addresses(policy: ChannelPolicy) -> list[tuple[Channel, int | None]]:
        return [(one.channel, one.address_id) for one in decided(policy, order, known_at) if one.address_id]

    assert addresses(CASCADE) == addresses(ALL)
    assert addresses(FIRST) == [
        (one.channel, one.address_id) for one in going(decided(FIRST, order, known_at)) if one.address_id
    ]


@pytest.mark.parametrize(
    "policy, order, decisions",
    [
        (
            FIRST,
            (PUSH, EMAIL, SMS, INBOX),
            (
                Decision(channel=PUSH, skipped="no push address is known", rule=SkipRule.NO_ADDRESS),
                Decision(channel=EMAIL, address_id=1),
                Decision(channel=EMAIL, address_id=3),
                Decision(channel=SMS, skipped="not needed: it goes by email", rule=SkipRule.POLICY),
                Decision(channel=INBOX, skipped="not needed: it goes by email", rule=SkipRule.POLICY),
            ),
        ),
        (
            CASCADE,
            (SMS, EMAIL, PUSH, INBOX),
            (
                Decision(channel=SMS, address_id=2),
                Decision(channel=EMAIL, address_id=1, skipped="waits as the fallback of sms", rule=SkipRule.POLICY),
                Decision(channel=EMAIL, address_id=3, skipped="waits as the fallback of sms", rule=SkipRule.POLICY),
                Decision(channel=PUSH, skipped="no push address is known", rule=SkipRule.NO_ADDRESS),
                Decision(channel=INBOX, skipped="waits as the fallback of sms", rule=SkipRule.POLICY),
            ),
        ),
        (
            FIRST,
            (INBOX, EMAIL),
            (
                Decision(channel=INBOX),
                Decision(channel=EMAIL, skipped="not needed: it goes by inbox", rule=SkipRule.POLICY),
            ),
        ),
    ],
)
def test_a_channel_that_is_left_out_says_why(
    policy: ChannelPolicy, order: tuple[Channel, ...], decisions: tuple[Decision, ...]
) -> None:
    assert decided(policy, order, ((EMAIL, 1), (SMS, 2), (EMAIL, 3))) == decisions


@pytest.mark.parametrize("policy", ChannelPolicy)
def test_an_address_that_a_caller_names_is_left_out_by_no_policy(policy: ChannelPolicy) -> None:
    phone = Identity.address("+447700900001")
    (one,) = decide(
        [Target(identity=phone, channel=SMS), Target(identity=phone, channel=Channel.CHAT)],
        terms=Terms(channels=(Channel.CHAT, SMS), policy=policy),
        known=Known(addresses={(one.channel, phone.id): one for one in contacts_at([(SMS, 1), (Channel.CHAT, 2)])}),
        hash_of=lambda identity: identity.id,
    )
    assert [decision.address_id for decision in one.decisions] == [1, 2]


def test_members_of_a_group_are_decided_about_one_by_one() -> None:
    people = {
        name: Person(recipient_id_hash=name, domain=SAM.domain, person_id=name, contacts=contacts_at(at))
        for name, at in {"sam": ((EMAIL, 1), (SMS, 2)), "kim": ((SMS, 3),)}.items()
    }
    found = decide(
        [Target(identity=Identity.group(STAFF))],
        terms=Terms(channels=(EMAIL, SMS), policy=FIRST),
        known=Known(people=people, members={STAFF: ("sam", "kim")}),
        hash_of=lambda identity: identity.id,
    )
    assert [[one.address_id for one in recipient.decisions] for recipient in found] == [[1, None], [None, 3]]
