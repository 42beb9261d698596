"""The table of correlations: p-values too small to print, and quantities that do not vary."""

from __future__ import annotations

import numpy as np
import pandas as pd

from longshift.paper.theory_tables import correlation_rows


def test_the_p_value_of_what_holds_by_definition() -> None:
    accuracy = np.linspace(0.2, 0.8, 12)
    points = pd.DataFrame({"small_margin": 1 - accuracy, "flat": np.ones(12)})
    rows = {row.name: [cell.text for cell in row.cells] for row in correlation_rows(points, pd.Series(accuracy))}
    assert rows["correlation"] == ["-1.000", "\u2013"]
    assert rows["p_value"] == ["<1e-08", "\u2013"]
    few = correlation_rows(points[:3], pd.Series(accuracy[:3]))
    assert all(cell.note for cell in few[2].cells)  # an interval needs 4 points
