"""The local vault: wrapping, several master keys, and the file that the master key lies in."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from clarion.adapters.durable import create_durably
from clarion.adapters.host import random_bytes
from clarion.adapters.vaults.local import LocalVault, create_vault, open_vault
from clarion.errors import BadConfiguration, BrokenInvariant, SealBroken
from clarion.ports.vault import Vault
from clarion.testing.vault import SeededVault

MASTER = bytes(range(32))
OLDER = bytes(range(32, 64))
KEY = b"k" * 32
CONTEXT = b'["tenant-key","acme","data",1]'


def vault_of(master_key: bytes = MASTER, *older_keys: bytes) -> Vault:
    return LocalVault(master_key, randomness=random_bytes, older_keys=older_keys)


async def test_a_wrapped_key_comes_back_and_is_not_in_the_wrapping() -> None:
    vault = vault_of()
    wrapped = await vault.wrap(KEY, context=CONTEXT)
    assert KEY not in wrapped
    assert await vault.unwrap(wrapped, context=CONTEXT) == KEY


async def test_wrapping_twice_gives_two_wrappings() -> None:
    vault = vault_of()
    assert await vault.wrap(KEY, context=CONTEXT) != await vault.wrap(KEY, context=CONTEXT)


async def test_a_wrapped_key_does_not_open_in_another_context() -> None:
    vault = vault_of()
    wrapped = await vault.wrap(KEY, context=CONTEXT)
    with pytest.raises(SealBroken, match="another tenant or purpose"):
        await vault.unwrap(wrapped, context=CONTEXT.replace(b"acme", b"other"))


async def test_a_wrapped_key_with_any_flipped_byte_does_not_open() -> None:
    vault = vault_of()
    wrapped = await vault.wrap(KEY, context=CONTEXT)
    for at in range(len(wrapped)):
        changed = wrapped[:at] + bytes([wrapped[at] ^ 1]) + wrapped[at + 1 :]
        with pytest.raises(SealBroken):
            await vault.unwrap(changed, context=CONTEXT)


@pytest.mark.parametrize("length", [0, 1, 20, 68])
async def test_a_wrapped_key_that_was_cut_off_is_not_taken_for_one(length: int) -> None:
    vault = vault_of()
    wrapped = await vault.wrap(KEY, context=CONTEXT)
    with pytest.raises(SealBroken, match="not a key wrapped"):
        await vault.unwrap(wrapped[:length], context=CONTEXT)


async def test_a_new_master_key_opens_what_an_older_one_wrapped_and_wraps_for_itself() -> None:
    wrapped = await vault_of(OLDER).wrap(KEY, context=CONTEXT)
    both = vault_of(MASTER, OLDER)
    assert await both.unwrap(wrapped, context=CONTEXT) == KEY
    again = await both.wrap(KEY, context=CONTEXT)
    assert await vault_of(MASTER).unwrap(again, context=CONTEXT) == KEY


async def test_a_key_wrapped_under_an_unknown_master_key_names_it_and_says_what_to_do() -> None:
    wrapped = await vault_of(OLDER).wrap(KEY, context=CONTEXT)
    with pytest.raises(SealBroken, match=rf"{wrapped[1:9].hex()}.*older="):
        await vault_of(MASTER).unwrap(wrapped, context=CONTEXT)


@pytest.mark.parametrize("key", [b"", MASTER[:16], MASTER + b"\0"])
def test_a_master_key_of_another_length_is_refused(key: bytes) -> None:
    with pytest.raises(BadConfiguration, match="exactly 32 bytes"):
        vault_of(key)
    with pytest.raises(BadConfiguration, match="exactly 32 bytes"):
        vault_of(MASTER, key)


async def test_only_a_whole_key_is_wrapped() -> None:
    with pytest.raises(BrokenInvariant):
        await vault_of().wrap(b"short", context=CONTEXT)


def test_nonces_and_keys_have_their_lengths_and_do_not_repeat() -> None:
    for vault in (vault_of(), SeededVault()):
        nonces = {vault.nonce() for _ in range(1000)}
        keys = {vault.new_key() for _ in range(1000)}
        assert (len(nonces), {len(nonce) for nonce in nonces}) == (1000, {12})
        assert (len(keys), {len(key) for key in keys}) == (1000, {32})


def test_a_vault_shows_no_key() -> None:
    shown = repr(LocalVault(b"CANARY--" * 4, randomness=random_bytes, older_keys=[b"CANARY-2" * 4]))
    assert "CANARY" not in shown
    assert (b"CANARY--" * 4).hex() not in shown


async def test_a_seeded_vault_replays_and_still_encrypts() -> None:
    first, second, other = SeededVault("a"), SeededVault("a"), SeededVault("b")
    wrapped = await first.wrap(first.new_key(), context=CONTEXT)
    key = second.new_key()
    assert await second.wrap(key, context=CONTEXT) == wrapped
    assert await second.unwrap(wrapped, context=CONTEXT) == key
    assert key not in wrapped
    with pytest.raises(SealBroken):
        await second.unwrap(wrapped, context=b"elsewhere")
    with pytest.raises(SealBroken):
        await other.unwrap(wrapped, context=CONTEXT)


def vault_url(path: Path, *older: Path) -> str:
    return f"file://{path}" + "".join(f"{'&' if place else '?'}older={file}" for place, file in enumerate(older))


def opened(path: Path, *older: Path) -> LocalVault:
    return open_vault(vault_url(path, *older), randomness=random_bytes)


def created(path: Path) -> LocalVault:
    create_vault(vault_url(path), randomness=random_bytes)
    return opened(path)


async def test_the_master_key_file_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    wrapped = await created(path).wrap(MASTER, context=CONTEXT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(bytes.fromhex(path.read_text())) == 32
    assert await created(path).unwrap(wrapped, context=CONTEXT) == MASTER
    with os.scandir(tmp_path) as entries:
        assert [entry.name for entry in entries] == ["master.key"]


async def test_processes_that_start_together_agree_on_one_master_key(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    loop = asyncio.get_running_loop()
    vaults = await asyncio.gather(*(loop.run_in_executor(None, created, path) for _ in range(16)))
    assert len({repr(vault) for vault in vaults}) == 1


def test_a_master_key_that_is_missing_is_asked_for_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    with pytest.raises(BadConfiguration, match="restore it from backup"):
        opened(path)
    assert not path.exists()


async def test_an_older_master_key_named_in_the_url_still_opens_what_it_wrapped(tmp_path: Path) -> None:
    old, new = tmp_path / "old.key", tmp_path / "new.key"
    wrapped = await created(old).wrap(MASTER, context=CONTEXT)
    with pytest.raises(SealBroken, match="older="):
        await created(new).unwrap(wrapped, context=CONTEXT)
    assert await opened(new, old).unwrap(wrapped, context=CONTEXT) == MASTER


@pytest.mark.parametrize("url", ["file://host/a", "file:a", "file:///a?b=c", "file:///a?older=b", "https:///a"])
def test_a_vault_url_of_another_form_is_refused_with_the_right_one(url: str) -> None:
    with pytest.raises(BadConfiguration, match="three slashes"):
        open_vault(url, randomness=random_bytes)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_master_key_file_open_to_others_is_refused_with_the_command_to_close_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "master.key"
    created(path)
    path.chmod(mode)
    with pytest.raises(BadConfiguration, match=f"chmod 600 {path}"):
        opened(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"00" * 31,
        b"00" * 33,
        b"zz" * 32,
        MASTER,
        b"00" * 32 + b"\n" + b"00" * 32,
        "é".encode() * 32,
        b"0" * 9999,
    ],
)
def test_a_master_key_file_that_holds_no_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "master.key"
    create_durably(path, content, root=tmp_path)
    with pytest.raises(BadConfiguration, match="64 hexadecimal digits") as raised:
        opened(path)
    assert raised.value.__context__ is None
    assert path.read_bytes() == content


async def test_a_master_key_file_may_lack_its_line_end(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    create_durably(path, MASTER.hex().encode(), root=tmp_path)
    wrapped = await LocalVault(MASTER, randomness=random_bytes).wrap(MASTER, context=CONTEXT)
    assert await opened(path).unwrap(wrapped, context=CONTEXT) == MASTER


def test_a_master_key_file_in_no_folder_says_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "master.key", tmp_path):
        with pytest.raises(BadConfiguration, match="in a folder that exists"):
            created(path)
