"""Parts of a page. Each function takes plain results and gives a `Section`."""

from longshift.report.sections.classes import class_section, confusion_section
from longshift.report.sections.curves import Margins, margin_section, validation_section
from longshift.report.sections.lengths import length_section
from longshift.report.sections.ranks import rank_section
from longshift.report.sections.runs import run_section
from longshift.report.sections.splits import split_section
from longshift.report.sections.tables import table_section
from longshift.report.sections.theory import theory_section
from longshift.report.sections.weak import weak_section

__all__ = [
    "Margins",
    "class_section",
    "confusion_section",
    "length_section",
    "margin_section",
    "rank_section",
    "run_section",
    "split_section",
    "table_section",
    "theory_section",
    "validation_section",
    "weak_section",
]
