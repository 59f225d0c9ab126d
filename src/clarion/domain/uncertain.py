"""What becomes of a send of which nobody knows whether it arrived. Pure.

It is replayed where the provider de-duplicates or replaces and its window is still open (I-10), after a pause that
grows with every call that was not answered, and for as many of those as any message has attempts. Else the policy of
the notification type decides: `prefer_duplicate` replays once, counted apart; `prefer_loss` leaves it `Uncertain`, with
the decision on its timeline. Evidence that comes later still settles it; absence of evidence never does (I-13).
"""

from datetime import timedelta

from clarion.domain.backoff import ATTEMPTS_IN_DOUBT_MAX, ATTEMPTS_MAX, retry_delay
from clarion.domain.call import Replay
from clarion.domain.claim import Doubt, DoubtVerdict
from clarion.domain.outgoing import DoubtPolicy


def settlement(doubt: Doubt, replay: Replay) -> DoubtVerdict:
    """Decide about one of them; `replay` is what its provider promises about a second call."""
    if doubt.is_over:
        return _settled(doubt, replay=False, reason="left as it is: it was canceled, or its time has run out")
    if doubt.unanswered >= ATTEMPTS_MAX or doubt.attempts >= ATTEMPTS_IN_DOUBT_MAX:
        return _settled(
            doubt, replay=False, reason=f"left as it is: of {doubt.attempts} calls none was answered for good"
        )
    if replay.allows(unproven_for=doubt.unproven_for):
        return _settled(doubt, replay=True, reason="replayed: the provider makes a second one harmless")
    if doubt.doubt_policy is DoubtPolicy.PREFER_DUPLICATE and doubt.replays == 0:
        return _settled(
            doubt, replay=True, duplicate=True, reason="replayed once: this type prefers a duplicate to a loss"
        )
    return _settled(doubt, replay=False, reason="left as it is: it may have arrived, and a duplicate would be worse")


def _settled(doubt: Doubt, *, replay: bool, duplicate: bool = False, reason: str) -> DoubtVerdict:
    return DoubtVerdict(
        id=doubt.id,
        bucket=doubt.bucket,
        version=doubt.version,
        replay=replay,
        counts_as_duplicate=duplicate,
        reason=reason,
        delay=_pause(doubt) if replay else timedelta(),
    )


def _pause(doubt: Doubt) -> timedelta:
    """Wait longer after each call that the provider did not answer; a worker that was lost is no fault of its own."""
    return retry_delay(key=f"{doubt.message_id}:{doubt.channel}", attempt=max(doubt.unanswered, 1))
