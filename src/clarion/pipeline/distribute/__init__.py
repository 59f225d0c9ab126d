"""Distribute: claim due messages, call their providers, record what came back.

`pump` is the stage. `prepare` makes the calls of what it has claimed, `open_calls` carries them to their outcome, and
`accounts` knows the providers. `slots` says how many calls may be open, `claim_size` how many rows of a flow are merged
at once.
"""

from clarion.pipeline.distribute.accounts import Accounts
from clarion.pipeline.distribute.open_calls import CallObserver, OpenCalls
from clarion.pipeline.distribute.prepare import Preparation
from clarion.pipeline.distribute.pump import Distribute
from clarion.pipeline.distribute.slots import Slots

__all__ = ["Accounts", "CallObserver", "Distribute", "OpenCalls", "Preparation", "Slots"]
