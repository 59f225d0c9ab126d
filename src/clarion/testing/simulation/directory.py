"""The directory: which hash in the database stands for whom, and which index for which destination.

Hashes are computed under the keys of the tenant, from the people and addresses that the world knows: so the checker can
tell which row belongs to which request. What a row shows is judged by `truth`.
"""

from typing import NamedTuple

from clarion.domain import derived_id
from clarion.domain.identity import Channel, Identity
from clarion.domain.seal import TenantKeys
from clarion.testing.simulation import society


class Addressee(NamedTuple):
    """One recipient: a person by number, or a bare address."""

    person: int | None
    address: str | None


class Directory:
    """Everybody who can be meant in one run."""

    def __init__(self) -> None:
        """Start without keys; `open` comes first."""
        self._keys: TenantKeys | None = None
        self._whose: dict[str, Addressee] = {}
        self._where: dict[str, str] = {}

    def open(self, keys: TenantKeys) -> None:
        """Take the keys of the tenant, and note everybody in their first edition."""
        self._keys = keys
        for number in range(society.PEOPLE):
            self._whose[keys.hash_of(society.identity(number))] = Addressee(number, None)
            self.learn(number, edition=1)

    def learn(self, number: int, *, edition: int) -> None:
        """Note where a person may be reached from now on."""
        for one in society.contacts(number, edition):
            self._where[self.index_of(one.channel, one.destination)] = one.destination

    def learn_bare(self, channel: Channel, address: str) -> None:
        """Note a bare address."""
        self._whose[self._opened.hash_of(Identity.address(address))] = Addressee(None, address)
        self._where[self.index_of(channel, address)] = address

    def hash_of(self, number: int) -> str:
        """Return what stands for a person."""
        return self._opened.hash_of(society.identity(number))

    def index_of(self, channel: Channel, destination: str) -> str:
        """Return what stands for a destination."""
        keys = self._opened
        return derived_id.destination_index(
            index_key=keys.index_key, tenant_id=keys.tenant_id, channel=channel, destination=destination
        )

    @property
    def _opened(self) -> TenantKeys:
        if self._keys is None:
            raise RuntimeError("the installation is not founded yet")
        return self._keys

    def whose(self, recipient_id_hash: str) -> Addressee | None:
        """Tell who is meant by a hash."""
        return self._whose.get(recipient_id_hash)

    def where(self, index: str) -> str | None:
        """Tell which destination an index stands for."""
        return self._where.get(index)
