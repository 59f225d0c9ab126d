"""Every statement about suppressions and preferences on PostgreSQL, used once: a part of `postgres_use`."""

from clarion.adapters.stores.postgres import PostgresStore
from clarion.domain.suppression import Cause, Change, Suppression
from clarion.testing import factories as make


async def use_suppressions(store: PostgresStore, tenant_id: str, subject: str) -> None:
    """Suppress somebody for a weak cause and for a stronger one, ask who is, and lift it."""
    for cause in (Cause.STOP, Cause.MANUAL):
        row = Suppression(subject=subject, scope="news", cause=cause)
        assert await store.put_suppressions(tenant_id, [row], actor="sam") == [row.key]
    assert await store.find_suppressions(tenant_id, [subject])
    assert await store.list_suppressions(tenant_id)
    assert await store.list_suppressions(tenant_id, subjects=[subject])
    assert await store.list_suppressions(tenant_id, subjects=[subject], cause=Cause.MANUAL)
    assert await store.list_suppressions(tenant_id, cause=Cause.MANUAL)
    assert await store.find_suppressed_addresses(tenant_id, [make.address_version().destination_index])
    for on in (False, True):
        done = await store.set_preferences(tenant_id, subject, [Change(category="offers", on=on)], actor="sam")
        assert done.lifted if on else done.put
    assert await store.lift_suppressions(tenant_id, [(subject, "news")], actor="sam")
