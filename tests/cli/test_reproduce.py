"""`longshift reproduce`: listing, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.errors import UsageError

SMALL = (
    "--quick", "--steps", "2", "--trials", "1", "--method", "bsoftmax", "--method", "erm", "--target", "ink",
    "--workers", "1",
)  # fmt: skip


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=True)


def test_list_says_what_each_recipe_needs(tmp_path: Path) -> None:
    result = call("--list", "--json", *SMALL, "--out", str(tmp_path / "o"))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    recipes = {item["name"]: item for item in found["recipes"]}
    assert len(recipes) == 22
    assert recipes["totalheavytail"]["runs"] == 2
    assert recipes["ablation"]["runs"] == 0  # NDCL takes no part
    # 2 methods x 3 settings, BSoftmax pooled under 2 settings, ERM twice in each failure study
    assert found["runs"] == 6 + 2 + 2 + 2
    assert recipes["ratios"] | {"state": "ready", "runs": 0} == recipes["ratios"]
    assert recipes["duality"] | {"state": "missing", "runs": 2, "done": 0} == recipes["duality"]
    assert not (tmp_path / "o").exists()  # a list writes nothing
    assert call("--list", *SMALL, "--out", str(tmp_path / "o")).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "--list"),
        (("--all", "rho"), "--all"),
        (("tab. 99",), "tab. 99"),
        (("rho", "--set", "steps"), "NAME=VALUE"),
        (("rho", "--method", "ndlc"), "ndcl"),
        (("rho", "--target", "inc"), "ink"),
        (("rho", "--set", "alfa=3"), "alfa"),
        (("rho", "--average", "mean"), "average"),
    ],
)
def test_bad_requests(arguments: tuple[str, ...], named: str, tmp_path: Path) -> None:
    result = call(*arguments, "--out", str(tmp_path))
    assert isinstance(result.exception, UsageError)
    assert named in str(result.exception)
