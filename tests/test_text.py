"""Numbers in sentences: nouns and verbs agree with them."""

from __future__ import annotations

from longshift.text import agree, counted


def test_words_agree_with_their_number() -> None:
    assert [counted(n, "class", "classes") for n in (0, 1, 2)] == ["0 classes", "1 class", "2 classes"]
    assert (counted(1_234_567, "row"), counted(1.0, "day"), counted(2.5, "day")) == (
        "1234567 rows", "1 day", "2.5 days",
    )  # fmt: skip
    assert [agree(n, "is", "are") for n in (0, 1, 2)] == ["are", "is", "are"]
