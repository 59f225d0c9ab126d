"""What a server's settings mean for commits that were answered: whether they can be lost, and what follows. Pure.

A claim is committed before its call leaves. If that commit is lost afterwards, the row is claimed and called again, and
nobody can tell: so a lost commit is a message sent twice (F-43). Clarion cannot make that safe. It can say so before.
"""

import msgspec


class Durability(msgspec.Struct, frozen=True, kw_only=True):
    """How a database server keeps commits, as far as this user may see it."""

    fsync: str
    synchronous_commit: str
    synchronous_standby_names: str
    standbys: int
    asynchronous: int
    """Of the standbys, those that are known not to be waited for; without the right to look, none is."""


def warnings_of(found: Durability) -> tuple[str, ...]:
    """Say what can make the server forget what it has answered, and what to set."""
    said = []
    if found.fsync == "off":
        said.append("fsync is off: a power cut may cost the server any data; set it to on and restart the server")
    if found.synchronous_commit == "off":
        said.append(
            "synchronous_commit is off: a crash of the server loses the last commits, and messages that had left are "
            "sent again; set it to on, for the server or for this role"
        )
    waits = found.synchronous_standby_names.strip() and found.synchronous_commit not in ("off", "local")
    unwaited = found.asynchronous if waits else found.standbys
    if unwaited:
        said.append(
            f"{unwaited} of {found.standbys} standbys may lack the last commits (asynchronous): after failing over to "
            "one, messages that had left are sent again; name it in synchronous_standby_names, with synchronous_commit "
            "on, or never fail over to it"
        )
    return tuple(said)
