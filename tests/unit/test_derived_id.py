"""Derived ids: equal only if the kind, the tenant and every part are, and made of nothing that is not exact.

The golden vectors are in test_key_golden.py.
"""

import re
import unicodedata
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clarion.domain import derived_id
from clarion.domain.identity import Channel, Identity, IdentityDomain, Lane
from clarion.errors import InvalidInput, InvalidKey

GUID = UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")
HASH = "00112233445566778899aabbccddeeff"
SECRET = bytes(range(32))


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


DERIVED: dict[str, Callable[[str, str, str], object]] = {
    "job": lambda tenant, a, b: derived_id.job_guid(tenant_id=tenant, operation=a, idempotency_key=b),
    "support": lambda tenant, a, b: derived_id.support_case_id(tenant_id=tenant, kind=a, parts=[b]),
    "guard": lambda tenant, a, b: derived_id.guard_key_hash(
        identity_key=SECRET, tenant_id=tenant, operation=a, idempotency_key=b
    ),
    "recipient": lambda tenant, a, b: derived_id.recipient_key_hash(
        identity_key=SECRET, tenant_id=tenant, identity=Identity.user(a), channel=Channel.CHAT, destination=b
    ),
}
NAMES = st.text(min_size=1, max_size=3) | st.text(st.sampled_from('",[]\\:ab'), min_size=1, max_size=3)
ASKED = st.tuples(st.sampled_from(sorted(DERIVED)), st.sampled_from(["acme", "acme-2"]), NAMES, NAMES)


@settings(deadline=None, max_examples=200)
@given(ASKED, ASKED)
@example(("job", "acme", "ab", "c"), ("job", "acme", "a", "bc"))
@example(("job", "acme", 'a","b', "c"), ("job", "acme", "a", 'b","c'))
@example(("job", "acme", "e\u0301", "c"), ("job", "acme", "\u00e9", "c"))
def test_derived_ids_are_equal_only_if_kind_tenant_and_every_part_are(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    same = [*map(nfc, one)] == [*map(nfc, other)]
    assert same == (DERIVED[one[0]](*one[1:]) == DERIVED[other[0]](*other[1:]))


def test_ids_of_two_kinds_never_meet_though_their_parts_are_the_same() -> None:
    tenant, one, two = "acme", str(GUID), HASH
    report = f"report-subscription:{GUID}:manual:{GUID}"
    ids = {
        derived_id.job_guid(tenant_id=tenant, operation=one, idempotency_key=two),
        derived_id.message_id(tenant_id=tenant, pk=one, recipient_id_hash=two),
        derived_id.support_case_id(tenant_id=tenant, kind=one, parts=[two]),
        derived_id.sent_campaign_guid(tenant_id=tenant, draft_guid=GUID),
        derived_id.row_guid(tenant_id=tenant, row_key=one),
        derived_id.row_guid(tenant_id=tenant, row_key=report),
        derived_id.report_job_guid(tenant_id=tenant, scheduler_key=report),
        derived_id.source_entity(tenant_id=tenant, source_type=one, source="7b"),
        derived_id.source_event(tenant_id=tenant, source_type=one, source="7b", row_version=1),
        derived_id.source_event(tenant_id=tenant, source_type=one, source="7b", row_version=2),
        derived_id.told_event(tenant_id=tenant, key=one),
    }
    assert len(ids) == 11


def test_the_same_id_in_another_domain_is_another_recipient() -> None:
    identities = [Identity(domain=domain, id=str(GUID)) for domain in IdentityDomain]
    hashes = {
        derived_id.recipient_id_hash(identity_key=SECRET, tenant_id="acme", identity=identity)
        for identity in identities
    }
    assert len(hashes) == len(IdentityDomain)


def test_a_recipient_is_another_under_another_secret_domain_channel_or_destination() -> None:
    def hashed(
        secret: bytes = SECRET, who: Identity | None = None, road: Channel = Channel.SMS, to: str = "+4915112345678"
    ) -> str:
        who = who or Identity.user(str(GUID))
        return derived_id.recipient_key_hash(
            identity_key=secret, tenant_id="acme", identity=who, channel=road, destination=to
        )

    others = [
        hashed(secret=bytes(32)),
        hashed(who=Identity.employee(GUID)),
        hashed(who=Identity.group(GUID)),
        hashed(who=Identity.address(str(GUID))),
        hashed(road=Channel.CHAT),
        hashed(to="+4915112345679"),
    ]
    assert len({hashed(), *others}) == 7
    assert all(re.fullmatch(r"[0-9a-f]{32}", value) for value in others)


def test_order_is_kept_per_recipient_channel_and_lane_and_not_in_bulk() -> None:
    def ordered(lane: Lane, road: Channel = Channel.SMS, who: str = HASH, tenant: str = "acme") -> str | None:
        return derived_id.order_key(tenant_id=tenant, recipient_id_hash=who, channel=road, lane=lane)

    assert ordered(Lane.BULK) is None
    keys = {ordered(lane) for lane in (Lane.CRITICAL, Lane.HIGH, Lane.NORMAL)}
    keys |= {ordered(Lane.HIGH, Channel.PUSH), ordered(Lane.HIGH, who="f" * 32), ordered(Lane.HIGH, tenant="other")}
    assert len(keys) == 6
    assert None not in keys


@pytest.mark.parametrize("secret", [b"", b"short", bytes(31), "x" * 32])
def test_a_short_secret_is_refused(secret: bytes) -> None:
    with pytest.raises(InvalidInput, match="identity_key"):
        derived_id.recipient_id_hash(identity_key=secret, tenant_id="acme", identity=Identity.user("42"))


@pytest.mark.parametrize("cause", ["", "\ud800", True, 1.5, None])
def test_the_cause_of_a_support_case_is_made_of_exact_parts(cause: str) -> None:
    with pytest.raises(InvalidKey, match=r"parts\[1\]"):
        derived_id.support_case_id(tenant_id="acme", kind="conflict", parts=[GUID, cause])
