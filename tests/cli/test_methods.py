"""`longshift methods`: the list and the details of one method."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.methods import all_methods, cost_cell, get_method
from longshift.methods.catalog import step_costs


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["methods", *args], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_every_method() -> None:
    output = run()
    for cls in all_methods().values():
        assert cls.info.title in output
    listed = json.loads(run("--json"))
    assert [row["name"] for row in listed] == list(all_methods())
    assert set(listed[0]) == {"name", "title", "family", "paper", "idea", "preset_of", "step_cost"}


HEAVY = ("torch", "scipy", "pandas", "sklearn", "matplotlib", "timm")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["train", "--help"]])
def test_help_does_not_wait_for_heavy_packages(args: list[str]) -> None:
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('heavy:', [x for x in {HEAVY} if x in sys.modules], file=sys.stderr))\n"
        f"sys.argv = ['longshift', *{args!r}]\n"
        "from longshift.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stderr


def test_one_method_shows_every_hyper_parameter() -> None:
    output = run("rdm")
    assert all(name in output for name in get_method("rdm").Config.hyper_parameters())
    shown = json.loads(run("EQRM", "--json"))
    assert set(shown["hyper_parameters"]) == set(get_method("eqrm").Config.hyper_parameters())
    assert shown["hyper_parameters"]["quantile"]["default"] == 0.75
    assert len(shown["repairs"]) == 3
    preset = json.loads(run("ndcl_plus", "--json"))
    assert {"alpha=0", "prior=domain", "weights=none", "style.mix=both", "style.share=0.5"} == set(preset["differs"])


def test_costs_are_read_by_method_and_hardware() -> None:
    costs = step_costs()
    gpu, cpu = costs["erm"]
    assert costs["erm"] == {gpu: 1.0, cpu: 1.0}
    assert costs["ndcl"][gpu] != costs["ndcl"][cpu]
    assert cost_cell({cpu: 1.25, gpu: 1.5}).split(" / ") == ["1.50", "1.25"]
    assert cost_cell({gpu: 1.5}).split(" / ") == ["1.50", "-"]
    assert cost_cell({}) == "-"
