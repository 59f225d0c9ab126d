"""What the sandbox reports, on the wire: its postman writes it, its account reads it. Pure.

A body has up to a thousand events of any tenants. Each names its message by the idempotency key that the call had, as
providers give back what a call was labelled with, and by the sandbox's own id.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from clarion.domain import key
from clarion.domain.depth import too_deep
from clarion.domain.misfit import read_json_fault, read_misfit
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.part import END
from clarion.domain.strict_json import check_keys
from clarion.domain.suppression import Signal
from clarion.errors import InvalidInput
from clarion.ports.track import ProviderEvent

EVENTS_MAX: Final = 1000
"""As many as the store keeps in one transaction."""

_HINT: Final = "send events as docs/reference/receipts.md describes them"


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What became of one message, or what its recipient answered; a repeated `id` is the same report."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[!-~]+" + END)]
    status: Literal["SentToProvider", "Blocked", "Delivered", "Opened", "Bounced", "Complained"]
    happened_at: Annotated[datetime, msgspec.Meta(tz=True)]
    tenant_id: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    key: Annotated[str, msgspec.Meta(max_length=200, description="the idempotency key of the call")]
    provider_message_id: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    signal: Literal["soft_bounce", "stop", "start"] | None = None


class Reports(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request of a provider."""

    events: Annotated[tuple[Report, ...], msgspec.Meta(min_length=1, max_length=EVENTS_MAX)]


def write(reports: Sequence[Report]) -> bytes:
    """Write a body."""
    return msgspec.json.encode(Reports(events=tuple(reports)))


def read(account: str, body: bytes) -> dict[str, list[ProviderEvent]]:
    """Read a body, by tenant, or raise InvalidInput; whoever calls has verified it."""
    try:
        events = msgspec.json.decode(body, type=Reports).events
        check_keys(body)
    except msgspec.ValidationError as error:
        misfit = read_misfit(str(error), Reports)
        raise InvalidInput(misfit.what, field=misfit.field or "body", hint=misfit.hint or _HINT) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"it is no JSON, {read_json_fault(str(error))}", field="body", hint=_HINT) from None
    except RecursionError:
        raise too_deep("body") from None
    found: dict[str, list[ProviderEvent]] = defaultdict(list)
    for event in events:
        if not 1970 <= event.happened_at.year <= 9998:  # in another zone it may be a time that no store can hold
            raise InvalidInput("it is no time of a message", field="happened_at", hint="say when it happened")
        if event.signal == "soft_bounce" and event.status != "Bounced":
            raise InvalidInput("only what bounced is a soft bounce", field="signal", hint=_HINT)
        message_id, recipient_key_hash = key.read_idempotency_key(event.key)
        found[event.tenant_id].append(
            ProviderEvent(
                account=account,
                event_id=event.id,
                status=OutgoingStatus(event.status),
                message_id=message_id,
                recipient_key_hash=recipient_key_hash,
                provider_message_id=event.provider_message_id,
                signal=None if event.signal is None else Signal(event.signal),
                happened_at=event.happened_at,
                raw=msgspec.json.encode(event).decode(),
            )
        )
    return dict(found)
