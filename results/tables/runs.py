"""What was run, where it is and what made it."""

from __future__ import annotations

from results import numbers as n


def table() -> str:
    """One row per folder of runs."""
    rows = []
    for file in sorted(n.RESULTS.rglob("runs.parquet")):
        folder = file.parent.relative_to(n.RESULTS).as_posix()
        frame = n.table(folder)
        own = frame[~frame["method"].str.contains("+", regex=False)]
        counts = [f"{own['fingerprint'].nunique():,}", *(str(own[name].nunique()) for name in ("method", "trial"))]
        made = [", ".join(sorted(set(own[name]))) for name in ("commit", "device")]
        steps = ", ".join(f"{number:,}" for number in sorted(set(own["steps"])))
        rows.append([f"[{folder}]({folder})", *counts, steps, *made])
    return n.markdown(["folder", "runs", "methods", "trials", "steps", "commits", "device"], rows)
