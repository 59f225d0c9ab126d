"""A mail with many mistakes in its MJML: a check of the folder and the API tell all, each where its author made it."""

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from clarion.cli.program import program
from clarion.errors import InvalidDefinition
from clarion.ports.catalog import Role
from tests.integration.api_harness import problem, seeded_api

DEFINITION: Final = """\
key = "outing"
title = "Outing"
channels = ["email", "sms", "push"]
layout = "school"
sample = { place = "the museum" }
"""

LAYOUTS: Final = {
    "school.mjml.liquid": """\
<mjml><mj-body>
<mj-section><mj-column><mj-text
  colour="red">The school</mj-text></mj-column></mj-section>
{% content %}
<mj-section>{% partial "sign" %}</mj-section>
</mj-body></mjml>
""",
    "_sign.mjml.liquid": "<mj-column>\n<mj-text>{% t bye %}</mj-text>\n<mj-image align='middle' />\n</mj-column>",
}

FILES: Final = {
    "email.subject.liquid": "Outing",
    "email.text.liquid": "Outing",
    "email.mjml.liquid": """\
<mj-section><mj-column>
  <mj-txt>{{ place }}</mj-txt>
  <mj-text font-size="huge">{% t bye %}</mj-text>
  <mj-section></mj-section>
  <mj-text><b>{{ place }}
  </mj-text>
</mj-column></mj-section>
<mj-style inline="inline">a {}</mj-style>
""",
    "sms.liquid": "{{ place | nope }}",
    "push.liquid": "Outing\n{{ plcae }}",
}

TELLS: Final = [
    ("layouts", "school.mjml.liquid", 3, "<mj-text> has no attribute colour: write color, or take it out"),
    ("files", "email.mjml.liquid", 2, "MJML has no <mj-txt>: write <mj-text>"),
    ("files", "email.mjml.liquid", 3, "font-size of <mj-text> cannot be 'huge': write a number with px, such as 12px"),
    ("files", "email.mjml.liquid", 4, "<mj-section> cannot stand inside <mj-column>: put it right inside <mj-body>"),
    ("files", "email.mjml.liquid", 5, "<b> is not closed before </mj-text>: write </b> behind what it holds"),
    ("files", "email.mjml.liquid", 8, "<mj-style> cannot stand inside <mj-body>: put it right inside <mj-head>"),
    ("files", "email.mjml.liquid", 8, "<mj-style inline> would rewrite every mail anew, and is not available: take"),
    ("layouts", "_sign.mjml.liquid", 3, "align of <mj-image> cannot be 'middle': choose from left, center, right"),
    ("files", "sms.liquid", 1, "there is no filter 'nope'"),
    ("files", "push.liquid", 2, "it reads plcae, which the sample does not have: correct the name"),
]

UNREADABLE: Final = {
    **FILES,
    "email.mjml.liquid": "<mj-section><mj-column>\n<mj-texts>a</mj-texts>\n<!-- from here on nobody can tell <mj-txt>",
}
"""Where a comment has no end, what stands behind it is not judged; what stands before it and in other files is."""

TELLS_UNREADABLE: Final = [
    TELLS[0],
    ("files", "email.mjml.liquid", 2, "MJML has no <mj-texts>: write <mj-text>"),
    ("files", "email.mjml.liquid", 3, "'-->' is missing: write it"),
    *TELLS[-2:],
]

CASES: Final = [(FILES, TELLS), (UNREADABLE, TELLS_UNREADABLE)]


def matches(found: list[tuple[str, str]], tells: list[tuple[str, str]]) -> bool:
    return len(found) == len(tells) and all(
        file == wanted and says.startswith(begins)
        for (file, says), (wanted, begins) in zip(sorted(found), sorted(tells), strict=True)
    )


@pytest.mark.parametrize("files, tells", CASES, ids=["many mistakes", "no end of a comment"])
def test_a_check_tells_every_mistake_of_a_mail(
    tmp_path: Path, files: dict[str, str], tells: list[tuple[str, str, int, str]]
) -> None:
    for name, text in {
        "locales/en.toml": '[shared]\nbye = "Bye"\n',
        "outing/definition.toml": DEFINITION,
        **{f"layouts/{name}": text for name, text in LAYOUTS.items()},
        **{f"outing/{name}": text for name, text in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    error = CliRunner().invoke(program, ["publish", "--check", str(tmp_path)]).exception
    assert isinstance(error, InvalidDefinition)
    found = [(one.field.removeprefix(f"{tmp_path}/"), f"{one.message}: {one.hint}") for one in error.mistakes]
    folders = {"files": "outing", "layouts": "layouts"}
    assert matches(found, [(f"{folders[where]}/{file}", f"line {line}: {says}") for where, file, line, says in tells])


async def test_the_api_tells_every_mistake_of_a_mail_and_publishes_nothing() -> None:
    body: dict[str, Any] = {
        "definition": tomllib.loads(DEFINITION),
        "layouts": LAYOUTS,
        "locales": {"en": {"bye": "Bye"}},
    }
    async with (await seeded_api()).client(Role.AUTHOR) as author:
        for files, tells in CASES:
            said = problem(await author.put("/v1/types/outing", json=body | {"files": files}))
            assert (said["status"], said["code"]) == (422, "invalid-definition")
            found = [(one["field"], one["detail"]) for one in said["mistakes"]]
            assert matches(found, [(f"{where}.{file}", f"line {line}: {says}") for where, file, line, says in tells])
        missing = await author.get("/v1/types/outing")
    assert missing.status_code == 404
