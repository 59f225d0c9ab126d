"""The URL of an SMTP account: what it leaves out is safe, what is wrong in it is said without repeating it."""

import ssl
from pathlib import Path

import pytest

from clarion.adapters.providers.smtp import open_provider
from clarion.adapters.providers.smtp_account import TIMEOUT_MAX, Account
from clarion.domain.call_times import CALL_TIMEOUT
from clarion.errors import BadConfiguration
from clarion.testing.clock import ManualClock


@pytest.mark.parametrize(
    "url, why",
    [
        ("smtp://host", "the option from"),
        ("smtp://host?from=nobody", "the option from"),
        ("smtp://?from=a@example.com", "it must be a host"),
        ("smtp://host/path?from=a@example.com", "it must be a host"),
        ("smtp://host:port?from=a@example.com", "not well-formed"),
        ("smtp://host?from=a@example.com&tls=maybe", "tls is one of"),
        ("smtp://host?from=a@example.com&sender=b", "there is no option 'sender'"),
        ("smtp://host?from=a@example.com&timeout=long", "timeout is a number"),
        ("smtp://host?from=a@example.com&timeout=9.5", "timeout is a number of seconds, at most 9"),
        ("smtp://host?from=a@example.com&connections=0", "connections is a number from 1"),
        ("smtp://host?from=a@example.com&connections=all", "connections is a number from 1"),
        ("smtp://host?from=a@example.com&ca=/no/such/file", "the file of the option ca"),
        ("smtp://ann:hunter2@host?from=a@example.com&tls=none", "a password is only sent over TLS"),
        ("smtp://host?from=%C3%A4nn@example.com", "outside ASCII"),
        ("smtp://host?from=A%0ABcc:%20eve%20%3Ca@example.com%3E", "the option from"),
    ],
)
async def test_a_url_that_cannot_be_used_says_why_and_is_not_repeated(url: str, why: str) -> None:
    with pytest.raises(BadConfiguration, match=why) as caught:
        await open_provider(url, clock=ManualClock())
    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_a_url_leaves_out_is_safe() -> None:
    remote = Account.parse("smtp://ann:p%40ss@mail.example.com?from=a@example.com")
    assert (remote.tls, remote.port, remote.username, remote.password) == ("starttls", 587, "ann", "p@ss")
    assert "p@ss" not in repr(remote)
    local = Account.parse("smtp://127.0.0.1:2525?from=a@example.com")
    assert (local.tls, local.port) == ("none", 2525)
    assert Account.parse("smtp://mail.example.com?from=a@example.com&tls=tls").port == 465
    context = remote.tls_context()
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_the_adapter_gives_a_call_up_before_the_pipeline_does() -> None:
    """It knows whether the content has left, the pipeline does not."""
    account = Account.parse("smtp://host?from=a@example.com&timeout=9")
    assert account.timeout == TIMEOUT_MAX
    assert 2 * TIMEOUT_MAX < CALL_TIMEOUT


async def test_nothing_of_the_account_is_read_from_files_but_certificates(tmp_path: Path) -> None:
    (tmp_path / "not-pem").write_text("hello", encoding="utf-8")
    with pytest.raises(BadConfiguration, match="the file of the option ca"):
        await open_provider(f"smtp://h?from=a@example.com&ca={tmp_path}/not-pem", clock=ManualClock())
