"""The public URL: which one mail may lead to, and in what form it is kept."""

import pytest

from clarion.domain.public_url import public_url
from clarion.errors import InvalidInput


@pytest.mark.parametrize(
    "written, kept",
    [
        ("https://clarion.example.com", "https://clarion.example.com"),
        ("https://clarion.example.com/", "https://clarion.example.com"),
        ("https://example.com:8443/notifications/", "https://example.com:8443/notifications"),
        ("http://127.0.0.1:8025", "http://127.0.0.1:8025"),
        ("http://[::1]:8025", "http://[::1]:8025"),
        ("http://localhost:8025", "http://localhost:8025"),
    ],
)
def test_a_url_is_kept_so_that_a_path_can_follow(written: str, kept: str) -> None:
    assert public_url(written, field="CLARION_PUBLIC_URL") == kept


@pytest.mark.parametrize("written", ["http://clarion.example.com", "http://10.0.0.1", "http://localhost.example.com"])
def test_one_that_is_not_encrypted_is_for_this_machine_only(written: str) -> None:
    with pytest.raises(InvalidInput, match=r"it is not encrypted: .*: use https; http is for this machine only"):
        public_url(written, field="CLARION_PUBLIC_URL")


@pytest.mark.parametrize(
    "written",
    [
        "clarion.example.com",
        "ftp://clarion.example.com",
        "https://",
        "https:///path",
        "https://user:secret@example.com",
        "https://example.com?a=b",
        "https://example.com/#a",
        "https://example.com:0",
        "https://example.com:99999",
        "https://example.com/a b",
        "https://example.com\r\nBcc: a@example.com",
        "https://example.com>",
        "https://exämple.com",
        f"https://example.com/{'a' * 200}",
    ],
)
def test_what_no_path_can_follow_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(InvalidInput, match="it is no URL that a path can be put behind") as refused:
        public_url(written, field="CLARION_PUBLIC_URL")
    assert refused.value.field == "CLARION_PUBLIC_URL"
    assert "secret" not in str(refused.value)
