"""Settings of notification types: what a tenant and its business units say of them."""

from http import HTTPStatus

from litestar import delete, get, put
from litestar.params import FromPath

from clarion.api import example
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_body, read_page, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_settings
from clarion.operations.settings import NOTHING, whole


@get(
    "/v1/settings",
    opt=Contract(tag="settings", grant=Grant.VIEW, query=wire.PageQuery, answer=example.SETTINGS).opt,
)
async def list_settings(request: AnyRequest, context: InjectedContext) -> wire_settings.SettingPage:
    """List what the tenant and its business units have set, by notification type."""
    return await context.operations.settings.list(*read_page(request, wire.PageQuery))


@get(
    "/v1/settings/{type_name:str}",
    opt=Contract(
        tag="settings",
        grant=Grant.VIEW,
        query=wire_settings.SettingQuery,
        answer=example.SETTING,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def get_setting(type_name: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_settings.Setting:
    """Show what is set of a notification type, for the whole tenant or for a business unit, and what holds there."""
    query = read_query(request, wire_settings.SettingQuery)
    setting = await context.operations.settings.find(caller_of(request).tenant_id, type_name, query.business_unit)
    return found(setting, "notification type")


@put(
    "/v1/settings/{type_name:str}",
    opt=Contract(
        tag="settings",
        grant=Grant.CONFIGURE,
        query=wire_settings.SettingQuery,
        body=example.SETTING_REQUEST,
        answer=example.SETTING,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def put_setting(type_name: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_settings.Setting:
    """Say whether a notification type is on, who gets it and by which channels; audited. It replaces what was set."""
    caller, query = caller_of(request), read_query(request, wire_settings.SettingQuery)
    change = whole(await read_body(request, wire_settings.SettingRequest))
    changed = await context.operations.settings.change(
        caller.tenant_id, type_name, query.business_unit, change, actor=caller.actor
    )
    return found(changed, "notification type")


@delete(
    "/v1/settings/{type_name:str}",
    status_code=HTTPStatus.OK,
    opt=Contract(
        tag="settings",
        grant=Grant.CONFIGURE,
        query=wire_settings.SettingQuery,
        answer=example.SETTING_CLEARED,
        problems=(HTTPStatus.NOT_FOUND,),
    ).opt,
)
async def clear_setting(
    type_name: FromPath[str], request: AnyRequest, context: InjectedContext
) -> wire_settings.Setting:
    """Take back what was set of a notification type in one place, and show what holds there now; audited."""
    caller, query = caller_of(request), read_query(request, wire_settings.SettingQuery)
    cleared = await context.operations.settings.change(
        caller.tenant_id, type_name, query.business_unit, NOTHING, actor=caller.actor
    )
    return found(cleared, "notification type")
