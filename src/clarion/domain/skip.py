"""The rule by which somebody got nothing on a channel, or a whole notification went to nobody.

The words for a person stand beside it, in the decision or the row; the rule is what a program reads. It is stored in
frozen sets and answered by the API, so a member is never renamed. Pure.
"""

from enum import StrEnum

from clarion.domain.outgoing import OutgoingStatus


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


def rule_of(status: OutgoingStatus) -> SkipRule | None:
    """Name the rule by which a message that was made did not go out; None where it went, waits or failed."""
    match status:
        case OutgoingStatus.EXPIRED:
            return SkipRule.EXPIRED
        case OutgoingStatus.CANCELED:
            return SkipRule.CANCELED
        case OutgoingStatus.SUPPRESSED:
            return SkipRule.SUPPRESSION
        case _:
            return None
