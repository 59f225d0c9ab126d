"""Who gets what on which channel, and why not: the decision about the recipients of one job.

`decide` is made once for a job, by `generate`, and its answer is frozen (`domain.recipient`). `decide_people` is the
same for people who are known by their hashes only, as those of an audience are. Every channel that leads nowhere is in
the answer with its reason and its rule, so the same function sends, explains, and says what would happen.

The rules are asked in this order, and the first that applies decides:

1. of the channel: has the notification a template for it, and do the settings take it (`NO_TEMPLATE`, `SETTING`);
2. of the recipient: are they known, and do they want it there (`UNKNOWN_PERSON`, `SUPPRESSION`, `PREFERENCE`);
3. of each of their addresses: is there any, is it in use, is it known to be theirs, may it go there (`NO_ADDRESS`,
   `RETIRED`, `UNVERIFIED`, `SUPPRESSION`, `PREFERENCE`);
4. of the channels that are left: the channel policy (`POLICY`).

The policy says whether it goes on all of the channels that lead to a person, or on the first of them in their order.
With `cascade` the others are kept for falling back to them, with their addresses, so that falling back needs no second
look at the directory (I-06). An address that a caller names is a channel by itself, and no policy leaves it out.

Nothing goes to an address that is not verified, a code that is to verify it neither: that is sent to the bare address.
If it were sent to the person, it would also reach the addresses that are verified, and prove nothing.

Pure: what is known about the recipients is an argument.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never
from uuid import UUID

import msgspec

from clarion.domain import locale
from clarion.domain.definition import ChannelPolicy, Definition
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.local_time import UTC_NAME
from clarion.domain.person import Contact, LocalForm, Person
from clarion.domain.recipient import Decision, FrozenRecipient, Target
from clarion.domain.setting import EffectiveSetting, LeftOut, channels_under
from clarion.domain.skip import SkipRule
from clarion.domain.suppression import EVERYTHING, IN_WORDS, Cause, in_force, scope_of

NOT_SET: Final = EffectiveSetting()
"""What holds for a type that nobody has set anything of."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all recipients of one notification.

    The channels are in the order in which they are tried: that of the send or, where it gives none, the definition's.
    `category` is the one that people may opt out of, None where it is required. `left_out` are the channels by which it
    goes to nobody.
    """

    channels: tuple[Channel, ...]
    policy: ChannelPolicy = ChannelPolicy.ALL
    category: str | None = None
    left_out: tuple[LeftOut, ...] = ()


def terms_of(definition: Definition, *, channels: Sequence[Channel] = (), setting: EffectiveSetting = NOT_SET) -> Terms:
    """Say what holds for all recipients of a notification; `channels` are those that its send asks for, if it does."""
    chosen, left_out = channels_under(setting, of_type=definition.channels, asked=channels)
    return Terms(
        channels=chosen,
        policy=definition.channel_policy,
        category=definition.category if definition.may_unsubscribe else None,
        left_out=left_out,
    )


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about recipients; whoever is in none of the mappings is not known.

    `suppressed` has the scopes and causes of suppressions by subject: the hash of a recipient, or the index of a
    destination.
    """

    people: Mapping[str, Person] = {}  # by recipient_id_hash
    members: Mapping[UUID, tuple[str, ...]] = {}  # the recipient_id_hash of each member, by group
    addresses: Mapping[tuple[Channel, str], Contact] = {}  # the address version of each bare address
    suppressed: Mapping[str, Mapping[str, Cause]] = {}


def decide(
    targets: Sequence[Target], *, terms: Terms, known: Known, hash_of: Callable[[Identity], str]
) -> tuple[FrozenRecipient, ...]:
    """Decide where a notification leads for those whom a send names, each once however often they are named."""
    frozen: dict[str, FrozenRecipient] = {}
    for target in targets:
        identity = target.identity
        match identity.domain:
            case IdentityDomain.GROUP:
                for member in known.members.get(UUID(identity.id), ()):
                    frozen.setdefault(member, _person(member, terms, known))
            case IdentityDomain.USER | IdentityDomain.EMPLOYEE:
                hashed = hash_of(identity)
                frozen[hashed] = _person(hashed, terms, known, identity)
            case IdentityDomain.ADDRESS:
                hashed = hash_of(identity)
                decision = _bare_address(hashed, target, terms, known)
                decisions = frozen[hashed].decisions if hashed in frozen else ()
                frozen[hashed] = FrozenRecipient(
                    recipient_id_hash=hashed,
                    domain=IdentityDomain.ADDRESS,
                    decisions=decisions if decision in decisions else (*decisions, decision),
                )
            case _:
                assert_never(identity.domain)
    return tuple(frozen.values())


def decide_people(hashes: Iterable[str], *, terms: Terms, known: Known) -> tuple[FrozenRecipient, ...]:
    """Decide where a notification leads for people, such as those of one page of an audience, in the order given."""
    return tuple(_person(hashed, terms, known) for hashed in dict.fromkeys(hashes))


def nearest(forms: Mapping[UUID | None, LocalForm], unit: UUID | None) -> list[LocalForm]:
    """Give those who speak for people that do not say how they read: the business unit, and behind it the tenant.

    `forms` has the tenant's own under None; a unit that is not known says nothing.
    """
    asked = [None] if unit is None else [unit, None]
    return [forms[one] for one in asked if one in forms]


def zone_in(forms: Mapping[UUID | None, LocalForm], unit: UUID | None) -> str:
    """Name the zone of a business unit: its own, else the tenant's, else UTC."""
    return next((form.tz_id for form in nearest(forms, unit) if form.tz_id is not None), UTC_NAME)


def in_their_form(
    recipients: Sequence[FrozenRecipient],
    *,
    people: Mapping[str, Person],
    asked: str | None,
    others: Sequence[LocalForm],
    locales: Sequence[str],
) -> tuple[FrozenRecipient, ...]:
    """Say with which profile, and in which language and zone, each recipient is written to.

    `asked` is the language that the send asks for, `others` are those who speak for people that do not say it
    themselves, the nearest first. `locales` are those of the notification.
    """
    formed: list[FrozenRecipient] = []
    known: dict[tuple[str | None, str | None], tuple[str | None, str | None]] = {}  # most people of a tenant read alike
    for one in recipients:
        person = people.get(one.recipient_id_hash)
        own = (None, None) if person is None else (person.locale, person.tz_id)
        if own not in known:
            wanted = [asked, own[0], *(form.locale for form in others)]
            zones = (own[1], *(form.tz_id for form in others))
            known[own] = locale.resolve(wanted, locales) or None, next((zone for zone in zones if zone), None)
        spoken, zone = known[own]
        version = None if person is None else person.person_version_id
        formed.append(
            FrozenRecipient(
                recipient_id_hash=one.recipient_id_hash,
                domain=one.domain,
                person_id=one.person_id,
                person_version_id=version,
                locale=spoken,
                tz_id=zone,
                decisions=one.decisions,
            )
        )
    return tuple(formed)


def _person(recipient_id_hash: str, terms: Terms, known: Known, named: Identity | None = None) -> FrozenRecipient:
    """Decide for a person: the inbox, and every address on a channel of the notification; a stranger gets nothing."""
    person = known.people.get(recipient_id_hash)
    identity = person.identity if person else named
    leading = [one for channel in terms.channels for one in _on(channel, recipient_id_hash, person, terms, known)]
    decisions = [*_chosen(leading, terms.policy), *map(_left_out, terms.left_out)]
    return FrozenRecipient(
        recipient_id_hash=recipient_id_hash,
        domain=identity.domain if identity else IdentityDomain.USER,
        person_id=identity.id if identity else None,
        decisions=tuple(dict.fromkeys(decisions)),  # a reason once, however many it is for
    )


def _left_out(one: LeftOut) -> Decision:
    return _skipped(one.channel, one.why, one.rule)


def _on(
    channel: Channel, recipient_id_hash: str, person: Person | None, terms: Terms, known: Known
) -> Sequence[Decision]:
    """Decide for a person on one channel, before the policy is asked: once, or for each address."""
    if person is None:
        return [_skipped(channel, "the person is not known", SkipRule.UNKNOWN_PERSON)]
    unwanted = _unwanted(channel, recipient_id_hash, terms, known)
    if unwanted is not None:
        return [_skipped(channel, *unwanted)]
    if channel is Channel.INBOX:
        return [Decision(channel=channel)]
    contacts = [one for one in person.contacts if one.channel is channel]
    if not contacts:
        return [_skipped(channel, f"no {channel} address is known", SkipRule.NO_ADDRESS)]
    return [_at(contact, terms, known) for contact in contacts]


def _at(contact: Contact, terms: Terms, known: Known) -> Decision:
    """Decide for one address, which the decision names; a retired one it does not, however many of them there are."""
    channel = contact.channel
    if not contact.is_current:
        return _skipped(channel, f"the {channel} address is retired", SkipRule.RETIRED)
    if not contact.verified:
        return _skipped(channel, f"the {channel} address is not verified", SkipRule.UNVERIFIED, contact.address_id)
    unwanted = _unwanted(channel, contact.destination_index, terms, known)
    if unwanted is not None:
        return _skipped(channel, *unwanted, contact.address_id)
    return Decision(channel=channel, address_id=contact.address_id)


def _unwanted(channel: Channel, subject: str, terms: Terms, known: Known) -> tuple[str, SkipRule] | None:
    """Say why a subject gets nothing of a notification on a channel, and by which rule; None without any.

    The words are those of a message that is stopped at its claim, and what it is that is not wanted.
    """
    stored = known.suppressed.get(subject)
    if not stored:
        return None
    written = None if terms.category is None else scope_of(terms.category)
    found = in_force(stored.items(), written=written, channel=channel)
    if found is None:
        return None
    scope, cause = found
    if scope == EVERYTHING:
        return IN_WORDS[cause], SkipRule.SUPPRESSION
    what = terms.category if scope == written else f"{terms.category} on {channel}"
    return f"{IN_WORDS[cause]} ({what})", SkipRule.PREFERENCE


def _skipped(channel: Channel, why: str, rule: SkipRule, address_id: int | None = None) -> Decision:
    return Decision(channel=channel, address_id=address_id, skipped=why, rule=rule)


def _chosen(decisions: Sequence[Decision], policy: ChannelPolicy) -> Iterator[Decision]:
    """Leave the channels out that the policy does not take: those after the first that leads to the person."""
    first = next((one.channel for one in decisions if one.skipped is None), None)
    for one in decisions:
        if policy is ChannelPolicy.ALL or one.skipped is not None or one.channel is first:
            yield one
        elif policy is ChannelPolicy.FIRST:
            yield _skipped(one.channel, f"not needed: it goes by {first}", SkipRule.POLICY)
        else:
            yield _skipped(one.channel, f"waits as the fallback of {first}", SkipRule.POLICY, one.address_id)


def _bare_address(recipient_id_hash: str, target: Target, terms: Terms, known: Known) -> Decision:
    """Decide for a bare address: it is reached on its own channel, if the notification goes by that one.

    Its address version stays in the decision, because nothing else says which address it was.
    """
    channel = target.channel
    contact = None if channel is None else known.addresses.get((channel, target.identity.id))
    address_id = None if contact is None else contact.address_id
    left_out = next((one for one in terms.left_out if one.channel is channel), None)
    if left_out is not None:
        return _skipped(left_out.channel, left_out.why, left_out.rule, address_id)
    if channel is None or channel not in terms.channels:
        reason = "the notification has no template for this channel"
        return _skipped(channel or (*terms.channels, Channel.EMAIL)[0], reason, SkipRule.NO_TEMPLATE, address_id)
    if contact is None:
        return _skipped(channel, "the address is not stored", SkipRule.NO_ADDRESS)
    unwanted = _unwanted(channel, recipient_id_hash, terms, known)
    if unwanted is not None:
        return _skipped(channel, *unwanted, address_id)
    return _at(contact, terms, known)
