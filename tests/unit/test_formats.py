"""Dates, times, numbers and money in the locale and the zone of the merge, the same bytes on every host."""

import os
import subprocess
import sys
from typing import Any

import pytest

from clarion.adapters.renderers import open_renderer
from clarion.domain.content import SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge

AT = "2026-03-05T18:07:00+00:00"
LOCALES = ("en", "de", "fr", "ar", "hi", "zh-Hant")


def bundle_of(template: str, **fields: Any) -> Bundle:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,), locales=LOCALES, **fields)
    others = {locale: {"sms.liquid": template} for locale in LOCALES[1:]}
    return open_renderer().compile(definition, {"sms.liquid": template}, locales=others)


def written(template: str, locale: str = "", zone: str = "UTC", **data: object) -> str:
    content = open_renderer().merge(bundle_of(template), Channel.SMS, Merge({"at": AT, **data}, locale, zone))
    assert isinstance(content, SmsContent)
    return content.text


# Expected texts are those of CLDR, written here by hand: a plain blank stands for every blank that does not break.


@pytest.mark.parametrize(
    "template, locale, zone, expected",
    [
        ("{{ at | date: 'short' }}", "en", "UTC", "3/5/26"),
        ("{{ at | date: 'short' }}", "en-GB", "UTC", "05/03/2026"),
        ("{{ at | date: 'short' }}", "de-AT", "UTC", "05.03.26"),
        ("{{ at | date: 'long' }}", "de", "UTC", "5. März 2026"),
        ("{{ at | date: 'full' }}", "fr", "UTC", "jeudi 5 mars 2026"),
        ("{{ at | date: 'long' }}", "zh-Hant-TW", "Asia/Taipei", "2026年3月6日"),  # it is tomorrow there
        ("{{ at | date: 'long' }}", "nl", "UTC", "March 5, 2026"),  # no texts in Dutch, so no dates in Dutch either
        ("{{ at | date: 'long' }}", "de-XX", "UTC", "5. März 2026"),  # a country that there is not
        ("{{ at | time }}", "de", "Europe/Vienna", "19:07"),
        ("{{ at | time }}", "en", "America/New_York", "1:07 PM"),
        ("{{ at | time: 'long' }}", "en-GB", "Europe/London", "18:07:00 GMT"),
        ("{{ at | time: 'full' }}", "de", "Europe/Vienna", "19:07:00 Mitteleuropäische Normalzeit"),
        ("{{ at | datetime }}", "de", "Europe/Vienna", "05.03.2026, 19:07:00"),
        ("{{ at | datetime: 'short' }}", "en", "UTC", "3/5/26, 6:07 PM"),
        ("{{ at | datetime: 'short', 'Asia/Tokyo' }}", "en", "UTC", "3/6/26, 3:07 AM"),
        ("{{ at | time: 'short', zone: 'Asia/Tokyo' }}", "de", "UTC", "03:07"),
        ("{{ at | date: '%A, %-d. %B %Y, %H:%M' }}", "de", "Asia/Tokyo", "Donnerstag, 5. März 2026, 18:07"),
        ("{{ at | date: '%-d %B %H:%M', 'local' }}", "fr", "Asia/Tokyo", "6 mars 03:07"),
        ("{{ at | date: '%H:%M', 'Europe/Vienna' }}", "en", "UTC", "19:07"),
        ("{{ at | date: '%a %b %p' }}", "en", "UTC", "Thu Mar PM"),
        ("{{ at | date: '%a %b' }}", "de", "UTC", "Do. März"),
        ("{{ at | date }}", "de", "Asia/Tokyo", "2026-03-05"),
        ("{{ '2026-03-05' | date: 'long' }}", "de", "America/New_York", "5. März 2026"),  # a day is nobody's instant
        ("{{ '2026-03-05T18:07' | datetime: 'short' }}", "de", "America/New_York", "05.03.26, 18:07"),
        ("{{ 0 | datetime: 'short' }}", "de", "Europe/Vienna", "01.01.70, 01:00"),
        ("{{ 1234567.891 | number }}", "en", "UTC", "1,234,567.891"),
        ("{{ 1234567.891 | number: 1 }}", "de", "UTC", "1.234.567,9"),
        ("{{ 1234567 | number: 2 }}", "hi", "UTC", "12,34,567.00"),
        ("{{ '1234.5' | number }}", "fr", "UTC", "1 234,5"),
        ("{{ 0.256 | percent }}", "en", "UTC", "26%"),
        ("{{ 0.256 | percent: 1 }}", "de", "UTC", "25,6 %"),
        ("{{ 1234.5 | money: 'EUR' }}", "de", "UTC", "1.234,50 €"),
        ("{{ 1234.5 | money: 'EUR' }}", "de-AT", "UTC", "€ 1.234,50"),
        ("{{ '1234.5' | money: 'USD' }}", "en", "UTC", "$1,234.50"),
        ("{{ -1234 | money: 'JPY' }}", "en", "UTC", "-¥1,234"),
        ("{{ 12 | money: code }}", "fr", "UTC", "12,00 CHF"),
    ],
)
def test_values_are_written_as_the_reader_writes_them(template: str, locale: str, zone: str, expected: str) -> None:
    text = written(template, locale, zone, code="CHF")
    assert text.replace("\u00a0", " ").replace("\u202f", " ") == expected


def test_the_hour_is_that_of_the_zone_on_that_day() -> None:
    template = "{{ at | time: 'full' }}"
    assert written(template, "en", "Europe/Vienna", at="2026-07-05T18:07:00Z").endswith("Central European Summer Time")
    assert written(template, "en", "Europe/Vienna", at="2026-07-05T18:07:00Z").startswith("8:07")


@pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../../etc/passwd", "Europe", "/etc/localtime", "x" * 5000])
def test_a_zone_that_there_is_not_is_utc(zone: str) -> None:
    assert written("{{ at | time }}", "de", zone) == "18:07"


def test_a_type_without_its_own_locale_writes_in_that_of_its_texts() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,), locales=("de",))
    bundle = open_renderer().compile(definition, {"sms.liquid": "{{ at | date: 'long' }}"})
    for locale in ("", "fr", "de-CH"):
        assert open_renderer().merge(bundle, Channel.SMS, Merge({"at": AT}, locale)) == SmsContent(text="5. März 2026")


@pytest.mark.parametrize(
    "template, said",
    [
        ("{{ 'soon' | date: 'long' }}", "date takes an ISO 8601 date or time, or seconds since 1970"),
        ("{{ flag | time }}", "date takes an ISO 8601 date or time"),
        ("{{ 99999999999999 | date: 'long' }}", "date takes an ISO 8601 date or time"),
        ("{{ '9999-12-31T23:59:59-11:00' | time }}", "date takes an ISO 8601 date or time"),
        ("{{ at | date: '%Q' }}", "date knows %Y, .* and the forms short, medium, long, full"),
        ("{{ at | time: 'tiny' }}", "the forms are short, medium, long, full"),
        ("{{ at | datetime: '%Y' }}", "the forms are short, medium, long, full"),
        ("{{ at | time: 'short', 'Mars/Base' }}", "there is no such time zone"),
        ("{{ at | time: 'short', 7 }}", "there is no such time zone"),
        ("{{ '2026-03-05T18:07' | time: 'full' }}", "the form full names the time zone, and this time has none"),
        ("{{ 'many' | number }}", "a number is wanted here"),
        ("{{ '1e9' | number }}", "a number is wanted here"),
        ("{{ flag | number }}", "a number is wanted here"),
        ("{{ 1 | number: 11 }}", "the digits after the point are 0 to 10"),
        ("{{ 1 | percent: 'x' }}", "the digits after the point are 0 to 10"),
        ("{{ 1 | money }}", "money takes the three letters of a currency"),
        ("{{ 1 | money: 'EURO' }}", "money takes the three letters of a currency"),
        ("{{ 1 | money: 7 }}", "money takes the three letters of a currency"),
    ],
)
def test_what_cannot_be_written_is_refused_in_our_words(template: str, said: str) -> None:
    with pytest.raises(RenderFailed, match=f"sms text: {said}"):
        written(template, flag=True)
    with pytest.raises(InvalidInput, match=said):
        open_renderer().check(bundle_of(template), {"at": AT, "flag": True})


@pytest.mark.parametrize("name", ["date", "time", "datetime", "number", "percent", "money: 'EUR'"])
def test_a_missing_value_is_named(name: str) -> None:
    with pytest.raises(RenderFailed, match=r"there is no due\.at"):
        written(f"{{{{ due.at | {name} }}}}", due={})
    with pytest.raises(RenderFailed, match=r"there is no due\.at"):
        written(f"{{% if true %}}{{{{ due.at | {name} }}}}{{% endif %}}", due={})


def test_writing_is_charged_for() -> None:
    with pytest.raises(RenderFailed, match="the template does too much work"):
        written("{% for i in (1..2000) %}{{ i | money: 'EUR' }}{% endfor %}")


HOST = """
from clarion.adapters.renderers import open_renderer
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.ports.renderer import Merge
template = "{{ at | datetime: 'full' }} {{ at | date: '%A %p', 'local' }} {{ 1234.5 | money: 'EUR' }} {{ at | date }}"
bundle = open_renderer().compile(Definition(key="a", title="A", channels=(Channel.SMS,)), {"sms.liquid": template})
for zone in ("Europe/Vienna", "UTC", "America/Sao_Paulo"):
    print(ascii(open_renderer().merge(bundle, Channel.SMS, Merge({"at": 1772734020}, "en", zone))))
"""


def test_nothing_depends_on_the_host() -> None:
    hosts = (
        {"TZ": "Pacific/Auckland", "LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "PYTHONTZPATH": "/nonexistent"},
        {"TZ": "America/New_York", "LANGUAGE": "fr", "LC_TIME": "fr_FR"},
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", HOST], env=os.environ | host, capture_output=True, text=True, check=True
        ).stdout
        for host in hosts
    }
    assert len(said) == 1
    assert "Central European Standard Time" in said.pop()
