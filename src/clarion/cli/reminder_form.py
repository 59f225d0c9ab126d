"""A reminder setting as it is typed: the options of `clarion reminders put`, and the file that it may be read from."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from clarion.cli.asked import typed_name
from clarion.cli.settings import FORMS
from clarion.domain.audience import ADDRESSEES_MAX
from clarion.domain.key import FiringPolicy
from clarion.domain.misfit import misfits_in, read_json_fault
from clarion.domain.strict_json import check_keys
from clarion.errors import InvalidInput

if TYPE_CHECKING:
    from clarion.client.wire_reminders import ReminderRequest

FILE_BYTES_MAX: Final = 64 * 1024
"""Of a file with one setting, which is a page at most."""

File = Annotated[
    Path | None,
    typer.Option(help="Read it from a file of TOML or JSON, - for standard input; options replace its fields."),
]
Name = Annotated[str | None, typer.Option(help="What it is called.")]
SourceTypeName = Annotated[
    str | None, typer.Option(help="About sources of this type, such as invoice.", metavar="TYPE")
]
Where = Annotated[
    list[str] | None,
    typer.Option(help="Only where a field has this value, or another of the same field.", metavar="FIELD=VALUE"),
]
WhereNot = Annotated[
    list[str] | None, typer.Option(help="Only where a field does not have this value.", metavar="FIELD=VALUE")
]
DateField = Annotated[str | None, typer.Option(help="On a date of the source.", metavar="FIELD")]
Offsets = Annotated[
    list[int] | None,
    typer.Option(help="So many days before the date, 0 on it, -3 three days after it; several times.", metavar="DAYS"),
]
Yearly = Annotated[bool, typer.Option("--yearly", help="In every year, on the day of the date.")]
Metric = Annotated[str | None, typer.Option(help="Once a metric of the source meets a value.", metavar="FIELD")]
AtLeast = Annotated[str | None, typer.Option(help="The value, met at it and above it.", metavar="NUMBER")]
AtMost = Annotated[str | None, typer.Option(help="The value, met at it and below it.", metavar="NUMBER")]
ScopeName = Annotated[str | None, typer.Option(help="Of this part of the source; * for every part, each by itself.")]
Policy = Annotated[FiringPolicy | None, typer.Option(help="How often it tells while the value is met.")]
At = Annotated[str | None, typer.Option(help="At this time of day in the zone of its unit.", metavar="HH:MM")]
TypeKey = Annotated[str | None, typer.Option("--type", help="The notification type that it sends.", metavar="TYPE")]
To = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Whom it tells: {FORMS}; up to {ADDRESSEES_MAX}. Without it, whom the settings of the type name.",
        metavar="ADDRESSEE",
    ),
]
Unit = Annotated[str | None, typer.Option("--business-unit", help="Only for sources of this one.", metavar="GUID")]
InboxOnly = Annotated[bool, typer.Option("--inbox-only", help="A line in the inbox, and nothing else.")]
LongRunner = Annotated[
    bool, typer.Option("--long-runner", help="Try daily, instead of holding it, while its provider is away for days.")
]
Off = Annotated[bool, typer.Option("--off", help="Plan nothing yet; `on` switches it on.")]

TYPED_AS: Final = {
    "name": "--name",
    "source_type": "--source-type",
    "conditions": "--where",
    "rule": "--date",
    "rule.field": "--date",
    "rule.offsets": "--offset",
    "rule.metric": "--metric",
    "rule.value": "--at-least",
    "rule.scope": "--scope",
    "send_time": "--send-time",
    "notification_type": "--type",
    "recipients": "--to",
    "business_unit": "--business-unit",
    "inbox_only": "--inbox-only",
}
"""What the fields of a setting are called here."""


def rule(
    date: str | None,
    offsets: Sequence[int] | None,
    metric: str | None,
    at_least: str | None,
    at_most: str | None,
    *,
    yearly: bool,
    scope: str | None,
    policy: FiringPolicy | None,
) -> dict[str, object] | None:
    """Make the rule of what was typed about it; None where nothing was."""
    of_date = {"offsets": offsets or None, "yearly": yearly or None}
    of_metric = {"--at-least": at_least, "--at-most": at_most, "scope": scope, "policy": policy}
    if date is not None and metric is not None:
        raise InvalidInput("it is about a date already", field="--metric", hint="say one of the two")
    if date is None and any(of_date.values()):
        raise InvalidInput("no date is named", field="--date", hint="name the date that the days are counted from")
    if metric is None and any(of_metric.values()):
        raise InvalidInput("no metric is named", field="--metric", hint="name what is compared with the value")
    if date is not None:
        return {"on": "date", "field": date, **_given(of_date)}
    if metric is None:
        return None
    if (at_least is None) == (at_most is None):
        raise InvalidInput("it needs one value", field="--at-least", hint="give it, or --at-most")
    compare, option = ("at_least", "--at-least") if at_most is None else ("at_most", "--at-most")
    value = _number(at_least or at_most or "", option=option)
    more = _given({"scope": scope, "policy": policy})
    return {"on": "threshold", "metric": metric, "compare": compare, "value": value, **more}


def conditions(where: Sequence[str], where_not: Sequence[str]) -> list[dict[str, object]]:
    """Make the conditions of what was typed; the values of one field belong together."""
    values: dict[tuple[str, str], list[object]] = {}
    for option, op, texts in (("--where", "is", where), ("--where-not", "is_not", where_not)):
        for place, text in enumerate(texts, start=1):
            field, equals, value = text.partition("=")
            if not equals:
                raise InvalidInput(
                    f"{text!r:.80} is no condition",
                    field=f"{option} ({place})",
                    hint="write FIELD=VALUE, as state=open",
                )
            values.setdefault((field, op), []).append(_value(value))
    return [{"field": field, "op": op, "values": several} for (field, op), several in values.items()]


def request(given: Mapping[str, object], file: Path | None) -> "tuple[ReminderRequest, dict[str, str]]":
    """Make the request of what was typed and what a file has; with it, what each of its fields is called there."""
    from clarion.client.wire_reminders import ReminderRequest

    typed = _given(given)
    whole = ({} if file is None else _read(file)) | msgspec.to_builtins(typed)
    names = {
        field: option if file is None or field.partition(".")[0] in typed else f"{file}: {field}"
        for field, option in TYPED_AS.items()
    }
    for misfit in misfits_in(whole, ReminderRequest):
        in_file = file is not None and re.split(r"[.\[]", misfit.field)[0] not in typed
        name = f"{file}: {misfit.field}" if in_file else typed_name(misfit.field, names)
        raise InvalidInput(misfit.what, field=name, hint=misfit.hint or "`clarion reminders put --help` explains it")
    return msgspec.convert(whole, ReminderRequest), names


def _given(values: Mapping[str, object]) -> dict[str, object]:
    """Keep what was typed."""
    return {name: value for name, value in values.items() if value is not None}


def _number(text: str, *, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r:.40} is no number", field=option, hint="write it such as 0.9 or 25") from None


def _value(text: str) -> object:
    """Read a value: true, false, null and numbers as such, anything else as text, also in double quotes."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return text if isinstance(value, dict | list) else value


def _read(file: Path) -> dict[str, object]:
    """Read a file: JSON where it begins as an object does, or else TOML."""
    from clarion.catalog.definition import parse_toml

    text = _text_of(file)
    if not text.lstrip().startswith("{"):
        return parse_toml(text, file=str(file))
    try:
        read: dict[str, object] = msgspec.json.decode(text)
        check_keys(text.encode())
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"this is no JSON, {read_json_fault(str(error))}", field=str(file), hint="correct the file"
        ) from None
    except RecursionError:
        raise InvalidInput("it is nested too deeply", field=str(file), hint="use a few levels") from None
    return read


def _text_of(file: Path) -> str:
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as opened:
        source = opened.read(FILE_BYTES_MAX + 1)
    if len(source) > FILE_BYTES_MAX:
        raise InvalidInput(
            f"it has over {FILE_BYTES_MAX // 1024} kB", field=str(file), hint="name the file of one reminder setting"
        )
    try:
        return source.decode()
    except UnicodeDecodeError:
        raise InvalidInput("it is no UTF-8", field=str(file), hint="write it as UTF-8") from None
