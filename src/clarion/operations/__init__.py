"""What can be asked for and done, once for every door: the API and the program call these, and add nothing to them.

An operation is told the tenant and, where it changes something, who acts. It answers in the shapes of `client.wire`,
which the API sends and `--json` prints as they are. None means that the tenant has no such thing; what cannot be done
as things stand raises `Conflict`. Where there is new work for the workers, it wakes them. Doors read what they are
given, find out who asks, and word refusals for their callers.

| module | what it holds |
|---|---|
| `notification` | sending, looking up, canceling, retrying, the timeline, the history |
| `history` | everything that one person got |
| `inbox` | inboxes: their lines, how many there are, and marks |
| `latest` | lists of notifications with their results, and the filters of the latest |
| `explain` | what would become of a notification for one person |
| `people` | people, as a whole and in part, and their attributes |
| `preview` | what a send would come to; for the program only |
| `publishing` | notification types as their authors see them: publishing, looking at one, trying one |
| `by_link` | what a person does by a link from a mail, without a login |
| `status` | what runs, what is in trouble and what waits |
| `settings` | what tenants and business units say of notification types |
| `reminders` | reminder settings, and what keeps one from telling anybody |
| `rerun` | having a completed occurrence run once more |
| `upcoming` | what will fire, when in local time, for whom and why |
| `rehearsal` | the next days played through on a copy; for the program only |
| `automation` | occurrences of reminders and reports, and what people do with one |
| `story` | what became of an entity, and of one occurrence of it |
| `reports` | which reports there are, subscriptions to them, runs by hand, opening one by its link |
| `support` | uncertain messages, support cases, the audit log |
| `suppression` | who gets nothing, and what people want |
| `types` | notification types: which there are, switching them on and off |
| `sources` | sources that applications put in |
| `source_tables` | sources as CSV; for the program only |
| `events` | events, and what their types lead to |
| `groups` | groups and business units with their members, and how a tenant's people read |
| `tables` | people, members of groups and relations as CSV; for the program only |
| `relations` | roles that people hold, and what they are to things |
| `part` | what is stored about a notification, as much of it as one answer can have |
| `page` | pages of a list, and the cursors between them |
| `shape` | records in their wire form |
| `whom` | recipients and destinations, whole or masked |
| `wake` | waking the workers |
"""

from clarion.bootstrap import Platform
from clarion.operations.automation import Automation
from clarion.operations.by_link import ByLink
from clarion.operations.events import EventMappings, Events
from clarion.operations.explain import Explain
from clarion.operations.groups import Groups, Units
from clarion.operations.inbox import Inboxes
from clarion.operations.notification import Notifications
from clarion.operations.people import People
from clarion.operations.publishing import Publishing
from clarion.operations.relations import Relations, Roles
from clarion.operations.reminders import Reminders
from clarion.operations.reports import Reports
from clarion.operations.settings import Settings
from clarion.operations.source_tables import SourceTables
from clarion.operations.sources import Sources
from clarion.operations.status import Status
from clarion.operations.story import Stories
from clarion.operations.support import Support
from clarion.operations.suppression import Suppressions
from clarion.operations.tables import Tables
from clarion.operations.types import Types
from clarion.operations.upcoming import Upcoming
from clarion.operations.wake import Wake
from clarion.sealing.traces import Traces

__all__ = ["Operations", "Wake"]


class Operations:
    """Every operation on one open platform."""

    def __init__(self, platform: Platform, *, wake: Wake) -> None:
        """Work on this platform; `wake` is called with the kind of work that was stored for the workers."""
        self.status = Status(platform.store, clock=platform.clock)
        self.notifications = Notifications(platform, wake=wake, status=self.status)
        self.inboxes = Inboxes(platform)
        self.people = People(platform)
        self.suppressions = Suppressions(platform)
        self.support = Support(platform.store, wake=wake)
        self.publishing = Publishing(platform)
        self.explain = Explain(platform)
        self.by_link = ByLink(platform)
        self.types = Types(catalog=platform.store, settings=platform.store, facts=platform.store)
        self.settings = Settings(platform)
        self.groups = Groups(platform.store, platform.keyring)
        self.units = Units(platform.store, platform.keyring)
        self.roles = Roles(platform.store, platform.keyring)
        self.relations = Relations(platform.store, platform.keyring)
        self.reminders = Reminders(platform, wake=wake)
        traces = Traces(blobs=platform.blobs, keyring=platform.keyring)
        self.automation = Automation(platform.store, traces=traces, wake=wake)
        self.upcoming = Upcoming(platform.store, platform.sources)
        self.stories = Stories(platform.store, automation=self.automation, upcoming=self.upcoming)
        self.reports = Reports(platform, wake=wake)
        self.tables = Tables(platform)
        self.sources = Sources(platform, wake=wake)
        self.source_tables = SourceTables(platform, wake=wake)
        self.events = Events(platform, wake=wake)
        self.event_mappings = EventMappings(platform)
