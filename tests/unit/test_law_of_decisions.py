"""The law of the decision, in another form: what speaks against each message, and that nothing else does.

The code asks one rule after the other and stops at the first that applies. Here all that speaks against a message is
written down for every channel and address, whether it is asked or not. Then a message goes where nothing does, and what
does not go names something that does: of all that there is, the earliest in the order of the law.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.decision import Known, Terms, decide, decide_people, terms_of
from clarion.domain.definition import ChannelPolicy, Definition
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import Contact, Person
from clarion.domain.recipient import Decision, Target
from clarion.domain.setting import EffectiveSetting, LeftOut, Place
from clarion.domain.skip import SkipRule
from clarion.domain.suppression import Cause

EMAIL, SMS, PUSH, INBOX = Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.INBOX
SAM = Identity.user("sam")
OFF = Cause.PREFERENCE
GONE_AT = datetime(2026, 1, 2, tzinfo=UTC)
ORDER = [
    SkipRule.SETTING,
    SkipRule.UNKNOWN_PERSON,
    *(SkipRule.SUPPRESSION, SkipRule.PREFERENCE),  # of the person
    SkipRule.NO_ADDRESS,
    SkipRule.RETIRED,
    SkipRule.UNVERIFIED,
    *(SkipRule.SUPPRESSION, SkipRule.PREFERENCE),  # of the address
]


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a decision about one person can depend on."""

    order: tuple[Channel, ...]
    left_out: tuple[Channel, ...] = ()
    policy: ChannelPolicy = ChannelPolicy.ALL
    category: str | None = "n"
    is_known: bool = True
    contacts: tuple[Contact, ...] = ()
    suppressed: Mapping[str, Mapping[str, Cause]] = {}

    def decisions(self) -> tuple[Decision, ...]:
        left_out = tuple(LeftOut(channel=one, rule=SkipRule.SETTING, why="left out") for one in self.left_out)
        terms = Terms(channels=self.order, policy=self.policy, category=self.category, left_out=left_out)
        person = Person(recipient_id_hash="sam", domain=SAM.domain, person_id=SAM.id, contacts=self.contacts)
        known = Known(people={"sam": person} if self.is_known else {}, suppressed=self.suppressed)
        (one,) = decide([Target(identity=SAM)], terms=terms, known=known, hash_of=lambda identity: identity.id)
        assert [page.decisions for page in decide_people(["sam"], terms=terms, known=known)] == [one.decisions]
        return one.decisions

    def places(self) -> Iterator[tuple[Channel, Contact | None]]:
        """Name everything that a message could go to: addresses, and where there is none, the channel itself."""
        for channel in (*self.order, *self.left_out):
            contacts = [one for one in self.contacts if one.channel is channel and self.is_known]
            yield from [(channel, one) for one in contacts] if contacts and channel is not INBOX else [(channel, None)]

    def against(self, channel: Channel, contact: Contact | None) -> list[int]:
        """List all that speaks against a message there, as places in the order of the law."""
        person = self.suppressed.get("sam", {})
        address = self.suppressed.get(contact.destination_index, {}) if contact else {}
        facts = [
            channel in self.left_out,
            not self.is_known,
            "*" in person,
            self.refuses(person, channel),
            contact is None and channel is not INBOX,
            contact is not None and contact.retired_at is not None,
            contact is not None and not contact.verified,
            "*" in address,
            self.refuses(address, channel),
        ]
        return [place for place, speaks in enumerate(facts) if speaks]

    def refuses(self, scopes: Collection[str], channel: Channel) -> bool:
        """Tell whether somebody opted out of the category, whole or on the channel; nobody can of a required one."""
        return self.category is not None and not {self.category, f"{self.category}:{channel}"}.isdisjoint(scopes)


contacts = st.lists(
    st.builds(
        Contact,
        channel=st.sampled_from([EMAIL, SMS, PUSH]),
        address_id=st.integers(1, 9),
        destination_index=st.sampled_from(["x", "y", "z"]),
        verified=st.booleans(),
        retired_at=st.sampled_from([None, None, GONE_AT]),
    ),
    max_size=5,
    unique_by=lambda one: one.address_id,
).map(tuple)
scopes = st.dictionaries(
    st.sampled_from(["*", "n", "n:email", "n:sms", "n:inbox", "other", "other:email"]),
    st.sampled_from(Cause),
    max_size=3,
)
worlds = st.builds(
    lambda order, cut, **rest: World(order=tuple(order[:cut]), left_out=tuple(order[cut:]), **rest),
    order=st.permutations([EMAIL, SMS, PUSH, INBOX]),
    cut=st.integers(0, 4),
    policy=st.sampled_from(ChannelPolicy),
    category=st.sampled_from(["n", None]),
    is_known=st.sampled_from([True, True, True, False]),
    contacts=contacts,
    suppressed=st.dictionaries(st.sampled_from(["sam", "x", "y", "z"]), scopes, max_size=3),
)


def clear(world: World) -> list[tuple[Channel, int | None]]:
    """List where nothing speaks against a message."""
    return [
        (channel, contact.address_id if contact else None)
        for channel, contact in world.places()
        if not world.against(channel, contact)
    ]


def check(world: World) -> None:
    """Hold one decision to the law."""
    decisions = world.decisions()
    assert len(set(decisions)) == len(decisions), "nothing is said twice"
    assert {one.channel for one in decisions} == {*world.order, *world.left_out}, "every channel has its outcome"
    going = [(one.channel, one.address_id) for one in decisions if one.skipped is None]
    unopposed = clear(world)
    first = unopposed[0][0] if unopposed else None
    kept = unopposed if world.policy is ChannelPolicy.ALL else [one for one in unopposed if one[0] is first]
    assert going == kept
    for channel, contact in world.places():
        said = [
            one
            for one in decisions
            if one.channel is channel and one.address_id in (None, contact.address_id if contact else None)
        ]
        against = world.against(channel, contact)
        if against:
            assert ORDER[against[0]] in {one.rule for one in said}, "what does not go says the first rule against it"
        elif (channel, contact.address_id if contact else None) not in kept:
            assert SkipRule.POLICY in {one.rule for one in said}
        else:
            assert [(one.rule, one.skipped) for one in said if one.skipped is None] == [(None, None)]
    for one in decisions:
        assert (one.skipped is None) == (one.rule is None), "whatever is skipped has words and a rule"
        if one.rule not in (None, SkipRule.POLICY):
            reasons = [
                ORDER[world.against(channel, contact)[0]]
                for channel, contact in world.places()
                if channel is one.channel and world.against(channel, contact)
                if one.address_id in (None, contact.address_id if contact else None)
            ]
            assert one.rule in reasons, "no rule is named that did not decide"


@given(world=worlds)
def test_a_message_goes_where_nothing_speaks_against_it_and_what_does_not_go_says_what_did_first(world: World) -> None:
    check(world)


def test_the_law_holds_for_every_small_world() -> None:
    """One address, and everything that can be said of it and of its owner."""
    said: set[SkipRule | None] = set()
    subjects: Sequence[Mapping[str, Cause]] = [{}, {"*": Cause.BOUNCE}, {"n": OFF}, {"n:email": OFF}]
    for policy, category, is_known, is_left_out, person, address, verified, retired in product(
        ChannelPolicy,
        ("n", None),
        (True, False),
        (True, False),
        subjects,
        subjects,
        (True, False),
        (None, GONE_AT),
    ):
        contact = Contact(channel=EMAIL, address_id=1, destination_index="x", verified=verified, retired_at=retired)
        world = World(
            order=(INBOX, SMS) if is_left_out else (INBOX, EMAIL, SMS),
            left_out=(EMAIL,) if is_left_out else (),
            policy=policy,
            category=category,
            is_known=is_known,
            contacts=(contact,),
            suppressed={"sam": person, "x": address},
        )
        check(world)
        said |= {one.rule for one in world.decisions()}
    assert said == {None, SkipRule.POLICY, *ORDER}


@given(world=worlds, subject=st.sampled_from(["sam", "x"]), scope=st.sampled_from(["*", "n", "n:sms"]))
def test_one_more_suppression_never_makes_one_more_message(world: World, subject: str, scope: str) -> None:
    """With `all`; with `first` a channel may take over from one that is closed now."""
    world = msgspec.structs.replace(world, policy=ChannelPolicy.ALL)
    more = {**world.suppressed, subject: {**world.suppressed.get(subject, {}), scope: Cause.MANUAL}}
    before = {one for one in world.decisions() if one.skipped is None}
    after = {one for one in msgspec.structs.replace(world, suppressed=more).decisions() if one.skipped is None}
    assert after <= before


PHONE = Identity.address("+447700900001")


@pytest.mark.parametrize(
    "suppressed, category, rule, words",
    [
        ({}, "news", None, None),
        ({PHONE.id: {"*": Cause.COMPLAINT}}, "news", SkipRule.SUPPRESSION, "the recipient complained"),
        ({PHONE.id: {"*": Cause.MANUAL}}, None, SkipRule.SUPPRESSION, "somebody suppressed it by hand"),
        ({"i": {"*": Cause.BOUNCE}}, "news", SkipRule.SUPPRESSION, "the address bounced"),
        ({"i": {"*": Cause.BOUNCE}}, None, SkipRule.SUPPRESSION, "the address bounced"),
        ({PHONE.id: {"news": OFF}}, "news", SkipRule.PREFERENCE, "the recipient switched it off (news)"),
        ({PHONE.id: {"news:sms": OFF}}, "news", SkipRule.PREFERENCE, "the recipient switched it off (news on sms)"),
        (
            {PHONE.id: {"news:sms": OFF, "news": Cause.UNSUBSCRIBE}},
            "news",
            SkipRule.PREFERENCE,
            "the recipient unsubscribed (news)",
        ),
        (
            {PHONE.id: {"news": OFF, "*": Cause.STOP}},
            "news",
            SkipRule.SUPPRESSION,
            "the recipient answered STOP",
        ),
        ({"i": {"news:sms": Cause.STOP}}, "news", SkipRule.PREFERENCE, "the recipient answered STOP (news on sms)"),
        ({PHONE.id: {"news": OFF}, "i": {"news:sms": OFF}}, None, None, None),
        ({PHONE.id: {"news:email": OFF}}, "news", None, None),
        (
            {PHONE.id: {"school%20news": OFF}},
            "school news",
            SkipRule.PREFERENCE,
            "the recipient switched it off (school news)",
        ),
    ],
)
def test_a_bare_address_is_refused_by_what_it_said_itself(
    suppressed: Mapping[str, Mapping[str, Cause]], category: str | None, rule: SkipRule | None, words: str | None
) -> None:
    """Its version stays in the decision, so that people can be told which address it was."""
    contact = Contact(channel=SMS, address_id=7, destination_index="i")
    (one,) = decide(
        [Target(identity=PHONE, channel=SMS)],
        terms=Terms(channels=(SMS,), category=category),
        known=Known(addresses={(SMS, PHONE.id): contact}, suppressed=suppressed),
        hash_of=lambda identity: identity.id,
    )
    assert one.decisions == (Decision(channel=SMS, address_id=7, skipped=words, rule=rule),)


DEFINITION = Definition(key="news", title="News", channels=(EMAIL, SMS, INBOX), category="news", may_unsubscribe=True)


@pytest.mark.parametrize(
    "definition, setting, asked, terms",
    [
        (DEFINITION, EffectiveSetting(), (), ((EMAIL, SMS, INBOX), "news", [])),
        (DEFINITION, EffectiveSetting(), (SMS, EMAIL), ((SMS, EMAIL), "news", [])),
        (
            msgspec.structs.replace(DEFINITION, may_unsubscribe=False),
            EffectiveSetting(),
            (),
            ((EMAIL, SMS, INBOX), None, []),
        ),
        (
            DEFINITION,
            EffectiveSetting(channels=(SMS, EMAIL), channels_by=Place.UNIT),
            (),
            ((SMS, EMAIL), "news", [(INBOX, SkipRule.SETTING)]),
        ),
        (
            DEFINITION,
            EffectiveSetting(channels=(SMS, EMAIL), channels_by=Place.TENANT),
            (INBOX, EMAIL),
            ((EMAIL,), "news", [(INBOX, SkipRule.SETTING)]),
        ),
        (
            DEFINITION,
            EffectiveSetting(channels=(), channels_by=Place.TENANT),
            (EMAIL,),
            ((), "news", [(EMAIL, SkipRule.SETTING)]),
        ),
    ],
    ids=["nothing set", "asked", "required", "set", "asked and set", "none is left"],
)
def test_the_terms_of_a_notification_are_those_of_its_definition_its_send_and_its_setting(
    definition: Definition,
    setting: EffectiveSetting,
    asked: tuple[Channel, ...],
    terms: tuple[tuple[Channel, ...], str | None, list[tuple[Channel, SkipRule]]],
) -> None:
    found = terms_of(definition, channels=asked, setting=setting)
    assert (found.channels, found.category, [(one.channel, one.rule) for one in found.left_out]) == terms
    assert found.policy is definition.channel_policy
