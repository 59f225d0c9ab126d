"""Reports by link, without a login: the token is the only authority, and it opens one report until it ends.

Served only where `CLARION_PUBLIC_URL` is set, as the pages of `hosted`. What is wrong with a token that is none of ours
is told in the same words whatever it is; that one of ours has ended is told only to whoever has it.
"""

from http import HTTPStatus
from typing import Final

from litestar import HttpMethod, MediaType, Response, route
from litestar.params import FromPath

from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.domain import report_link
from clarion.domain.report_choice import ReportForm
from clarion.errors import Gone, InvalidInput

CSP: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A report is a stranger's page: it may look as it likes, and neither run, load nor send anything."""

_HEADERS: Final = {
    "cache-control": "private, no-store",
    "content-security-policy": CSP,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
}
_TYPES: Final = {ReportForm.HTML: "text/html", ReportForm.CSV: "text/csv"}


@route(
    f"{report_link.PATH}{{token:str}}",
    http_method=(HttpMethod.GET, HttpMethod.HEAD),
    opt=Contract(tag="pages", grant=None, answer=None).opt,
    media_type=MediaType.HTML,
)
async def open_report(token: FromPath[str], context: InjectedContext) -> Response[str]:
    """Show the report that a link leads to, or give it as a file."""
    try:
        report = await context.operations.reports.open(token)
    except Gone as error:
        return _said(str(error), HTTPStatus.GONE)
    except InvalidInput as error:
        return _said(f"{error.message}: {error.hint}", HTTPStatus.NOT_FOUND)
    headers = dict(_HEADERS)
    if report.form is ReportForm.CSV:
        headers["content-disposition"] = 'attachment; filename="report.csv"'
    return Response(report.output, media_type=_TYPES[report.form], headers=headers)


def _said(text: str, status: HTTPStatus) -> Response[str]:
    return Response(f"{text}\n", status_code=status, media_type=MediaType.TEXT, headers=dict(_HEADERS))
