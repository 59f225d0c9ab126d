"""What the decision about recipients needs to know, read in sets: used by the stage and by whoever asks what would be.

Reads people, their contacts and suppressions, and writes nothing. Which bare addresses there are is up to the
caller: the stage stores an address before it decides, and whoever only asks does not.
"""

from collections.abc import Collection, Mapping

from clarion.domain.decision import Known
from clarion.domain.identity import Channel
from clarion.domain.person import Contact, Person
from clarion.domain.suppression import Cause
from clarion.ports.ensure import in_sets
from clarion.ports.facts import FactStore


async def load_known(
    facts: FactStore,
    tenant_id: str,
    hashes: Collection[str],
    *,
    bare: Collection[str] = (),
    addresses: Mapping[tuple[Channel, str], Contact] | None = None,
) -> Known:
    """Load all that is known about recipients, such as those of one page.

    `hashes` are those of people, `bare` those of addresses without an owner, which are in `addresses`. It takes a
    statement for every 1,000 people, and one for every 1,000 recipients and their addresses.
    """
    people: dict[str, Person] = {}
    for chunk in in_sets(sorted(set(hashes))):
        people |= await facts.find_recipients(tenant_id, chunk)
    subjects = {*hashes, *bare, *(one.destination_index for person in people.values() for one in person.contacts)}
    subjects |= {one.destination_index for one in (addresses or {}).values()}
    suppressed: dict[str, dict[str, Cause]] = {}
    for chunk in in_sets(sorted(subjects)):
        suppressed |= await facts.find_suppressions(tenant_id, chunk)
    return Known(people=people, addresses=addresses or {}, suppressed=suppressed)
