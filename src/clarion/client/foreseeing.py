"""What the client does about what will fire, and what became of it: methods of `connection.Client`."""

from urllib.parse import quote
from uuid import UUID

from clarion.client import wire_story, wire_upcoming
from clarion.client.belonging import Connected


async def upcoming(
    client: Connected, *, days: int = wire_upcoming.DAYS, cursor: str | None = None
) -> wire_upcoming.UpcomingPage:
    """List what reminders and reports will fire in the next days, by when it is due, page by page."""
    query = {"days": str(days), "cursor": cursor}
    return await client.transport.ask("GET", "/v1/automation/upcoming", wire_upcoming.UpcomingPage, query=query)


async def story(client: Connected, entity: UUID, *, cursor: str | None = None) -> wire_story.StoryPage:
    """Tell what became of an entity, newest first, page by page."""
    path = f"/v1/entities/{entity}/story"
    return await client.transport.ask("GET", path, wire_story.StoryPage, query={"cursor": cursor})


async def explain_occurrence(client: Connected, key: str) -> wire_story.Explained:
    """Explain one occurrence: why it is there, how it stands, what became of it and for whom it is."""
    path = f"/v1/automation/{quote(key, safe='')}/story"
    return await client.transport.ask("GET", path, wire_story.Explained)
