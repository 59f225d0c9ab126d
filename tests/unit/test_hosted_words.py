"""The words of the pages for recipients: every language says everything, and puts in what belongs there."""

import re

import msgspec
import pytest

from clarion.api.hosted_words import DEFAULT, WORDS
from clarion.domain.identity import Channel


@pytest.mark.parametrize("language", WORDS)
def test_a_language_says_everything_and_puts_in_the_same_values(language: str) -> None:
    said, ours = msgspec.to_builtins(WORDS[language]), msgspec.to_builtins(WORDS[DEFAULT])
    for name, text in said.items():
        if isinstance(text, dict):
            assert set(text) == set(Channel)
            assert all(text.values())
        else:
            assert text
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", ours[name])), name
