"""`clarion new` and `preview`: starting a notification, and seeing how one reads before anybody gets it."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clarion.cli import option
from clarion.cli.output import called_as, harmless, print_json, say
from clarion.cli.send import read_data
from clarion.cli.session import Session, in_session, unknown_type
from clarion.domain.definition import Definition, complaints_about
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration, InvalidInput

if TYPE_CHECKING:
    from clarion.client.wire_types import PreviewRequest, TypePreview

DEFINITION = "definition.toml"

_MJML = """\
<mjml lang="en">
  <mj-body>
    <mj-section>
      <mj-column>
        <mj-text>Hello {{ name }},</mj-text>
        <mj-text>something happened.</mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
"""
_FILES = {
    Channel.EMAIL: {
        "email.subject.liquid": "Hello {{ name }}\n",
        "email.mjml.liquid": _MJML,
        "email.text.liquid": "Hello {{ name }},\n\nsomething happened.\n",
    },
    Channel.SMS: {"sms.liquid": "Hello {{ name }}, something happened.\n"},
    Channel.PUSH: {"push.liquid": "Hello {{ name }}\nsomething happened.\n"},
    Channel.CHAT: {"chat.liquid": "Hello {{ name }}, something happened.\n"},
    Channel.INBOX: {"inbox.liquid": "Hello {{ name }}\nsomething happened.\n"},
}


def new(
    notification: Annotated[str, typer.Argument(help="Its key: 1 to 63 of a-z, 0-9 and '-'.", metavar="TYPE")],
    folder: Annotated[Path, typer.Option(help="The folder of all notifications.", metavar="FOLDER")] = Path(
        "definitions"
    ),
    channel: Annotated[
        list[Channel] | None, typer.Option(help="A channel that it goes out on; several may be named.")
    ] = None,
) -> None:
    """Start a notification: a folder with a definition and templates that can be published as they are."""
    channels = tuple(dict.fromkeys(channel or [Channel.EMAIL]))
    title = notification.replace("-", " ").capitalize()
    for complaint in complaints_about(Definition(key=notification, title=title, channels=channels)):
        raise InvalidInput("it cannot be the key of a notification", field="TYPE", hint=complaint.hint)
    listed = ", ".join(f'"{one}"' for one in channels)
    files = {
        DEFINITION: f'key = "{notification}"\ntitle = "{title}"\nchannels = [{listed}]\n\n[sample]\nname = "Maya"\n'
    }
    for one in channels:
        files |= _FILES[one]
    place = folder / notification
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        hint = "choose another key, or edit what is there"
        raise InvalidInput("there is such a folder already", field=str(place), hint=hint) from None
    except OSError as error:
        raise BadConfiguration(
            f"{place} cannot be made ({error.strerror})", hint="let this user write there, or name another --folder"
        ) from None
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
        typer.echo(place / name)
    say(f"next: {called_as()} preview {place}")


def preview(
    notification: Annotated[
        str, typer.Argument(help="A published type, or the folder of one that need not be.", metavar="TYPE")
    ],
    *,
    data: Annotated[
        str | None,
        typer.Option(
            help="What the templates need, as a JSON object; @FILE reads a file, - standard input. Without it, the "
            "definition's sample."
        ),
    ] = None,
    locale: Annotated[str | None, typer.Option(help="The language that the reader wants, such as de-AT.")] = None,
    zone: Annotated[str, typer.Option(help="The reader's zone, such as Europe/Vienna.", metavar="ZONE")] = "UTC",
    channel: Annotated[Channel | None, typer.Option(help="Only this of its channels.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write a mail's HTML to this file.", metavar="FILE")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a mail's HTML in the browser.")] = False,
    tenant: option.Tenant = None,
    store: option.Store = None,
    as_json: option.Json = False,
) -> None:
    """Show how a notification reads, and open a mail in the browser; nothing is sent or stored."""
    from clarion.client.wire_types import PreviewRequest

    asked = PreviewRequest(data=None if data is None else read_data(data), locale=locale, zone=zone, channel=channel)
    if "/" in notification or (Path(notification) / DEFINITION).exists():
        looking = partial(_of_files, Path(notification), asked)
    else:
        looking = partial(_of_type, notification, asked, tenant=tenant, store=store)
    try:
        shown = looking()
    except InvalidInput as error:
        if error.field not in ("zone", "channel"):
            raise
        raise InvalidInput(error.message, field=f"--{error.field}", hint=error.hint) from None
    if as_json:
        print_json(shown)
        return
    for name, parts in shown.contents.items():
        for part, text in parts.items():
            if part != "html":
                typer.echo(f"{name} {part}:{_indented(text)}")
    html = shown.contents.get(Channel.EMAIL, {}).get("html")
    if html is not None:
        path = _write(html, output, name=shown.type)
        typer.echo(f"email html: {path}")
        if not no_open and output is None and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(path.absolute().as_uri())


def _of_files(folder: Path, asked: "PreviewRequest") -> "TypePreview":
    """Compile the notification in a folder, and merge it; needs no installation."""
    import asyncio

    from clarion.bootstrap import load_renderer, load_settings
    from clarion.catalog.publish import compile_folder
    from clarion.operations.publishing import preview_of

    renderer = load_renderer()
    bundles = compile_folder(folder, renderer)
    if len(bundles) != 1:
        keys = ", ".join(one.definition.key for one in bundles)
        raise InvalidInput(
            f"it holds several notifications: {keys}",
            field="TYPE",
            hint=f"name one, such as {folder}/{bundles[0].definition.key}",
        )
    url = load_settings().public_url or ""
    return asyncio.run(preview_of(renderer, bundles[0], asked, tenant_id="", version=0, public_url=url))


def _of_type(key: str, asked: "PreviewRequest", *, tenant: str | None, store: str | None) -> "TypePreview":
    async def work(session: Session) -> "TypePreview":
        shown = await session.operations.publishing.preview(session.tenant_id, key, asked)
        if shown is None:
            types = await session.operations.types.list(session.tenant_id)
            raise unknown_type(key, [one.type for one in types.items])
        return shown

    return in_session(work, store=store, tenant=tenant)


def _indented(text: str) -> str:
    """Write a part of several lines below its name."""
    lines = harmless(text).splitlines()
    return f" {''.join(lines)}" if len(lines) <= 1 else "".join(f"\n  {line}".rstrip(" ") for line in lines)


def _write(html: str, output: Path | None, *, name: str) -> Path:
    """Write a mail's HTML where it was asked for, or to a file that only this user reads."""
    if output is not None:
        output.write_text(html, encoding="utf-8")
        return output
    descriptor, path = tempfile.mkstemp(prefix=f"clarion-{name}-", suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(html)
    return Path(path)
