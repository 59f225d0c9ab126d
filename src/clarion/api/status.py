"""How the installation stands: what runs, what is in trouble, what waits."""

from litestar import get

from clarion.api import example
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.catalog.access import Grant
from clarion.client import wire_status


@get("/v1/status", opt=Contract(tag="watching", grant=Grant.WATCH, answer=example.STATUS).opt)
async def get_status(context: InjectedContext) -> wire_status.Status:
    """Show the processes that work, the provider accounts, how long what is due has waited, and open support cases.

    It is about the whole installation and all its tenants together; it names no tenant, no person and no message.
    """
    return await context.operations.status.show()
