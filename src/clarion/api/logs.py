"""Logs: one line an event, with the correlation id in each and nothing about anybody in any (X-22).

Deny by default: a field that is not named here is masked, whatever it holds; text that passes is searched for
addresses, phone numbers and keys all the same. Of an error that is not ours only its type and its place in the code are
shown, because its text may quote what it stumbled over; of other libraries' lines only the words that stand in their
code. Everything that uses standard logging takes the same way.
"""

import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from traceback import extract_tb
from typing import Final, TextIO

import msgspec
import structlog
from structlog.contextvars import merge_contextvars
from structlog.stdlib import BoundLogger, ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from clarion.errors import ClarionError

OURS: Final = frozenset(
    [
        *("account", "channel", "code", "correlation_id", "count", "job_id", "key_id", "lane", "level", "logger"),
        *("message_id", "method", "milliseconds", "outcome", "outgoing_id", "port", "process", "role", "route"),
        *("stage", "status", "step", "tenant_id", "timestamp", "version"),
    ]
)
"""Ids, names of our own making and numbers: they pass as they are."""

TEXTS: Final = frozenset(["actor", "error", "event", "exception", "host", "url"])
"""Words that somebody wrote: they pass without what looks private. A new field is a decision, made here."""

MASK: Final = "[masked]"

_PRIVATE: Final = (
    (re.compile(r"clarion_[0-9a-f]{16}_[0-9a-f]+"), "[key]"),
    (re.compile(r"(?<=://)[^/\s@]+@"), ""),  # what is left names the host; with an @ it would look like a mail address
    (re.compile(r"[^\s@<>\"'(),:;]+@[^\s@<>\"'(),:;]+"), "[address]"),
    (re.compile(r"(?<![\w.:-])\+?\d[\d ()./-]{6,18}\d(?![\w.:-])"), "[number]"),
)
"""Keys, credentials in URLs, mail addresses, and what could be a phone number; ids and times have letters or colons."""


def set_up(*, correlation_id: str, json_lines: bool, stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send every log of this process to a stream, standard error unless told otherwise.

    `correlation_id` stands in the lines that belong to no request: those of this process's start, workers and end.
    """
    shared: list[Processor] = [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        correlate(correlation_id),
        explain_error,
        mask,
    ]
    written: Processor = (
        structlog.processors.JSONRenderer(serializer=_encoded)
        if json_lines
        else structlog.dev.ConsoleRenderer(colors=(stream or sys.stderr).isatty())
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[plain_words, *shared],
            processors=[ProcessorFormatter.remove_processors_meta, written],
        )
    )
    LINES.write = _writer(stream or sys.stderr) if json_lines and level <= logging.INFO else None
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


class Lines:
    """Lines that are written for every request: straight to the stream, because all that they hold is ours (`OURS`).

    The general path through structlog and logging takes ten times as long. Where lines are for a terminal, or nothing
    was set up, `write` is None and the general path is taken.
    """

    write: Callable[[str], object] | None = None

    def tell(self, logger: BoundLogger, event: str, *, name: str, at: datetime, **fields: object) -> None:
        """Log an event of ours at the level info."""
        if self.write is None or not fields.keys() <= OURS:
            logger.info(event, **fields)
            return
        line = {**fields, "event": event, "level": "info", "logger": name, "timestamp": at}
        self.write(_encoded(line) + "\n")


LINES: Final = Lines()


def _writer(stream: TextIO) -> Callable[[str], object]:
    """Write whole lines, each at once."""

    def write(line: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more: as with other lines, that fails no request
            stream.write(line)
            stream.flush()

    return write


def plain_words(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Of a library's line keep the words without their values; uvicorn's are its own addresses and numbers."""
    record = line.get("_record")
    if isinstance(record, logging.LogRecord) and not record.name.startswith("uvicorn"):
        line["event"] = (str(record.msg).splitlines() or [""])[0]
    return line


def correlate(correlation_id: str) -> Processor:
    """Make a processor that gives a line without a correlation id this one."""

    def add(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
        line.setdefault("correlation_id", correlation_id)
        return line

    return add


def mask(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Mask every field that is not known to be harmless, and whatever looks private in the text of the others."""
    return {name: _masked(name, value) for name, value in line.items()}


def explain_error(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Turn an exception into its types and places; the text only of errors that are ours."""
    given = line.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        line["exception"] = describe(error)
    return line


def describe(error: BaseException) -> str:
    """Say where an error came from, and what led to it."""
    said = str(error) if isinstance(error, ClarionError) else MASK
    if isinstance(error, OSError) and error.strerror:
        said = error.strerror
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in extract_tb(error.__traceback__)]
    text = "\n".join([f"{type(error).__name__}: {said}", *(f"  {place}" for place in places)])
    if isinstance(error, BaseExceptionGroup):
        text = "\n".join([text, *map(describe, error.exceptions)])
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return text if cause is None else f"{text}\nfrom {describe(cause)}"


def _masked(name: str, value: object) -> object:
    if name in OURS or name.startswith("_"):  # the formatter's own fields are taken out before the line is written
        return value
    if name not in TEXTS:
        return MASK
    text = str(value)
    for pattern, replacement in _PRIVATE:
        text = pattern.sub(replacement, text)
    return text


def _encoded(line: Mapping[str, object], **_: object) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()
