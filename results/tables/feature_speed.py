"""Images per second of features: ours, a plain timm loop, onnxruntime."""

from __future__ import annotations

import pandas as pd

from results import numbers as n


def table() -> str:
    """One row per network."""
    found = pd.read_csv(n.RESULTS / "features.csv")
    ways = {"decode": "decoding alone", "plain": "plain timm loop"}
    ways |= {"onnxruntime": "onnxruntime", "longshift": "longshift"}
    rows = [[f"`{row['backbone']}`", *(_speed(row[way]) for way in ways)] for _, row in found.iterrows()]
    return n.markdown(["network", *ways.values()], rows)


def _speed(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
