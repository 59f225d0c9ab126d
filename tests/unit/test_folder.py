"""Notifications as folders: what is read, what is put together, and every mistake with its file, line and remedy."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from clarion.adapters.renderers import open_renderer
from clarion.catalog.folder import read_folder
from clarion.catalog.open_folder import FILE_BYTES_MAX
from clarion.catalog.publish import compile_folder
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidDefinition, InvalidInput
from clarion.ports.renderer import Bundle

MINIMAL = 'key = "a"\ntitle = "A"\nchannels = ["sms"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A notification that can be read."""
    (tmp_path / "definition.toml").write_text(MINIMAL, encoding="utf-8")
    (tmp_path / "sms.liquid").write_text("Hi {{ name }}\r\n", encoding="utf-8")
    return tmp_path


def test_a_folder_is_a_definition_and_its_files(folder: Path) -> None:
    ((source, _),), mistakes = read_folder(folder)
    assert mistakes == []
    assert source.definition == Definition(key="a", title="A", channels=(Channel.SMS,))
    assert source.files == {"sms.liquid": "Hi {{ name }}\n"}


def test_a_channel_without_its_file_is_refused(folder: Path) -> None:
    (folder / "definition.toml").write_text(MINIMAL.replace('"sms"', '"sms", "email"'), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"/email.subject.liquid: the definition lists the channel email"):
        compile_folder(folder, open_renderer())


def test_a_file_of_a_channel_that_is_not_listed_is_refused(folder: Path) -> None:
    (folder / "inbox.liquid").write_text("Hi", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"/inbox.liquid: the definition does not list the channel inbox"):
        compile_folder(folder, open_renderer())


def test_a_template_of_an_unknown_name_is_refused_and_other_files_are_left_alone(folder: Path) -> None:
    (folder / "README.md").write_text("Notes.", encoding="utf-8")
    compile_folder(folder, open_renderer())
    (folder / "SMS.liquid").write_text("Hi", encoding="utf-8")
    with pytest.raises(
        InvalidInput, match=r"/SMS.liquid: no channel has a file of this name: the names are chat.liquid"
    ):
        compile_folder(folder, open_renderer())


def test_a_folder_without_a_definition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no folder in it has a definition.toml"):
        compile_folder(tmp_path, open_renderer())
    with pytest.raises(InvalidInput, match=r"there is no such folder"):
        compile_folder(tmp_path / "absent", open_renderer())


def test_files_that_cannot_be_text_are_refused(folder: Path) -> None:
    (folder / "sms.liquid").write_bytes(b"Hi \xff")
    with pytest.raises(InvalidInput, match=r"/sms.liquid: line 1: byte 3 of the file is no UTF-8"):
        compile_folder(folder, open_renderer())
    (folder / "sms.liquid").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    with pytest.raises(InvalidInput, match=r"/sms.liquid: it has over 65536 bytes"):
        compile_folder(folder, open_renderer())
    (folder / "sms.liquid").unlink()
    (folder / "sms.liquid").mkdir()
    with pytest.raises(InvalidInput, match=r"/sms.liquid: it cannot be read"):
        compile_folder(folder, open_renderer())


def test_two_notifications_cannot_have_one_key(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "definition.toml").write_text(MINIMAL, encoding="utf-8")
        (tmp_path / name / "sms.liquid").write_text("Hi", encoding="utf-8")
    with pytest.raises(
        InvalidInput, match=r"/b/definition.toml: line 1: the key 'a' is already that of .*/a/definition.toml"
    ):
        compile_folder(tmp_path, open_renderer())


# Layouts, partials and texts.

SCHOOL: Final = {
    "layouts/school.mjml.liquid": """\
<mjml lang="en">
  <mj-body>
    <mj-section><mj-column>
      {% content %}
      {% partial "signature" %}
    </mj-column></mj-section>
  </mj-body>
</mjml>
""",
    "layouts/school.text.liquid": "{% content %}\n--\n{% partial 'signature' %}\n",
    "layouts/_signature.mjml.liquid": "<mj-text>{% t bye %}<br />{{ school }}</mj-text>\n",
    "layouts/_signature.text.liquid": "{% t bye %}\n{{ school }}\n",
    "locales/en.toml": """\
[shared]
bye = "Kind regards & \\"thanks\\""

[incident]
subject = "About {{ child.name }}"
greeting = "Dear {{ name | default: \\"parents\\" }},"
""",
    "locales/de.toml": """\
[shared]
bye = "Mit freundlichen Grüßen"

[incident]
subject = "Über {{ child.name }}"
greeting = "Liebe(r) {{ name | default: 'Eltern' }},"
""",
    "incident/definition.toml": """\
key = "incident"
title = "Incident"
channels = ["email", "sms"]
locales = ["en", "de"]
layout = "school"
sample = { child = { name = "Leo" }, name = "Ann", school = "Linden Park" }
""",
    "incident/email.subject.liquid": "{% t subject %}",
    "incident/email.mjml.liquid": "<mj-text>{% t greeting %}</mj-text>\n<mj-text>{{ child.name }} fell.</mj-text>\n",
    "incident/email.text.liquid": "{% t greeting %}\n\n{{ child.name }} fell.\n",
    "incident/email.text.de.liquid": "{% t greeting %}\n\n{{ child.name }} ist gefallen.\n",
    "incident/sms.liquid": "{% t subject %}: call us",
}


def school(folder: Path, changed: Mapping[str, str | None] | None = None) -> Path:
    """Write the school's folder, with some files changed, added or left out."""
    for name, text in {**SCHOOL, **(changed or {})}.items():
        if text is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def compiled(folder: Path) -> Bundle:
    (bundle,) = compile_folder(folder, open_renderer())
    return bundle


def mistakes_of(folder: Path) -> list[str]:
    """Give every mistake on one line, with the paths below the folder."""
    with pytest.raises(InvalidDefinition) as refused:
        compile_folder(folder, open_renderer())
    return [str(one).removeprefix(f"{folder}/") for one in refused.value.mistakes]


def test_layout_partials_and_texts_are_put_in_for_each_language(tmp_path: Path) -> None:
    bundle = compiled(school(tmp_path))
    english, german = bundle.parts, bundle.locales["de"]
    assert english[Channel.SMS]["text"] == "About {{ child.name }}: call us"
    assert german[Channel.SMS]["text"] == "Über {{ child.name }}: call us"
    assert english[Channel.EMAIL]["subject"] == "About {{ child.name }}"
    assert english[Channel.EMAIL]["text"] == (
        'Dear {{ name | default: "parents" }},\n\n{{ child.name }} fell.\n--\nKind regards & "thanks"\n{{ school }}\n'
    )
    assert german[Channel.EMAIL]["text"] == (
        "Liebe(r) {{ name | default: 'Eltern' }},\n\n{{ child.name }} ist gefallen.\n"
        "--\nMit freundlichen Grüßen\n{{ school }}\n"
    )
    assert '<html lang="de"' in german[Channel.EMAIL]["html"]
    assert '<html lang="en"' in english[Channel.EMAIL]["html"]
    assert list(bundle.locales) == ["de"]


def test_the_own_characters_of_a_text_are_escaped_in_html_and_its_liquid_is_not(tmp_path: Path) -> None:
    html = compiled(school(tmp_path)).parts[Channel.EMAIL]["html"]
    assert "Kind regards &amp; &quot;thanks&quot;<br />" in html
    assert 'Dear {{ name | default: "parents" }},' in html
    assert "{%" not in html


def test_markup_in_a_text_stays_text(tmp_path: Path) -> None:
    texts = SCHOOL["locales/en.toml"].replace('"About', "\"</mj-text><mj-raw><script>x</script></mj-raw>' onclick='x")
    mail = "<mj-text><a href='#' title='{% t subject %}'>{% t subject %}</a></mj-text>"
    bundle = compiled(school(tmp_path, {"locales/en.toml": texts, "incident/email.mjml.liquid": mail}))
    html = bundle.parts[Channel.EMAIL]["html"]
    assert not re.search(r"<script|' onclick='x", html)
    assert "&lt;script&gt;" in html


def test_the_folder_of_one_type_reads_what_stands_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compiled(school(tmp_path))
    assert compiled(tmp_path / "incident") == whole
    monkeypatch.chdir(tmp_path / "incident")
    assert compiled(Path()) == whole


def test_a_region_takes_from_its_language_what_it_does_not_have_itself(tmp_path: Path) -> None:
    definition = SCHOOL["incident/definition.toml"].replace('"de"]', '"de", "de-AT"]')
    austria = '[shared]\nbye = "Servus"\n'
    bundle = compiled(school(tmp_path, {"incident/definition.toml": definition, "locales/de-AT.toml": austria}))
    assert bundle.locales["de-AT"][Channel.EMAIL]["text"] == (
        "Liebe(r) {{ name | default: 'Eltern' }},\n\n{{ child.name }} ist gefallen.\n--\nServus\n{{ school }}\n"
    )
    assert bundle.locales["de-AT"][Channel.EMAIL]["subject"] == bundle.locales["de"][Channel.EMAIL]["subject"]


def test_a_changed_layout_or_text_makes_another_content(tmp_path: Path) -> None:
    first = compiled(school(tmp_path))
    again = compiled(tmp_path)
    german = compiled(school(tmp_path, {"locales/de.toml": SCHOOL["locales/de.toml"].replace("Über", "Zu")}))
    laid_out = compiled(school(tmp_path, {"layouts/school.text.liquid": "{% content %}"}))
    assert first.content_hash == again.content_hash
    assert len({first.content_hash, german.content_hash, laid_out.content_hash}) == 3


WRONG: Final[list[tuple[dict[str, str | None], str]]] = [
    # a mistake in Liquid is named where its author wrote it, wherever it was put
    (
        {"incident/email.mjml.liquid": "<mj-text>a</mj-text>\n<mj-text>{{ a | nope }}</mj-text>"},
        "incident/email.mjml.liquid: line 2: there is no filter 'nope'",
    ),
    (
        {"layouts/school.text.liquid": "one\n{% content %}\nthree\n{% if %}"},
        "layouts/school.text.liquid: line 4: this cannot be read as Liquid",
    ),
    (
        {"layouts/_signature.text.liquid": "one\ntwo {{ a | nope }}"},
        "layouts/_signature.text.liquid: line 2: there is no filter 'nope'",
    ),
    (
        {"layouts/_signature.mjml.liquid": "<mj-text>a\n</mj-txt>"},
        "layouts/_signature.mjml.liquid: line 2: </mj-txt> closes nothing here",
    ),
    (
        {"locales/de.toml": SCHOOL["locales/de.toml"].replace("Über {{ child.name }}", "Über {{ child.name | nope }}")},
        "locales/de.toml: line 5: there is no filter 'nope'",
    ),
    (
        {"incident/email.text.de.liquid": "a\n{% endif %}"},
        "incident/email.text.de.liquid: line 2: the tag 'endif' is not available, or stands where it cannot",
    ),
    # what cannot be put in
    (
        {"locales/de.toml": SCHOOL["locales/de.toml"].replace("bye", "by")},
        (
            "locales/de.toml: there is no text 'bye', which layouts/_signature.mjml.liquid reads on line 1: "
            "add it to [incident] or [shared]"
        ),
    ),
    (
        {"incident/sms.liquid": "\n{% partial nothing %}"},
        "incident/sms.liquid: line 2: there is no partial 'nothing': add the file layouts/_nothing.text.liquid",
    ),
    ({"incident/sms.liquid": "{% t %}"}, "incident/sms.liquid: line 1: '{% t %}' has no name: write {% t greeting %}"),
    ({"incident/sms.liquid": "{%- t subject %}"}, "incident/sms.liquid: line 1: '{%- t subject %}' has a '-': write"),
    ({"incident/sms.liquid": "{% t subject -%}"}, "incident/sms.liquid: line 1: '{% t subject -%}' has a '-': write"),
    ({"incident/sms.liquid": "{% content %}"}, "incident/sms.liquid: line 1: {% content %} stands in a layout"),
    (
        {"layouts/_signature.text.liquid": "{% content %}"},
        "layouts/_signature.text.liquid: line 1: {% content %} stands in a layout, and this is none: take it out",
    ),
    (
        {"layouts/school.text.liquid": "no content"},
        "layouts/school.text.liquid: line 1: a layout has {% content %} once, and this one has it 0 times",
    ),
    (
        {"layouts/school.text.liquid": "{% content %}{% content %}"},
        "layouts/school.text.liquid: line 1: a layout has {% content %} once, and this one has it 2 times",
    ),
    (
        {"layouts/_signature.text.liquid": "{% partial signature %}"},
        "layouts/_signature.text.liquid: line 1: partials stand inside each other: signature in signature: nest at",
    ),
    # the folder's form
    (
        {"layouts/school.mjml.liquid": None, "layouts/school.text.liquid": None},
        "incident/definition.toml: line 5: there is no layout 'school': add layouts/school.mjml.liquid, or correct",
    ),
    (
        {"incident/email.mjml.liquid": "\n<mjml><mj-body></mj-body></mjml>"},
        "incident/email.mjml.liquid: line 2: there is an <mjml> around this <mjml> already: keep what stands",
    ),
    (
        {"incident/email.text.fr.liquid": "Bonjour"},
        "incident/email.text.fr.liquid: the definition does not list the language fr: add it to locales in",
    ),
    ({"layouts/School.mjml.liquid": "x"}, "layouts/School.mjml.liquid: no layout has such a name: call it"),
    ({"locales/de_DE.toml": ""}, "locales/de_DE.toml: no language has such a name: call it de, pt-BR or zh-Hant"),
    ({"locales/fr.toml": "[shared"}, "locales/fr.toml: line 1: this is no TOML: correct the file"),
    ({"locales/fr.toml": 'bye = "a"'}, "locales/fr.toml: line 1: 'bye' stands in no table: put it below [shared]"),
    ({"locales/fr.toml": "[shared]\n\nbye = 1"}, "locales/fr.toml: line 3: 'bye' is no text: put it between quotes"),
    ({"locales/fr.toml": '[shared]\n"a b" = "c"'}, "locales/fr.toml: line 2: 'a b' cannot be a name: use letters"),
    (
        {"locales/fr.toml": '[shared]\na = "{% if b %}"'},
        "locales/fr.toml: line 2: 'a' holds a tag, and texts hold only variables: put the tag into the template",
    ),
    ({"locales/fr.toml": '[incdent]\na = "b"'}, "locales/fr.toml: line 2: there is no type 'incdent': name a type"),
]


@pytest.mark.parametrize("changed, says", WRONG, ids=[says[:60] for _, says in WRONG])
def test_a_mistake_is_named_where_its_author_made_it(tmp_path: Path, changed: dict[str, str | None], says: str) -> None:
    found = mistakes_of(school(tmp_path, changed))
    assert len(found) == 1
    assert found[0].startswith(says)


def test_a_text_that_no_language_has_is_missing_in_each(tmp_path: Path) -> None:
    assert mistakes_of(school(tmp_path, {"incident/sms.liquid": "a\nb {% t nothing %}{% t nothing %}"})) == [
        f"locales/{locale}.toml: there is no text 'nothing', which sms.liquid reads on line 2: "
        "add it to [incident] or [shared]"
        for locale in ("en", "de")
    ]


def test_all_mistakes_of_a_folder_are_found_in_one_run(tmp_path: Path) -> None:
    school(
        tmp_path,
        {
            "locales/en.toml": SCHOOL["locales/en.toml"].replace("greeting", "greting"),
            "layouts/_signature.text.liquid": "{{ a | nope }}",
            "incident/sms.liquid": "{% if %}",
            "welcome/definition.toml": 'key = "welcome"\ntitle = " "\nchannels = ["sms"]\nttl_seconds = 0\n',
            "welcome/sms.liquid": "{% never parsed: the definition is not known",
            "code/definition.toml": 'key = "code"\ntitle = "Code"\nchannels = ["sms", "push"]\n',
            "code/inbox.liquid": "a",
        },
    )
    (tmp_path / "code/sms.liquid").write_bytes(b"\xff")
    assert [line.partition(": ")[0] + ": " + line.partition(": ")[2][:40] for line in mistakes_of(tmp_path)] == [
        "code/sms.liquid: line 1: byte 0 of the file is no UTF-8: ",
        "welcome/definition.toml: line 2: the field title cannot be used: ",
        "welcome/definition.toml: line 4: the field ttl_seconds cannot be ",
        "code/push.liquid: the definition lists the channel push, a",
        "code/inbox.liquid: the definition does not list the channel",
        "locales/en.toml: there is no text 'greeting', which email",
        "incident/sms.liquid: line 1: this cannot be read as Liquid, n",
        "layouts/_signature.text.liquid: line 1: there is no filter 'nope'; there",
    ]


def test_links_to_the_folders_beside_the_types_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "school").mkdir()
    school(tmp_path / "school")
    for name in ("layouts", "locales"):
        (tmp_path / "school" / name).rename(tmp_path / name)
        (tmp_path / "school" / name).symlink_to(tmp_path / name)
    found = mistakes_of(tmp_path / "school")
    assert [line for line in found if "link" in line] == [
        "layouts: it is a link: put the file itself into the notification's folder",
        "locales: it is a link: put the file itself into the notification's folder",
    ]


def test_types_of_one_category_agree_on_whether_people_may_unsubscribe(tmp_path: Path) -> None:
    news = 'key = "news"\ntitle = "News"\nchannels = ["sms"]\nmay_unsubscribe = true\n'
    found = mistakes_of(school(tmp_path, {"news/definition.toml": news, "news/sms.liquid": "News"}))
    hint = "say the same of may_unsubscribe in both, or give one of them another category"
    assert found == [
        (
            "incident/definition.toml: line 1: people may not unsubscribe from it, and may from 'news', which has the "
            f"same category 'general': {hint}"
        ),
        (
            "news/definition.toml: line 4: people may unsubscribe from it, and may not from 'incident', which has the "
            f"same category 'general': {hint}"
        ),
    ]
