"""The desk: what a command works with. Opens the platform, finds the tenant, says who acts, and closes again."""

import asyncio
import os
import pwd
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform, Settings, load_settings, open_platform
from clarion.dispatch.request import Trace
from clarion.errors import InvalidInput
from clarion.ports.store import Store

T = TypeVar("T")


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """One command's platform, and for whom it works there."""

    platform: Platform
    tenant_id: str
    actor: str
    trace: Trace

    @property
    def store(self) -> Store:
        """The store, which nearly every command asks."""
        return self.platform.store


def at_desk(work: Callable[[Desk], Awaitable[T]], *, store: str | None, tenant: str | None) -> T:
    """Run one command's work for a tenant and return what it returns."""

    async def whole() -> T:
        async with open_platform(settings_with(store)) as platform:
            return await work(await take_place(platform, tenant=tenant))

    return asyncio.run(whole())


async def take_place(platform: Platform, *, tenant: str | None) -> Desk:
    """Make a desk on an open platform, for the tenant that is named or the only one."""
    return Desk(
        platform=platform,
        tenant_id=await _tenant(platform, tenant or platform.settings.tenant),
        actor=acting(),
        trace=Trace(correlation_id=str(platform.ids.new_guid())),
    )


def settings_with(store: str | None) -> Settings:
    """Take the settings of the environment, and the store that the command names."""
    settings = load_settings()
    return settings if store is None else msgspec.structs.replace(settings, store=store)


def acting() -> str:
    """Say who acts, as the audit log shows it."""
    return f"cli:{user_name()}"


def user_name() -> str:
    """Name whoever runs the program, as the machine knows them."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        return str(os.getuid())


def guid(text: str, *, field: str, hint: str) -> UUID:
    """Read an id as it was typed; `hint` says where it is found."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(f"{text!r:.80} is no id", field=field, hint=hint) from None


async def find_job(desk: Desk, text: str) -> tuple[UUID, UUID | None]:
    """Find a job by its own id or by that of one of its messages; return its id and, if so, the message's."""
    named = guid(text, field="id", hint="use the id as `clarion send` or `clarion history` printed it")
    job_guid = await desk.store.find_job_of_message(desk.tenant_id, named)
    return (named, None) if job_guid is None else (job_guid, named)


def unknown_id(text: str) -> InvalidInput:
    """Make the error for an id under which nothing is stored."""
    return InvalidInput(
        f"the tenant has no job or message {text}",
        field="id",
        hint="check the id and --tenant",
    )


async def _tenant(platform: Platform, named: str | None) -> str:
    """Choose the tenant, and make sure that there is one."""
    if named is None:
        found = await platform.store.list_tenants(limit=2)
        if len(found) != 1:
            problem = "there are several tenants" if found else "there is no tenant yet"
            hint = "name one with --tenant" if found else "make one with `clarion tenants create NAME`"
            raise InvalidInput(problem, field="--tenant", hint=hint)
        return found[0]
    if await platform.store.find_tenant_keys(named) is None:
        raise InvalidInput(
            f"there is no tenant {named!r}", field="--tenant", hint="`clarion tenants list` names those there are"
        )
    return named


def require_reason(reason: str) -> None:
    """Refuse an act without a reason: the audit log keeps it."""
    if not reason.strip():
        raise InvalidInput("it is empty", field="--reason", hint="say why in a few words")
