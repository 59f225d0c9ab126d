"""The rule by which somebody got nothing on a channel, or a whole notification went to nobody.

The words for a person stand beside it, in the decision or the row; the rule is what a program reads. It is stored in
frozen sets and answered by the API, so a member is never renamed. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from clarion.domain.outgoing import OutgoingStatus, ReasonClass


class SkipRule(StrEnum):
    """Which rule decided. A set that a newer program froze may name one that this one does not know: `OTHER`."""

    TYPE_OFF = "type_off"
    SETTING = "setting"
    NOBODY = "nobody"
    UNKNOWN_PERSON = "unknown_person"
    NO_TEMPLATE = "no_template"
    NO_ADDRESS = "no_address"
    UNVERIFIED = "unverified"
    RETIRED = "retired"
    SUPPRESSION = "suppression"
    PREFERENCE = "preference"
    POLICY = "policy"
    EXPIRED = "expired"
    CANCELED = "canceled"
    OTHER = "other"

    @classmethod
    def _missing_(cls, _: object) -> "SkipRule":
        return cls.OTHER


class Meaning(NamedTuple):
    """What a rule says to a person: when it is asked, what it means, and what to do about it."""

    asked: str
    means: str
    remedy: str


MEANINGS: Final[Mapping[SkipRule, Meaning]] = {
    SkipRule.TYPE_OFF: Meaning("of the notification", "the tenant has switched the type off", "switch it on"),
    SkipRule.SETTING: Meaning(
        "of the notification, of a channel",
        "the business unit has switched the type off, or a setting leaves the channel out",
        "change the setting that the reason names",
    ),
    SkipRule.NOBODY: Meaning(
        "of the notification",
        "the send names nobody, and nobody is found by whom the settings name",
        "name recipients, or add the role, relation or member that is missing",
    ),
    SkipRule.NO_TEMPLATE: Meaning(
        "of a channel", "the notification is not written for the channel", "publish it with a template for the channel"
    ),
    SkipRule.UNKNOWN_PERSON: Meaning(
        "of a recipient", "the tenant has no such person", "add the person, or mend the id"
    ),
    SkipRule.SUPPRESSION: Meaning(
        "of a recipient, of an address, at the claim",
        "nothing at all may go there: it bounced, or they complained, answered STOP or were suppressed by hand",
        "correct the address; lift it only if its cause is gone",
    ),
    SkipRule.PREFERENCE: Meaning(
        "of a recipient, of an address, at the claim",
        "they opted out of the category, everywhere or on the channel",
        "nothing: it is what they want",
    ),
    SkipRule.NO_ADDRESS: Meaning(
        "of a recipient", "no address of theirs on the channel is known", "give the person an address"
    ),
    SkipRule.RETIRED: Meaning(
        "of an address", "its provider knows it no longer", "nothing: the device or the person gives a new one"
    ),
    SkipRule.UNVERIFIED: Meaning(
        "of an address", "it is not known to be the person's own", "have the person verify it"
    ),
    SkipRule.POLICY: Meaning(
        "of the channels that are left", "another channel was enough", "look at what became of that channel"
    ),
    SkipRule.EXPIRED: Meaning("at the claim", "its time to live was over", "find out what held it up"),
    SkipRule.CANCELED: Meaning("at the claim", "somebody canceled it", "ask whom the timeline names"),
    SkipRule.OTHER: Meaning(
        "by another version",
        "the program that decided knows a rule that this one does not, or noted none",
        "read the reason",
    ),
}
"""Every rule, in the order in which they are asked for the first time."""


def rule_of(status: OutgoingStatus, reason_class: str = "") -> SkipRule | None:
    """Name the rule by which a message that was made did not go out; None where it went, waits or failed."""
    match status:
        case OutgoingStatus.EXPIRED:
            return SkipRule.EXPIRED
        case OutgoingStatus.CANCELED:
            return SkipRule.CANCELED
        case OutgoingStatus.SUPPRESSED:
            return SkipRule.PREFERENCE if reason_class == ReasonClass.PREFERENCE else SkipRule.SUPPRESSION
        case _:
            return None
