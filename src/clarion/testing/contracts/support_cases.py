"""Support cases as they are listed: one tenant's, in the order of their ids, by status and page by page."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from clarion.domain.support import SupportCase, SupportKind, SupportStatus
from clarion.errors import InvalidInput
from clarion.ports.ensure import ITEMS_MAX
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.kind import MESSAGING_JOB, changed
from clarion.testing.factories import TEXT, guid

LOWEST, HIGHEST = UUID(int=0), UUID(int=2**128 - 1)


async def make_cases(harness: StoreHarness, count: int) -> list[SupportCase]:
    """Open cases by conflicts, and resolve every third of them; give them in the order of their ids."""
    kind = MESSAGING_JOB
    jobs = [kind.make(n) for n in range(count)]
    await kind.ensure(harness.store, harness.tenant_id, jobs)
    await kind.ensure(harness.store, harness.tenant_id, [changed(job, "source") for job in jobs])
    cases = sorted(await harness.rows(harness.tenant_id, SupportCase), key=lambda case: case.case_id)
    for place in range(0, count, 3):
        cases[place] = msgspec.structs.replace(cases[place], status=SupportStatus.RESOLVED)
        await harness.overwrite(harness.tenant_id, cases[place])
    return cases


def support_case(n: int = 1, **fields: object) -> SupportCase:
    """Make a case about something that no ensure found."""
    case = SupportCase(
        case_id=guid(n, "case"),
        kind=SupportKind.MISCONFIGURATION,
        record="ProviderAccount",
        record_key=f"account-{n}",
        details=TEXT,
        correlation_id=f"request-{n}",
    )
    return msgspec.structs.replace(case, **fields)


class SupportCaseContract:
    """What a person sees who asks what went wrong."""

    @pytest.mark.parametrize("kind", SupportKind)
    async def test_a_case_is_opened_as_it_is_given(self, harness: StoreHarness, kind: SupportKind) -> None:
        """Times are the store's, everything else the caller's."""
        await harness.store.open_support_cases(harness.tenant_id, [support_case(kind=kind)])
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert case == support_case(kind=kind, first_seen_at=case.first_seen_at, last_seen_at=case.first_seen_at)
        assert case.first_seen_at is not None
        assert harness.clock is None or case.first_seen_at == harness.clock.now()

    async def test_a_case_seen_again_is_counted_reopened_and_shows_the_last_time(self, harness: StoreHarness) -> None:
        """As a conflict's is."""
        await harness.store.open_support_cases(harness.tenant_id, [support_case()])
        (opened,) = await harness.store.list_support_cases(harness.tenant_id)
        await harness.overwrite(harness.tenant_id, msgspec.structs.replace(opened, status=SupportStatus.RESOLVED))
        if harness.clock is not None:
            harness.clock.advance(timedelta(minutes=1))
        again = support_case(details="now", correlation_id="the second request")
        await harness.store.open_support_cases(harness.tenant_id, [again])
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert case == msgspec.structs.replace(
            again, seen_count=2, first_seen_at=opened.first_seen_at, last_seen_at=case.last_seen_at
        )
        assert harness.clock is None or case.last_seen_at == harness.clock.now()

    async def test_cases_are_opened_in_sets_in_which_one_may_come_twice(self, harness: StoreHarness) -> None:
        """The later of two tells what is shown."""
        cases = [support_case(1, details="first"), support_case(2), support_case(1, details="second")]
        await harness.store.open_support_cases(harness.tenant_id, cases)
        await harness.store.open_support_cases(harness.tenant_id, [])
        listed = {case.case_id: case for case in await harness.store.list_support_cases(harness.tenant_id)}
        seen = [listed[guid(n, "case")] for n in (1, 2)]
        assert [(case.seen_count, case.details) for case in seen] == [(2, "second"), (1, TEXT)]
        with pytest.raises(InvalidInput, match=str(ITEMS_MAX)):
            await harness.store.open_support_cases(harness.tenant_id, [support_case()] * (ITEMS_MAX + 1))

    async def test_cases_are_listed_as_they_are_stored_in_the_order_of_their_ids(self, harness: StoreHarness) -> None:
        """All of them, resolved ones too, unless asked otherwise."""
        cases = await make_cases(harness, 7)
        assert list(await harness.store.list_support_cases(harness.tenant_id)) == cases
        assert all(case.first_seen_at == case.last_seen_at is not None for case in cases)

    @pytest.mark.parametrize("status", SupportStatus)
    async def test_a_status_filters(self, harness: StoreHarness, status: SupportStatus) -> None:
        """Those and no others."""
        cases = await make_cases(harness, 7)
        listed = await harness.store.list_support_cases(harness.tenant_id, status=status)
        assert list(listed) == [case for case in cases if case.status is status]
        assert listed

    @pytest.mark.parametrize("status", [None, *SupportStatus])
    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
    async def test_pages_behind_each_other_make_the_whole_list(
        self, harness: StoreHarness, status: SupportStatus | None, limit: int
    ) -> None:
        """None twice, none left out, none longer than asked."""
        cases = await make_cases(harness, 7)
        listed: list[SupportCase] = []
        for _ in cases:
            after = listed[-1].case_id if listed else None
            page = await harness.store.list_support_cases(harness.tenant_id, status=status, after=after, limit=limit)
            assert len(page) <= limit
            listed.extend(page)
        assert listed == [case for case in cases if status in (None, case.status)]

    async def test_a_page_may_start_behind_an_id_that_is_no_case(self, harness: StoreHarness) -> None:
        """A case that was removed between two pages costs nobody the rest."""
        cases = await make_cases(harness, 3)
        assert list(await harness.store.list_support_cases(harness.tenant_id, after=LOWEST)) == cases
        assert list(await harness.store.list_support_cases(harness.tenant_id, after=HIGHEST)) == []
        between = UUID(int=cases[0].case_id.int + 1)
        assert list(await harness.store.list_support_cases(harness.tenant_id, after=between)) == cases[1:]

    async def test_fifty_cases_are_a_page_unless_asked_otherwise(self, harness: StoreHarness) -> None:
        """And a page can be larger."""
        cases = await make_cases(harness, 60)
        assert list(await harness.store.list_support_cases(harness.tenant_id)) == cases[:50]
        assert list(await harness.store.list_support_cases(harness.tenant_id, limit=60)) == cases

    @pytest.mark.parametrize("status", [None, *SupportStatus])
    async def test_a_tenant_without_cases_has_an_empty_list(
        self, harness: StoreHarness, status: SupportStatus | None
    ) -> None:
        """Whatever other tenants have."""
        await make_cases(harness, 3)
        assert list(await harness.store.list_support_cases(f"{harness.tenant_id}-2", status=status)) == []
