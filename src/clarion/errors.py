"""Every error that Clarion raises on purpose, in one tree, grouped by whose fault it is.

The group says who can end the trouble: the caller by asking differently, the operator by repairing the installation,
or we by repairing the program; what is superseded needs nobody. Expected outcomes (a conflict found by an ensure, a
refusal by a provider) are values; what is raised is a surprise to the code that raises it.

    ClarionError
        CallerError
            InvalidInput
                InvalidItems
                    InvalidDefinition
                InvalidKey
                InvalidAddress
                UnknownVersion
            Forbidden
            QuotaExceeded
            TooManyAtOnce
            Conflict
            Gone
            RenderFailed
            SignatureRefused
        OperatorError
            StoreUnreachable
                StoreDamaged
            StoreBusy
            StoreReadOnly
            StoreFull
            SchemaMissing
                SchemaOutdated
            SchemaUnknown
            SchemaEdited
            ProgramTooOld
            BlobMissing
            BadConfiguration
            Ending
            ClockLeap
            SealBroken
            AuditBroken
            PluginFailed
        Superseded
        Bug
            IllegalMove
            BrokenInvariant

`code` is public and stable: a program may compare it, and a changed code is a breaking change. The text is for people
and may change. Messages never hold an address, a secret or a key.

This module reads and writes nothing. The mappings to HTTP statuses and to exit codes live in `api` and `cli`.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar


class ClarionError(Exception):
    """Something that Clarion refuses or cannot do, with a sentence on what to do about it."""

    code: ClassVar[str] = "clarion-error"

    def __init__(self, message: str, *, hint: str) -> None:
        """Keep what happened (`message`) apart from what to do about it (`hint`)."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Say on one line what happened and what to do, whatever line breaks the parts hold."""
        return " ".join(f"{self.message}: {self.hint}".split())

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way between processes: by default pickle calls the class without its keyword arguments."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[ClarionError], args: tuple[object, ...], state: dict[str, object]) -> ClarionError:
    """Make an error again from its pickled parts."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class CallerError(ClarionError):
    """The request is at fault; the same request will fail again."""

    code = "caller-error"


class InvalidInput(CallerError):
    """A value in the request cannot be accepted; `field` names it."""

    code = "invalid-input"

    def __init__(self, message: str, *, field: str, hint: str) -> None:
        """Name the field, as the caller spelled it, that must change."""
        super().__init__(message, hint=hint)
        self.field = field

    def __str__(self) -> str:
        """Put the field first, so that a list of such lines can be read by field."""
        return f"{self.field}: {super().__str__()}"


class InvalidItems(InvalidInput):
    """Items of a set cannot be accepted, and nothing of it was stored; `mistakes` has every one, by place and field."""

    code = "invalid-items"

    def __init__(self, mistakes: Sequence[InvalidInput]) -> None:
        """Stand for all of the mistakes, of which there is one at least, and speak of the first."""
        first = mistakes[0]
        super().__init__(first.message, field=first.field, hint=first.hint)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        """Say the first mistake on one line, and how many more there are."""
        more = len(self.mistakes) - 1
        return super().__str__() + (f" (and {more} more)" if more else "")


class InvalidDefinition(InvalidItems):
    """Files of notifications cannot be published; `mistakes` has every one with its file, its line and what to do."""

    code = "invalid-definition"


class InvalidKey(InvalidInput):
    """A key, or a part of one, is empty, too long or of the wrong form."""

    code = "invalid-key"


class InvalidAddress(InvalidInput):
    """A destination is not one well-formed address of its channel."""

    code = "invalid-address"


class UnknownVersion(InvalidInput):
    """The request names a schema version that this program does not know."""

    code = "unknown-version"


class Forbidden(CallerError):
    """Whoever asks may not do this, or not in this way."""

    code = "forbidden"


class QuotaExceeded(CallerError):
    """A quota of the key or of its tenant has too little left today; `retry_after` says when it opens again."""

    code = "quota-exceeded"

    def __init__(self, message: str, *, hint: str, retry_after: timedelta) -> None:
        """Say for how long there is no point in asking again."""
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class TooManyAtOnce(CallerError):
    """Too many requests of the tenant that take long are under way; nothing was stored, ask again in a moment."""

    code = "too-many-at-once"


class Conflict(CallerError):
    """The key is already taken by a request with different content."""

    code = "conflict"


class Gone(CallerError):
    """What is asked for was removed: the record of a key by retention, or the data of a one-time code."""

    code = "gone"


class RenderFailed(CallerError):
    """A template cannot be merged with its data: a variable is missing, or a limit was reached."""

    code = "render-failed"

    def __init__(self, message: str, *, hint: str, part: str | None = None) -> None:
        """Name the part of the message that is at fault, such as its subject, where it is one alone."""
        super().__init__(message, hint=hint)
        self.part = part


class SignatureRefused(CallerError):
    """What a provider reports is not signed, not with this account's secret, or at another time."""

    code = "signature-refused"


class OperatorError(ClarionError):
    """The installation is at fault; the same request can succeed once it is repaired."""

    code = "operator-error"


class StoreUnreachable(OperatorError):
    """The database or blob store does not answer."""

    code = "store-unreachable"


class StoreDamaged(StoreUnreachable):
    """The database's file is damaged, or is not the one any more that was opened; only a person can mend that."""

    code = "store-damaged"


class StoreBusy(OperatorError):
    """The store is held by others for longer than the time allowed for waiting."""

    code = "store-busy"


class StoreReadOnly(OperatorError):
    """The store can be read but not written."""

    code = "store-read-only"


class StoreFull(OperatorError):
    """The store has no space left for the write."""

    code = "store-full"


class SchemaMissing(OperatorError):
    """The database has no Clarion schema yet."""

    code = "schema-missing"


class SchemaOutdated(SchemaMissing):
    """The database's schema lacks steps that this program needs."""

    code = "schema-outdated"


class SchemaUnknown(OperatorError):
    """The database holds something else than a schema that this program can read."""

    code = "schema-unknown"


class SchemaEdited(OperatorError):
    """The database was made by another edit of a schema step than this program has."""

    code = "schema-edited"


class ProgramTooOld(OperatorError):
    """The database asks for a newer program than this one."""

    code = "program-too-old"


class BlobMissing(OperatorError):
    """A record refers to a blob that the blob store does not hold."""

    code = "blob-missing"


class BadConfiguration(OperatorError):
    """A setting or a file of the installation is missing or unusable."""

    code = "misconfigured"


class Ending(OperatorError):
    """The program was told to end before it could answer; nothing was stored, ask again in a moment."""

    code = "ending"


class ClockLeap(OperatorError):
    """The machine's clock is so far ahead of the store's time that one of them must be wrong."""

    code = "clock-leap"


class SealBroken(OperatorError):
    """A ciphertext does not belong where it was found, was altered, or was sealed under another key."""

    code = "seal-broken"


class AuditBroken(OperatorError):
    """An entry of an audit log was changed, removed or put in after it was written."""

    code = "audit-broken"


class PluginFailed(OperatorError):
    """A plugin raised, did not answer in time, or answered what cannot be used; what asked for it is tried again."""

    code = "plugin-failed"


class Superseded(ClarionError):
    """Nobody's fault: the row was canceled or taken over while this worker held it, so the worker must stop."""

    code = "superseded"


class Bug(ClarionError):
    """Clarion itself is at fault."""

    code = "bug"

    def __init__(
        self, message: str, *, hint: str = "this is a defect in Clarion, please report it with this line"
    ) -> None:
        """Ask for a report unless there is something better to do."""
        super().__init__(message, hint=hint)


class IllegalMove(Bug):
    """A state machine was asked for a move that its table does not have."""

    code = "illegal-move"


class BrokenInvariant(Bug):
    """Something that must always hold was found not to hold."""

    code = "broken-invariant"


def every_error() -> Iterator[type[ClarionError]]:
    """Walk the tree, parents before children and in the order of the module, for docs and checks."""
    return _walk(ClarionError)


def _walk(kind: type[ClarionError]) -> Iterator[type[ClarionError]]:
    """Yield a class and all below it that are defined here; a plugin's own subclass is not ours to document."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == __name__:
            yield from _walk(child)
