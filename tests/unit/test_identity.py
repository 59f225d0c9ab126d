"""Identities and tenants: one spelling each, and no other."""

from collections.abc import Callable
from uuid import UUID

import msgspec
import pytest
from rich.pretty import pretty_repr

from clarion.domain.identity import Identity, IdentityDomain, require_tenant
from clarion.errors import InvalidInput

GUID = UUID("6f9619ff-8b86-4d01-b42d-00c04fc964ff")


@pytest.mark.parametrize("tenant_id", ["a", "0", "acme", "acme-2", "a" * 63, "a--b-"])
def test_a_tenant_id_is_a_slug(tenant_id: str) -> None:
    assert require_tenant(tenant_id) == tenant_id


@pytest.mark.parametrize("tenant_id", ["", "-a", "A", "a_b", "a.b", "a/b", "a" * 64, "a\n", "\u00e9", " a", None, 7])
def test_anything_else_is_no_tenant_id(tenant_id: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        require_tenant(tenant_id)
    assert refusal.value.field == "tenant_id"


def test_an_identity_is_equal_in_both_unicode_forms() -> None:
    assert Identity.user("Mu\u0308ller") == Identity.user("M\u00fcller")
    assert Identity.user("a") != Identity.user("A")
    assert Identity.user(str(GUID)) != Identity.employee(GUID)


@pytest.mark.parametrize("domain", [IdentityDomain.EMPLOYEE, IdentityDomain.GROUP])
@pytest.mark.parametrize("text", ["7", str(GUID).upper(), GUID.hex, f"{{{GUID}}}", f"{GUID} ", ""])
def test_an_employee_and_a_group_are_named_by_a_guid_in_lower_case(domain: IdentityDomain, text: str) -> None:
    assert Identity(domain=domain, id=str(GUID)).id == str(GUID)
    with pytest.raises(InvalidInput) as refusal:
        Identity(domain=domain, id=text)
    assert refusal.value.field == "id"


@pytest.mark.parametrize("text", ["", "\ud800", None, 7, "x" * 508, "\u65e5" * 57])
def test_a_user_has_an_id_that_fits_into_a_key(text: str) -> None:
    assert Identity.user("x" * 507).id == "x" * 507
    with pytest.raises(InvalidInput) as refusal:
        Identity.user(text)
    assert refusal.value.field == "id"


def test_an_address_may_be_as_long_as_a_push_token() -> None:
    assert Identity.address("x" * 4096).domain is IdentityDomain.ADDRESS
    with pytest.raises(InvalidInput, match="4097 bytes"):
        Identity.address("x" * 4097)


def test_a_bare_text_is_no_domain() -> None:
    make: Callable[..., Identity] = Identity
    with pytest.raises(InvalidInput, match="IdentityDomain"):
        make(domain="user", id="42")


def test_an_identity_read_from_json_is_checked_as_well() -> None:
    assert msgspec.json.decode(b'{"domain":"user","id":"e\xcc\x81"}', type=Identity) == Identity.user("\u00e9")
    with pytest.raises(InvalidInput, match="guid"):
        msgspec.json.decode(b'{"domain":"group","id":"everyone"}', type=Identity)


def test_an_identity_does_not_show_its_id_in_a_log() -> None:
    assert "ann" not in repr(Identity.address("ann@example.com"))
    assert "ann" not in f"{[Identity.address('ann@example.com')]}"
    assert "ann" not in pretty_repr([Identity.address("ann@example.com")])
