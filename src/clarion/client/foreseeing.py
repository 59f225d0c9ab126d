"""What the client does about what will fire: methods of `connection.Client`."""

from clarion.client import wire_upcoming
from clarion.client.belonging import Connected


async def upcoming(
    client: Connected, *, days: int = wire_upcoming.DAYS, cursor: str | None = None
) -> wire_upcoming.UpcomingPage:
    """List what reminders and reports will fire in the next days, by when it is due, page by page."""
    query = {"days": str(days), "cursor": cursor}
    return await client.transport.ask("GET", "/v1/automation/upcoming", wire_upcoming.UpcomingPage, query=query)
