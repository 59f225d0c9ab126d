"""Records in their wire form. Pure."""

from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def as_wire(record: msgspec.Struct, shape: type[S], /, **instead: object) -> S:
    """Give a record in its wire form: the fields that have the same name there, and `instead` for the others."""
    names = [name for name in shape.__struct_fields__ if name not in instead]
    return shape(**{name: getattr(record, name) for name in names}, **instead)


def read_details(text: str) -> dict[str, object]:
    """Read stored details; a text that is no JSON object, whoever wrote it, is shown as it is."""
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError:
        return {"text": text}
