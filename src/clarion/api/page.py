"""What every page for a browser has: its frame, its style, and what it may load, which is nothing. Pure.

Whoever writes a page escapes what is shown in it.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

STYLE: Final = """
:root { color-scheme: light; --ink: #16302a; --soft: #52635d; --line: #d5ddd9; --paper: #fff; --ground: #f1f4f2;
  --accent: #0b6b53; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 "Segoe UI", Roboto, sans-serif; }
a { color: var(--accent); }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
.lead { margin: 0 0 1.25rem; color: var(--soft); }
nav.channels { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: 1rem; }
nav.channels a { padding: .2rem .8rem; border: 1px solid var(--line); border-radius: 2rem; background: var(--paper);
  text-decoration: none; }
nav.channels a[aria-current] { background: var(--accent); border-color: var(--accent); color: #fff; }
ol { list-style: none; margin: 0; padding: 0; background: var(--paper); border: 1px solid var(--line);
  border-radius: .6rem; overflow: hidden; }
li + li { border-top: 1px solid var(--line); }
li a { display: grid; grid-template-columns: 4.5rem 1fr auto; gap: .1rem 1rem; padding: .8rem 1rem; color: inherit;
  text-decoration: none; }
li a:hover, li a:focus-visible { background: #f6faf8; outline-offset: -3px; }
li strong, li .to { grid-column: 2; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
li .to { color: var(--soft); }
li time { grid-column: 3; grid-row: 1; color: var(--soft); white-space: nowrap; }
.tag { grid-column: 1; grid-row: 1; align-self: start; justify-self: start; font-size: .8rem; padding: .05rem .6rem;
  margin-top: .15rem; border-radius: 1rem; background: #e0efe9; color: #0b5341; }
.pages { display: flex; gap: 1rem; margin: 1rem 0 2rem; }
.empty { background: var(--paper); border: 1px dashed #9fb0a9; border-radius: .6rem; padding: 2rem 1.5rem; }
.empty p { margin: 0 0 .75rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9rem; }
pre { margin: 0; padding: 1rem; background: var(--ground); border-radius: .4rem; white-space: pre-wrap; }
dl { display: flex; flex-wrap: wrap; gap: .6rem 2.25rem; margin: .75rem 0 1.25rem; }
dt { font-size: .85rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
iframe { display: block; width: 100%; height: 20rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--paper); }
iframe.mail { height: 75vh; min-height: 32rem; }
main > pre { background: var(--paper); border: 1px solid var(--line); }
h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; }
dl.places { display: block; }
dl.places div { padding: .6rem 0; border-top: 1px solid var(--line); }
dl.places dt { font-size: 1rem; }
details { margin: 1rem 0 2rem; }
summary { cursor: pointer; padding: .25rem 0; color: var(--accent); }
@media (max-width: 34rem) {
  li a { grid-template-columns: 1fr auto; }
  li strong, li .to { grid-column: 1 / -1; }
  li time { grid-column: 2; }
}
"""

CSP: Final = (
    "default-src 'none'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)


def write(*, title: str, head: str, body: str, more: str = "") -> str:
    """Write a page; `more` stands in its head."""
    name = title if title == "Clarion" else f"{title} - Clarion"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title>{more}<style>{STYLE}</style></head>"
        f"<body><header>{head}</header><main>{body}</main></body></html>\n"
    )
