"""What is sent in a simulation: four notification types, each in two editions. Who gets them is in `society`.

Two of them are of a category that people may refuse, one is of a category that is required.

Compiled by the real renderer, once in a Python process. Edition 2 differs in every channel, so that a retry which took
the newest template instead of the frozen one would send other bytes (I-15).
"""

from functools import cache
from html.parser import HTMLParser
from typing import Final

import msgspec

from clarion.adapters.renderers import open_renderer
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel, Lane
from clarion.domain.outgoing import UncertainPolicy
from clarion.ports.facts import TemplateRow
from clarion.ports.renderer import Renderer
from clarion.testing.simulation import society
from clarion.testing.simulation.option import JobPlan

TENANT: Final = "school"
BROADCAST: Final = "spring"

DEFINITIONS: Final = (
    Definition(
        key="notice",
        title="Notice",
        category="news",
        may_unsubscribe=True,
        channels=(Channel.EMAIL, Channel.INBOX),
    ),
    Definition(
        key="code",
        title="Code",
        channels=(Channel.SMS,),
        lane=Lane.CRITICAL,
        uncertain_policy=UncertainPolicy.PREFER_DUPLICATE,
        ttl_seconds=240,  # longer than a lease and a replay, shorter than most runs
        one_time_code=True,
    ),
    Definition(
        key="letter",
        title="Letter",
        category="news",
        may_unsubscribe=True,
        channels=(Channel.EMAIL,),
        lane=Lane.BULK,
    ),
    Definition(
        key="flash",
        title="Flash",
        category="alarm",
        channels=(Channel.EMAIL, Channel.SMS),
        lane=Lane.HIGH,
        ttl_seconds=90,  # a little longer than a lease, so that some expire
    ),
)

REMINDER: Final = Definition(
    key="reminder",
    title="Reminder",
    category="alarm",
    channels=(Channel.EMAIL, Channel.INBOX),
)
"""What reminders are sent as, in runs with automation. Nobody switches it off or publishes it anew."""

_REMINDS: Final = (
    "{{ reminder.setting }}: {{ invoice.id | default: room.id }}"
    " {{ reminder.date | default: reminder.threshold | default: 'any' }} {{ reminder.days | default: 'once' }}"
)

POISON: Final = " (poison)"
"""The end of a text that crashes every worker which renders it."""

_TEXT: Final = "{{ text }} (%d)"
"""Every template says this and no more, so that what comes of it can be worked out by replacing words."""

_PERSONAL: Final = frozenset({"flash"})
_NAME: Final = " for {{ recipient.name | default: 'nobody' }}"
"""What the templates of these types say besides. Names change with addresses, so the one tells of the other."""


@cache
def renderer() -> Renderer:
    """Open the real renderer, which keeps nothing that one run could leave to another."""
    return open_renderer()


@cache
def templates(edition: int) -> tuple[TemplateRow, ...]:
    """Compile every type that clients ask for in one edition; the version is the store's to give."""
    return tuple(_compiled(definition, edition) for definition in DEFINITIONS)


@cache
def reminder_template() -> TemplateRow:
    """Compile what reminders are sent as."""
    return _compiled(REMINDER, 1)


def _compiled(definition: Definition, edition: int) -> TemplateRow:
    files = {
        name: text.replace("%d", str(edition))
        for channel in definition.channels
        for name, text in _files(definition.key)[channel].items()
    }
    bundle = renderer().compile(definition, files)
    text = msgspec.json.encode(bundle).decode()
    return TemplateRow(template_key=definition.key, version=0, content_hash=bundle.content_hash, bundle=text)


def _files(type_key: str) -> dict[Channel, dict[str, str]]:
    """Write the files of a type, with the edition left open."""
    text = _TEXT + (_NAME if type_key in _PERSONAL else "")
    if type_key == REMINDER.key:
        text = _TEXT.replace("{{ text }}", _REMINDS)
    mail = f"<mjml><mj-body><mj-section><mj-column><mj-text>{text}</mj-text></mj-column></mj-section></mj-body></mjml>"
    return {
        Channel.EMAIL: {"email.subject.liquid": text, "email.mjml.liquid": mail, "email.text.liquid": text},
        Channel.SMS: {"sms.liquid": text},
        Channel.INBOX: {"inbox.liquid": f"{text}\nbody"},
    }


def text_of(plan: JobPlan, payload: str) -> str:
    """Write what a client gives as the text of a notification; its end crashes every worker if the plan says so."""
    if plan.text is not None:
        return plan.text
    return f"{payload} text of job {plan.number}{POISON if plan.poison else ''}"


def merged(plan: JobPlan, text: str, edition: int, *, channel: Channel, destination: str) -> dict[str, str]:
    """Say what a recipient sees of a text, by part: worked out by replacing words, not by the renderer."""
    seen = _TEXT.replace("{{ text }}", text).replace("%d", str(edition))
    if plan.type in _PERSONAL:
        seen += f" for {society.name_at(destination) or 'nobody'}"
    match channel:
        case Channel.EMAIL:
            return {"subject": seen, "html": seen, "text": seen}
        case _:
            return {"text": seen}


def bare_channel(type_key: str) -> Channel:
    """Say on which channel the bare addresses of a notification are reached."""
    return Channel.SMS if type_key == "code" else Channel.EMAIL


def bare_address(type_key: str, number: int) -> str:
    """Write a bare address that is nobody's contact."""
    return f"+120255501{number}9" if bare_channel(type_key) is Channel.SMS else f"r{number}@example.com"


def seen(encoded: bytes) -> dict[str, str]:
    """Return what a recipient sees of a content, by part; of HTML its words."""
    parts: dict[str, str] = msgspec.json.decode(encoded)
    del parts["type"]
    if "html" in parts:
        words = _Words()
        words.feed(parts["html"])
        parts["html"] = " ".join("".join(words.seen).split())
    return parts


class _Words(HTMLParser):
    """Collects the words of a page that a reader sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._hidden = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notice the head, of which nothing is seen."""
        self._hidden = self._hidden or tag in ("head", "style")
        del attrs

    def handle_endtag(self, tag: str) -> None:
        """Notice its end."""
        self._hidden = self._hidden and tag != "head"

    def handle_data(self, data: str) -> None:
        """Take words that are seen."""
        if not self._hidden:
            self.seen.append(data)
