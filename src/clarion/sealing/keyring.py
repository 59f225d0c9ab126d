"""The keys of each tenant, unwrapped and kept in memory, so that no ensure waits for the vault twice.

A tenant's keys are made once, when the tenant is: wrapped by the vault, stored by the store, whose unique key decides
between two makers. The master key stays in the vault; unwrapped keys live here and nowhere else.
"""

from typing import Final

from clarion.domain.identity import require_tenant
from clarion.domain.seal import Purpose, TenantKeys, wrap_context
from clarion.errors import InvalidInput
from clarion.ports.ensure import EnsureStore, WrappedKeys
from clarion.ports.vault import Vault

TENANTS_MAX: Final = 10_000
"""Some hundred bytes each; a process that serves more tenants than this fetches their keys again now and then."""


class Keyring:
    """Unwrapped keys by tenant."""

    def __init__(self, store: EnsureStore, vault: Vault) -> None:
        """Start knowing no tenant."""
        self._store = store
        self._vault = vault
        self._known: dict[str, TenantKeys] = {}

    def over(self, store: EnsureStore) -> "Keyring":
        """Give a keyring of the same vault over another store, such as a copy of this one's."""
        return Keyring(store, self._vault)

    async def ensure(self, tenant_id: str, *, actor: str | None = None) -> bool:
        """Make the tenant with fresh keys unless it exists, and say whether it was made; audited with an actor."""
        is_new = False
        if await self._store.find_tenant_keys(require_tenant(tenant_id)) is None:
            fresh = await self._fresh(tenant_id)
            is_new = await self._store.ensure_tenant(tenant_id, fresh, actor=actor) == fresh
        await self.get(tenant_id)
        return is_new

    async def get(self, tenant_id: str) -> TenantKeys:
        """Return a tenant's keys, or raise InvalidInput where there is no such tenant."""
        known = self._known.get(tenant_id)
        if known is not None:
            return known
        wrapped = await self._store.find_tenant_keys(require_tenant(tenant_id))
        if wrapped is None:
            raise InvalidInput(f"there is no tenant {tenant_id!r}", field="tenant_id", hint="create the tenant first")
        keys = await self._unwrap(tenant_id, wrapped)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant_id] = keys
        return keys

    def held(self, tenant_id: str) -> TenantKeys | None:
        """Return a tenant's keys if they are in memory; no I/O."""
        return self._known.get(tenant_id)

    def nonce(self) -> bytes:
        """Return 12 bytes that were never used before."""
        return self._vault.nonce()

    async def _fresh(self, tenant_id: str) -> WrappedKeys:
        """Make one new key for each purpose."""
        return {
            (purpose, 1): await self._vault.wrap(
                self._vault.new_key(), context=wrap_context(tenant_id=tenant_id, purpose=purpose, serial=1)
            )
            for purpose in Purpose
        }

    async def _unwrap(self, tenant_id: str, wrapped: WrappedKeys) -> TenantKeys:
        """Open every key; identity and index keys have one serial for ever, data keys may have several."""
        keys = {
            (purpose, serial): await self._vault.unwrap(
                text, context=wrap_context(tenant_id=tenant_id, purpose=purpose, serial=serial)
            )
            for (purpose, serial), text in wrapped.items()
        }
        return TenantKeys(
            tenant_id=tenant_id,
            identity_key=keys[Purpose.IDENTITY, 1],
            index_key=keys[Purpose.INDEX, 1],
            data_keys={serial: key for (purpose, serial), key in keys.items() if purpose is Purpose.DATA},
        )
