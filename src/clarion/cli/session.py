"""A command's session: what it works with. Opens the platform, finds the tenant, says who acts, and closes again.

Every command imports this module before it knows whether it was asked rightly, so the platform is imported where it is
opened.
"""

import os
import pwd
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import msgspec

from clarion.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from clarion.bootstrap import Platform, Settings
    from clarion.dispatch.request import Trace
    from clarion.operations import Operations, Wake
    from clarion.ports.store import Store

T = TypeVar("T")

TENANTS_SHOWN = 8
"""Names in the error where one must be chosen: they fit on a line or two."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One command's platform, and for whom it works there."""

    platform: "Platform"
    operations: "Operations"
    tenant_id: str
    actor: str
    trace: "Trace"

    @property
    def store(self) -> "Store":
        """The store, which nearly every command asks."""
        return self.platform.store


def in_session(work: Callable[[Session], Awaitable[T]], *, store: str | None, tenant: str | None) -> T:
    """Run one command's work for a tenant, wake the workers if there is something for them, and return its answer."""
    import asyncio

    from clarion.bootstrap import open_platform

    async def whole() -> T:
        async with open_platform(settings_with(store)) as platform:
            stored: set[str] = set()
            answer = await work(await open_session(platform, tenant=tenant, wake=stored.add))
            if stored:
                await _wake_workers(platform.settings, stored)
            return answer

    try:
        return asyncio.run(whole())
    except InvalidInput as error:
        if error.field != "cursor":
            raise
        raise type(error)(error.message, field="--after", hint=error.hint) from None


async def open_session(platform: "Platform", *, tenant: str | None, wake: "Wake" = lambda _: None) -> Session:
    """Make the session on an open platform, for the tenant that is named or the only one."""
    from clarion.dispatch.request import Trace
    from clarion.operations import Operations

    return Session(
        platform=platform,
        operations=Operations(platform, wake=wake),
        tenant_id=await _tenant(platform, tenant or platform.settings.tenant),
        actor=acting(),
        trace=Trace(correlation_id=str(platform.ids.new_guid())),
    )


def settings_with(store: str | None) -> "Settings":
    """Take the settings of the environment, and the store that the command names."""
    from clarion.bootstrap import load_settings

    if store is not None and _shows_password(store):
        from clarion.cli.output import say

        say(
            "warning: every user of this machine can read the password of --store in the list of processes; name the "
            "store in CLARION_STORE, or leave the password out and keep it in ~/.pgpass"
        )
    settings = load_settings()
    return settings if store is None else msgspec.structs.replace(settings, store=store)


def _shows_password(url: str) -> bool:
    """Tell whether a URL holds a password, which whoever reads the URL would read too."""
    from urllib.parse import parse_qs, urlsplit

    try:
        parts = urlsplit(url)
        return bool(parts.password) or "password" in parse_qs(parts.query)
    except ValueError:
        return "@" in url


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


def job_or_message(text: str) -> UUID:
    """Read the id of a job or of a message as it was typed."""
    return guid(text, field="id", hint="use the id as `clarion send` or `clarion history` printed it")


def known(answer: T | None, text: str) -> T:
    """Give what was found under the id of a job or message, or say that the tenant has none."""
    if answer is None:
        raise InvalidInput(f"the tenant has no job or message {text}", field="id", hint="check the id and --tenant")
    return answer


def known_occurrence(answer: T | None, key: str) -> T:
    """Give what was found under the key of an occurrence, or say that the tenant has none."""
    if answer is None:
        raise InvalidInput(
            f"the tenant has no occurrence {key!r:.200}", field="KEY", hint="`clarion automation list` shows the keys"
        )
    return answer


def unknown_type(name: str, names: Collection[str]) -> InvalidInput:
    """Make the error for a notification type that is not published, with the names that come near."""
    near = get_close_matches(name, sorted(names), n=3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif names:
        hint = f"the published types are {', '.join(sorted(names))}"
    else:
        hint = "nothing is published yet; `clarion publish FOLDER` adds a type"
    return InvalidInput(f"there is no notification type {name!r}", field="type", hint=hint)


@contextmanager
def hint_on_conflict(hint: str) -> Iterator[None]:
    """Where an operation cannot be done as things stand, name the command that shows how they stand."""
    try:
        yield
    except Conflict as error:
        raise Conflict(error.message, hint=hint) from None


async def _wake_workers(settings: "Settings", topics: Collection[str]) -> None:
    """Wake workers of other processes, where the store can tell them; elsewhere they find the work within a second."""
    from clarion.bootstrap import open_wake_up

    async with open_wake_up(settings, hear=lambda _: None) as forward:
        if forward is not None:
            for topic in topics:
                forward(topic)


async def _tenant(platform: "Platform", named: str | None) -> str:
    """Choose the tenant, and make sure that there is one."""
    if named is None:
        found = await platform.store.list_tenants(limit=TENANTS_SHOWN + 1)
        if not found:
            raise InvalidInput(
                "there is no tenant yet", field="--tenant", hint="make one with `clarion tenants create NAME`"
            )
        if len(found) > 1:
            names = ", ".join(found[:TENANTS_SHOWN]) + (" and more" if len(found) > TENANTS_SHOWN else "")
            raise InvalidInput(
                f"there are several tenants ({names})",
                field="--tenant",
                hint="name one with it, or with CLARION_TENANT",
            )
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
