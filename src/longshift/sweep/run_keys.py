"""The keys of a run in a sweep: [run] for all jobs, [overrides.METHOD] for one method, both for a variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longshift.methods import get_method


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Run keys with later tables on top of earlier ones, hyper-parameters one by one."""
    hparams: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for one in tables:
        hparams |= one.get("hparams", {})
        values |= one
    return {**values, "hparams": hparams}


def common_values(run: Mapping[str, Any], method: str) -> dict[str, Any]:
    """[run] as it is for one method: without those of the common hyper-parameters that have no effect on it."""
    unused = get_method(method).Config.not_used()
    return {**run, "hparams": {name: v for name, v in run.get("hparams", {}).items() if name not in unused}}
