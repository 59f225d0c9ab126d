"""The error tree: its drawing, its codes and its one line."""

import copy
import pickle
import re

import pytest

from clarion import errors
from clarion.errors import (
    BadConfiguration,
    BrokenInvariant,
    Bug,
    CallerError,
    ClarionError,
    InvalidKey,
    OperatorError,
    Superseded,
    every_error,
)

EVERY_ERROR = list(every_error())


def test_the_drawing_in_the_docstring_is_the_tree() -> None:
    drawn = re.findall(r"^( {4,})([A-Z]\w+)$", errors.__doc__ or "", re.MULTILINE)
    depth_of = {error: len(error.__mro__) - len(ClarionError.__mro__) for error in EVERY_ERROR}
    assert [(len(indent) // 4 - 1, name) for indent, name in drawn] == [
        (depth_of[error], error.__name__) for error in EVERY_ERROR
    ]


def test_every_error_of_the_module_is_walked_once() -> None:
    defined = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    assert set(EVERY_ERROR) == defined
    assert len(EVERY_ERROR) == len(defined)


def test_a_subclass_of_a_plugin_is_not_walked() -> None:
    class PluginError(BadConfiguration):
        """Someone else's."""

    assert PluginError not in every_error()


def test_codes_are_distinct_kebab_case_and_each_class_has_its_own() -> None:
    codes = [error.code for error in EVERY_ERROR]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
    assert all("code" in vars(error) for error in EVERY_ERROR)


def test_codes_do_not_change() -> None:
    """Public: a new line here is a new error, a changed line breaks callers."""
    assert [error.code for error in EVERY_ERROR] == [
        "clarion-error",
        "caller-error",
        "invalid-input",
        "invalid-items",
        "invalid-definition",
        "invalid-key",
        "invalid-address",
        "unknown-version",
        "forbidden",
        "quota-exceeded",
        "too-many-at-once",
        "conflict",
        "gone",
        "render-failed",
        "signature-refused",
        "operator-error",
        "store-unreachable",
        "store-damaged",
        "store-busy",
        "store-read-only",
        "store-full",
        "schema-missing",
        "schema-outdated",
        "schema-unknown",
        "schema-edited",
        "program-too-old",
        "blob-missing",
        "misconfigured",
        "ending",
        "clock-leap",
        "seal-broken",
        "audit-broken",
        "plugin-failed",
        "superseded",
        "bug",
        "illegal-move",
        "broken-invariant",
    ]


def test_every_error_but_a_superseded_worker_is_somebodys_fault() -> None:
    for error in EVERY_ERROR:
        if error not in (ClarionError, Superseded):
            assert sum(issubclass(error, group) for group in (CallerError, OperatorError, Bug)) == 1, error


@pytest.mark.parametrize("error", EVERY_ERROR)
def test_every_error_says_in_one_sentence_what_it_is(error: type[ClarionError]) -> None:
    assert re.fullmatch(r"[A-Z][^\n.]+\.", error.__doc__ or ""), error


def test_the_text_is_one_line_with_what_happened_and_what_to_do() -> None:
    error = BadConfiguration("the file is\nmissing", hint="create\r\nit\u2028now")
    assert str(error) == "the file is missing: create it now"
    assert (error.message, error.hint) == ("the file is\nmissing", "create\r\nit\u2028now")


def test_an_error_of_input_starts_with_the_field() -> None:
    assert str(InvalidKey("it is empty", field="source_key", hint="give one")) == "source_key: it is empty: give one"


def test_a_bug_asks_for_a_report_unless_told_otherwise() -> None:
    assert "report it" in str(BrokenInvariant("two rows have one key"))
    assert str(BrokenInvariant("two rows have one key", hint="stop")) == "two rows have one key: stop"


@pytest.mark.parametrize("error", [InvalidKey("empty", field="key", hint="give one"), BrokenInvariant("broken")])
def test_an_error_survives_the_way_between_processes(error: ClarionError) -> None:
    for arrived in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301  (our own bytes)
        assert type(arrived) is type(error)
        assert (str(arrived), arrived.args, vars(arrived)) == (str(error), error.args, vars(error))
