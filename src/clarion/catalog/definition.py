"""Reading a definition as it was written, in TOML or in the body of a request. Pure: `folder` reads the files."""

import re
import tomllib
from typing import Final

import msgspec

from clarion.catalog.toml_line import line_of
from clarion.domain.definition import Definition, complaints_about
from clarion.domain.misfit import read_misfit
from clarion.errors import InvalidDefinition, InvalidInput

DEFINITION: Final = "definition.toml"

_PLACE: Final = re.compile(r"line \d+, column \d+|end of document")


def parse_definition(text: str, *, file: str = DEFINITION) -> Definition:
    """Read a definition file, or raise InvalidDefinition with everything that is wrong in it."""
    read = parse_toml(text, file=file)

    def wrong(field: str, what: str, hint: str) -> InvalidInput:
        return InvalidInput(f"line {line_of(text, field)}: the field {field}{what}", field=file, hint=hint)

    try:
        definition = msgspec.convert(read, Definition)
    except msgspec.ValidationError as error:
        misfit = read_misfit(str(error), Definition)
        where = re.sub(r"\[.*", "", misfit.field)
        line = "" if misfit.what == "it is missing" else f"line {line_of(text, where)}: "
        what = f"{line}the field {misfit.field}: {misfit.what}" if misfit.field else misfit.what
        hint = misfit.hint or "correct it; docs/reference/notifications.md lists the fields"
        raise InvalidDefinition([InvalidInput(what, field=file, hint=hint)]) from None
    mistakes = [wrong(one.field, " cannot be used", one.hint) for one in complaints_about(definition)]
    if mistakes:
        raise InvalidDefinition(mistakes)
    return definition


def check_definition(definition: Definition, *, field: str) -> list[InvalidInput]:
    """Name all that makes no sense in a definition that came in a request; `field` is where it stands."""
    return [
        InvalidInput("it cannot be used", field=f"{field}.{one.field}", hint=one.hint)
        for one in complaints_about(definition)
    ]


def parse_toml(text: str, *, file: str) -> dict[str, object]:
    """Read TOML, or raise InvalidDefinition that says where it stops being any."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        mistake = InvalidInput("it is nested too deeply", field=file, hint="use a few levels")
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = f", at {place[0]}" if place else ""
        mistake = InvalidInput(f"this is no TOML{where}", field=file, hint="correct the file")
    raise InvalidDefinition([mistake]) from None
