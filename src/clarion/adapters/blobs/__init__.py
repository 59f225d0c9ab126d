"""Blob stores, opened by URL: local files, memory, and object stores through obstore.

- `file:///folder`: files of this machine; the folder is created for this user only.
- `memory://`: this process's memory, gone with it.
- `s3://bucket/prefix`, `az://container/prefix`, `gs://bucket/prefix`: left to obstore, which takes credentials from its
  own environment variables. These are not tested here; the two above are.
"""

from urllib.parse import unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import MemoryStore, from_url

from clarion.adapters.blobs.files import open_files
from clarion.adapters.blobs.objects import RETRIES, ObjectBlobs
from clarion.errors import BadConfiguration
from clarion.ports.blobs import Blobs


def open_blobs(url: str) -> Blobs:
    """Open the blob store that a URL names, or say why it cannot be used."""
    scheme = urlsplit(url).scheme
    match scheme:
        case "file":
            return open_files(_folder(url))
        case "memory":
            return ObjectBlobs(MemoryStore())
        case "s3" | "az" | "gs":
            return _open_remote(url)
        case _:
            # Only the scheme is repeated: the rest of a URL may hold a credential.
            raise BadConfiguration(
                f"no blob store is known for URLs of the form {scheme or '(none)'}:",
                hint="use file:///folder, memory://, s3://, az:// or gs://",
            )


def _folder(url: str) -> str:
    """Return the absolute folder of a file URL."""
    parts = urlsplit(url)
    folder = unquote(parts.path)
    if parts.netloc or parts.query or parts.fragment or not folder.startswith("/") or "\0" in folder:
        raise BadConfiguration(
            "the blob URL does not name an absolute folder of this machine",
            hint="write file: and three slashes, as in file:///var/lib/clarion/blobs",
        )
    return folder


def _open_remote(url: str) -> Blobs:
    """Open an object store; that it answers is seen at the first use."""
    try:
        return ObjectBlobs(from_url(url, retry_config=RETRIES))
    except (BaseError, ValueError) as error:
        # The vendor's text stays in the cause: it may repeat the URL.
        raise BadConfiguration(
            f"the {urlsplit(url).scheme} blob store cannot be opened ({type(error).__name__})",
            hint="check bucket or container, and the account and credentials in the environment",
        ) from error
