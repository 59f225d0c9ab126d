"""Sealed values open in their own place with their own key, and nowhere else."""

import unicodedata
from functools import partial
from types import MappingProxyType
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.pretty import pretty_repr

from clarion.domain.seal import SERIAL_MAX, Purpose, TenantKeys, key_serial_of, seal, unseal, wrap_context
from clarion.errors import BrokenInvariant, SealBroken

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
NONCE = bytes(range(100, 112))


class Place(TypedDict):
    tenant_id: str
    table: str
    column: str
    row_key: str


PLACE: Place = {"tenant_id": "acme", "table": "address_version", "column": "destination", "row_key": "ab12:email:1"}

# Names that differ only in their Unicode form are one name everywhere here: canonical JSON brings them to NFC.
names = st.text(max_size=12).map(partial(unicodedata.normalize, "NFC"))
places = st.builds(Place, tenant_id=names, table=names, column=names, row_key=names)


def test_the_format_does_not_change() -> None:
    """A golden vector: what an earlier program sealed must open for ever."""
    sealed = seal(KEY, 7, NONCE, b"jane@example.com", **PLACE)
    assert sealed.hex() == (
        "0100000007" + "6465666768696a6b6c6d6e6f" + "227ab003398c2eff5312338df406059022b1140d1cc7b3d5173ac160f917dd4a"
    )
    assert unseal(KEY, sealed, **PLACE) == b"jane@example.com"


@given(plaintext=st.binary(max_size=300), place=places, serial=st.integers(1, SERIAL_MAX))
def test_what_was_sealed_opens_in_its_place(plaintext: bytes, place: Place, serial: int) -> None:
    sealed = seal(KEY, serial, NONCE, plaintext, **place)
    assert unseal(KEY, sealed, **place) == plaintext
    assert key_serial_of(sealed) == serial


@given(sealed_in=places, found_in=places)
def test_a_value_opens_in_no_other_place_whatever_the_names_hold(sealed_in: Place, found_in: Place) -> None:
    sealed = seal(KEY, 1, NONCE, b"secret", **sealed_in)
    if sealed_in != found_in:
        with pytest.raises(SealBroken):
            unseal(KEY, sealed, **found_in)


@pytest.mark.parametrize("part", ["tenant_id", "table", "column", "row_key"])
def test_a_value_moved_to_another_tenant_table_column_or_row_does_not_open(part: str) -> None:
    sealed = seal(KEY, 1, NONCE, b"secret", **PLACE)
    elsewhere = PLACE.copy()
    elsewhere[part] = "other"  # type: ignore[literal-required]  # the four names are parametrized
    with pytest.raises(SealBroken, match="moved or changed"):
        unseal(KEY, sealed, **elsewhere)


def test_a_boundary_between_two_names_cannot_be_moved() -> None:
    sealed = seal(KEY, 1, NONCE, b"secret", tenant_id="a", table='b","c', column="d", row_key="e")
    with pytest.raises(SealBroken):
        unseal(KEY, sealed, tenant_id="a", table="b", column='c","d', row_key="e")


@given(bit=st.integers(min_value=0))
def test_a_value_with_one_flipped_bit_does_not_open(bit: int) -> None:
    sealed = bytearray(seal(KEY, 1, NONCE, b"secret", **PLACE))
    at, mask = divmod(bit % (len(sealed) * 8), 8)
    sealed[at] ^= 1 << mask
    with pytest.raises(SealBroken):
        unseal(KEY, bytes(sealed), **PLACE)


def test_a_value_does_not_open_with_another_key() -> None:
    with pytest.raises(SealBroken, match="restore"):
        unseal(OTHER_KEY, seal(KEY, 1, NONCE, b"secret", **PLACE), **PLACE)


@given(length=st.integers(0, 32))
def test_a_value_that_was_cut_off_is_called_so(length: int) -> None:
    with pytest.raises(SealBroken, match="cut off"):
        key_serial_of(seal(KEY, 1, NONCE, b"", **PLACE)[:length])


def test_a_value_of_a_later_format_asks_for_the_newer_program() -> None:
    sealed = b"\x02" + seal(KEY, 1, NONCE, b"secret", **PLACE)[1:]
    with pytest.raises(SealBroken, match="newer program"):
        unseal(KEY, sealed, **PLACE)


@pytest.mark.parametrize("serial", [-1, 0, SERIAL_MAX + 1])
def test_a_serial_that_does_not_fit_the_header_is_refused(serial: int) -> None:
    with pytest.raises(BrokenInvariant, match="serial"):
        seal(KEY, serial, NONCE, b"", **PLACE)


@pytest.mark.parametrize("nonce", [b"", NONCE[:-1], NONCE + b"\0"])
def test_a_nonce_of_another_length_is_refused(nonce: bytes) -> None:
    with pytest.raises(BrokenInvariant, match="nonce"):
        seal(KEY, 1, nonce, b"", **PLACE)


@pytest.mark.parametrize("key", [b"", KEY[:16], KEY[:24], KEY + b"\0"])
def test_a_key_that_is_not_256_bits_is_refused_even_where_aes_has_one(key: bytes) -> None:
    with pytest.raises(BrokenInvariant, match="key"):
        seal(key, 1, NONCE, b"", **PLACE)
    with pytest.raises(BrokenInvariant, match="key"):
        unseal(key, seal(KEY, 1, NONCE, b"", **PLACE), **PLACE)


def test_no_error_shows_the_key_or_the_plaintext() -> None:
    sealed = seal(KEY, 1, NONCE, b"jane@example.com", **PLACE)
    with pytest.raises(SealBroken) as raised:
        unseal(OTHER_KEY, sealed, **PLACE)
    assert "jane" not in repr(raised.value)
    assert OTHER_KEY.hex() not in repr(raised.value)
    assert raised.value.__suppress_context__


def keys_of(serials: dict[int, bytes], *, identity: bytes = b"i" * 32, index: bytes = b"x" * 32) -> TenantKeys:
    return TenantKeys(tenant_id="acme", identity_key=identity, index_key=index, data_keys=serials)


def test_new_values_are_sealed_with_the_highest_serial_and_old_ones_stay_readable() -> None:
    keys = keys_of({1: b"1" * 32, 3: b"3" * 32, 2: b"2" * 32})
    assert keys.current_serial == 3
    assert keys.data_key(1) == b"1" * 32


def test_a_serial_that_the_tenant_does_not_have_says_what_to_restore() -> None:
    with pytest.raises(SealBroken, match="no data key with serial 9"):
        keys_of({1: b"1" * 32}).data_key(9)


def test_keys_show_no_key_material_anywhere_they_may_be_printed() -> None:
    keys = keys_of({1: b"CANARY-1" * 4, 2: b"CANARY-2" * 4}, identity=b"CANARY-3" * 4, index=b"CANARY-4" * 4)
    for shown in (repr(keys), str(keys), f"{keys}", pretty_repr(keys), repr([keys])):
        assert "CANARY" not in shown
        assert "acme" in shown


def test_keys_do_not_change_with_the_dict_they_were_made_from() -> None:
    serials = {1: b"1" * 32}
    keys = keys_of(serials)
    serials[2] = b"2" * 32
    assert keys.current_serial == 1
    assert isinstance(keys.data_keys, MappingProxyType)


@pytest.mark.parametrize(
    "keys",
    [
        {"serials": {}},
        {"serials": {0: b"0" * 32}},
        {"serials": {1: b"short"}},
        {"serials": {1: b"1" * 32}, "identity": b"short"},
        {"serials": {1: b"1" * 32}, "index": b"short"},
        {"serials": {1: b"1" * 32, 2: b"1" * 32}},
        {"serials": {1: b"i" * 32}},
        {"serials": {1: b"1" * 32}, "index": b"i" * 32},
    ],
)
def test_missing_short_or_shared_keys_are_refused(keys: dict[str, object]) -> None:
    with pytest.raises(BrokenInvariant, match="key"):
        keys_of(**keys)  # type: ignore[arg-type]  # the table mixes dicts and bytes


def test_every_wrapped_key_of_every_tenant_has_a_context_of_its_own() -> None:
    contexts = [
        wrap_context(tenant_id=tenant_id, purpose=purpose, serial=serial)
        for tenant_id in ("acme", "acme-1", "other")
        for purpose in Purpose
        for serial in (1, 2, 11)
    ]
    assert len(set(contexts)) == len(contexts)
    assert wrap_context(tenant_id="acme", purpose=Purpose.DATA, serial=2) == b'["tenant-key","acme","data",2]'
