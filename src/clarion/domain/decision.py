"""Who gets what on which channel, and why not: the decision about the recipients of one job.

`decide` is made once for a job, by `generate`, and its answer is frozen in the job's row (`domain.recipient`). Every
channel that leads nowhere is in the answer with its reason, so the same function sends and explains.

The channel policy of the notification says on which of the channels that lead to a person it goes: on all, or on the
first of them in the order given. With `cascade` the others are kept for falling back to them, with their addresses, so
that falling back needs no second look at the directory (I-06). An address that a caller names is a channel by itself,
and no policy leaves it out.

Pure: what is known about the recipients is an argument.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import assert_never
from uuid import UUID

import msgspec

from clarion.domain import locale
from clarion.domain.definition import ChannelPolicy
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.person import Contact, LocalForm, Person
from clarion.domain.recipient import Decision, FrozenRecipient, Target
from clarion.domain.skip import SkipRule


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the recipients that jobs name; whoever is in none of the mappings is not known."""

    people: Mapping[str, Person] = {}  # by recipient_id_hash
    members: Mapping[UUID, tuple[str, ...]] = {}  # the recipient_id_hash of each member, by group
    addresses: Mapping[tuple[Channel, str], int] = {}  # the address version of each bare address


def decide(
    targets: Sequence[Target],
    *,
    channels: Sequence[Channel],
    policy: ChannelPolicy = ChannelPolicy.ALL,
    known: Known,
    hash_of: Callable[[Identity], str],
) -> tuple[FrozenRecipient, ...]:
    """Decide where the channels of a notification lead for its recipients, each once however often it is named.

    The channels are in the order in which they are tried: that of the send or, where it gives none, the definition's.
    """
    frozen: dict[str, FrozenRecipient] = {}
    for target in targets:
        identity = target.identity
        match identity.domain:
            case IdentityDomain.GROUP:
                for member in known.members.get(UUID(identity.id), ()):
                    frozen.setdefault(member, _person(member, known.people.get(member), channels, policy))
            case IdentityDomain.USER | IdentityDomain.EMPLOYEE:
                hashed = hash_of(identity)
                frozen[hashed] = _person(hashed, known.people.get(hashed), channels, policy, identity)
            case IdentityDomain.ADDRESS:
                hashed = hash_of(identity)
                decision = _bare_address(target, channels, known)
                decisions = frozen[hashed].decisions if hashed in frozen else ()
                frozen[hashed] = FrozenRecipient(
                    recipient_id_hash=hashed,
                    domain=IdentityDomain.ADDRESS,
                    decisions=decisions if decision in decisions else (*decisions, decision),
                )
            case _:
                assert_never(identity.domain)
    return tuple(frozen.values())


def nearest(forms: Mapping[UUID | None, LocalForm], unit: UUID | None) -> list[LocalForm]:
    """Give those who speak for people that do not say how they read: the business unit, and behind it the tenant.

    `forms` has the tenant's own under None; a unit that is not known says nothing.
    """
    asked = [None] if unit is None else [unit, None]
    return [forms[one] for one in asked if one in forms]


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


def summary(recipients: Sequence[FrozenRecipient]) -> str:
    """Say in one line how many get it and how many do not; each skip has its own reason in its decision."""
    if not recipients:
        return "nobody to send it to: no group that it names has members"
    decisions = [decision for one in recipients for decision in one.decisions]
    skipped = sum(decision.skipped is not None for decision in decisions)
    text = f"{_counted(len(recipients), 'recipient')}, {_counted(len(decisions) - skipped, 'message')}"
    return text if not skipped else f"{text}, {skipped} skipped"


def _person(
    recipient_id_hash: str,
    person: Person | None,
    channels: Sequence[Channel],
    policy: ChannelPolicy,
    named: Identity | None = None,
) -> FrozenRecipient:
    """Decide for a person: the inbox, and every address on a channel of the notification; a stranger gets nothing."""
    identity = person.identity if person else named
    decisions: list[Decision] = []
    for channel in channels:
        if channel is Channel.INBOX and person:
            decisions.append(Decision(channel=channel))
            continue
        contacts = [one for one in person.contacts if one.channel is channel] if person else []
        decisions += [_at(contact) for contact in contacts]
        if not contacts:
            decisions.append(_unreached(channel, is_known=person is not None))
    return FrozenRecipient(
        recipient_id_hash=recipient_id_hash,
        domain=identity.domain if identity else IdentityDomain.USER,
        person_id=identity.id if identity else None,
        decisions=tuple(dict.fromkeys(_chosen(decisions, policy))),  # a reason once, however many addresses it is for
    )


def _at(contact: Contact) -> Decision:
    """Decide for one contact of a person: a retired one is reached no more."""
    if not contact.is_current:
        reason = f"the {contact.channel} address is retired"
        return Decision(channel=contact.channel, skipped=reason, rule=SkipRule.RETIRED)
    return Decision(channel=contact.channel, address_id=contact.address_id)


def _unreached(channel: Channel, *, is_known: bool) -> Decision:
    """Say why a channel does not lead to a person at all."""
    if not is_known:
        return Decision(channel=channel, skipped="the person is not known", rule=SkipRule.UNKNOWN_PERSON)
    return Decision(channel=channel, skipped=f"no {channel} address is known", rule=SkipRule.NO_ADDRESS)


def _chosen(decisions: Sequence[Decision], policy: ChannelPolicy) -> Iterator[Decision]:
    """Leave the channels out that the policy does not take: those after the first that leads to the person."""
    first = next((one.channel for one in decisions if one.skipped is None), None)
    for one in decisions:
        if policy is ChannelPolicy.ALL or one.skipped is not None or one.channel is first:
            yield one
        elif policy is ChannelPolicy.FIRST:
            yield Decision(channel=one.channel, skipped=f"not needed: it goes by {first}", rule=SkipRule.POLICY)
        else:
            waits = f"waits as the fallback of {first}"
            yield Decision(channel=one.channel, address_id=one.address_id, skipped=waits, rule=SkipRule.POLICY)


def _bare_address(target: Target, channels: Sequence[Channel], known: Known) -> Decision:
    """Decide for a bare address: it is reached on its own channel, if the notification has that one."""
    channel = target.channel
    address_id = None if channel is None else known.addresses.get((channel, target.identity.id))
    if channel is None or address_id is None or channel not in channels:
        reason = "the notification has no template for this channel"
        return Decision(channel=channel or channels[0], skipped=reason, rule=SkipRule.NO_TEMPLATE)
    return Decision(channel=channel, address_id=address_id)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
