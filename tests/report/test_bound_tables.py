"""`longshift report --table bound` against a direct call of the analysis."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from longshift.analysis import by_domain, generalization_bound
from longshift.cli.main import app
from longshift.data import load_dataset
from longshift.training import RunFolder
from tests.report.folders import write_runs

SWEEP = """
settings = ["TotalHeavyTail"]
targets = ["ink", "neon"]
methods = ["erm"]
trials = 1
draws = 1

[[datasets]]
path = "digits"

[run]
steps = 3
eval_every = 3
image_size = 16
ratio = 10

[runtime]
save_predictions = true
"""
TERMS = ("source_risk", "margin", "prior_in", "prior_out", "posterior_in", "posterior_out", "total", "target_risk")


@pytest.mark.slow
def test_terms_of_a_sweep_are_those_of_the_analysis(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    run = CliRunner().invoke
    assert run(app, ["sweep", "run", str(tmp_path / "s"), "--quiet"]).exit_code == 0
    done = run(app, ["report", str(tmp_path / "s"), "--table", "bound", "--json"])
    assert done.exit_code == 0
    (table,) = json.loads(done.stdout)["tables"]
    found = {cell["measure"]: cell["mean"] for cell in table["cells"]}
    names = load_dataset("digits").domain_names
    expected: dict[str, list[float]] = {name: [] for name in TERMS}
    for result in (tmp_path / "s").rglob("result.json"):
        with np.load(RunFolder(result.parent).predictions) as arrays:
            logits, labels, domains, features = (
                np.concatenate([arrays[f"validation_{what}"], arrays[f"test_{what}"]])
                for what in ("logits", "labels", "domains", "features")
            )
            sources = by_domain(logits, labels, domains, names, features)
            (target,) = by_domain(
                arrays["target_logits"], arrays["target_labels"], arrays["target_domains"], names,
                arrays["target_features"],
            )  # fmt: skip
        bound = generalization_bound(sources, target)
        for name in TERMS:
            expected[name].append(100 * getattr(bound, name).value)
    assert {len(values) for values in expected.values()} == {2}
    assert found == {name: pytest.approx(np.mean(values)) for name, values in expected.items()}


def test_without_predictions_the_option_that_keeps_them_is_named(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", ("erm", "ndcl"), trials=1)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "runs"), "--table", "bound"])
    assert done.exit_code != 0
    assert "train with --save-predictions" in str(done.exception)
