"""Places that strangers share, and who has to leave when there are too many of them. Pure.

A guest that comes when every place is taken is let in, and the source that holds the most places gives up its oldest
one: whoever takes many takes them from themselves. One source never has more than half of the places. Behind a proxy
everybody has one source, and then the oldest guest leaves. Guests whose source is known to be welcome count and never
have to leave.
"""

from collections.abc import Hashable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Generic, TypeVar

G = TypeVar("G", bound=Hashable)

_NETWORK_BITS: Final = 64
"""Of an IPv6 address: what one subscriber has, and can take any address from."""


class Crowd(Generic[G]):
    """Guests by their source, in the order in which they came."""

    def __init__(self, *, places: int) -> None:
        """Start with every place free."""
        self._places = places
        self._strangers: dict[str, dict[G, None]] = {}
        self._known: set[G] = set()
        self._count = 0

    def is_full(self) -> bool:
        """Tell whether there are more guests than places, because there was no stranger to make room."""
        return self._count > self._places

    def enter(self, source: str, guest: G) -> G | None:
        """Let a stranger in; return who has to leave for it, if anybody has to. They have left this crowd already."""
        self._strangers.setdefault(source, {})[guest] = None
        self._count += 1
        crowded = source
        if self.is_full():
            crowded = max(self._strangers, key=lambda one: len(self._strangers[one]))
        elif len(self._strangers[source]) <= self._places // 2:
            return None
        oldest = next(iter(self._strangers[crowded]))
        if oldest == guest:
            return None
        self.leave(crowded, oldest)
        return oldest

    def recognise(self, source: str, guest: G) -> None:
        """Take note that a guest is no stranger: it stays for as long as it likes."""
        if self._forget(source, guest):
            self._known.add(guest)

    def leave(self, source: str, guest: G) -> None:
        """Let a guest go; one that had to leave before has gone already."""
        if self._forget(source, guest):
            self._count -= 1
        elif guest in self._known:
            self._known.remove(guest)
            self._count -= 1

    def _forget(self, source: str, guest: G) -> bool:
        """Take a guest off the strangers; tell whether it was one."""
        strangers = self._strangers.get(source, {})
        if guest not in strangers:
            return False
        del strangers[guest]
        if not strangers:
            del self._strangers[source]
        return True


def source_of(client: tuple[str, int] | None) -> str:
    """Name the source of a connection: its peer's address, of IPv6 the network; all without one share one name."""
    if client is None:
        return ""
    try:
        address = ip_address(client[0])
    except ValueError:
        return client[0]
    if not isinstance(address, IPv6Address):
        return client[0]
    mapped = address.ipv4_mapped
    return str(mapped or ip_network((int(address), _NETWORK_BITS), strict=False))
