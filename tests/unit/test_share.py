"""Sharing out call slots: urgency first, tenants alike, nobody starved, nothing given that is not there."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane
from clarion.domain.share import CEILING, allot


def head(flow_id: int, *, lane: Lane = Lane.NORMAL, tenant_id: str = "school") -> FlowHead:
    return FlowHead(flow_id=flow_id, tenant_id=tenant_id, lane=lane, route="sms", broadcast="", account="")


def heads_of(lanes: st.SearchStrategy[Lane]) -> st.SearchStrategy[list[FlowHead]]:
    tenants = st.sampled_from(["academy", "clinic", "college", "library", "school"])
    return st.lists(
        st.builds(head, st.integers(1, 30), lane=lanes, tenant_id=tenants),
        max_size=30,
        unique_by=lambda one: one.flow_id,
    )


HEADS = heads_of(st.sampled_from(Lane))
ONE_LANE = heads_of(st.just(Lane.NORMAL)).filter(bool)
SLOTS = st.integers(1, 50)
TURNS = st.integers(0, 100)


def every_lane(turn: int) -> dict[Lane, int]:
    return dict.fromkeys(Lane, turn)


def parts(heads: list[FlowHead], quotas: Mapping[int, int]) -> Counter[str]:
    """Add up what each tenant was given, 0 too."""
    given = Counter({one.tenant_id: 0 for one in heads})
    for one in heads:
        given[one.tenant_id] += quotas.get(one.flow_id, 0)
    return given


@given(heads=HEADS, slots=SLOTS, busy=st.integers(0, 60), turn=TURNS)
def test_no_more_is_given_than_there_is(heads: list[FlowHead], slots: int, busy: int, turn: int) -> None:
    quotas = allot(heads, slots=slots, busy=busy, turns=every_lane(turn))
    assert all(quota > 0 for quota in quotas.values())
    assert sum(quotas.values()) <= max(0, slots - busy)
    assert set(quotas) <= {one.flow_id for one in heads}


@given(heads=HEADS, slots=st.integers(4, 50), busy=st.integers(0, 60), turn=TURNS)
def test_no_lane_claims_above_its_ceiling(heads: list[FlowHead], slots: int, busy: int, turn: int) -> None:
    quotas = allot(heads, slots=slots, busy=busy, turns=every_lane(turn))
    for lane in Lane:
        mine = sum(quotas.get(one.flow_id, 0) for one in heads if one.lane is lane)
        busy += mine  # more urgent lanes are served before
        assert mine == 0 or busy <= slots * CEILING[lane]


@given(heads=HEADS, slots=SLOTS, turn=TURNS)
def test_work_is_never_left_lying_while_all_slots_are_free(heads: list[FlowHead], slots: int, turn: int) -> None:
    assert bool(allot(heads, slots=slots, busy=0, turns=every_lane(turn))) == bool(heads)


@given(heads=ONE_LANE, slots=SLOTS, busy=st.integers(0, 60), turn=TURNS)
def test_tenants_get_the_same_to_within_one_slot_whatever_the_number_of_their_flows(
    heads: list[FlowHead], slots: int, busy: int, turn: int
) -> None:
    given = parts(heads, allot(heads, slots=slots, busy=busy, turns=every_lane(turn))).values()
    assert max(given) - min(given) <= 1


@given(heads=ONE_LANE, slots=SLOTS, turn=TURNS)
def test_flows_of_a_tenant_get_the_same_to_within_one_slot(heads: list[FlowHead], slots: int, turn: int) -> None:
    quotas = allot(heads, slots=slots, busy=0, turns=every_lane(turn))
    for tenant_id in {one.tenant_id for one in heads}:
        given = [quotas.get(one.flow_id, 0) for one in heads if one.tenant_id == tenant_id]
        assert max(given) - min(given) <= 1


@given(heads=ONE_LANE, slots=SLOTS, turn=TURNS)
def test_every_tenant_is_served_within_as_many_turns_as_there_are_tenants(
    heads: list[FlowHead], slots: int, turn: int
) -> None:
    tenants = {one.tenant_id for one in heads}
    total: Counter[str] = Counter()
    for one in range(turn, turn + len(tenants)):
        total.update(parts(heads, allot(heads, slots=slots, busy=0, turns=every_lane(one))))
    assert min(total.values()) > 0
    assert len(set(total.values())) == 1  # over a full round of turns nobody is ahead by even one


@given(heads=ONE_LANE, slots=SLOTS, turn=TURNS)
def test_every_flow_is_served_once_its_tenant_has_been_first_for_each_of_its_flows(
    heads: list[FlowHead], slots: int, turn: int
) -> None:
    flows = Counter(one.tenant_id for one in heads)
    served: set[int] = set()
    for one in range(turn, turn + len(flows) * max(flows.values())):
        served |= set(allot(heads, slots=slots, busy=0, turns=every_lane(one)))
    assert served == {one.flow_id for one in heads}


@given(heads=HEADS, slots=SLOTS, turn=TURNS)
def test_the_order_in_which_flows_were_found_changes_nothing(heads: list[FlowHead], slots: int, turn: int) -> None:
    assert allot(heads[::-1], slots=slots, busy=0, turns=every_lane(turn)) == allot(
        heads, slots=slots, busy=0, turns=every_lane(turn)
    )


def test_a_tenant_with_twenty_campaigns_gets_no_more_than_one_with_one() -> None:
    heads = [head(n, tenant_id="school") for n in range(1, 21)] + [head(30, tenant_id="college")]
    given = parts(heads, allot(heads, slots=40, busy=0, turns=every_lane(3)))
    assert given == {"school": 18, "college": 18}  # of the 36 that the lane may take


def test_a_one_time_code_finds_a_slot_that_no_campaign_may_take() -> None:
    bulk, code = head(1, lane=Lane.BULK), head(2, lane=Lane.CRITICAL)
    taken = allot([bulk], slots=40, busy=0, turns=every_lane(1))[1]
    assert taken < 40
    assert allot([bulk], slots=40, busy=taken, turns=every_lane(2)) == {}
    assert allot([bulk, code], slots=40, busy=taken, turns=every_lane(2))[2] > 0


def test_tenants_and_their_flows_do_not_turn_in_step() -> None:
    heads = [head(1), head(2), head(3, tenant_id="college")]  # with one slot, the school comes every second turn
    served = [flow for turn in range(4) for flow in allot(heads, slots=1, busy=0, turns=every_lane(turn))]
    assert sorted(served) == [1, 2, 3, 3]
