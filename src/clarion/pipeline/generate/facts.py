"""What the decision about recipients needs to know, read in sets: used by the stage and by whoever asks what would be.

Reads people and their contacts; writes nothing. Which bare addresses there are is the caller's to say: the stage stores
an address before it decides, and whoever only asks does not.
"""

from collections.abc import Collection, Mapping

from clarion.domain.decision import Known
from clarion.domain.identity import Channel
from clarion.domain.person import Contact, Person
from clarion.ports.ensure import in_sets
from clarion.ports.facts import FactStore


async def load_known(
    facts: FactStore,
    tenant_id: str,
    hashes: Collection[str],
    *,
    addresses: Mapping[tuple[Channel, str], Contact] | None = None,
) -> Known:
    """Load all that is known about recipients, such as those of one page, a statement for every 1,000 of them."""
    people: dict[str, Person] = {}
    for chunk in in_sets(sorted(set(hashes))):
        people |= await facts.find_recipients(tenant_id, chunk)
    return Known(people=people, addresses=addresses or {})
