"""Who gets what: for every way to name a recipient, where the notification's channels lead and why they do not."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from clarion.domain.decision import Known, Terms, decide, decide_people, in_their_form, nearest, zone_in
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.person import Contact, LocalForm, Person
from clarion.domain.recipient import Decision, FrozenRecipient, Target
from clarion.domain.setting import LeftOut
from clarion.domain.skip import SkipRule

EMAIL, SMS, PUSH, INBOX = Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.INBOX
STAFF, NOBODY = UUID(int=1), UUID(int=2)
SAM, KIM, PAT, OLD = Identity.user("sam"), Identity.user("kim"), Identity.employee(UUID(int=3)), Identity.user("old")
NEW = Identity.user("new")
MAIL = Identity.address("sam@example.com")


def hash_of(identity: Identity) -> str:
    return f"{identity.domain}/{identity.id}"


def contact(channel: Channel, address_id: int) -> Contact:
    return Contact(channel=channel, address_id=address_id, destination_index="")


def retired(channel: Channel, address_id: int) -> Contact:
    return msgspec.structs.replace(contact(channel, address_id), retired_at=datetime(2026, 1, 2, tzinfo=UTC))


def unverified(channel: Channel, address_id: int) -> Contact:
    return msgspec.structs.replace(contact(channel, address_id), verified=False)


def person(identity: Identity, *contacts: tuple[Channel, int]) -> Person:
    return Person(
        recipient_id_hash=hash_of(identity),
        domain=identity.domain,
        person_id=identity.id,
        contacts=tuple(contact(channel, number) for channel, number in contacts),
    )


KNOWN = Known(
    people={
        hash_of(SAM): person(SAM, (EMAIL, 11), (SMS, 12), (EMAIL, 13)),
        hash_of(KIM): person(KIM),
        hash_of(PAT): person(PAT, (SMS, 31)),
        hash_of(OLD): msgspec.structs.replace(
            person(OLD),
            contacts=(retired(PUSH, 51), retired(PUSH, 52), contact(PUSH, 53), retired(EMAIL, 54)),
        ),
        hash_of(NEW): msgspec.structs.replace(
            person(NEW), contacts=(unverified(EMAIL, 61), contact(EMAIL, 62), unverified(SMS, 63))
        ),
    },
    members={STAFF: (hash_of(KIM), hash_of(SAM)), NOBODY: ()},
    addresses={(EMAIL, MAIL.id): contact(EMAIL, 41), (SMS, "+447700900001"): contact(SMS, 42)},
)


def to(identity: Identity, channel: Channel | None = None) -> Target:
    return Target(identity=identity, channel=channel)


def address(channel: Channel, address_id: int) -> Decision:
    return Decision(channel=channel, address_id=address_id)


def stranger_on(channel: Channel) -> Decision:
    return Decision(channel=channel, skipped="the person is not known", rule=SkipRule.UNKNOWN_PERSON)


def retired_on(channel: Channel) -> Decision:
    return Decision(channel=channel, skipped=f"the {channel} address is retired", rule=SkipRule.RETIRED)


def unverified_on(channel: Channel, address_id: int) -> Decision:
    reason = f"the {channel} address is not verified"
    return Decision(channel=channel, address_id=address_id, skipped=reason, rule=SkipRule.UNVERIFIED)


def untold_on(channel: Channel) -> Decision:
    reason = "the notification has no template for this channel"
    return Decision(channel=channel, skipped=reason, rule=SkipRule.NO_TEMPLATE)


NOT_BY_SMS = LeftOut(channel=SMS, rule=SkipRule.SETTING, why="the tenant's setting leaves sms out")
NOT_STORED = Decision(channel=EMAIL, skipped="the address is not stored", rule=SkipRule.NO_ADDRESS)
NO_MAIL = Decision(channel=EMAIL, skipped="no email address is known", rule=SkipRule.NO_ADDRESS)
NO_PHONE = Decision(channel=SMS, skipped="no sms address is known", rule=SkipRule.NO_ADDRESS)


@pytest.mark.parametrize(
    "target, channels, decisions",
    [
        # A person is reached at every address on a channel of the notification, and at no other.
        (to(SAM), (EMAIL,), (address(EMAIL, 11), address(EMAIL, 13))),
        (to(SAM), (SMS, EMAIL), (address(SMS, 12), address(EMAIL, 11), address(EMAIL, 13))),
        (to(SAM), (INBOX,), (Decision(channel=INBOX),)),
        (to(PAT), (EMAIL, SMS, INBOX), (NO_MAIL, address(SMS, 31), Decision(channel=INBOX))),
        (to(KIM), (EMAIL, SMS), (NO_MAIL, NO_PHONE)),
        # A retired address is reached no more, and says so once for its channel.
        (to(OLD), (PUSH,), (retired_on(PUSH), address(PUSH, 53))),
        (to(OLD), (EMAIL, SMS), (retired_on(EMAIL), NO_PHONE)),
        # Nor is one that is not known to be the person's own, and it is said of each which one it is.
        (to(NEW), (EMAIL, SMS), (unverified_on(EMAIL, 61), address(EMAIL, 62), unverified_on(SMS, 63))),
        # Somebody who is not known gets nothing, the inbox included.
        (
            to(Identity.user("stranger")),
            (EMAIL, INBOX),
            (stranger_on(EMAIL), stranger_on(INBOX)),
        ),
        # A bare address is reached on its own channel, if the notification has a template for it.
        (to(MAIL, EMAIL), (EMAIL, SMS, INBOX), (address(EMAIL, 41),)),
        (to(MAIL, EMAIL), (SMS,), (msgspec.structs.replace(untold_on(EMAIL), address_id=41),)),
        (to(Identity.address("kim@example.com"), EMAIL), (EMAIL,), (NOT_STORED,)),
        (to(MAIL), (SMS, EMAIL), (untold_on(SMS),)),
    ],
)
def test_a_recipient_is_reached_where_it_is_known(
    target: Target, channels: tuple[Channel, ...], decisions: tuple[Decision, ...]
) -> None:
    (one,) = decide([target], terms=Terms(channels=channels), known=KNOWN, hash_of=hash_of)
    assert one.decisions == decisions
    assert one.recipient_id_hash == hash_of(target.identity)


@pytest.mark.parametrize(
    "identity, inbox",
    [(SAM, SAM), (PAT, PAT), (Identity.user("stranger"), Identity.user("stranger")), (MAIL, None)],
)
def test_a_person_keeps_their_identity_and_a_bare_address_has_none(identity: Identity, inbox: Identity | None) -> None:
    (one,) = decide([to(identity, EMAIL)], terms=Terms(channels=(EMAIL,)), known=KNOWN, hash_of=hash_of)
    assert (one.domain, one.inbox_identity) == (identity.domain, inbox)


@pytest.mark.parametrize(
    "targets, hashes",
    [
        ([to(Identity.group(STAFF))], [hash_of(KIM), hash_of(SAM)]),
        ([to(Identity.group(NOBODY))], []),
        ([to(Identity.group(UUID(int=9)))], []),
        ([to(SAM), to(SAM)], [hash_of(SAM)]),
        ([to(SAM), to(Identity.group(STAFF)), to(PAT)], [hash_of(SAM), hash_of(KIM), hash_of(PAT)]),
        ([to(Identity.group(STAFF)), to(SAM)], [hash_of(KIM), hash_of(SAM)]),
    ],
)
def test_everybody_is_in_the_set_once_however_often_they_are_named(targets: list[Target], hashes: list[str]) -> None:
    found = decide(targets, terms=Terms(channels=(EMAIL,)), known=KNOWN, hash_of=hash_of)
    assert [one.recipient_id_hash for one in found] == hashes


def test_a_member_who_is_not_known_is_skipped_and_has_no_identity_until_a_target_names_them() -> None:
    stranger = Identity.employee(UUID(int=8))
    known = Known(members={STAFF: (hash_of(stranger),)})
    group = to(Identity.group(STAFF))
    (one,) = decide([group], terms=Terms(channels=(INBOX,)), known=known, hash_of=hash_of)
    assert (one.inbox_identity, one.decisions) == (None, (stranger_on(INBOX),))
    (named,) = decide([group, to(stranger)], terms=Terms(channels=(INBOX,)), known=known, hash_of=hash_of)
    assert named.inbox_identity == stranger


def test_a_page_of_people_is_decided_about_as_a_send_that_names_them() -> None:
    terms = Terms(channels=(EMAIL, INBOX), left_out=(NOT_BY_SMS,))
    hashes = [*KNOWN.people, "stranger"]
    (*known, stranger) = decide_people([*hashes, *hashes], terms=terms, known=KNOWN)
    assert tuple(known) == decide(
        [to(one.identity) for one in KNOWN.people.values()], terms=terms, known=KNOWN, hash_of=hash_of
    )
    left_out = Decision(channel=SMS, skipped=NOT_BY_SMS.why, rule=SkipRule.SETTING)
    assert stranger.decisions == (stranger_on(EMAIL), stranger_on(INBOX), left_out)
    assert stranger.inbox_identity is None


def test_a_channel_that_the_settings_leave_out_is_for_nobody_not_even_for_an_address_that_is_named() -> None:
    terms = Terms(channels=(EMAIL,), left_out=(NOT_BY_SMS,))
    phone = Identity.address("+447700900001")
    sam, bare = decide([to(SAM), to(phone, SMS)], terms=terms, known=KNOWN, hash_of=hash_of)
    left_out = Decision(channel=SMS, skipped=NOT_BY_SMS.why, rule=SkipRule.SETTING)
    assert sam.decisions == (address(EMAIL, 11), address(EMAIL, 13), left_out)
    assert bare.decisions == (msgspec.structs.replace(left_out, address_id=42),)


def test_an_address_on_two_channels_is_one_recipient_with_both() -> None:
    phone = Identity.address("+447700900001")
    targets = [to(phone, SMS), to(phone, Channel.CHAT), to(phone, SMS)]
    (one,) = decide(targets, terms=Terms(channels=(SMS,)), known=KNOWN, hash_of=hash_of)
    assert one.decisions == (address(SMS, 42), untold_on(Channel.CHAT))


AUSTRIAN = LocalForm(locale="de-AT", tz_id="Europe/Vienna")


@pytest.mark.parametrize(
    "own, asked, others, formed",
    [
        (AUSTRIAN, None, (), ("de-AT", "Europe/Vienna")),
        (AUSTRIAN, "fr", (LocalForm(locale="en", tz_id="UTC"),), ("fr", "Europe/Vienna")),
        (AUSTRIAN, "ja", (), ("de-AT", "Europe/Vienna")),
        (LocalForm(), None, (LocalForm(tz_id="Asia/Tokyo"), AUSTRIAN), ("de-AT", "Asia/Tokyo")),
        (LocalForm(locale="ja"), None, (LocalForm(locale="fr-CA"), AUSTRIAN), ("fr-CA", "Europe/Vienna")),
        (LocalForm(), None, (), ("en", None)),
        (None, None, (AUSTRIAN,), ("de-AT", "Europe/Vienna")),
    ],
    ids=["own", "asked", "asked in vain", "unit and tenant", "unit instead", "nobody says", "bare address"],
)
def test_a_recipient_reads_as_the_first_says_who_says_anything(
    own: LocalForm | None, asked: str | None, others: tuple[LocalForm, ...], formed: tuple[str | None, str | None]
) -> None:
    """The send, the person, the business unit, the tenant; for the language only one that there are texts in."""
    known = {}
    if own is not None:
        known[hash_of(SAM)] = msgspec.structs.replace(
            person(SAM), person_version_id=7, locale=own.locale, tz_id=own.tz_id
        )
    decided = FrozenRecipient(recipient_id_hash=hash_of(SAM), domain=IdentityDomain.USER, decisions=())
    (one,) = in_their_form([decided], people=known, asked=asked, others=others, locales=("en", "de", "fr"))
    assert (one.locale, one.tz_id) == formed
    assert one.person_version_id == (None if own is None else 7)


def test_a_business_unit_speaks_before_its_tenant_and_an_unknown_one_not_at_all() -> None:
    unit, tenant = LocalForm(locale="fr"), AUSTRIAN
    forms = {None: tenant, STAFF: unit}
    assert nearest(forms, STAFF) == [unit, tenant]
    assert nearest(forms, None) == [tenant]
    assert nearest(forms, UUID(int=99)) == [tenant]
    assert nearest({}, STAFF) == []


def test_the_zone_of_a_unit_is_its_own_else_its_tenants_else_utc() -> None:
    vienna, tokyo = LocalForm(tz_id="Europe/Vienna"), LocalForm(tz_id="Asia/Tokyo")
    assert zone_in({None: tokyo, STAFF: vienna}, STAFF) == "Europe/Vienna"
    assert zone_in({None: tokyo, STAFF: LocalForm(locale="de")}, STAFF) == "Asia/Tokyo"
    assert zone_in({None: tokyo, STAFF: vienna}, None) == "Asia/Tokyo"
    assert zone_in({}, STAFF) == "UTC"
