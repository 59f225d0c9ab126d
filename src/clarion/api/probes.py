"""Health, readiness, metrics and the description of the API: for machines that watch over this one. No key is needed.

None of them shows a tenant, a person or a message.
"""

from http import HTTPStatus
from typing import Final

from litestar import MediaType, Response, get

from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.metrics import MEDIA_TYPE
from clarion.api.problem import Refusal
from clarion.client import wire

TAG: Final = "watching"


@get("/health", opt=Contract(tag=TAG, grant=None, answer=wire.Alive()).opt)
async def get_health() -> wire.Alive:
    """Say that the process lives; a process that does not answer this should be restarted."""
    return wire.Alive()


@get("/ready", opt=Contract(tag=TAG, grant=None, answer=wire.Ready(ready=True)).opt)
async def get_ready(context: InjectedContext) -> wire.Ready:
    """Say whether requests should be sent here: the store answers and the event loop keeps up."""
    reason = await context.pulse.why_unready()
    if reason is not None:
        raise Refusal(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "not-ready",
            f"send requests elsewhere for now ({reason})",
            headers={"retry-after": "1"},
        )
    return wire.Ready(ready=True, warning=context.pulse.warning)


@get("/metrics", opt=Contract(tag=TAG, grant=None, answer=None, text="text/plain").opt)
async def get_metrics(context: InjectedContext) -> Response[str]:
    """Give counts, times and gauges as Prometheus reads them."""
    return Response(context.metrics.written(await context.pulse.measure()), media_type=MEDIA_TYPE)


@get("/openapi.json", opt=Contract(tag=TAG, grant=None, answer=None, text="application/json").opt)
async def get_openapi(context: InjectedContext) -> Response[bytes]:
    """Describe the API (OpenAPI 3.1)."""
    return Response(context.description, media_type=MediaType.JSON)
