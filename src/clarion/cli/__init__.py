"""The program `clarion`: a door for people and scripts.

`main` runs a command and turns every error of ours into one line on standard error and an exit code: 2 where the
caller must ask differently, 1 where the installation or the program is at fault. No other module knows exit codes.

| module | what it holds |
|---|---|
| `program` | every command under its name; `lazy` loads them, `value` reads what was typed |
| `demo`, `serve` | processes that run; `process` is how they stop, `seed` and `school` what the demo puts in |
| `send`, `ask`, `outbox` | sending, and finding out what became of it |
| `uncertain`, `support`, `clock` | what a person has to decide |
| `catalog`, `access`, `install` | types, tenants, keys, the installation itself |
| `session` | what a command works with |
| `option`, `output` | what all commands take and how all print |

Modules import what a command needs for its work inside the functions that do it, so that the list of commands, the
version and a refusal come at once. `tests/checks/test_program_start.py` holds the list of what may be loaded by then.
"""

import os
import sys

import typer

from clarion.cli.program import program
from clarion.errors import CallerError, ClarionError, InvalidDefinition, InvalidInput

INTERRUPTED = 130
"""The exit code that shells use for a program that Ctrl-C ended."""


def main() -> None:
    """Run the command that the arguments name."""
    try:
        _check_text(sys.argv[1:])
        code = program(prog_name="clarion", standalone_mode=False)
        sys.stdout.flush()  # here, so that a full disk is reported like every error
    except InvalidDefinition as error:
        for mistake in error.mistakes[:-1]:
            sys.stderr.write(f"clarion: {mistake}\n")
        _leave(str(error.mistakes[-1]), code=2)
    except ClarionError as error:
        _leave(str(error), code=2 if isinstance(error, CallerError) else 1)
    except typer.Abort:
        _leave("interrupted", code=INTERRUPTED)
    except typer.TyperException as error:
        _leave(_usage(error), code=2)
    except OSError as error:  # of the output, or of a file that the user named; our own files raise errors of ours
        _drop_output()
        if isinstance(error, BrokenPipeError):
            raise SystemExit(1) from None  # the reader closed the pipe, as `head` does
        _leave(f"{error.filename or 'the output'} cannot be used ({error.strerror}): mend that and try again", code=1)
    else:
        raise SystemExit(code if isinstance(code, int) else 0)


def _check_text(arguments: list[str]) -> None:
    """Refuse bytes that are no text, which a store could not keep and an answer not show."""
    for place, one in enumerate(arguments, start=1):
        try:
            one.encode()
        except UnicodeEncodeError:
            raise InvalidInput("it is no UTF-8", field=f"argument {place}", hint="write it as UTF-8") from None


def _drop_output() -> None:
    """Forget what could not be written, so that the interpreter does not try again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: typer.TyperException) -> str:
    """Say what is wrong with the command line in our own words, and where it is explained."""
    path = getattr(getattr(error, "ctx", None), "command_path", "clarion")
    option, near = getattr(error, "option_name", None), getattr(error, "possibilities", ())
    if near:
        return f"there is no option {option}: did you mean {' or '.join(sorted(near))}?"
    message = " ".join(error.format_message().split()).rstrip(".")
    if option is not None and "requires" in message:
        message = f"{option} needs a value behind it"
    elif option is not None and "not take a value" in message:
        message = f"{option} takes no value"
    elif option is not None:
        message = f"there is no option {option}"
    elif "unexpected extra argument" in message:
        message = f"{message.partition(' (')[2].removesuffix(')')!r:.80} is more than it takes"
    return f"{message}: `{path} --help` explains it"


def _leave(line: str, *, code: int) -> None:
    sys.stderr.write(f"clarion: {line}\n")
    raise SystemExit(code) from None
