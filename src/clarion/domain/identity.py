"""Who a message is for, and on which road: tenants, identities, channels, lanes.

An identity is one person, group or bare address as the tenant knows it; two identities are equal exactly when their
hashes are. Where a message goes to (a normalised destination) is in `destination`; the hashes are in `derived_id`.

Reads and writes nothing.
"""

import re
from enum import StrEnum
from typing import Self, assert_never
from uuid import UUID

import msgspec

from clarion.domain import part
from clarion.errors import InvalidInput

ADDRESS_MAX = 4096  # bytes: a push token or a web push endpoint is the longest thing that a message can be sent to

USER_CHARS_MAX = 200  # of the tenant's own id of a user, as in requests

_UNSEEN = re.compile(f"[{part.UNSEEN}]")

# A slug, so that it can stand in a path, a log line and a host name as it is (63 is the length of a DNS label).
_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Channel(StrEnum):
    """How a message reaches its recipient."""

    EMAIL = "email"
    SMS = "sms"
    PUSH = "push"
    CHAT = "chat"
    INBOX = "inbox"


class Lane(StrEnum):
    """How urgent a message is, the most urgent first; lanes share capacity by weight."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    BULK = "bulk"

    def is_above(self, other: "Lane") -> bool:
        """Tell whether this lane is the more urgent one."""
        lanes = list(Lane)
        return lanes.index(self) < lanes.index(other)


class IdentityDomain(StrEnum):
    """What an identity is, so that the user 7 and the employee 7 are never taken for each other."""

    USER = "user"
    EMPLOYEE = "employee"
    ADDRESS = "address"
    GROUP = "group"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """One recipient as the tenant knows it: a user's id, an employee's or a group's guid, or a normalised address."""

    domain: IdentityDomain
    id: str

    def __post_init__(self) -> None:
        """Refuse an id that its domain cannot have, and bring it to NFC."""
        part.member(self.domain, of=IdentityDomain, field="domain")
        normal = part.plain(self.id, field="id", size_max=ADDRESS_MAX)
        match self.domain:
            case IdentityDomain.EMPLOYEE | IdentityDomain.GROUP:
                _require_guid_text(normal, domain=self.domain)
            case IdentityDomain.USER:
                part.fit(f"user:{part.text(normal, field='id')}", field="id", shorten="the user's id")
            case IdentityDomain.ADDRESS:
                pass  # it is found by its hash and stands in no key
            case _:
                assert_never(self.domain)
        msgspec.structs.force_setattr(self, "id", normal)

    @classmethod
    def user(cls, user_id: str) -> Self:
        """Name a user by the tenant's own id."""
        return cls(domain=IdentityDomain.USER, id=user_id)

    @classmethod
    def employee(cls, guid: UUID) -> Self:
        """Name an employee."""
        return cls(domain=IdentityDomain.EMPLOYEE, id=part.guid(guid, field="guid"))

    @classmethod
    def group(cls, guid: UUID) -> Self:
        """Name a group."""
        return cls(domain=IdentityDomain.GROUP, id=part.guid(guid, field="guid"))

    @classmethod
    def address(cls, address: str) -> Self:
        """Name a bare address, already normalised, of which nobody is known to be the owner."""
        return cls(domain=IdentityDomain.ADDRESS, id=address)

    def __repr__(self) -> str:
        """Leave the id out: it may be an address, and a repr ends in logs."""
        return f"Identity({self.domain.value})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Leave it out of rich's tracebacks as well, which do not ask for the repr."""
        return [("domain", self.domain.value)]


def read_person(text: str, *, field: str) -> Identity:
    """Read `user:ID` or `employee:GUID`, as callers name people; an error names this field of theirs."""
    domain, _, rest = text.partition(":")
    try:
        if domain == IdentityDomain.USER and len(rest) <= USER_CHARS_MAX and not _UNSEEN.search(rest) and rest.strip():
            return Identity.user(rest)
        if domain == IdentityDomain.EMPLOYEE:
            return Identity.employee(UUID(rest))
    except InvalidInput as error:
        raise InvalidInput(error.message, field=field, hint=error.hint) from None
    except ValueError:
        pass  # no guid
    raise InvalidInput(
        "it names nobody",
        field=field,
        hint=f"write user:ID, with {USER_CHARS_MAX} characters at most, or employee:GUID",
    )


def require_tenant(tenant_id: str, *, field: str = "tenant_id") -> str:
    """Refuse what is no tenant id: 1 to 63 of a-z, 0-9 and '-', not starting with '-'; `field` is the caller's word."""
    if not part.spelled(tenant_id, _TENANT):
        raise InvalidInput(
            "it is not a tenant id", field=field, hint="use 1 to 63 of a-z, 0-9 and '-', not starting with '-'"
        )
    return tenant_id


def _require_guid_text(text: str, *, domain: IdentityDomain) -> None:
    try:
        canonical = str(UUID(text))
    except ValueError:
        canonical = ""
    if text != canonical:
        raise InvalidInput(f"an id in the domain {domain.value} is a guid in lower case", field="id", hint="pass one")
