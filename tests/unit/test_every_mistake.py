"""A folder with one of every mistake: one run tells all of them, each with its file, its line and what to do.

The same as the body of a request: each with the field that it stands in.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.mistakes import MISTAKES_MAX, mistakes_in
from clarion.catalog.publish import compile_folder
from clarion.errors import InvalidDefinition
from clarion.operations.publishing import mistakes_of_body
from clarion.ports.renderer import TemplateMistake

BROKEN: Final = """\
key = "Broken"
title = 7
chanels = ["sms"]
channels = ["sms", "fax", "telex"]
ttl_seconds = "soon"
one_time_code = true
attempts_max = 99
locales = ["de", "deutsch", "english"]

[links]
HOME = 1
here = "https://app.example"
"""

FOLDER: Final = {
    "broken/definition.toml": BROKEN,
    "layouts/school.mjml.liquid": "<mjml><mj-body>\n{% content %}\n</mj-body></mjml>\n",
    "locales/en.toml": '[shared]\nbye = "Bye {{ nam }}"\nwrong = "{{ a | nope }}"\n',
    "mail/definition.toml": """\
key = "mail"
title = "Mail"
channels = ["email", "sms", "inbox"]
layout = "school"
required = ["child.age"]

[links]
CHILD_LINK = "https://app.example/{{ entity.guid }}"

[sample]
name = "Ann"
child = { name = "Leo" }
""",
    "mail/email.subject.liquid": "For {{ name }}",
    "mail/email.mjml.liquid": """\
<mj-section><mj-column>
  <mj-text>{{ name | shout }} {% if %}{{ name }}{% else %}x{% endif %}</mj-text>
  <mj-txt>{{ name }}</mj-txt>
  <mj-text><a href={{ name }}>{{ name | whisper }}</a></mj-text>
  <mj-text>{% endfor %}{% frobnicate name %}</mj-text>
  <mj-image src="a.png" alt='say "hi"' />
  <mj-text>5 < 6</mj-text>
</mj-column></mj-section>
<mj-style inline="inline">a {}</mj-style>
""",
    "mail/email.text.liquid": "Hello {{ name }}",
    "mail/sms.liquid": "{% for one in many %}{{ one }}\n{% t wrong %}{{ (1..2) }}",
    "mail/inbox.liquid": "A\n{{ never closed",
    "plain/definition.toml": """\
key = "plain"
title = "Plain"
category = "news"
channels = ["sms", "inbox"]
required = ["age"]
links = { CHILD_LINK = "https://app.example/{{ entity.guid }}" }

[sample]
name = "Ann"
at = "soon"
""",
    "plain/sms.liquid": "Dear {{ name }},\n{{ nmae }} {{ child.name }}\n{% t bye %}{{ CHILD_LINK }}",
    "plain/inbox.liquid": "News\n{{ name }}\n{{ at | date }} {% if name %}{{ soon }}{% endif %}",
    "plain/schema.json": """\
{
  "type": "objekt",
  "properties": {
    "name": {"type": "string",
      "minLength": -1},
    "age": {"$ref": "#/definitions/age"}
  }
}
""",
    "strict/definition.toml": """\
key = "strict"
title = "Strict"
channels = ["sms"]
category = "news"
may_unsubscribe = true

[sample]
name = "Ann"
age = "old"
items = [1, "a"]
""",
    "strict/sms.liquid": "{{ name }}",
    "strict/schema.json": """\
{"properties": {"age": {"type": "integer"},
  "items": {"items": {"type": "integer"}}},
 "required": ["town"]}
""",
}

TELLS: Final = [
    # a definition: every field, wrong in kind or in sense, each word of a list
    ("broken/definition.toml", 3, "the field chanels: there is no such field"),
    ("broken/definition.toml", 2, "the field title: it is a whole number and must be text"),
    ("broken/definition.toml", 4, "the field channels[1]: 'fax' is not one of its words: choose from email, sms"),
    ("broken/definition.toml", 4, "the field channels[2]: 'telex' is not one of its words: choose from email, sms"),
    ("broken/definition.toml", 5, "the field ttl_seconds: it is text and must be a whole number or null"),
    ("broken/definition.toml", 11, "the field links.HOME: it is a whole number and must be text"),
    ("broken/definition.toml", 1, "the field key cannot be used: use 1 to 63"),
    ("broken/definition.toml", 7, "the field attempts_max cannot be used: use 1 to 20"),
    (
        "broken/definition.toml",
        8,
        "the field locales cannot be used: write languages such as de, pt-BR or zh-Hant, not",
    ),
    (
        "broken/definition.toml",
        8,
        "the field locales cannot be used: write languages such as de, pt-BR or zh-Hant, not",
    ),
    # templates: Liquid, elements and what data may not decide, in the order of the lines
    ("mail/email.mjml.liquid", 2, "there is no filter 'shout'"),
    ("mail/email.mjml.liquid", 2, "this cannot be read as Liquid"),
    ("mail/email.mjml.liquid", 3, "MJML has no <mj-txt>"),
    ("mail/email.mjml.liquid", 4, "there is no filter 'whisper'"),
    ("mail/email.mjml.liquid", 4, "data in <a>, outside of quotes could mean anything"),
    ("mail/email.mjml.liquid", 5, "the tag 'endfor' is not available"),
    ("mail/email.mjml.liquid", 5, "the tag 'frobnicate' is not available"),
    ("mail/email.mjml.liquid", 6, "an attribute holds a '\"'"),
    ("mail/email.mjml.liquid", 7, "a '<' begins no element"),
    ("mail/email.mjml.liquid", 9, "<mj-style> cannot stand inside <mj-body>"),
    ("mail/email.mjml.liquid", 9, "<mj-style inline> would rewrite every mail anew"),
    ("locales/en.toml", 3, "there is no filter 'nope'"),
    ("mail/sms.liquid", 2, "a range can only be looped over"),
    ("mail/sms.liquid", 2, "'{% endfor %}' is missing"),
    ("mail/inbox.liquid", 2, "'{{' is not closed"),
    # a schema: every rule
    ("plain/schema.json", 6, "properties.age.$ref: it leads out of the schema's own $defs"),
    ("plain/schema.json", 2, "type: JSON Schema does not have this here"),
    ("plain/schema.json", 5, "properties.name.minLength: JSON Schema does not have this here"),
    # the sample: at the place that reads what it lacks, or in the definition where no template does
    (
        "strict/definition.toml",
        9,
        "the sample does not fit the schema, data.age: it is text and must be a whole number",
    ),
    ("strict/definition.toml", 10, "the sample does not fit the schema, data.items[1]: it is text and must be"),
    ("strict/definition.toml", 7, "the sample does not fit the schema, data.town: it is missing"),
    # what two types say of one category
    ("strict/definition.toml", 5, "people may unsubscribe from it, and may not from 'plain', which has the same"),
    ("plain/definition.toml", 3, "people may not unsubscribe from it, and may from 'strict', which has the same"),
    # of the channels that can be read, though others of the type cannot, and though its schema cannot
    ("plain/sms.liquid", 2, "it reads nmae, which the sample does not have: correct the name, or add it"),
    ("plain/sms.liquid", 2, "it reads child.name, which the sample does not have"),
    ("locales/en.toml", 2, "it reads nam, which the sample does not have"),
    ("plain/definition.toml", 5, "the sample has no age, which is required: add it"),
    ("plain/definition.toml", 6, "this link reads entity.guid, which the sample does not have"),
    ("plain/inbox.liquid", 3, "with the sample, inbox body: "),
]


def told(folder: Path) -> list[str]:
    """Write the folder, and give every mistake that one run tells, with the paths below the folder."""
    for name, text in FOLDER.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidDefinition) as refused:
        compile_folder(folder, open_renderer())
    return [str(one).removeprefix(f"{folder}/") for one in refused.value.mistakes]


def matching(lines: list[str], wanted: tuple[str, int, str]) -> list[str]:
    file, line, says = wanted
    return [one for one in lines if one.startswith(f"{file}: line {line}: {says}")]


def test_one_run_tells_every_mistake_with_its_file_its_line_and_what_to_do(tmp_path: Path) -> None:
    found = told(tmp_path)
    for wanted in TELLS:
        assert len(matching(found, wanted)) == TELLS.count(wanted), (wanted, found)
    assert len(found) == len(TELLS), "and no other"
    assert all(re.search(r": line \d+: .+: .+", one) for one in found)


def test_a_body_tells_every_mistake_with_its_field() -> None:
    body: dict[str, Any] = {
        "definition": tomllib.loads(BROKEN),
        "files": {"sms.liquid": 1, "": "x"},
        "layouts": [],
        "dry_run": "yes",
        "shema": {},
    }
    found = {one.field: str(one) for one in mistakes_of_body(msgspec.json.decode(msgspec.json.encode(body)))}
    assert found.keys() == {
        *("shema", "files.sms.liquid", "files", "layouts", "dry_run"),
        *("definition.chanels", "definition.title", "definition.channels[1]", "definition.channels[2]"),
        *("definition.ttl_seconds", "definition.links.HOME", "definition.key", "definition.attempts_max"),
        "definition.locales",
    }
    assert all(re.fullmatch(r"[^:]+: [^:]+: .+", one) for one in found.values())


def test_a_block_whose_beginning_cannot_be_read_is_one_mistake() -> None:
    text = "{% if %}{% if a %}x{% elsif b %}y{% endif %}{% else %}z{% endif %}\n{% case %}{% when 1 %}x{% endcase %}\n"
    text += "{% endif %}"
    found = [one for one in mistakes_in(text, file="sms.liquid") if isinstance(one, TemplateMistake)]
    assert [one.line for one in found] == [1, 2, 3]


def test_so_many_mistakes_of_a_file_are_told_and_no_more() -> None:
    assert len(mistakes_in("{{ a | nope }}\n" * 100, file="sms.liquid")) == MISTAKES_MAX
