"""Numbers in sentences: nouns and verbs agree with them, and durations are written in one way."""

from __future__ import annotations

import pytest

from longshift.text import agree, counted, duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (0.51, "1 second"),
        (59.6, "1 minute"),
        (90, "1.5 minutes"),
        (3590, "1 hour"),
        (6000, "1 hour 40 minutes"),
        (47 * 3600, "47 hours"),
        (72 * 3600, "3 days"),
        (440_000, "5.1 days"),
    ],
)
def test_a_duration_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_words_agree_with_their_number() -> None:
    assert [counted(n, "class", "classes") for n in (0, 1, 2)] == ["0 classes", "1 class", "2 classes"]
    assert (counted(1_234_567, "row"), counted(1.0, "day"), counted(2.5, "day")) == (
        "1234567 rows", "1 day", "2.5 days",
    )  # fmt: skip
    assert [agree(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]
