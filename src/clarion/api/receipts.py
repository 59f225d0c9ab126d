"""Receipts: what providers report about messages, taken in and applied by the workers later.

No API key opens this door: the signature is the credential, and only an account whose provider signs has a door here.
"""

from http import HTTPStatus
from typing import Final

from litestar import post
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import recognise
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract, Header
from clarion.api.problem import Refusal
from clarion.api.reading import AnyRequest, read_bytes
from clarion.client import wire
from clarion.domain import signature
from clarion.ports.provider import Reporter

BYTES_MAX: Final = 1024 * 1024
"""A thousand events take less than half of it."""


@post(
    "/v1/receipts/{account:str}",
    status_code=HTTPStatus.OK,
    request_max_body_size=BYTES_MAX,
    opt=Contract(
        tag="receipts",
        grant=None,
        foreign_body=True,
        headers=(
            Header(name=signature.ID, description="The sender's name for this request.", length_max=255),
            Header(name=signature.TIMESTAMP, description="When it is sent, in unix seconds.", length_max=12),
            Header(
                name=signature.SIGNATURE,
                description="`v1,` and the base64 of the HMAC-SHA256 over `id.timestamp.body`; several by blanks.",
                length_max=4096,
            ),
        ),
        problems=(HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND),
        answer=example.KEPT,
    ).opt,
)
async def take_receipts(account: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire.Kept:
    """Take what a provider reports about messages; answered once all of it is stored.

    For providers, not for applications: the request is signed with the account's secret (Standard Webhooks). An event
    that comes again is kept once. The body is the provider's own: its account verifies it and reads it.
    """
    reporter: object = context.platform.providers.get(account)
    if not isinstance(reporter, Reporter):
        raise Refusal(
            HTTPStatus.NOT_FOUND, "not-found", "nobody reports here: check the account's name at the end of the path"
        )
    now = context.platform.clock.now()
    reporter.check_headers(request.headers, now=now)
    reports = await reporter.read_reports(account, request.headers, await read_bytes(request), now=now)
    recognise(request, account)
    for tenant_id in reports:
        await context.platform.keyring.get(tenant_id)  # refuses a tenant that there is not, before anything is stored
    kept = 0
    for tenant_id, events in reports.items():
        kept += await context.platform.store.keep_events(tenant_id, events)
    if kept:
        context.wake("events")
    return wire.Kept(kept=kept)
