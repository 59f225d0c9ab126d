"""Partials that would have no end: what they may come to, and how deep they may stand inside each other."""

from pathlib import Path

from clarion.domain.identity import Channel
from tests.unit.test_folder import compiled, mistakes_of, school


def test_partials_that_multiply_are_stopped(tmp_path: Path) -> None:
    laughs = {f"layouts/_p{n}.text.liquid": "ha" * 10 if n == 4 else f"{{% partial p{n + 1} %}}" * 50 for n in range(5)}
    found = mistakes_of(school(tmp_path, {**laughs, "incident/sms.liquid": "{% partial p0 %}"}))
    assert len(found) == 1
    assert found[0].startswith("incident/sms.liquid: with its layout, partials and texts it has over 65536 characters")


def test_empty_partials_that_multiply_are_stopped(tmp_path: Path) -> None:
    laughs = {f"layouts/_p{n}.text.liquid": "" if n == 4 else f"{{% partial p{n + 1} %}}" * 900 for n in range(5)}
    found = mistakes_of(school(tmp_path, {**laughs, "incident/sms.liquid": "{% partial p0 %}"}))
    assert found[0].startswith("incident/sms.liquid: with its layout, partials and texts it has over")


def test_partials_are_nested_so_deep_and_no_deeper(tmp_path: Path) -> None:
    deep = {f"layouts/_p{n}.text.liquid": f"{{% partial p{n + 1} %}}" for n in range(5)}
    found = mistakes_of(
        school(tmp_path, {**deep, "layouts/_p5.text.liquid": "x", "incident/sms.liquid": "{% partial p0 %}"})
    )
    assert found == [
        (
            "layouts/_p4.text.liquid: line 1: partials stand inside each other: p5 in p4 in p3 in p2 in p1 in p0: "
            "nest at most 5, and none in itself"
        )
    ]
    flat = {"layouts/_p4.text.liquid": "x", "incident/sms.liquid": "{% partial p0 %}"}
    assert compiled(school(tmp_path, flat)).parts[Channel.SMS]["text"] == "x"
