"""What is held in memory up to a number of bytes: where there is too much, what was held longest goes first. Pure."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Held(Generic[K, V]):
    """Values by name, each with about the bytes that it takes.

    The newest stays, however large it is: whoever put it there needs it now.
    """

    def __init__(self, bytes_max: int) -> None:
        """Hold nothing yet."""
        self._bytes_max = bytes_max
        self._values: dict[K, tuple[V, int]] = {}
        self.bytes = 0

    def __len__(self) -> int:
        """Count what is held."""
        return len(self._values)

    def __contains__(self, name: K) -> bool:
        """Tell whether something is held under a name."""
        return name in self._values

    def names(self) -> list[K]:
        """Name all that is held."""
        return list(self._values)

    def get(self, name: K) -> V | None:
        """Return what is held under a name."""
        found = self._values.get(name)
        return None if found is None else found[0]

    def put(self, name: K, value: V, *, size: int) -> None:
        """Hold a value, and let go of what there is no room for beside it."""
        if name in self._values:
            self.bytes -= self._values.pop(name)[1]
        self._values[name] = value, size
        self.bytes += size
        while self.bytes > self._bytes_max and len(self._values) > 1:
            self.bytes -= self._values.pop(next(iter(self._values)))[1]
