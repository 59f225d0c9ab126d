"""The program: every command under its name and heading. Each opens what it needs and leaves errors to `main`.

Commands are named here by their place and loaded when they are asked for, so that the list, the version and a refusal
do not wait for the platform's modules. A test holds each sentence to the command's own help.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

import clarion
from clarion.cli.lazy import LazyGroup, Listed, show_help


class Program(LazyGroup):
    """All commands."""

    panels: ClassVar[Mapping[str, Mapping[str, Listed]]] = {
        "Try": {
            "demo": Listed(
                "demo:demo",
                "Start Clarion with a small school in it: API, workers, sandbox. Ctrl-C stops it; the data stays.",
            ),
            "outbox": Listed("outbox:outbox", "Show what the sandbox was given to send, newest first."),
        },
        "Send": {
            "send": Listed("send:send", "Send a notification: accepted once it is stored, sent by the workers."),
            "event": Listed(
                "events:event",
                "Tell that something happened, under an id or a key: accepted once it is stored, then handled.",
            ),
            "cancel": Listed("send:cancel", "Cancel a notification: what was not sent yet never is."),
        },
        "Ask": {
            "list": Listed(
                "ask:list_notifications", "List the latest notifications, newest first, each with its result."
            ),
            "explain": Listed(
                "ask:explain", "Tell the whole timeline of a notification in order, with times and reasons."
            ),
            "history": Listed(
                "ask:history",
                "List every notification about an entity, or all that one person got, newest first.",
            ),
            "events": Listed("events:events", "Events that were told: list them, look at one, have one handled again."),
            "upcoming": Listed(
                "upcoming:upcoming",
                "List what will fire in the next days: when in local time, for whom, and why. Nothing is sent by it.",
            ),
            "rehearse": Listed(
                "upcoming:rehearse",
                "Play the next days through on a copy in memory, and say what would be sent. Nothing is touched.",
            ),
            "inbox": Listed(
                "inbox:inbox", "Show what somebody finds in their inbox, newest first, and mark nothing by that."
            ),
            "audit": Listed(
                "audit:audit", "What people and support tools did: list it, and verify that nobody changed the list."
            ),
            "status": Listed(
                "status:status",
                "Show the workers, the provider accounts, what waits and open cases, of all tenants together.",
            ),
        },
        "Mend": {
            "uncertain": Listed("uncertain:uncertain", "Messages of which nobody knows whether they arrived."),
            "support": Listed("support:support", "Cases that a person should look at."),
            "automation": Listed(
                "automation:automation",
                "What waits to fall due: reminders and reports, and what people do about one of them.",
            ),
            "clock": Listed("clock:clock", "The store's time: by it things are accepted, due and out of time."),
        },
        "Change": {
            "new": Listed(
                "author:new",
                "Start a notification: a folder with a definition and templates that can be published as they are.",
            ),
            "preview": Listed(
                "author:preview",
                "Show how a notification reads, and open a mail in the browser; nothing is sent or stored.",
            ),
            "types": Listed("catalog:types", "The notification types of a tenant: list them, switch them on and off."),
            "settings": Listed(
                "settings:settings",
                "Settings of notification types: whether one is on, who gets it, by which channels.",
            ),
            "reminders": Listed(
                "reminders:reminders", "Reminder settings: of which sources, when, and whom a reminder tells."
            ),
            "reports": Listed("reports:reports", "Reports: which there are, and who gets which how often."),
            "publish": Listed(
                "publish:publish", "Publish notifications from their files; what did not change keeps its version."
            ),
            "tenants": Listed("catalog:tenants", "Tenants: whose notifications these are."),
            "people": Listed(
                "table:people", "People: who they are, where they are reached, and what templates read of them."
            ),
            "sources": Listed("table:sources", "Sources: the invoices, documents or classes that reminders are about."),
            "event-mappings": Listed(
                "events:mappings", "What event types lead to at once: a notification type, or explicitly none."
            ),
            "groups": Listed(
                "table:groups", "Groups: people who are written to together. A group may hold other groups."
            ),
            "units": Listed(
                "groups:units", "Business units: parts of a tenant with people, a language and a zone of their own."
            ),
            "roles": Listed(
                "relations:roles",
                "Roles: what people are in the whole tenant or in one business unit, such as teacher.",
            ),
            "relations": Listed(
                "table:relations", "Relations: what people are to a thing, such as the guardian of a child."
            ),
            "suppress": Listed("suppress:suppress", "Suppressions and preferences: who gets nothing of what."),
            "keys": Listed("access:keys", "API keys: who may use the API, and as what."),
            "quota": Listed("quota:quota", "Quotas: how much a tenant and its API keys may use in a day."),
        },
        "Install and run": {
            "migrate": Listed(
                "install:migrate",
                "Bring the store's schema up to date and set up a new installation; safe to run again and at once.",
            ),
            "check": Listed(
                "install:check",
                "Open store, blobs and vault, look for damage, connect to the providers, and say if all can be used.",
            ),
            "serve": Listed(
                "serve:serve", "Serve the API and run the workers, in one process, until Ctrl-C or SIGTERM."
            ),
            "work": Listed(
                "serve:work",
                "Run workers only, until Ctrl-C or SIGTERM; start as many as you like on PostgreSQL.",
            ),
        },
    }


program = typer.Typer(
    cls=Program,
    help="Clarion: tell it what happened, and everyone who should know hears of it, once.",
    rich_markup_mode=None,  # help as plain text, which needs no `rich`
    pretty_exceptions_enable=False,  # `main` writes our errors on one line; anything else is a defect and shows itself
)


@program.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Print the version where that is all that is asked."""
    if version:
        typer.echo(f"clarion {clarion.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        show_help(context)
