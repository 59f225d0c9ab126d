"""Reading a definition as it was written, in TOML or in the body of a request. Pure: `folder` reads the files."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from clarion.catalog.toml_line import line_of
from clarion.domain.definition import Definition, complaints_about
from clarion.domain.misfit import MISSING, Misfit, misfits_in
from clarion.errors import InvalidDefinition, InvalidInput
from clarion.ports.renderer import DEFINITION

_PLACE: Final = re.compile(r"line (\d+), column \d+")

_STAND_INS: Final[Mapping[str, object]] = {"key": "a", "title": "a", "channels": ["sms"]}
"""What stands for a field that a definition has to have and does not, while the others are looked at."""

CANNOT_BE_USED: Final = "it cannot be used"

_ADVICE: Final = "correct it; docs/reference/notifications.md lists the fields"


def parse_definition(text: str, *, file: str = DEFINITION) -> Definition:
    """Read a definition file, or raise InvalidDefinition with everything that is wrong in it."""
    read = parse_toml(text, file=file)
    mistakes = [InvalidInput(_in_file(text, one), field=file, hint=one.hint or _ADVICE) for one in misfits_of(read)]
    if mistakes:
        raise InvalidDefinition(mistakes)
    return msgspec.convert(read, Definition)


def misfits_of(read: Mapping[str, object]) -> Sequence[Misfit]:
    """Name everything in a definition that does not fit, or that fits and makes no sense."""
    misfits = misfits_in(read, Definition)
    wrong = {re.split(r"[.\[]", one.field)[0] for one in misfits}
    rest = {name: value for name, value in read.items() if name not in wrong}
    definition = msgspec.convert({**_STAND_INS, **rest}, Definition, str_keys=True)
    return [*misfits, *complaints_in(definition, unknown=wrong)]


def complaints_in(definition: Definition, *, unknown: Collection[str] = ()) -> Iterator[Misfit]:
    """Name everything in a definition that makes no sense."""
    for one in complaints_about(definition, unknown=unknown):
        yield Misfit(one.field, CANNOT_BE_USED, one.hint)


def _in_file(text: str, misfit: Misfit) -> str:
    """Say on which line of its file something does not fit; what is missing stands on none."""
    line = line_of(text, misfit.field.partition("[")[0])
    where = "" if misfit.what == MISSING else f"line {line}: "
    if misfit.what == CANNOT_BE_USED:
        return f"{where}the field {misfit.field} cannot be used"
    return f"{where}the field {misfit.field}: {misfit.what}"


def parse_toml(text: str, *, file: str) -> dict[str, object]:
    """Read TOML, or raise InvalidDefinition that says where it stops being any."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        mistake = InvalidInput("it is nested too deeply", field=file, hint="use a few levels")
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place else text.rstrip().count("\n") + 1
        mistake = InvalidInput(f"line {line}: this is no TOML", field=file, hint="correct the file")
    raise InvalidDefinition([mistake]) from None
