"""Campaign: an authored broadcast, the states of its record, and the code that each of its recipients shows.

Nothing here reads or writes anything. The states of a recipient's row are in `outgoing.py`: a recipient code is a view
of them, no second state machine.
"""

from enum import IntEnum, StrEnum
from typing import assert_never

from clarion.domain.machine import Cause, Machine, by
from clarion.domain.outgoing import OutgoingStatus, ReasonClass


class CampaignStatus(StrEnum):
    """Where a campaign stands, from the author's desk to the last recipient."""

    DRAFT = "Draft"
    AWAITING_APPROVAL = "AwaitingApproval"
    QUEUED = "Queued"
    SYNCING_RECIPIENTS = "SyncingRecipients"
    INSTALLING_APP = "InstallingApp"
    SENDING = "Sending"
    PAUSED = "Paused"
    SENT = "Sent"
    FAILED = "Failed"
    CANCELING = "Canceling"
    CANCELED = "Canceled"


CAMPAIGN = Machine(
    name="Campaign",
    # Draft and sent are two records: the one begins at its author's desk, the other when it is queued.
    initial=frozenset({CampaignStatus.DRAFT, CampaignStatus.QUEUED}),
    table={
        CampaignStatus.DRAFT: {
            CampaignStatus.AWAITING_APPROVAL: by(Cause.REQUEST),
            CampaignStatus.QUEUED: by(Cause.REQUEST, note="where no approval is asked for"),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.AWAITING_APPROVAL: {
            CampaignStatus.QUEUED: by(Cause.REQUEST, note="approved"),
            CampaignStatus.DRAFT: by(Cause.REQUEST, note="sent back to its author"),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.QUEUED: {
            CampaignStatus.SYNCING_RECIPIENTS: by(Cause.CLAIM, note="the undo window is over"),
            CampaignStatus.FAILED: by(Cause.RECORD),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.SYNCING_RECIPIENTS: {
            CampaignStatus.INSTALLING_APP: by(Cause.RECORD, note="some recipients have no chat conversation yet"),
            CampaignStatus.SENDING: by(Cause.RECORD),
            CampaignStatus.FAILED: by(Cause.RECORD),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.INSTALLING_APP: {
            CampaignStatus.SENDING: by(Cause.RECORD),
            CampaignStatus.FAILED: by(Cause.RECORD),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.SENDING: {
            CampaignStatus.PAUSED: by(Cause.REQUEST),
            CampaignStatus.SENT: by(Cause.RECORD),
            CampaignStatus.FAILED: by(Cause.RECORD),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.PAUSED: {
            CampaignStatus.SENDING: by(Cause.REQUEST),
            CampaignStatus.CANCELING: by(Cause.CANCEL),
        },
        CampaignStatus.CANCELING: {
            CampaignStatus.CANCELED: by(Cause.RECORD, note="its rows are settled"),
        },
        CampaignStatus.SENT: {},
        CampaignStatus.FAILED: {},
        CampaignStatus.CANCELED: {},
    },
)


class RecipientCode(IntEnum):
    """The numbers that a campaign's recipient list and its totals show."""

    WAITING = 0
    RETRYING = -1
    FAILED = -2
    NOT_SUPPORTED = -3
    ACCEPTED = 201
    NOT_FOUND = 404
    THROTTLED = 429


def recipient_code(status: OutgoingStatus, reason: str | None = None) -> RecipientCode | None:
    """Give the code of a recipient's row, or None for the four states that are counted in columns of their own."""
    match status:
        case OutgoingStatus.CREATED | OutgoingStatus.SENDING:
            return RecipientCode.WAITING
        case OutgoingStatus.RETRY_READY:
            return RecipientCode.THROTTLED if reason == ReasonClass.THROTTLED else RecipientCode.RETRYING
        case OutgoingStatus.SENT_TO_PROVIDER | OutgoingStatus.DELIVERED | OutgoingStatus.OPENED:
            return RecipientCode.ACCEPTED
        case OutgoingStatus.FAILED_FINAL:
            return RecipientCode.NOT_FOUND if reason == ReasonClass.RECIPIENT_NOT_FOUND else RecipientCode.FAILED
        case OutgoingStatus.BOUNCED | OutgoingStatus.BLOCKED | OutgoingStatus.COMPLAINED:
            return RecipientCode.FAILED
        case OutgoingStatus.NOT_SUPPORTED:
            return RecipientCode.NOT_SUPPORTED
        case OutgoingStatus.CANCELED | OutgoingStatus.EXPIRED | OutgoingStatus.SUPPRESSED | OutgoingStatus.UNCERTAIN:
            return None
        case _:
            assert_never(status)
