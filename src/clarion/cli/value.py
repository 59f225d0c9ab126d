"""The values of arguments and options: read as they were typed, and refused in our own words.

typer would have pydantic read them. Loading it takes longer than loading everything else that a refused command needs,
and its errors speak of types in a program ("Input should be a valid integer"). Knows the kinds of values that our
commands take: text, whole numbers, flags, one of several words, paths, and lists of these.
"""

import re
from enum import Enum
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from clarion.errors import InvalidInput

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,100}", re.ASCII)


def read_plainly(parameter: Any) -> None:  # noqa: ANN401  (typer's parameters have no public type)
    """Have a parameter of a command read what was typed by the rules of this module."""
    parameter.process_value = partial(_process, parameter)


def _process(parameter: Any, context: Any, value: Any) -> Any:  # noqa: ANN401  (as above)
    """Read one value; None is what was not typed and has no default."""
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name
    if parameter.multiple:
        value = list(value or ())
    if value is None or value == []:
        if parameter.required:
            raise InvalidInput("it is missing", field=name, hint=f"`{context.command_path} --help` explains it")
    elif isinstance(value, str):
        value = _read(value, parameter, name=name)
    elif isinstance(value, list):
        value = [_read(one, parameter, name=name) for one in value]
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _read(text: str, parameter: Any, *, name: str) -> object:  # noqa: ANN401  (as above)
    """Read a text as the kind of value that the parameter is."""
    kind = parameter.type_descriptor.annotation
    kind = next((one for one in get_args(kind) if one is not NoneType), kind)  # of a list, what each of it is
    if kind is str:
        return text
    if kind is int:
        return _read_number(text, low=parameter.min, high=parameter.max, name=name)
    if issubclass(kind, Enum):
        return _read_word(text, kind, name=name)
    if issubclass(kind, Path):
        return kind(text)
    raise AssertionError(f"{name} takes a {kind}, which nothing here reads")


def _read_number(text: str, *, low: int | None, high: int | None, name: str) -> int:
    allowed = f"{low if low is not None else 0} to {high}" if high is not None else f"{low} or more" if low else "one"
    if not _WHOLE_NUMBER.fullmatch(text):
        raise InvalidInput(f"{text!r:.80} is no whole number", field=name, hint=f"use {allowed}")
    number = int(text)
    if low is not None and number < low:
        raise InvalidInput(f"{number} is too small", field=name, hint=f"use {allowed}")
    if high is not None and number > high:
        raise InvalidInput(f"{number} is too large", field=name, hint=f"use {allowed}")
    return number


def _read_word(text: str, kind: type[Enum], *, name: str) -> Enum:
    try:
        return kind(text)
    except ValueError:
        words = ", ".join(str(one.value) for one in kind)
        raise InvalidInput(f"{text!r:.80} is not one of its words", field=name, hint=f"choose from {words}") from None
