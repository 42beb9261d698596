"""Links to the records of single runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from longshift.report.html_page import Section, fold, fragment
from longshift.report.run_records import Record
from longshift.text import counted


def run_section(records: Sequence[Record], page: Path, total: int) -> Section:
    """A table of the runs behind the figures; links are relative to the page, so that both can move together."""
    rows = [
        {
            "method": record.title,
            "dataset": record.dataset,
            "setting": record.setting,
            "target": record.target,
            "trial": record.trial,
            "accuracy": 100 * float(record.chosen["target"]["accuracy"]),
            "href": quote(Path(os.path.relpath(record.folder / "result.json", page.parent)).as_posix()),
            "name": record.folder.name,
        }
        for record in records
    ]
    number = counted(len({record.folder for record in records}), "run")  # a variant may rest on another row's run
    intro = f"{number} behind the figures, out of {total} finished."
    return Section("Run records", fold(number, fragment("runs.html.j2", rows=rows)), intro, "runs")
