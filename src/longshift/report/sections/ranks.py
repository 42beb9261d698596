"""The critical-difference diagram, or why there is none."""

from __future__ import annotations

from longshift.report.figures import rank_diagram
from longshift.report.findings import aside_words, in_words
from longshift.report.html_page import Section, figure, paragraphs
from longshift.report.ranking import Standing
from longshift.report.titles import method_title
from longshift.text import counted


def rank_section(result: Standing) -> Section:
    """Average ranks with the bars of Nemenyi's test."""
    found = result.significance
    if found is None:
        return Section("Ranks", paragraphs(f"No significance test: {result.why_not}."), name="ranks")
    ranks = {method_title(name): rank for name, rank in found.test.ranks.items()}
    groups = [[method_title(name) for name in group] for group in found.groups]
    svg = rank_diagram(ranks, found.critical_difference, groups, found.test.cases)
    test = found.test
    caption = (
        f"Average rank of target accuracy over {test.cases} cases (dataset, setting, target); 1 is the best. Friedman "
        f"chi² = {test.chi2:.2f} (p = {test.chi2_p:.2g}), Iman and Davenport F({test.df[0]}, {test.df[1]}) = "
        f"{test.f:.2f} (p = {test.f_p:.2g}). Methods joined by a bar do not differ significantly (Nemenyi, 5 %)."
    )
    if result.left_out:
        names = in_words([method_title(name) for name in result.left_out], 12)
        caption += f" Left out, since they lack some of the cases: {names}."
    if result.cases_left_out:
        caption += f" Left out, since methods lack them: {counted(result.cases_left_out, 'case')}."
    caption = " ".join(filter(None, [caption, aside_words(result)]))
    return Section("Ranks", figure(svg, caption), name="ranks")
