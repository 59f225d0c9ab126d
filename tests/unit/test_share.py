"""Sharing out call slots: lanes by weight, tenants alike, nobody starved, reserves kept, and no more than there is.

What is expected is written here in figures of its own: 8 : 4 : 2 : 1, and a table of what is kept back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clarion.domain.claim import FlowHead
from clarion.domain.identity import Lane
from clarion.domain.share import Share, portions

PARTS = {Lane.CRITICAL: 8, Lane.HIGH: 4, Lane.NORMAL: 2, Lane.BULK: 1}
KEPT = {1: (0, 0), 3: (0, 0), 4: (1, 0), 7: (1, 0), 8: (1, 1), 10: (1, 1), 32: (2, 1), 64: (4, 2), 1000: (62, 31)}
"""Of so many slots: how many are for the critical lane alone, how many for tenants that hold none."""

TENANTS = ["academy", "clinic", "college", "library", "school"]


def head(flow_id: int, *, lane: Lane = Lane.NORMAL, tenant_id: str = "school") -> FlowHead:
    return FlowHead(flow_id=flow_id, tenant_id=tenant_id, lane=lane, route="sms", broadcast="", account="")


def heads_of(lanes: st.SearchStrategy[Lane]) -> st.SearchStrategy[list[FlowHead]]:
    return st.lists(
        st.builds(head, st.integers(1, 30), lane=lanes, tenant_id=st.sampled_from(TENANTS)),
        max_size=30,
        unique_by=lambda one: one.flow_id,
    )


HEADS = heads_of(st.sampled_from(Lane))
ONE_LANE = heads_of(st.just(Lane.NORMAL)).filter(bool)
SLOTS = st.sampled_from(list(KEPT))
Past = list[tuple[list[FlowHead], int, int]]
PAST = st.lists(st.tuples(HEADS, st.integers(0, 20), st.integers(0, 40)), max_size=6)
"""Rounds that were before: who had work, how many rows a flow gave at most, and how many calls ended afterwards."""


class Pool:
    """Slots that are shared out round by round: every quota is a call, and calls end when the test says so."""

    def __init__(self, slots: int) -> None:
        self.slots, self.share = slots, Share()
        self.calls: list[FlowHead] = []

    @property
    def held(self) -> Counter[tuple[Lane, str]]:
        return Counter((one.lane, one.tenant_id) for one in self.calls)

    def allot(self, heads: Iterable[FlowHead]) -> dict[int, int]:
        return self.share.allot(heads, slots=self.slots, held=self.held)

    def round(self, heads: Sequence[FlowHead], *, gives: Mapping[int, int] | None = None) -> Counter[FlowHead]:
        """Share out once; flows give what they are asked for, or at most what `gives` has for them."""
        known = {one.flow_id: one for one in heads}
        started: Counter[FlowHead] = Counter()
        for flow_id, quota in self.allot(heads).items():
            number = quota if gives is None else min(quota, gives.get(flow_id, 0))
            self.share.count(known[flow_id], number)
            started[known[flow_id]] += number
        self.calls += started.elements()
        return started

    def fill(self, heads: Sequence[FlowHead]) -> None:
        """Share out until nothing more is given."""
        while self.round(heads).total():
            pass

    def live(self, past: Past) -> "Pool":
        """Have been through something before."""
        for heads, most, ended in past:
            self.round(heads, gives={one.flow_id: (one.flow_id * 7) % (most + 1) for one in heads})
            del self.calls[:ended]
        return self


def one_by_one(pool: Pool, heads: Sequence[FlowHead], rounds: int) -> list[FlowHead]:
    """Go on with one slot at a time becoming free, the one that was taken first; return who got it."""
    taken: list[FlowHead] = []
    for _ in range(rounds):
        taken += pool.round(heads).elements()
        del pool.calls[:1]
    return taken


def by_lane(taken: Iterable[FlowHead]) -> Counter[Lane]:
    return Counter(one.lane for one in taken)


def by_tenant(taken: Iterable[FlowHead]) -> Counter[str]:
    return Counter(one.tenant_id for one in taken)


@given(heads=HEADS, slots=SLOTS, past=PAST, held=st.integers(0, 1100))
@settings(deadline=None)
def test_no_more_is_given_than_there_is(heads: list[FlowHead], slots: int, past: Past, held: int) -> None:
    pool = Pool(slots).live(past)
    pool.calls += [head(99, tenant_id="somebody")] * held
    quotas = pool.allot(heads)
    assert all(quota > 0 for quota in quotas.values())
    assert sum(quotas.values()) <= max(0, slots - len(pool.calls))
    assert set(quotas) <= {one.flow_id for one in heads}


@given(heads=HEADS, slots=SLOTS, past=PAST)
@settings(deadline=None)
def test_work_is_never_left_lying_while_all_slots_are_free(heads: list[FlowHead], slots: int, past: Past) -> None:
    pool = Pool(slots).live(past)
    pool.calls.clear()
    assert bool(pool.allot(heads)) == bool(heads)


@given(heads=HEADS, slots=SLOTS, past=PAST)
@settings(deadline=None)
def test_the_lanes_below_never_take_what_is_kept_for_the_critical_one(
    heads: list[FlowHead],
    slots: int,
    past: Past,
) -> None:
    pool = Pool(slots).live(past)
    pool.fill(heads)
    below = sum(one.lane is not Lane.CRITICAL for one in pool.calls)
    assert below <= slots - KEPT[slots][0]


@pytest.mark.parametrize("slots", [slots for slots in KEPT if slots >= 4])
@pytest.mark.parametrize("lane", [Lane.HIGH, Lane.NORMAL, Lane.BULK])
def test_a_one_time_code_finds_a_slot_that_no_other_lane_may_take(slots: int, lane: Lane) -> None:
    others = [head(n, lane=lane, tenant_id=name) for n, name in enumerate(TENANTS, 1)]
    pool = Pool(slots)
    pool.fill(others)
    assert pool.round([*others, head(9, lane=Lane.CRITICAL, tenant_id="school")])[head(9, lane=Lane.CRITICAL)] > 0


@pytest.mark.parametrize("slots", KEPT)
@pytest.mark.parametrize("lane", Lane)
def test_a_tenant_that_alone_has_work_gets_everything_but_the_reserves(slots: int, lane: Lane) -> None:
    pool = Pool(slots)
    pool.fill([head(1, lane=lane), head(2, lane=lane)])
    critical, newcomers = KEPT[slots]
    assert len(pool.calls) == slots - newcomers - (0 if lane is Lane.CRITICAL else critical)


@pytest.mark.parametrize("slots", [slots for slots in KEPT if slots >= 8])
@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("taken", [*[(lane,) for lane in Lane], tuple(Lane)], ids=" ".join)
def test_a_tenant_without_a_call_does_not_wait_for_the_end_of_others_calls(
    slots: int, lane: Lane, taken: tuple[Lane, ...]
) -> None:
    """I-39: whatever another tenant has taken, and however long its calls last."""
    backlog = [head(n, lane=one, tenant_id="clinic") for n, one in enumerate(taken, 1)]
    pool = Pool(slots)
    pool.fill(backlog)
    assert pool.round([*backlog, head(9, lane=lane)])[head(9, lane=lane)] > 0


def test_what_is_kept_for_tenants_without_a_call_goes_to_each_once() -> None:
    pool = Pool(1000)
    pool.fill([head(1, lane=Lane.CRITICAL, tenant_id="clinic")])
    newcomers = [head(n, tenant_id=f"tenant-{n}", lane=[*Lane][n % 4]) for n in range(100, 140)]
    got = pool.round(newcomers)
    assert set(got.values()) == {1}
    assert len(got) == 31


@given(past=PAST, slots=st.sampled_from((1, 2, 3)), rounds=st.integers(15, 150))
@settings(deadline=None)
def test_full_lanes_share_by_weight_even_where_one_slot_becomes_free_at_a_time(
    past: Past, slots: int, rounds: int
) -> None:
    """Where nothing is kept back, the parts are exact to within a turn."""
    heads = [head(n, lane=lane, tenant_id=name) for n, (lane, name) in enumerate((x, y) for x in Lane for y in "ab")]
    pool = Pool(slots).live(past)
    taken: Counter[Lane] = Counter()
    for _ in range(rounds):
        pool.calls.clear()
        taken += by_lane(pool.round(heads).elements())
    for lane, part in PARTS.items():
        assert abs(taken[lane] - taken.total() * part / 15) <= 2


@pytest.mark.parametrize("slots", [10, 32, 64])
def test_full_lanes_share_by_weight_above_the_reserves_too(slots: int) -> None:
    heads = [head(n, lane=lane, tenant_id=name) for n, (lane, name) in enumerate((x, y) for x in Lane for y in "abc")]
    pool = Pool(slots)
    pool.fill(heads)
    taken = by_lane(one_by_one(pool, heads, 1500))
    for lane, part in PARTS.items():
        assert abs(taken[lane] - taken.total() * part / 15) <= slots


@given(heads=HEADS.filter(bool), past=PAST, slots=st.sampled_from((1, 3, 8, 32)))
@settings(deadline=None)
def test_everybody_with_work_has_a_turn_within_a_bounded_number_of_free_slots(
    heads: list[FlowHead],
    past: Past,
    slots: int,
) -> None:
    """Each lane once in 15 slots, each of its tenants in turn, each of the tenant's flows in turn."""
    tenants = Counter(lane for lane, _ in {(one.lane, one.tenant_id) for one in heads})
    flows = Counter((one.lane, one.tenant_id) for one in heads)
    pool = Pool(slots).live(past)
    bound = 16 * (max(tenants.values()) + 1) * (max(flows.values()) + 1)
    assert set(one_by_one(pool, heads, bound + len(pool.calls))) == set(heads)


@given(heads=ONE_LANE, past=PAST, rounds=st.integers(1, 60))
@settings(deadline=None)
def test_tenants_of_a_lane_get_the_same_whatever_the_number_of_their_flows(
    heads: list[FlowHead],
    past: Past,
    rounds: int,
) -> None:
    pool = Pool(3).live(past)
    pool.calls.clear()
    taken = by_tenant(one_by_one(pool, heads, rounds))
    parts = [taken[name] for name in {one.tenant_id for one in heads}]
    assert max(parts) - min(parts) <= 2  # one for the remainder, one for who was ahead before


@given(heads=ONE_LANE, rounds=st.integers(1, 60))
@settings(deadline=None)
def test_flows_of_a_tenant_get_the_same_to_within_one_slot(heads: list[FlowHead], rounds: int) -> None:
    taken = Counter(one_by_one(Pool(1), heads, rounds))
    for tenant_id in {one.tenant_id for one in heads}:
        parts = [taken[one] for one in heads if one.tenant_id == tenant_id]
        assert max(parts) - min(parts) <= 1


@given(heads=HEADS, slots=SLOTS, past=PAST)
@settings(deadline=None)
def test_the_order_in_which_flows_were_found_changes_nothing(heads: list[FlowHead], slots: int, past: Past) -> None:
    assert Pool(slots).live(past).allot(heads[::-1]) == Pool(slots).live(past).allot(heads)


@pytest.mark.parametrize("slots", [1, 10, 32])
def test_a_tenant_with_a_thousand_campaigns_gets_no_more_than_one_with_one(slots: int) -> None:
    heads = [head(n, lane=Lane.BULK, tenant_id="clinic") for n in range(1, 1001)] + [head(2000, lane=Lane.BULK)]
    pool = Pool(slots)
    pool.fill(heads)
    taken = by_tenant(one_by_one(pool, heads, 100))
    assert abs(taken["school"] - taken["clinic"]) <= 1
    assert taken.total() >= 99


def test_one_row_of_a_tenant_has_its_turn_though_another_fills_every_lane() -> None:
    """I-39, with one slot and none kept back: the lane's turn comes within 15 slots, the tenant's is the next in it."""
    backlog = [head(n, lane=lane, tenant_id="clinic") for n, lane in enumerate(Lane, 1)]
    pool = Pool(1)
    one_by_one(pool, backlog, 1000)
    for lane in Lane:
        late = head(10, lane=lane)
        assert late in one_by_one(pool, [*backlog, late], 15)
        one_by_one(pool, backlog, 15)


def test_who_was_away_has_saved_nothing_up() -> None:
    clinic, school = head(1, tenant_id="clinic"), head(2, tenant_id="school")
    pool = Pool(1)
    one_by_one(pool, [clinic], 1000)
    assert by_tenant(one_by_one(pool, [clinic, school], 10)) == {"clinic": 5, "school": 5}
    assert by_lane(one_by_one(pool, [clinic, head(3, lane=Lane.BULK)], 30)) == {Lane.NORMAL: 20, Lane.BULK: 10}


def test_a_lane_that_comes_and_goes_gets_no_more_than_its_weight() -> None:
    """Its rows come one at a time and are found one at a time: each time it is new, and yet it was just served."""
    critical, bulk = head(1, lane=Lane.CRITICAL), head(2, lane=Lane.BULK, tenant_id="clinic")
    pool, taken = Pool(1), Counter[Lane]()
    for _ in range(180):
        got = one_by_one(pool, [critical, bulk], 1)
        taken += by_lane(got)
        if bulk in got:
            taken += by_lane(one_by_one(pool, [critical], 1))
    assert taken[Lane.BULK] <= taken.total() / 9 + 1


def test_what_was_given_from_a_reserve_delays_nobody_afterwards() -> None:
    """A tenant is served a hundred times beside another's hanging calls; then these end, and it goes on by weight."""
    clinic, school = head(1, lane=Lane.CRITICAL, tenant_id="clinic"), head(2)
    pool = Pool(32)
    pool.fill([clinic])
    for _ in range(100):
        assert pool.round([clinic, school]) == {school: 1}
        pool.calls.remove(school)
    pool.calls.append(head(3, tenant_id="school"))  # it is no newcomer any more
    del pool.calls[:15]
    assert pool.round([clinic, school])[school] >= 2  # 2 of 10


def test_a_tenant_that_lives_on_a_reserve_does_not_use_up_its_lanes_turns() -> None:
    """The academy's bulk is served whenever it has no call open; the library's has to have the lane's own turns."""
    urgent = head(1, lane=Lane.CRITICAL, tenant_id="library")
    bulk = head(2, lane=Lane.BULK, tenant_id="library")
    pool = Pool(8)
    taken = Counter(one_by_one(pool, [urgent, bulk, head(3, lane=Lane.BULK, tenant_id="academy")], 200))
    assert taken[bulk] >= 5


def test_flows_that_give_nothing_do_not_keep_others_from_their_turn() -> None:
    """Their rows may be held by another worker: to be asked in vain is a turn too."""
    empty = [head(n, tenant_id="clinic") for n in range(1, 51)]
    pool, got = Pool(1), 0
    for _ in range(100):
        got += pool.round([*empty, head(99)], gives={99: 1}).total()
        pool.calls.clear()
    assert got == 50


@pytest.mark.parametrize(
    "number, expected",
    [(0, (0, 0, 0, 0)), (1, (1, 0, 0, 0)), (4, (1, 1, 1, 1)), (15, (8, 4, 2, 1)), (150, (80, 40, 20, 10))],
)
def test_a_batch_is_divided_among_the_lanes_by_weight(number: int, expected: tuple[int, ...]) -> None:
    assert portions(number, tuple(Lane)) == dict(zip(Lane, expected, strict=True))


def test_lanes_that_are_not_served_have_no_part_in_a_batch() -> None:
    assert list(portions(50, (Lane.BULK, Lane.HIGH)).items()) == [(Lane.HIGH, 40), (Lane.BULK, 10)]
