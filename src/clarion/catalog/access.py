"""Access: API keys, and what the roles that they carry may do.

A key reads `clarion_{key id}_{secret}`: the fixed first word is what secret scanners look for, the id finds the row,
the secret is 256 bits that nobody chose. Only its SHA-256 is stored; that is enough for a secret that cannot be
guessed, and costs nothing at every request. Keys are read and written through the catalog's store, which audits every
change of them; chance comes in from outside.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec

from clarion.dispatch.gathering import Gathering
from clarion.domain.identity import require_tenant
from clarion.domain.quota import QUOTA_MAX, Limits
from clarion.errors import Conflict, Forbidden, InvalidInput
from clarion.ports.catalog import ApiKey, CatalogStore, Role
from clarion.ports.clock import Clock

SECRET_BYTES: Final = 32

TRUSTED_FOR: Final = 2.0
"""Seconds for which a key that was read is believed: a revoked one works no longer than that, on every node (X-06)."""

KEYS_MAX: Final = 10_000
"""Keys held in memory, some hundred bytes each."""

ACTOR_CHARS_MAX: Final = 200

_TOKEN: Final = re.compile(r"clarion_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)


class Grant(StrEnum):
    """One thing that a caller may do. What somebody may want to allow separately is a grant of its own (X-04)."""

    VIEW = "view"  # notifications, histories, types, uncertain messages, support cases
    SEND = "send"
    TELL = "tell"  # put in sources, and tell of events
    RAISE = "raise"  # send in a more urgent lane than the type's own
    CANCEL = "cancel"
    SWITCH = "switch"  # notification types on and off
    CONFIGURE = "configure"  # say who gets a notification type and by which channels, and what is reminded of
    PUBLISH = "publish"  # new versions of notification types
    PEOPLE = "people"  # change people, groups, business units, roles and relations
    SUPPRESS = "suppress"  # say who gets nothing, lift that, and set what people want
    MEND = "mend"  # retry messages, resolve support cases, hold and release what waits to fall due
    AUDIT = "audit"  # read who did what
    WATCH = "watch"  # what runs and what waits, of the whole installation
    REVEAL = "reveal"  # see messages as their recipients do
    INBOX = "inbox"  # show people their inboxes, and mark lines for them


GRANTS: Final[Mapping[Role, frozenset[Grant]]] = {
    Role.VIEWER: frozenset({Grant.VIEW}),
    Role.AUTHOR: frozenset({Grant.VIEW, Grant.SWITCH, Grant.PUBLISH}),
    Role.SENDER: frozenset({Grant.VIEW, Grant.SEND, Grant.TELL, Grant.CANCEL}),
    Role.URGENT_SENDER: frozenset({Grant.VIEW, Grant.SEND, Grant.TELL, Grant.RAISE, Grant.CANCEL}),
    Role.INBOX: frozenset({Grant.VIEW, Grant.INBOX}),
    Role.SUPPORT: frozenset(
        {Grant.VIEW, Grant.CANCEL, Grant.SUPPRESS, Grant.MEND, Grant.AUDIT, Grant.WATCH, Grant.REVEAL}
    ),
    Role.ADMIN: frozenset(Grant),
}


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever holds a key: for which tenant they act, under which name, and as what."""

    tenant_id: str
    actor: str
    role: Role
    key_id: str

    def may(self, grant: Grant) -> bool:
        """Tell whether the role has a grant."""
        return grant in GRANTS[self.role]

    def require(self, grant: Grant, *, what: str = "") -> None:
        """Raise Forbidden unless the role has a grant; `what` says what it is needed for, if the request does not."""
        if not self.may(grant):
            roles = " or ".join(role for role in Role if grant in GRANTS[role])
            raise Forbidden(
                f"a key with the role {self.role} may not {grant}{what}", hint=f"use a key with the role {roles}"
            )


class MintedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key: its row, and the token, which is shown once and stored nowhere."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        """Leave the token out: a repr ends in logs."""
        return f"MintedKey(key_id={self.key.key_id!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Leave it out of rich's tracebacks as well, which do not ask for the repr."""
        return [("key_id", self.key.key_id)]


def mint(
    *, tenant_id: str, actor: str, role: Role, key_guid: UUID, secret: bytes, expires_at: datetime | None = None
) -> MintedKey:
    """Make a key of a fresh guid and 32 fresh random bytes."""
    if len(secret) != SECRET_BYTES:
        raise InvalidInput(f"it has {len(secret)} bytes", field="secret", hint=f"draw {SECRET_BYTES} random bytes")
    if not actor.strip() or len(actor) > ACTOR_CHARS_MAX or not actor.isprintable():
        raise InvalidInput(
            "it does not name anybody",
            field="actor",
            hint=f"say in 1 to {ACTOR_CHARS_MAX} characters who acts with the key; the audit log shows it",
        )
    key_id = key_guid.hex[:16]
    key = ApiKey(
        key_id=key_id,
        tenant_id=require_tenant(tenant_id),
        secret_hash=_hashed(secret.hex()),
        actor=actor,
        role=role,
        expires_at=expires_at,
    )
    return MintedKey(key=key, token=f"clarion_{key_id}_{secret.hex()}")


class Access:
    """Checks API keys, and stores and revokes them."""

    def __init__(self, store: CatalogStore, *, clock: Clock) -> None:
        """Start with no key in memory."""
        self._store = store
        self._clock = clock
        self._known: dict[str, tuple[ApiKey, float]] = {}
        self._looks: Gathering[str, None, ApiKey | None] = Gathering(self._look_up)

    async def grant(self, minted: MintedKey, *, actor: str) -> None:
        """Store a new key, on the word of `actor`; refuse one that has expired already."""
        if minted.key.expires_at is not None and minted.key.expires_at <= self._clock.now():
            raise InvalidInput("it has passed", field="expires_at", hint="name a time that is still to come")
        if not await self._store.put_api_key(minted.key, actor=actor):
            raise Conflict(f"there is a key {minted.key.key_id} already", hint="make another")

    async def revoke(self, tenant_id: str, key_id: str, *, actor: str) -> bool:
        """End a key: here at once, on other nodes within two seconds; False where there is none to end."""
        revoked = await self._store.revoke_api_key(tenant_id, key_id, actor=actor)
        self._known.pop(key_id, None)
        return revoked

    async def set_quota(self, tenant_id: str, limits: Limits, *, key_id: str | None = None, actor: str) -> bool:
        """Set what a key, or a tenant as a whole, may use in a day: on every node within seconds.

        False where it is so already.
        """
        for name, most in msgspec.structs.asdict(limits).items():
            if most is not None and not 0 <= most <= QUOTA_MAX:
                raise InvalidInput(
                    f"{most} is no quota", field=name, hint=f"use 0 to {QUOTA_MAX}, or none for no limit"
                )
        if key_id is not None and key_id not in {one.key_id for one in await self._store.list_api_keys(tenant_id)}:
            raise InvalidInput(
                f"the tenant has no key {key_id!r}", field="key", hint="`clarion keys list` shows those there are"
            )
        return await self._store.set_quota(tenant_id, key_id or "", limits, actor=actor)

    async def check(self, token: str) -> Caller | None:
        """Find out whose token this is; None if it opens nothing.

        An unknown key takes as long as a wrong secret, so that the time of the answer does not tell which it was.
        """
        read = _TOKEN.fullmatch(token)
        key_id, secret = (read[1], read[2]) if read else ("", "")
        key = await self._find(key_id) if read else None
        known = hmac.compare_digest(_hashed(secret), _NOBODY if key is None else key.secret_hash)
        if key is None or not known or key.revoked_at is not None:
            return None
        if key.expires_at is not None and key.expires_at <= self._clock.now():
            return None
        return Caller(tenant_id=key.tenant_id, actor=key.actor, role=key.role, key_id=key.key_id)

    async def _find(self, key_id: str) -> ApiKey | None:
        """Return a key as it was at most `TRUSTED_FOR` seconds ago; one that was not found is looked up every time."""
        now = self._clock.monotonic()
        key, read = self._known.get(key_id, (None, 0.0))
        if key is not None and now - read < TRUSTED_FOR:
            return key
        return await self._looks.ask(key_id, None)  # one look-up serves every request that waits for this key

    async def _look_up(self, key_id: str, waiting: Sequence[None]) -> list[ApiKey | None]:
        """Read a key for those who wait for it, and keep it."""
        now = self._clock.monotonic()
        key = await self._store.find_api_key(key_id)
        self._known.pop(key_id, None)
        if key is not None:
            if len(self._known) >= KEYS_MAX:
                del self._known[next(iter(self._known))]
            self._known[key_id] = (key, now)
        return [key] * len(waiting)


def _hashed(secret: str) -> str:
    return f"sha256:{sha256(secret.encode()).hexdigest()}"


_NOBODY: Final = f"sha256:{'0' * 64}"
"""No secret has this hash, so an unknown id is compared like a known one."""
