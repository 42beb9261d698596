"""What adapting to an unseen real site gains, as `fit` decides and with the class mix given."""

from __future__ import annotations

import numpy as np
import pandas as pd

from results.numbers import RESULTS, markdown

MEASURES = ("accuracy", "balanced")
WORSE = -0.02


def gains() -> pd.DataFrame:
    """One row per data set, target, class mix and size: means over seeds and draws."""
    frame = pd.read_csv(RESULTS / "new-site" / "adaptation.csv")
    frame["size"] = np.where(frame["n"].isin([20, 50, 200]), frame["n"], 0)  # 0: the whole site
    for measure in MEASURES:
        for kind in ("auto", "mix"):
            frame[f"{kind}_{measure}_gain"] = frame[f"{kind}_{measure}"] - frame[f"plain_{measure}"]
    return frame.groupby(["data", "target", "mix", "size"]).mean(numeric_only=True).reset_index()


def table() -> str:
    """Accuracy without adapting, gains, and how many cases lose more than two points."""
    cases, rows = gains(), []
    for (data, mix), part in cases.groupby(["data", "mix"]):
        plain = [f"{100 * part[f'plain_{measure}'].mean():.0f}" for measure in MEASURES]
        gained = [f"{100 * part[f'{kind}_{m}_gain'].mean():+.1f}" for kind in ("auto", "mix") for m in MEASURES]
        lost = part["auto_accuracy_gain"] < WORSE
        rows.append([str(data), str(mix), " / ".join(plain), " / ".join(gained[:2]), f"{lost.sum()} of {len(part)}",
                     f"{100 * part['auto_accuracy_gain'].min():.1f}", " / ".join(gained[2:])])  # fmt: skip
    heads = ["data, network", "class mix", "not adapted, %", "as `fit` decides", "cases below -2", "worst case"]
    return markdown([*heads, "class mix given"], rows)
