"""The Ensure contracts: the only way a record comes to exist.

`DeliveryDispatcher` is the door, `request` holds what it takes; the rest derives records from requests. Producers and
the pipeline come here; nothing here knows an engine.
"""

from clarion.dispatch.dispatcher import DeliveryDispatcher

__all__ = ["DeliveryDispatcher"]
