"""What every handler works with, handed to it whole under the name `context`.

It is one thing on purpose: the framework starts a task for each dependency where a handler has several.
"""

from typing import Annotated

from litestar.di import Dependency
from litestar.params import SkipValidationMarker

from clarion.api.metrics import Metrics
from clarion.api.pulse import Pulse
from clarion.bootstrap import Platform
from clarion.catalog.access import Access
from clarion.catalog.quota import Meter
from clarion.errors import BrokenInvariant
from clarion.operations import Operations, Wake
from clarion.sandbox.provider import Outbox


class ApiContext:
    """An open platform, with what the API itself has beside it."""

    def __init__(
        self,
        platform: Platform,
        *,
        wake: Wake,
        metrics: Metrics,
        description: bytes,
        pulse: Pulse | None = None,
        open_paths: tuple[str, ...] = (),
    ) -> None:
        """Work on this platform; `wake` wakes workers after a commit that gives them work.

        The `pulse` is shared with workers of the same process, whose trouble makes it unready too. `open_paths` are
        those that anybody may ask for.
        """
        self.platform = platform
        self.wake = wake
        self.metrics = metrics
        self.description = description
        self.open_paths = open_paths
        self.pulse = pulse or Pulse(platform.store, clock=platform.clock)
        self.access = Access(platform.store, clock=platform.clock)
        self.meter = Meter(platform.store, clock=platform.clock)
        self.operations = Operations(platform, wake=wake)
        self.open_outbox: Outbox | None = None

    @property
    def outbox(self) -> Outbox:
        """The sandbox's outbox, which is open while the application runs."""
        if self.open_outbox is None:
            raise BrokenInvariant("the outbox was asked for while the application was not running")
        return self.open_outbox


InjectedContext = Annotated[ApiContext, Dependency(), SkipValidationMarker()]
"""A handler's argument `context`, passed on as it is."""
