"""`longshift methods` and the generated docs/methods.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import UsageError
from longshift.methods import catalogue, registry
from longshift.methods.cost import step_costs

ROOT = Path(__file__).parents[2]


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["methods", *args], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_every_method() -> None:
    output = run()
    for cls in registry.methods().values():
        assert cls.info.title in output
    listed = json.loads(run("--json"))
    assert [row["name"] for row in listed] == list(registry.methods())
    assert set(listed[0]) == {"name", "title", "family", "paper", "idea", "step_cost"}


def test_one_method_shows_every_hyper_parameter() -> None:
    output = run("rdm")
    for word in ("rdm_lambda", "U(0.1, 10)", "weight of the matching penalty", "DomainNet", "1.5e-05", ">= 0"):
        assert word in output
    shown = json.loads(run("EQRM", "--json"))
    assert set(shown["hyper_parameters"]) == set(registry.get("eqrm").Config.hyper_parameters())
    assert shown["hyper_parameters"]["quantile"] == {
        "default": 0.75,
        "range": "U(0.5, 0.99)",
        "limits": ">= 0.0001, <= 0.9999",
        "meaning": "which quantile of the domains' risks is minimised",
        "variants": {},
    }
    assert shown["hyper_parameters"]["implicit"]["range"] == "not searched"
    assert len(shown["repairs"]) == 3


def test_an_unknown_name_is_bad_usage_and_offers_close_ones() -> None:
    with pytest.raises(UsageError, match="did you mean coral") as caught:
        run("corall")
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match="neither a name nor --json"):
        run("coral", "--markdown")


def test_costs_are_read_by_method_and_hardware() -> None:
    table = "method,ratio,hardware,steps\nerm,1.0,CPU,50\nirm,1.25,CPU,50\nirm,1.5,GPU,50\n"
    costs = step_costs(table)
    assert costs == {"erm": {"CPU": 1.0}, "irm": {"CPU": 1.25, "GPU": 1.5}}
    assert catalogue.cost_cell(costs["irm"]) == "1.25 / 1.50"
    assert catalogue.cost_cell({}) == "-"


def test_the_page_of_methods_is_not_stale() -> None:
    page = ROOT / "docs" / "methods.md"
    message = "docs/methods.md is stale; run: longshift methods --markdown > docs/methods.md"
    assert page.read_text(encoding="utf-8") == catalogue.markdown(), message
    assert run("--markdown") == catalogue.markdown()
