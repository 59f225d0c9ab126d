"""From a folder of files and a payload to the exact content that each reader gets, in their locale and zone.

What is expected stands in `tests/golden/contents`, one file a part and reader. A changed byte is a changed message: a
retry would be refused. `python tests/unit/test_content_golden.py` writes the files anew; read what changed before it is
committed.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.catalog.publish import compile_folder
from clarion.domain.identity import Channel
from clarion.ports.renderer import Bundle, Merge

GOLDEN = Path(__file__).parents[1] / "golden"
PAYLOAD: dict[str, Any] = json.loads((GOLDEN / "notifications" / "payload.json").read_text(encoding="utf-8"))


def contents(reader: str, bundle: Bundle) -> dict[str, str]:
    """Give the parts of all channels as one reader gets them, by the name of their file."""
    given = {name: PAYLOAD[name] for name in ("recipient", "entity", "public_url")}
    merge = Merge(PAYLOAD["data"], **PAYLOAD["readers"][reader], **given)
    return {
        f"{channel}.{part}.{'html' if part == 'html' else 'txt'}": text
        for channel in bundle.definition.channels
        for part, text in msgspec.to_builtins(open_renderer().merge(bundle, channel, merge)).items()
        if part != "type"
    }


def published() -> Bundle:
    (bundle,) = compile_folder(GOLDEN / "notifications", open_renderer())
    return bundle


@pytest.mark.parametrize("reader", PAYLOAD["readers"])
def test_every_reader_gets_exactly_this(reader: str) -> None:
    folder = GOLDEN / "contents" / reader
    expected = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    stored = msgspec.json.decode(msgspec.json.encode(published()), type=Bundle)
    assert contents(reader, stored) == expected
    assert {name.partition(".")[0] for name in expected} == {Channel.EMAIL, Channel.SMS, Channel.INBOX}


if __name__ == "__main__":
    for one in PAYLOAD["readers"]:
        (GOLDEN / "contents" / one).mkdir(parents=True, exist_ok=True)
        for file, text in contents(one, published()).items():
            (GOLDEN / "contents" / one / file).write_text(text, encoding="utf-8")
