"""Places that strangers share, and who has to leave when there are too many of them. Pure.

A guest that comes when every place is taken is let in, and the source that holds the most places gives up its oldest
one: whoever takes many takes them from themselves. One source never has more than half of the places. Behind a proxy
everybody has one source, and then the oldest guest leaves. Guests who were recognised have to leave only where there is
no stranger: of the name (a tenant) that has the most, the one that has not been used for longest.

Whoever is being served is not sent away for others: of those places nobody gets more than half (`Places`).
"""

from collections import Counter
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
        self._known: dict[str, dict[G, None]] = {}  # by name, the one used last at the end
        self._names: dict[G, str] = {}
        self._count = 0

    def is_full(self) -> bool:
        """Tell whether there are more guests than places, because there was nobody to make room."""
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
        if oldest == guest:  # the only stranger
            if not self._known:
                return None
            largest = max(self._known, key=lambda name: len(self._known[name]))
            oldest = next(iter(self._known[largest]))
        self.leave(crowded, oldest)
        return oldest

    def recognise(self, source: str, guest: G, name: str) -> None:
        """Take note that a guest is no stranger, at each of its requests: strangers leave before it."""
        if self._forget(source, guest) or self._forget_known(guest):
            self._known.setdefault(name, {})[guest] = None
            self._names[guest] = name

    def leave(self, source: str, guest: G) -> None:
        """Let a guest go; one that had to leave before has gone already."""
        if self._forget(source, guest) or self._forget_known(guest):
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

    def _forget_known(self, guest: G) -> bool:
        """Take a guest off those who were recognised; tell whether it was one."""
        name = self._names.pop(guest, None)
        if name is None:
            return False
        del self._known[name][guest]
        if not self._known[name]:
            del self._known[name]
        return True


class Places(Generic[G]):
    """Places that are kept until they are given back; no holder has more than half of them."""

    def __init__(self, *, places: int) -> None:
        """Start with every place free."""
        self._places = places
        self._holders: dict[G, str] = {}
        self._counts: Counter[str] = Counter()

    def take(self, guest: G, holder: str) -> bool:
        """Take a place, or put the one that a guest has to another holder's account; False where there is none left."""
        if self._counts[holder] >= self._places // 2:
            return False
        if guest not in self._holders and len(self._holders) >= self._places:
            return False
        self.leave(guest)
        self._holders[guest] = holder
        self._counts[holder] += 1
        return True

    def leave(self, guest: G) -> None:
        """Give a place back, if the guest has one."""
        holder = self._holders.pop(guest, None)
        if holder is not None:
            self._counts[holder] -= 1
            if not self._counts[holder]:
                del self._counts[holder]


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
