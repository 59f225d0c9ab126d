"""Registration: the plugins of strangers, as entry points name them, made and checked when the program starts.

One that cannot be imported or called, that provides no bounds, or that provides a type which another one provides too,
is refused by its name, and the program does not start: nobody would notice reminders that are not made. Reads and
writes nothing.
"""

from collections.abc import Callable, Mapping

from clarion.errors import BadConfiguration
from clarion.producers.delivery_summary import DeliverySummary
from clarion.producers.plugin import Plugin
from clarion.producers.post_processing import ForeignProcessor
from clarion.producers.report_plugin import ReportPlugin

REMINDERS = "clarion.reminders"
EVENTS = "clarion.events"
REPORTS = "clarion.reports"

Loader = Callable[[], object]
"""What loads what an entry point names: a call without arguments that gives the plugin."""


def reminder_plugins(loaders: Mapping[str, Loader]) -> list[Plugin]:
    """Register the providers of source types, by the names of their entry points."""
    return [Plugin(name, _made(REMINDERS, name, loader)) for name, loader in sorted(loaders.items())]


def event_processors(loaders: Mapping[str, Loader]) -> list[ForeignProcessor]:
    """Register the post-processors of events, by the names of their entry points."""
    return [ForeignProcessor(name, _made(EVENTS, name, loader)) for name, loader in sorted(loaders.items())]


def report_plugins(loaders: Mapping[str, Loader]) -> list[ReportPlugin]:
    """Register the providers of reports, ours among them, by the names of their entry points."""
    ours = ReportPlugin("clarion", DeliverySummary(), patience=None)
    return [ours, *(ReportPlugin(name, _made(REPORTS, name, loader)) for name, loader in sorted(loaders.items()))]


def _made(group: str, name: str, loader: Loader) -> object:
    """Import a plugin and call it; whatever it raises, its name is told."""
    try:
        make = loader()
        if callable(make):
            return make()
    except Exception as error:
        raise BadConfiguration(
            f"the plugin {name!r} of {group} cannot be loaded ({type(error).__name__}: {error})",
            hint="mend the plugin, or uninstall it",
        ) from error
    raise BadConfiguration(
        f"the plugin {name!r} of {group} cannot be called", hint="let its entry point name a class or a function"
    )
