"""The page about one new site."""

from __future__ import annotations

from longshift.fitting.site_page import site_name
from longshift.report.html_page import render_page
from tests.fitting.hand_made import full_site_page
from tests.golden import check_golden
from tests.report.page_words import words_of


def test_the_words_of_the_page() -> None:
    """With everything that there is to say."""
    page = full_site_page([f"v.npz#{k} <b>" for k in range(5)], vectors=True)
    check_golden("site-page.txt", words_of(render_page(page)).rpartition("\nMade by")[0] + "\n")


def test_a_name_for_a_site() -> None:
    assert site_name(["new/site/"]) == "site"
    assert site_name(["a/1.png", "a/2.png", "b"]).startswith("1.png")
