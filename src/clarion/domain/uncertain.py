"""What becomes of a send of which nobody knows whether it arrived. Pure.

It is replayed where the provider de-duplicates or replaces and its window is still open (I-10), after a pause that
grows with every call that was not answered, and for as many of those as any message has attempts. A type that allows
fewer calls has no more than that, whatever became of them. Else the policy of the notification type decides:
`prefer_duplicate` replays once, counted apart; `prefer_loss` leaves it `Uncertain`, with the decision on its timeline.
Evidence that comes later still settles it; absence of evidence never does (I-13).
"""

from datetime import timedelta

from clarion.domain.backoff import ATTEMPTS_MAX, ATTEMPTS_UNCERTAIN_MAX, retry_delay
from clarion.domain.call import Replay
from clarion.domain.claim import Settlement, UncertainSend
from clarion.domain.outgoing import UncertainPolicy


def settlement(send: UncertainSend, replay: Replay) -> Settlement:
    """Decide about one of them; `replay` is what its provider promises about a second call."""
    if send.is_over:
        return _settled(send, replay=False, reason="left as it is: it was canceled, or its time has run out")
    if send.unanswered >= ATTEMPTS_MAX or send.attempts >= ATTEMPTS_UNCERTAIN_MAX:
        return _settled(
            send, replay=False, reason=f"left as it is: of {send.attempts} calls none was answered for good"
        )
    if send.attempts_max is not None and send.attempts >= send.attempts_max:
        return _settled(send, replay=False, reason=f"left as it is: its type allows {_calls(send.attempts_max)}")
    if replay.allows(unknown_for=send.unknown_for):
        return _settled(send, replay=True, reason="replayed: the provider makes a second one harmless")
    if send.uncertain_policy is UncertainPolicy.PREFER_DUPLICATE and send.replays == 0:
        return _settled(
            send, replay=True, duplicate=True, reason="replayed once: this type prefers a duplicate to a loss"
        )
    return _settled(send, replay=False, reason="left as it is: it may have arrived, and a duplicate would be worse")


def _settled(send: UncertainSend, *, replay: bool, duplicate: bool = False, reason: str) -> Settlement:
    return Settlement(
        id=send.id,
        bucket=send.bucket,
        version=send.version,
        replay=replay,
        counts_as_duplicate=duplicate,
        reason=reason,
        delay=_pause(send) if replay else timedelta(),
    )


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _pause(send: UncertainSend) -> timedelta:
    """Wait longer after each call that the provider did not answer; a worker that was lost is no fault of its own."""
    return retry_delay(key=f"{send.message_id}:{send.channel}", attempt=max(send.unanswered, 1))
