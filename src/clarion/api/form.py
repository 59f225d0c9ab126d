"""Reading forms: what a browser or a mail program posts, URL-encoded or as multipart (RFC 7578). Nothing else is read.

Bounded like every body, by its size and its time, before anything looks into it.
"""

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from clarion.api.problem import Refusal
from clarion.api.reading import AnyRequest, read_bytes

FORM_BYTES_MAX: Final = 64 * 1024
"""A thousand fields of sixty characters; a one-click post has 26 bytes, and some hundred as multipart."""

FIELDS_MAX: Final = 2100
"""More than a page of preferences has: two for each of a thousand boxes."""

_URLENCODED: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_BOUNDARY: Final = re.compile(r"""boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))""", re.IGNORECASE)
_NAME: Final = re.compile(
    rb'^content-disposition: *form-data;(?:.*;)? *name="([^"\r\n]{0,100})"', re.IGNORECASE | re.MULTILINE
)

Form = dict[str, list[str]]
"""The values of each field, in the order in which they came."""


async def read_form(request: AnyRequest) -> Form:
    """Read the fields of a form."""
    given = request.headers.get("content-type", "")
    media_type = given.partition(";")[0].strip().lower()
    if media_type not in (_URLENCODED, _MULTIPART):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"send a form, as content-type: {_URLENCODED} or {_MULTIPART}",
        )
    body = await read_bytes(request)
    try:
        pairs = _parts(body, given) if media_type == _MULTIPART else _pairs(body)
    except ValueError:  # also text that is no UTF-8
        raise Refusal(HTTPStatus.BAD_REQUEST, "malformed", "the form cannot be read: send it again") from None
    form: Form = {}
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


def _pairs(body: bytes) -> list[tuple[str, str]]:
    """Read `name=value&name=value`."""
    return parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)


def _parts(body: bytes, content_type: str) -> list[tuple[str, str]]:
    """Read the parts between the boundaries; one without a name is no field."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise ValueError
    boundary = b"--" + (found[1] or found[2]).encode()
    parts = (b"\r\n" + body).split(b"\r\n" + boundary)
    if len(parts) < 2 or not parts[-1].startswith(b"--") or len(parts) > FIELDS_MAX:
        raise ValueError
    pairs: list[tuple[str, str]] = []
    for part in parts[1:-1]:
        head, blank, value = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not blank or name is None:
            raise ValueError
        pairs.append((name[1].decode(), value.decode()))
    return pairs
