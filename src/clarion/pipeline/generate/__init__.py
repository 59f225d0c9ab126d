"""Generate: make the rows of a job.

Only the inbox is rendered here: what goes to a provider is merged by `distribute`, after the claim. A missing variable
is found here already, so that a job fails with a reason before anybody is written to.

`stage` is the stage, `underway` holds what it is at work on, `inbox` makes the lines of inboxes, and `plan` is one job
on its way.
"""

from clarion.pipeline.generate.sizes import Sizes
from clarion.pipeline.generate.stage import Generate

__all__ = ["Generate", "Sizes"]
