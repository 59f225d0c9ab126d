"""Which language somebody gets: the first who wants one that there is, its parents included, and else the default."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clarion.domain.locale import choose, normal, parents, resolve

LANGUAGES = st.sampled_from(["de", "en", "fr", "gsw", "zh"])
SCRIPTS = st.sampled_from(["", "-Hant", "-Latn"])
COUNTRIES = st.sampled_from(["", "-AT", "-CH", "-GB", "-419"])
LOCALES = st.builds(lambda *parts: "".join(parts), LANGUAGES, SCRIPTS, COUNTRIES)
HAVE = st.lists(LOCALES, min_size=1, max_size=4, unique=True)
WANTED = st.lists(st.one_of(st.none(), LOCALES), max_size=4)


@pytest.mark.parametrize(
    "wanted, have, texts, carried",
    [
        (["de-AT"], ["en", "de"], "de", "de-AT"),
        (["de-AT"], ["en", "de", "de-AT"], "de-AT", "de-AT"),
        (["de"], ["en", "de-AT"], "en", "en"),  # Austrian texts are not what everybody who reads German wants
        (["fr"], ["en", "de"], "en", "en"),
        ([None, "fr", "de-CH", "en"], ["en", "de"], "de", "de-CH"),  # nobody's, the person's, the unit's, the tenant's
        (["de", "en"], ["en", "de"], "de", "de"),
        (["en-GB", "de"], ["de", "en"], "en", "en-GB"),
        (["zh-Hant-TW"], ["en", "zh", "zh-Hant"], "zh-Hant", "zh-Hant-TW"),
        (["zh-Hant-TW"], ["en", "zh"], "zh", "zh-Hant-TW"),
        ([], ["en", "de"], "en", "en"),
        (["", "german", "de;q=1", "d", "de-", "-de", "x" * 5000], ["en", "de"], "en", "en"),
        (["DE_at"], ["en", "de"], "de", "de-AT"),
        (["pt-br"], ["en", "PT-br"], "PT-br", "pt-BR"),
        (["de"], [], "", ""),
    ],
)
def test_the_first_who_wants_a_language_that_there_is_decides(
    wanted: list[str | None], have: list[str], texts: str, carried: str
) -> None:
    assert (choose(wanted, have), resolve(wanted, have)) == (texts, carried)


@given(wanted=WANTED, have=HAVE)
def test_the_choice_is_always_among_those_that_there_are(wanted: list[str | None], have: list[str]) -> None:
    assert choose(wanted, have) in have


@given(locale=LOCALES, others=WANTED, have=HAVE)
def test_who_wants_exactly_what_there_is_gets_it_whatever_those_after_want(
    locale: str, others: list[str | None], have: list[str]
) -> None:
    assert choose([locale, *others], [*have, locale]) == locale


@given(wanted=WANTED, have=HAVE)
def test_who_wants_nothing_that_there_is_changes_nothing(wanted: list[str | None], have: list[str]) -> None:
    assert choose([None, "nl-BE", *wanted], have) == choose(wanted, have)
    assert resolve([None, "nl-BE", *wanted], have) == resolve(wanted, have)


@given(wanted=WANTED, have=HAVE)
def test_a_language_is_never_chosen_that_nobody_wants_unless_it_is_the_default(
    wanted: list[str | None], have: list[str]
) -> None:
    chosen = choose(wanted, have)
    assert chosen == have[0] or any(one is not None and (one + "-").startswith(chosen + "-") for one in wanted)


@given(wanted=WANTED, have=HAVE)
def test_what_a_row_carries_leads_to_the_same_texts_again(wanted: list[str | None], have: list[str]) -> None:
    carried = resolve(wanted, have)
    assert choose([carried], have) == choose(wanted, have)
    assert choose(wanted, have) in parents(carried)


@given(locale=LOCALES, spelled=st.sampled_from([str.upper, str.lower, lambda one: one.replace("-", "_")]))
def test_a_locale_has_one_spelling(locale: str, spelled: type[str]) -> None:
    assert normal(spelled(locale)) == locale


@given(st.text(max_size=40))
def test_no_text_breaks_the_choice(text: str) -> None:
    assert choose([text], ["en"]) == "en"
    assert normal(text) is None or normal(normal(text) or "") == normal(text)
