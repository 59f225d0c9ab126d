"""What is held in memory up to a number of bytes."""

import gc
import tracemalloc

import pytest

from clarion.adapters.renderers.language import HTML, parse
from clarion.adapters.renderers.parts import BRACE_BYTES
from clarion.domain.held import Held


def test_what_was_held_longest_goes_first_and_the_newest_stays_however_large() -> None:
    held = Held[str, int](10)
    for number, (name, size) in enumerate([("a", 4), ("b", 4), ("c", 4)]):
        held.put(name, number, size=size)
    assert (held.get("a"), held.get("b"), held.get("c"), held.bytes) == (None, 1, 2, 8)
    held.put("d", 3, size=50)
    assert (len(held), held.names(), held.bytes) == (1, ["d"], 50)
    held.put("e", 4, size=1)
    assert held.names() == ["e"]


def test_what_is_put_again_counts_once_and_is_the_newest() -> None:
    held = Held[str, int](10)
    for name, size in [("a", 4), ("b", 4), ("a", 5), ("c", 4)]:
        held.put(name, size, size=size)
    assert (held.names(), held.get("a"), held.bytes) == (["a", "c"], 5, 9)
    assert "b" not in held


@pytest.mark.parametrize("piece", ["{{ e }}", "{% if e %}x{% endif %}", "{{ s | upcase | slice: 0 }}", "plain text "])
def test_a_tree_takes_no_more_than_it_is_weighed_with(piece: str) -> None:
    source = piece * (20_000 // len(piece))
    parse(HTML, source, file="warm")
    gc.collect()
    tracemalloc.start()
    tree = parse(HTML, source, file="a")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tree is not None
    assert taken < len(source) + BRACE_BYTES * source.count("{") + 10_000
