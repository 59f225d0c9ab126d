"""The limits of what an application may say of a source."""

import pytest

from clarion.domain.source import SourceContent, require_content
from clarion.errors import InvalidInput


def test_content_at_its_limits_is_written_as_json() -> None:
    content = SourceContent(
        fields={f"f{n}": n for n in range(50)}, metrics={"seats": {f"s{n}": 1.0 for n in range(100)}}
    )
    written = require_content(content)
    assert written.startswith(b'{"fields":{"f0":0,')


@pytest.mark.parametrize(
    "content, field",
    [
        (SourceContent(fields={f"f{n}": n for n in range(51)}), "fields"),
        (SourceContent(metrics={f"m{n}": 1.0 for n in range(51)}), "metrics"),
        (SourceContent(metrics={"seats": {f"s{n}": 1.0 for n in range(101)}}), "metrics.seats"),
        (SourceContent(metrics={"seats": {"": 1.0}}), "metrics.seats"),
        (SourceContent(metrics={"seats": {"s" * 101: 1.0}}), "metrics.seats"),
        (SourceContent(metrics={"seats": {"all": float("inf")}}), "fields"),
        (SourceContent(fields={"price": float("nan")}), "fields"),
        (SourceContent(fields={"note": "x" * 16_384}), "fields"),
    ],
)
def test_content_beyond_a_limit_is_refused_where_it_stands(content: SourceContent, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        require_content(content)
    assert raised.value.field == field
