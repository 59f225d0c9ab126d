"""What the client does about suppressions and preferences: methods of `connection.Client`."""

from urllib.parse import quote

from clarion.client import wire_suppression
from clarion.client.belonging import Connected
from clarion.domain.suppression import Cause


async def suppressions(
    client: Connected, *, recipient: str | None = None, cause: Cause | None = None, cursor: str | None = None
) -> wire_suppression.SuppressionPage:
    """List who gets nothing of what, newest first, page by page: all, or those of one recipient or one cause."""
    query = {"recipient": recipient, "cause": cause, "cursor": cursor}
    return await client.transport.ask("GET", "/v1/suppressions", wire_suppression.SuppressionPage, query=query)


async def suppress(
    client: Connected, *items: wire_suppression.SuppressionItem, reason: str
) -> wire_suppression.SuppressionsAdded:
    """Suppress up to 500 people and addresses, all of them or none."""
    body = wire_suppression.SuppressionRequest(items=items, reason=reason)
    added = wire_suppression.SuppressionsAdded
    return await client.transport.ask("POST", "/v1/suppressions", added, body=body, again=True)


async def lift_suppression(client: Connected, suppression: str, *, reason: str) -> None:
    """Lift a suppression by its id."""
    path = f"/v1/suppressions/{quote(suppression, safe='')}?reason={quote(reason, safe='')}"
    await client.transport.request("DELETE", path, again=False)


async def preferences(client: Connected, person: str) -> wire_suppression.Preferences:
    """Show what a person (`user:ID` or `employee:GUID`) can choose, and how it stands."""
    path = f"/v1/people/{quote(person, safe='')}/preferences"
    return await client.transport.ask("GET", path, wire_suppression.Preferences)


async def set_preferences(
    client: Connected, person: str, *changes: wire_suppression.PreferenceChange, reason: str | None = None
) -> wire_suppression.Preferences:
    """Set what a person wants, all of it or nothing; the rest stays."""
    body = wire_suppression.PreferencesRequest(changes=changes, reason=reason)
    path = f"/v1/people/{quote(person, safe='')}/preferences"
    return await client.transport.ask("PUT", path, wire_suppression.Preferences, body=body, again=True)
