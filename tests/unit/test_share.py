"""Sharing out call slots: urgency first, nobody starved, nothing given that is not there."""

from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane
from clarion.domain.share import allot


def head(flow_id: int, *, lane: Lane = Lane.NORMAL, tenant_id: str = "school") -> FlowHead:
    return FlowHead(flow_id=flow_id, tenant_id=tenant_id, lane=lane, route="sms", source="", account="")


HEADS = st.lists(
    st.builds(
        head, st.integers(1, 30), lane=st.sampled_from(Lane), tenant_id=st.sampled_from(["school", "college", "clinic"])
    ),
    max_size=30,
    unique_by=lambda one: one.flow_id,
)


@given(heads=HEADS, slots=st.integers(1, 50), busy=st.integers(0, 50), turn=st.integers(0, 100))
def test_no_more_is_given_than_there_is(heads: list[FlowHead], slots: int, busy: int, turn: int) -> None:
    quotas = allot(heads, slots=slots, busy=busy, turn=turn)
    assert all(quota > 0 for quota in quotas.values())
    assert sum(quotas.values()) <= max(0, slots - busy)
    assert set(quotas) <= {one.flow_id for one in heads}


@given(heads=HEADS, slots=st.integers(1, 50), turn=st.integers(0, 100))
def test_work_is_never_left_lying_while_all_slots_are_free(heads: list[FlowHead], slots: int, turn: int) -> None:
    assert bool(allot(heads, slots=slots, busy=0, turn=turn)) == bool(heads)


def test_a_one_time_code_finds_a_slot_that_no_campaign_may_take() -> None:
    bulk, code = head(1, lane=Lane.BULK), head(2, lane=Lane.CRITICAL)
    taken = allot([bulk], slots=40, busy=0, turn=1)[1]
    assert taken < 40
    assert allot([bulk], slots=40, busy=taken, turn=2) == {}
    assert allot([bulk, code], slots=40, busy=taken, turn=2)[2] > 0


def test_tenants_take_turns_whatever_the_number_of_their_flows() -> None:
    heads = [head(n, tenant_id="school") for n in range(1, 10)] + [head(20, tenant_id="college")]
    served = [set(allot(heads, slots=2, busy=0, turn=turn)) for turn in range(10)]
    assert all(20 in flows for flows in served)
    assert set.union(*served) == {one.flow_id for one in heads}
