"""Blobs in a dict: the readable specification of `ports.blobs`, and the store for simulations.

Unlike `memory://`, which is obstore's, it starts no thread, so a seed replays it. Reads and writes only itself.
"""

from clarion.ports.blobs import check_content, check_path, missing


class MemoryBlobs:
    """Content by path, first come first kept."""

    def __init__(self) -> None:
        """Start empty."""
        self._contents: dict[str, bytes] = {}

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        """Keep content under a new path and return True, or change nothing and return False if it is taken."""
        check_path(path)
        check_content(content)
        if path in self._contents:
            return False
        self._contents[path] = bytes(content)
        return True

    async def get(self, path: str) -> bytes:
        """Return the content, or raise BlobMissing."""
        content = await self.find(path)
        if content is None:
            raise missing(path)
        return content

    async def find(self, path: str) -> bytes | None:
        """Return the content, or None where nothing was stored."""
        check_path(path)
        return self._contents.get(path)
