"""Outgoing rows as the queue reads them, for the rules that say what becomes of one."""

import msgspec

from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.queue_row import LockedRow
from clarion.testing.factories import BUCKET, TENANT, guid


def locked_row(**fields: object) -> LockedRow:
    """Make an outgoing row as the queue reads it: in flight under the claim `guid(1)`, its first attempt."""
    plain = LockedRow(
        bucket=BUCKET,
        id=1,
        tenant_id=TENANT,
        pk="pk-1",
        message_id=str(guid(1, "message")),
        correlation_id="c-1",
        flow_id=1,
        has_broadcast=False,
        order_key=None,
        status=OutgoingStatus.SENDING,
        reason_class="",
        version=2,
        attempts=1,
        claim_token=guid(1),
        account="main",
        may_have_arrived=False,
        replay_authorised=False,
        waits_for_decision=False,
        is_called_off=False,
        cancel_actor=None,
        is_out_of_time=False,
        in_line=False,
        channel="email",
        category=None,
    )
    return msgspec.structs.replace(plain, **fields)
