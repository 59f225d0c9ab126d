"""Publishing notifications and switching their types, on SQLite in memory with the real renderer."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.catalog import definition
from clarion.catalog.publish import Publisher
from clarion.cli.session import unknown_type
from clarion.domain.definition import Definition
from clarion.errors import AuditBroken, InvalidInput
from clarion.operations.support import Support
from clarion.operations.types import Types
from clarion.ports.catalog import NewTemplate
from clarion.ports.insights import PAGE_MAX
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory

FOLDER = {
    "welcome/definition.toml": """\
        key = "welcome"
        title = "Welcome"
        channels = ["email", "inbox"]
        sample.name = "Maya"
        """,
    "welcome/email.subject.liquid": "Welcome, {{ name }}\n",
    "welcome/email.mjml.liquid": """\
        <mjml><mj-body><mj-section><mj-column><mj-text>Welcome, {{ name }}</mj-text></mj-column></mj-section></mj-body>
        </mjml>""",
    "welcome/email.text.liquid": "Welcome, {{ name }}\n",
    "welcome/inbox.liquid": "Welcome, {{ name }}\nYour account is open.\n",
    "one-time-code/definition.toml": """\
        key = "one-time-code"
        title = "One-time code"
        channels = ["sms"]
        sample.code = "407 112"
        """,
    "one-time-code/sms.liquid": "{{ code }} is your code.\n",
}


@pytest.fixture
def store() -> SqliteInMemory:
    return SqliteInMemory(ManualClock())


@pytest.fixture
def publisher(store: SqliteInMemory) -> Publisher:
    return Publisher(catalog=store, renderer=open_renderer())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two notifications that a test may spoil."""
    for name, text in FOLDER.items():
        (tmp_path / "definitions" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "definitions" / name).write_text(text, "utf-8")
    return tmp_path / "definitions"


async def test_a_folder_of_notifications_is_published_as_first_versions(publisher: Publisher, folder: Path) -> None:
    seen: list[str] = []
    published = await publisher.publish("school", folder=folder, actor="cli:sam", progress=seen.append)
    assert [(one.key, one.version, one.is_new) for one in published] == [
        ("one-time-code", 1, True),
        ("welcome", 1, True),
    ]
    assert seen == ["one-time-code", "welcome"]


async def test_the_folder_of_one_notification_publishes_that_one(publisher: Publisher, folder: Path) -> None:
    (published,) = await publisher.publish("school", folder=folder / "welcome", actor="cli:sam")
    assert published.key == "welcome"


async def test_publishing_again_makes_a_version_only_of_what_changed_and_audits_only_that(
    publisher: Publisher, store: SqliteInMemory, folder: Path
) -> None:
    await publisher.publish("school", folder=folder, actor="cli:sam")
    (folder / "one-time-code" / "sms.liquid").write_text("{{ code }}\n")
    published = await publisher.publish("school", folder=folder, actor="cli:kim")
    assert [(one.key, one.version, one.is_new) for one in published] == [
        ("one-time-code", 2, True),
        ("welcome", 1, False),
    ]
    entries = await store.list_audit("school")
    assert [(entry.actor, entry.act, entry.subject) for entry in entries] == [
        ("cli:sam", "publish", "template one-time-code"),
        ("cli:sam", "publish", "template welcome"),
        ("cli:kim", "publish", "template one-time-code"),
    ]


async def test_one_broken_template_keeps_everything_from_being_published_and_is_named(
    publisher: Publisher, store: SqliteInMemory, folder: Path
) -> None:
    (folder / "welcome" / "inbox.liquid").write_text("Welcome, {{ name\n")
    with pytest.raises(InvalidInput, match=re.escape(f"{folder}/welcome/inbox.liquid: ")) as refused:
        await publisher.publish("school", folder=folder, actor="cli:sam")
    assert "\n" not in str(refused.value)
    assert await store.list_templates("school") == []
    assert await store.list_audit("school") == []


@pytest.mark.parametrize(
    "name, written, says",
    [
        ("email.subject.liquid", "Two\nlines", "it has more than one line: take the line break out of the template"),
        ("email.text.liquid", "{% if false %}a{% endif %}", "nothing is left of it: give the template some text"),
        ("inbox.liquid", "Hello\n{{ name | date: '%Y' }}", "date takes an ISO 8601 date"),
        ("inbox.liquid", "Hello\n{% for a in (1..99999) %}{% endfor %}", "with the sample, inbox body: "),
        ("email.mjml.liquid", "<mjml></mjml>", "there is no <mj-body> with something in it"),
        ("email.mjml.liquid", "<mjml><mj-body></mj-body></mjml>", "there is no <mj-body> with something in it"),
    ],
)
async def test_a_template_that_the_sample_shows_to_be_wrong_is_named_by_its_own_path(
    publisher: Publisher, folder: Path, name: str, written: str, says: str
) -> None:
    (folder / "welcome" / name).write_text(written)
    with pytest.raises(InvalidInput, match=re.escape(says)) as refused:
        await publisher.publish("school", folder=folder, actor="cli:sam")
    assert refused.value.field == str(folder / "welcome" / name)


async def test_what_a_sample_lacks_is_named_by_the_path_of_the_template_that_reads_it(
    publisher: Publisher, folder: Path
) -> None:
    (folder / "welcome" / "inbox.liquid").write_text("Hello {{ nobody }}\n")
    with pytest.raises(InvalidInput, match="line 1: it reads nobody, which the sample does not have") as refused:
        await publisher.publish("school", folder=folder / "welcome", actor="cli:sam")
    assert refused.value.field == str(folder / "welcome" / "inbox.liquid")


async def test_a_folder_is_stored_by_one_transaction(
    store: SqliteInMemory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, sets = store.publish_templates, []

    async def noted(tenant_id: str, templates: Sequence[NewTemplate], *, actor: str) -> Any:
        sets.append([one.template_key for one in templates])
        return await publish(tenant_id, templates, actor=actor)

    monkeypatch.setattr(store, "publish_templates", noted)
    await Publisher(catalog=store, renderer=open_renderer()).publish("school", folder=folder, actor="cli:sam")
    assert sets == [["one-time-code", "welcome"]]


async def test_a_folder_that_is_not_there_is_said(publisher: Publisher, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such folder"):
        await publisher.publish("school", folder=tmp_path / "nowhere", actor="cli:sam")


async def test_types_are_listed_with_whether_they_are_on(
    publisher: Publisher, store: SqliteInMemory, folder: Path
) -> None:
    await publisher.publish("school", folder=folder, actor="cli:sam")
    types = Types(catalog=store, settings=store, facts=store)
    await types.switch("school", "welcome", enabled=False, actor="cli:sam")
    assert [(one.type, one.enabled) for one in (await types.list("school")).items] == [
        ("one-time-code", True),
        ("welcome", False),
    ]
    assert await types.switch("school", "welcome", enabled=True, actor="cli:sam") is True
    assert await types.switch("school", "welcome", enabled=True, actor="cli:sam") is False
    assert all(one.enabled for one in (await types.list("school")).items)
    assert (await types.list("other")).items == ()


async def test_a_type_that_is_not_published_cannot_be_switched(store: SqliteInMemory) -> None:
    types = Types(catalog=store, settings=store, facts=store)
    assert await types.switch("school", "welcome", enabled=False, actor="cli:sam") is None


@pytest.mark.parametrize(
    "key,known,says",
    [
        ("welcom", ["welcome", "incident"], "did you mean welcome?"),
        ("zebra", ["welcome", "incident"], "the published types are incident, welcome"),
        ("welcome", [], "`clarion publish FOLDER`"),
    ],
)
def test_an_unknown_type_is_answered_with_what_comes_near(key: str, known: list[str], says: str) -> None:
    assert says in str(unknown_type(key, known))


def link_file(folder: Path) -> None:
    """Let a template be a link to a secret, as a folder from elsewhere could have it."""
    secret = folder.parent / "master.key"
    secret.write_text("5ec2e7")
    (folder / "one-time-code" / "sms.liquid").unlink()
    (folder / "one-time-code" / "sms.liquid").symlink_to(secret)


def link_definition(folder: Path) -> None:
    (folder / "welcome" / "definition.toml").rename(folder.parent / "definition.toml")
    (folder / "welcome" / "definition.toml").symlink_to(folder.parent / "definition.toml")


def link_folder(folder: Path) -> None:
    (folder / "welcome").rename(folder.parent / "elsewhere")
    (folder / "welcome").symlink_to(folder.parent / "elsewhere")


def make_pipe(folder: Path) -> None:
    """Nobody writes to it, so reading it would never end."""
    (folder / "one-time-code" / "sms.liquid").unlink()
    os.mkfifo(folder / "one-time-code" / "sms.liquid")


def make_folder(folder: Path) -> None:
    (folder / "one-time-code" / "sms.liquid").unlink()
    (folder / "one-time-code" / "sms.liquid").mkdir()


@pytest.mark.parametrize(
    "spoil, says",
    [
        (link_file, "one-time-code/sms.liquid: it is a link: put the file itself into the notification's folder"),
        (link_definition, "welcome/definition.toml: it is a link: "),
        (link_folder, "welcome: it is a link: "),
        (make_pipe, "one-time-code/sms.liquid: it is no regular file: "),
        (make_folder, "one-time-code/sms.liquid: it "),
    ],
)
async def test_only_regular_files_of_the_folder_are_published(
    publisher: Publisher, store: SqliteInMemory, folder: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(folder)
    with pytest.raises(InvalidInput, match=re.escape(f"{folder}/{says}")):
        await publisher.publish("school", folder=folder, actor="cli:sam")
    assert not await store.find_templates([("school", "one-time-code", None), ("school", "welcome", None)])


async def test_a_link_to_the_folder_itself_is_followed_since_a_person_named_it(
    publisher: Publisher, folder: Path
) -> None:
    link = linked(folder)
    assert len(await publisher.publish("school", folder=link, actor="cli:sam")) == 2


async def test_a_folder_that_becomes_a_link_while_it_is_read_is_read_as_it_was(
    publisher: Publisher, store: SqliteInMemory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its definition has been read by then, and its templates have not."""
    elsewhere = folder.parent / "elsewhere"
    shutil.copytree(folder / "one-time-code", elsewhere)
    (elsewhere / "sms.liquid").write_text("5ec2e7 {{ code }}", encoding="utf-8")
    parse = definition.parse_definition

    def replaced(text: str, *, file: str) -> Definition:
        if file.endswith("one-time-code/definition.toml"):
            (folder / "one-time-code").rename(folder.parent / "before")
            (folder / "one-time-code").symlink_to(elsewhere)
        return parse(text, file=file)

    monkeypatch.setattr(definition, "parse_definition", replaced)
    await publisher.publish("school", folder=folder, actor="cli:sam")
    assert (folder / "one-time-code").is_symlink()
    (stored,) = await store.find_templates([("school", "one-time-code", None)])
    assert "5ec2e7" not in str(stored)


def linked(folder: Path) -> Path:
    (folder.parent / "link").symlink_to(folder)
    return folder.parent / "link"


async def test_a_log_of_several_pages_is_verified_to_its_end(store: SqliteInMemory) -> None:
    for number in range(PAGE_MAX + 2):
        await store.set_type_enabled("school", "welcome", enabled=bool(number % 2), actor="sam")
    support, (last,) = Support(store, wake=lambda _: None), await store.list_newest_audit("school", limit=1)
    assert await support.verify_audit("school") == (PAGE_MAX + 2, last.hash)
    await store.overwrite("school", msgspec.structs.replace(last, actor="kim"))
    with pytest.raises(AuditBroken, match=f"at entry {PAGE_MAX + 2}, "):
        await support.verify_audit("school")
    assert await support.verify_audit("office") == (0, None)
