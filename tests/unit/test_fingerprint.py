"""Fingerprints: one content under every algorithm, compared under the tag that the stored row has."""

import hashlib

import pytest

from clarion.domain import hashing
from clarion.domain.fingerprint import Fingerprint
from clarion.errors import InvalidInput

KEY = bytes(range(32))


@pytest.fixture
def second_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that knows a second algorithm of each kind and writes it."""
    monkeypatch.setitem(hashing.PLAIN, "h2", lambda content: hashlib.sha512(repr(content).encode()).hexdigest())
    monkeypatch.setitem(
        hashing.KEYED, "k2", lambda key, content: hashlib.sha512(key + repr(content).encode()).hexdigest()
    )
    monkeypatch.setattr(hashing, "PLAIN_TAG", "h2")
    monkeypatch.setattr(hashing, "KEYED_TAG", "k2")


def test_a_plain_fingerprint_is_the_tagged_digest() -> None:
    assert Fingerprint.of({"a": 1}).text == hashing.digest({"a": 1})
    assert Fingerprint.of({"a": 1}).tagged == (hashing.digest({"a": 1}),)


def test_a_keyed_fingerprint_is_the_tagged_digest_under_the_key() -> None:
    assert Fingerprint.keyed("4711", key=KEY).text == hashing.keyed_digest(KEY, "4711")
    assert Fingerprint.keyed("4711", key=KEY) != Fingerprint.keyed("4711", key=KEY[::-1])


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Fingerprint.keyed("4711", key=b"short")


def test_equal_content_agrees_and_other_content_does_not() -> None:
    stored = Fingerprint.stored(Fingerprint.of({"a": 1, "b": None}).text)
    assert Fingerprint.of({"a": 1}).agrees(stored) is True
    assert Fingerprint.of({"a": 2}).agrees(stored) is False


def test_equal_content_under_another_key_does_not_agree() -> None:
    stored = Fingerprint.stored(Fingerprint.keyed("4711", key=KEY).text)
    assert Fingerprint.keyed("4711", key=KEY).agrees(stored) is True
    assert Fingerprint.keyed("4711", key=KEY[::-1]).agrees(stored) is False


@pytest.mark.parametrize("stored", ["h9:00ff", "k1:00ff", "x:", ":00ff", "00ff"])
def test_a_tag_that_is_not_among_ours_is_neither_equal_nor_different(stored: str) -> None:
    assert Fingerprint.of("content").agrees(Fingerprint.stored(stored)) is None


@pytest.mark.usefixtures("second_algorithm")
def test_new_rows_are_written_with_the_first_algorithm_and_all_are_at_hand() -> None:
    plain, keyed = Fingerprint.of("content"), Fingerprint.keyed("content", key=KEY)
    assert [text.partition(":")[0] for text in plain.tagged] == ["h2", "h1"]
    assert [text.partition(":")[0] for text in keyed.tagged] == ["k2", "k1"]
    assert plain.text == plain.tagged[0]


@pytest.mark.usefixtures("second_algorithm")
def test_a_row_is_compared_under_its_own_tag_whichever_is_written_now() -> None:
    given = Fingerprint.of("content")
    for text in given.tagged:
        assert given.agrees(Fingerprint.stored(text)) is True
        assert Fingerprint.of("other").agrees(Fingerprint.stored(text)) is False


def test_reading_a_stored_hash_gives_back_its_text() -> None:
    text = Fingerprint.of("content").text
    assert Fingerprint.stored(text).text == text
    assert Fingerprint.stored(text) == Fingerprint.of("content")
