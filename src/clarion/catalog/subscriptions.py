"""Changes to report subscriptions: what they name is looked up before anything is stored.

A notification type and a business unit must be there, and somebody must write the report. What may come later is told
of instead: whom it goes to, and the URL that links begin with.
"""

from collections.abc import Callable
from uuid import UUID

import msgspec

from clarion.catalog.reminders import definition_of
from clarion.catalog.settings import require_unit
from clarion.domain.report import ReportSubscription, require_subscription
from clarion.domain.report_choice import ReportDelivery
from clarion.errors import InvalidInput
from clarion.ports.store import Store
from clarion.ports.templates import Templates


class Subscriptions:
    """Checks report subscriptions, and stores them."""

    def __init__(
        self,
        store: Store,
        *,
        templates: Templates,
        check: Callable[[ReportSubscription], None],
        public_url: str | None = None,
    ) -> None:
        """Store here what the published `templates`, the store and those who write reports (`check`) allow."""
        self._store = store
        self._templates = templates
        self._check = check
        self._public_url = public_url

    async def put(
        self, tenant_id: str, subscription: ReportSubscription, *, actor: str, expected: int | None = None
    ) -> bool:
        """Store a subscription, audited; False where it is so already. Raises InvalidInput where it cannot be meant."""
        require_subscription(subscription, now=await self._store.now())
        self._check(subscription)
        definition = await definition_of(self._store, self._templates, tenant_id, subscription.notification_type)
        if definition.one_time_code:
            raise InvalidInput(
                "the data of a one-time code is erased, and a report is kept",
                field="notification_type",
                hint="name another notification type",
            )
        await require_unit(self._store, tenant_id, subscription.business_unit)
        return await self._store.put_subscription(tenant_id, subscription, actor=actor, expected=expected)

    async def switch(self, tenant_id: str, guid: UUID, *, active: bool, actor: str) -> bool:
        """Switch a subscription on or off, audited; False where there is none or it is so already.

        Raises Conflict where somebody changes it at the same moment.
        """
        record = await self._store.find_subscription(tenant_id, guid)
        if record is None or record.subscription.active is active:
            return False
        subscription = msgspec.structs.replace(record.subscription, active=active)
        put = self.put if active else self._store.put_subscription
        return await put(tenant_id, subscription, actor=actor, expected=record.version)

    async def warnings(self, tenant_id: str, subscription: ReportSubscription) -> tuple[str, ...]:
        """Say what keeps a report from reaching anybody as things stand."""
        if not subscription.active:
            return ()
        asked = (tenant_id, subscription.notification_type, subscription.business_unit)
        of_type = (await self._store.find_settings([asked]))[asked]
        found = [] if of_type.enabled else [f"the notification type {subscription.notification_type!r} is off"]
        named = subscription.to or subscription.recipients or (subscription.recipients is None and of_type.recipients)
        if not named:
            found.append("it names nobody, and no setting of its notification type does")
        if subscription.delivery is ReportDelivery.LINK and self._public_url is None:
            found.append("links need CLARION_PUBLIC_URL, which is not set here; the workers need it")
        return tuple(found)
