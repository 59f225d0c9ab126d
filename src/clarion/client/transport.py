"""Requests to the API, made and repeated in one place, and what a caller learns of those that fail.

What can do no harm is repeated by itself: reading, and what may be done twice. What may not is asked for once: if its
answer is lost, nobody can tell whether it was done.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from pyreqwest.client import Client as HttpClient
from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import ConnectError, PyreqwestError

from clarion.client import wire
from clarion.domain.call_times import LAST_PAUSE

TIMEOUT: Final = timedelta(seconds=10)
"""An accept is one transaction; what takes longer is a store in trouble."""

TRIES: Final = 4

FIRST_PAUSE: Final = 0.25
"""Seconds before the second try; each later one waits twice as long, or as long as the server asks for."""

PAUSE_MAX: Final = 10.0
"""Seconds, even if the server asks for a longer pause: whether to wait longer is for the caller to decide."""

_KEY: Final = re.compile(r"[!-~]+", re.ASCII)

S = TypeVar("S", bound=msgspec.Struct)


class ApiError(Exception):
    """The API refused a request; `problem` says why and what to do."""

    def __init__(self, problem: wire.Problem) -> None:
        """Keep the problem as it was answered."""
        super().__init__(f"{problem.code}: {problem.detail}")
        self.problem = problem

    @property
    def code(self) -> str:
        """The stable code of the problem."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class Unreachable(Exception):
    """No answer came: the server is down, or something between. What was asked may have been done."""


class Transport:
    """Requests to one installation, with one API key."""

    def __init__(self, url: str, *, key: str, timeout: timedelta, pause: Callable[[float], Awaitable[None]]) -> None:
        """Speak to the API at a URL; nothing is sent before the first request."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise ValueError("the API's address is a URL such as https://clarion.example.com")
        if not _KEY.fullmatch(key):  # what it holds is never said: errors end up in logs
            raise ValueError("the API key is empty or holds a space or a line break: strip what was read from a file")
        self._url = url.rstrip("/")
        self._pause = pause
        self._http: HttpClient = (
            ClientBuilder()
            .timeout(timeout)
            .follow_redirects(enable=False)
            .default_headers({"authorization": f"Bearer {key}", "content-type": "application/json"})
            .build()
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()
        await asyncio.sleep(LAST_PAUSE.total_seconds())

    async def ask(
        self,
        method: str,
        path: str,
        shape: type[S],
        *,
        body: msgspec.Struct | None = None,
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool | None = None,
    ) -> S:
        """Make a request and read its answer; what only reads may be asked again."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        answer = await self.request(
            method,
            f"{path}?{urlencode(given)}" if given else path,
            body=body,
            headers=headers,
            again=method == "GET" if again is None else again,
        )
        return msgspec.json.decode(answer, type=shape)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | None = None,
        headers: Mapping[str, str] | None = None,
        again: bool,
    ) -> bytes:
        """Make a request, again where that does no harm and may help."""
        content = b"" if body is None else msgspec.json.encode(body)
        for tried in range(1, TRIES + 1):
            last = not again or tried == TRIES
            pause = FIRST_PAUSE * 2 ** (tried - 1)
            try:
                status, answer, asked = await self._once(method, path, content, headers or {})
            except PyreqwestError as error:
                if last:
                    raise Unreachable(f"no answer from {self._url}: {_fault(error)}") from error
            else:
                if status < 400:
                    return answer
                if last or status != 503:
                    raise _error(status, answer)
                pause = max(pause, asked)
            await self._pause(min(pause, PAUSE_MAX))
        raise AssertionError("the last try returns or raises")

    async def _once(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, float]:
        """Make one request; return status, body, and how long the server asks to wait."""
        task = asyncio.current_task()
        canceled = task.cancelling() if task else 0
        request = self._http.request(method, f"{self._url}{path}").headers(headers).body_bytes(content).build()
        try:
            response = await request.send()
            answer = bytes(await response.bytes())
        finally:
            if task and task.cancelling() > canceled:
                # pyreqwest can lose a cancellation that meets an answer; its caller's loop would then never end.
                raise asyncio.CancelledError
        asked = response.headers.get("retry-after", "")
        return response.status, answer, float(asked) if asked.isdecimal() else 0.0


def _fault(error: PyreqwestError) -> str:
    """Say why no answer came, in our words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ConnectError):
        return "no connection could be made; see that the server runs and that the address is right"
    return "the connection was lost"


def _error(status: int, answer: bytes) -> ApiError:
    """Read a problem; an answer that is none came from something in between."""
    try:
        return ApiError(msgspec.json.decode(answer, type=wire.Problem))
    except msgspec.DecodeError:
        return ApiError(
            wire.Problem(
                type="about:blank",
                title="Not an answer of Clarion",
                status=status,
                detail=f"something between this program and Clarion answered with {status}",
                code="not-clarion",
                correlation_id="",
            )
        )
