"""Stories: what became of an entity, and of one occurrence of a reminder or a report."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from uuid import UUID

from litestar import get
from litestar.params import FromPath

from clarion.api import example_automation
from clarion.api.authentication import caller_of
from clarion.api.context import InjectedContext
from clarion.api.contract import Contract
from clarion.api.problem import found
from clarion.api.reading import AnyRequest, read_query
from clarion.catalog.access import Grant
from clarion.client import wire, wire_story
from clarion.domain.entity_event import HistoryKind

_LINE: Final = wire_story.StoryLine(
    at=datetime(2026, 3, 24, 8, 0, tzinfo=UTC),
    kind=HistoryKind.HANDED_OVER,
    subject=example_automation.OCCURRENCE.key,
    cause="claim 2",
    text="handed over as welcome",
)
STORY: Final = wire_story.StoryPage(items=(_LINE,), next_cursor=None)
EXPLAINED: Final = wire_story.Explained(
    occurrence=example_automation.OCCURRENCE,
    why="7 days before due 2026-03-31",
    setting_name="Invoice is due in a week",
    for_whom=None,
    means=None,
    remedy=None,
    lines=(_LINE,),
)


@get(
    "/v1/entities/{guid:uuid}/story",
    opt=Contract(tag="automation", grant=Grant.VIEW, query=wire.PageQuery, answer=STORY).opt,
)
async def get_story(guid: FromPath[UUID], request: AnyRequest, context: InjectedContext) -> wire_story.StoryPage:
    """Tell what became of an entity, newest first: its events, and its occurrences from their plan to their end."""
    query = read_query(request, wire.PageQuery)
    return await context.operations.stories.of_entity(caller_of(request).tenant_id, guid, query)


@get(
    "/v1/automation/{key:str}/story",
    opt=Contract(tag="automation", grant=Grant.VIEW, problems=(HTTPStatus.NOT_FOUND,), answer=EXPLAINED).opt,
)
async def explain_occurrence(key: FromPath[str], request: AnyRequest, context: InjectedContext) -> wire_story.Explained:
    """Explain one occurrence: why it is there, how it stands, what became of it and for whom it is by now."""
    caller = caller_of(request)
    told = await context.operations.stories.of_occurrence(caller.tenant_id, key, whole=caller.may(Grant.REVEAL))
    return found(told, "occurrence")
