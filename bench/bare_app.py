"""A bare framework: the same server and the same reading of the same request, and nothing behind it.

`python -m bench.bare_app` prints its address and serves until it is told to stop.
"""

import socket

import msgspec
import uvicorn
from litestar import Litestar, post


class Notification(msgspec.Struct):
    """The request that `bench.accept` sends."""

    type: str
    to: list[dict[str, str]]
    data: dict[str, object]


@post("/v1/notifications", status_code=202)
async def accept(data: Notification) -> dict[str, str]:
    """Read, validate, answer."""
    return {"job_id": data.type}


def main() -> None:
    """Serve on a free port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(2048)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Litestar([accept], openapi_config=None), log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
