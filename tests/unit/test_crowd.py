"""Places that strangers share: who gets in, and who has to leave for them."""

import pytest

from clarion.api.crowd import Crowd, Places, source_of


def test_whoever_takes_many_places_takes_them_from_themselves() -> None:
    crowd: Crowd[str] = Crowd(places=6)
    assert [crowd.enter("a", guest) for guest in ("a1", "a2", "a3")] == [None, None, None]
    assert [crowd.enter("a", guest) for guest in ("a4", "a5")] == ["a1", "a2"]  # half is three
    assert [crowd.enter("b", guest) for guest in ("b1", "b2")] == [None, None]
    assert crowd.enter("c", "c1") is None
    assert crowd.enter("d", "d1") == "a3"  # every place is taken, and nobody has more than `a`
    assert not crowd.is_full()


def test_of_places_that_are_kept_nobody_has_more_than_half() -> None:
    places: Places[str] = Places(places=4)
    assert [places.take(guest, "a") for guest in ("a1", "a2", "a3")] == [True, True, False]
    assert [places.take(guest, guest) for guest in ("b", "c", "d")] == [True, True, False]
    assert not places.take("b", "a")  # a holder that has its half gets no place of another's either
    assert [places.take("b", "e"), places.take("c", "e"), places.take("c", "e")] == [True, True, False]
    places.leave("a1")
    places.leave("nobody")
    assert [places.take("f", "e"), places.take("f", "a")] == [False, True]


def test_where_every_source_has_one_place_the_oldest_leaves() -> None:
    crowd: Crowd[str] = Crowd(places=3)
    for guest in "abc":
        crowd.enter(guest, guest)
    assert [crowd.enter(guest, guest) for guest in "def"] == ["a", "b", "c"]


def test_whoever_is_recognised_counts_and_stays_while_there_are_strangers() -> None:
    crowd: Crowd[str] = Crowd(places=3)
    for guest in ("a1", "a2"):
        crowd.enter("a", guest)
        crowd.recognise("a", guest, "oak")
    assert crowd.enter("b", "b1") is None
    assert [crowd.enter("c", "c1"), crowd.enter("d", "d1")] == ["b1", "c1"]
    crowd.leave("a", "a1")
    assert crowd.enter("e", "e1") is None
    assert not crowd.is_full()


def test_of_those_who_are_recognised_the_tenant_with_the_most_gives_up_what_it_used_least_lately() -> None:
    """One tenant held every place with connections that it did not use, and all others were answered 503."""
    crowd: Crowd[str] = Crowd(places=4)
    for guest, name in (("e1", "elm"), ("a1", "oak"), ("a2", "oak"), ("a3", "oak")):
        crowd.enter("a proxy", guest)
        crowd.recognise("a proxy", guest, name)
    crowd.recognise("a proxy", "a1", "oak")  # used again
    assert crowd.enter("b", "b1") == "a2"
    assert not crowd.is_full()
    crowd.recognise("b", "b1", "elm")
    crowd.leave("a proxy", "a2")  # its connection ends only now
    assert crowd.enter("c", "c1") in {"e1", "a3"}  # two each


def test_one_that_had_to_leave_frees_its_place_once() -> None:
    crowd: Crowd[str] = Crowd(places=2)
    crowd.enter("a", "a1")
    crowd.enter("b", "b1")
    assert crowd.enter("c", "c1") == "a1"
    crowd.leave("a", "a1")
    crowd.recognise("a", "a1", "oak")  # too late
    crowd.leave("a", "a1")
    assert crowd.enter("d", "d1") == "b1"


@pytest.mark.parametrize(
    "host,other,are_one",
    [
        ("203.0.113.7", "203.0.113.7", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),  # one subscriber has all of these
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.8", False),
        ("a name", "another", False),
    ],
)
def test_a_source_is_an_address_and_of_ipv6_a_network(host: str, other: str, are_one: bool) -> None:
    assert (source_of((host, 1)) == source_of((other, 2))) is are_one


def test_whoever_comes_without_an_address_shares_one_source() -> None:
    assert source_of(None) == source_of(None)
