"""The pages for recipients, who come by a link from a mail. Pure: what is shown comes in, HTML goes out.

Everything is escaped; no script, nothing is fetched, no cookie; a form posts to the page's own URL, so it also arrives
behind a proxy that adds a prefix. The words are in `hosted_words`.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

from clarion.api import preference_form
from clarion.api.hosted_words import Words
from clarion.domain import unsubscribe
from clarion.domain.identity import Channel
from clarion.operations.by_link import Preferences

STYLE: Final = """
:root { color-scheme: light dark; --ink: #16302a; --soft: #4b5c56; --line: #c9d3ce; --paper: #fff; --ground: #f1f4f2;
  --accent: #0b6b53; --on-accent: #fff; --note: #e0efe9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eeea; --soft: #a9bab3; --line: #3b4a44; --paper: #1b2421; --ground: #121916; --accent: #5cc9a7;
    --on-accent: #0b1a15; --note: #1f3a31; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 "Segoe UI", Roboto, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem; padding: 1.5rem; }
.card > :last-child { margin-bottom: 0; }
.note { background: var(--note); border-left: .3rem solid var(--accent); border-radius: .3rem; padding: .75rem 1rem;
  margin-bottom: 1.25rem; }
.note > :last-child { margin-bottom: 0; }
button { font: inherit; font-weight: 600; padding: .7rem 1.5rem; border: 2px solid var(--accent); border-radius: .5rem;
  background: var(--accent); color: var(--on-accent); cursor: pointer; min-height: 2.75rem; }
button.plain { background: transparent; color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
form { margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
fieldset { border: 1px solid var(--line); border-radius: .6rem; background: var(--paper); margin: 0 0 1rem;
  padding: .9rem 1.25rem .75rem; min-width: 0; }
legend { float: left; width: 100%; padding: 0; font-weight: 600; overflow-wrap: anywhere; }
legend + * { clear: both; }
fieldset p { margin: 0 0 .25rem; font-size: .9rem; }
label { display: flex; align-items: center; gap: .75rem; min-height: 2.75rem; cursor: pointer; }
input[type=checkbox] { width: 1.35rem; height: 1.35rem; margin: 0; accent-color: var(--accent); flex: none; }
.off { background: transparent; color: var(--soft); }
.off label { cursor: default; }
"""

CSP: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)

UNDO: Final = "undo"
"""The field that has what takes something back."""


def ask_page(words: Words, *, category: str, channel: Channel) -> str:
    """Ask whether to unsubscribe. It says nothing about what somebody gets, because its link does not end."""
    return _page(
        words,
        words.unsubscribe,
        f"<p>{_say(words, words.unsubscribe_ask, category, channel)}</p>"
        + _form(_hidden(unsubscribe.FIELD, unsubscribe.VALUE), words.unsubscribe)
        + f'<p class="soft">{escape(words.nothing_yet)}</p>',
    )


def unsubscribed_page(words: Words, *, category: str, channel: Channel, undo: str | None) -> str:
    """Say that somebody is unsubscribed; `undo` is the token that takes it back."""
    back = ""
    if undo is not None:
        back = f"<p>{escape(words.undo_says)}</p>{_form(_hidden(UNDO, undo), words.undo, plain=True)}"
    said = _say(words, words.unsubscribed_says, category, channel)
    return _page(
        words,
        words.unsubscribed,
        f'<p role="status">{said}</p><p class="soft">{escape(words.on_its_way)}</p>{back}',
    )


def undone_page(words: Words, *, category: str, channel: Channel) -> str:
    """Say that it was taken back."""
    said = _say(words, words.undone_says, category, channel)
    return _page(words, words.undone, f'<p role="status">{said}</p>')


def required_page(words: Words, *, category: str, channel: Channel) -> str:
    """Say that these messages cannot be refused."""
    return _page(words, words.required, f"<p>{_say(words, words.required_says, category, channel)}</p>")


def preferences_page(words: Words, preferences: Preferences, *, note: str = "", said: str = "") -> str:
    """Show what somebody gets, to be changed; `note` is HTML that stands above it, `said` what of it is in the title.

    A screen reader says the title first.
    """
    nothing = f"<p><strong>{escape(words.nothing_at_all)}</strong></p>" if preferences.gets_nothing else ""
    return _frame(
        words,
        words.preferences,
        note
        + f"<p>{escape(words.preferences_say)}</p>{nothing}{preference_form.write(words, preferences)}"
        + preference_form.write_held(words, preferences.held)
        + preference_form.write_required(words, preferences.categories),
        said=said,
    )


def saved_note(words: Words, *, before: Preferences, now: Preferences) -> str:
    """Say what was saved."""
    said = preference_form.write_changes(words, before.on, now.on)
    return f'<div class="note" role="status">{said}</div>'


def refused_note(words: Words) -> str:
    """Say that nothing was saved, because what can be chosen is not what it was."""
    return f'<div class="note" role="alert"><p>{escape(words.changed_meanwhile)}</p></div>'


def plain_page(words: Words, title: str, says: str) -> str:
    """Write a page that says one thing."""
    return _page(words, title, f"<p>{escape(says)}</p>")


def _say(words: Words, text: str, category: str, channel: Channel) -> str:
    return escape(text.format(what=category, channel=words.by_channel[channel]))


def _hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def _form(fields: str, button: str, *, plain: bool = False) -> str:
    looks = ' class="plain"' if plain else ""
    return f'<form method="post">{fields}<button type="submit"{looks}>{escape(button)}</button></form>'


def _page(words: Words, title: str, body: str) -> str:
    return _frame(words, title, f'<div class="card">{body}</div>')


def _frame(words: Words, heading: str, body: str, *, said: str = "") -> str:
    title = f"{said}: {heading}" if said else heading
    return (
        f'<!doctype html>\n<html lang="{words.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="robots" content="noindex"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body><main><h1>{escape(heading)}</h1>{body}</main></body></html>\n"
    )
