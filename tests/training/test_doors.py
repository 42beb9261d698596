"""One request gives one run, whichever way it comes in: command line, Python, sweep file, paper recipes, fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import longshift
from longshift.cli.main import app
from longshift.fitting.plan import FitPlan
from longshift.io import read_json
from longshift.paper.workspace import Scale, open_workspace
from longshift.sweep.worker import execute
from longshift.training import OpenDataset, RunConfig, Runtime, TaskCache
from tests.sweep.small import small_plan

CPU = Runtime(device="cpu", keep_model=False)


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Three sites of 32-pixel images whose color tells the class."""
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for site in ("North", "South", "West"):
        for label, channel in (("cat", 0), ("dog", 1)):
            folder = tmp_path / "images" / site / label
            folder.mkdir(parents=True)
            for i in range(12):
                pixels = rng.integers(0, 160, (32, 32, 3), dtype=np.uint8)
                pixels[..., channel] += 60
                Image.fromarray(pixels).save(folder / f"{i}.png")
    return str(tmp_path / "images")


def request(data: str) -> dict[str, Any]:
    """What is asked for: little is stated, so that the rest is chosen on the way."""
    target = "INK" if data == "digits" else "west"
    few = {"setting": "Natural", "shrink": True, "validation": 2} if data != "digits" else {"setting": "Duality"}
    return {
        "data": data, "target": target, "method": "NDCL", "steps": 6, "eval_every": 3, "hparams": {"batch_size": 4},
        "split_seed": 1, "train_seed": 1, "schedules": "scaled", "shared_draws": True, **few,
    }  # fmt: skip


def by_command_line(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    arguments = ["train", "--out", str(folder), "--device", "cpu", "--no-keep-model", "--quiet", "--json"]
    for name, value in asked.items():
        flag = "--" + name.replace("_", "-")
        if name == "hparams":
            arguments += [part for key, item in value.items() for part in ("--set", f"{key}={item}")]
        else:
            arguments += [flag] if value is True else [flag, str(value)]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def by_python(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    return longshift.train(asked, out=folder, runtime=CPU).result


def by_python_config(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    return longshift.train(RunConfig.model_validate(asked), out=folder, runtime=CPU).result


def by_sweep(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    run = {k: v for k, v in asked.items() if k not in ("data", "target", "method", "setting")}
    del run["split_seed"], run["train_seed"]
    plan = small_plan(
        folder, datasets=[{"path": asked["data"]}], targets=[asked["target"]], settings=[asked["setting"]],
        methods=[asked["method"]], trials=2, draws=1, run={"image_size": None, **run},
    )  # fmt: skip
    (job,) = [job for job in plan.jobs if job.trial == 1]
    assert execute(job, plan.folder.store, CPU, TaskCache()).kind == "done"
    found: dict[str, Any] = read_json(plan.folder.store.job(job.fingerprint) / "result.json")
    return found


def by_recipe(asked: dict[str, Any], folder: Path) -> dict[str, Any]:
    own = ("data", "target", "method", "setting", "hparams", "split_seed", "train_seed")
    run = {k: v for k, v in asked.items() if k not in own}
    space = open_workspace(asked["data"], Scale("full"), folder, methods=["ndcl"], targets=[asked["target"]], run=run)
    job = space.job("ndcl", asked["setting"], space.targets[0], trial=1, hparams=asked["hparams"])
    assert execute(job, space.store, CPU, TaskCache()).kind == "done"
    found: dict[str, Any] = read_json(space.store.job(job.fingerprint) / "result.json")
    return found


@pytest.mark.parametrize("data", ["digits", "images"])
def test_all_doors_lead_to_the_same_run(data: str, request_fixture: Any, tmp_path: Path) -> None:
    asked = request(data if data == "digits" else request_fixture("images"))
    doors = (by_command_line, by_python, by_python_config, by_sweep, by_recipe)
    found = {door.__name__: door(asked, tmp_path / door.__name__) for door in doors}
    first = found["by_command_line"]
    assert (first["backbone"], first["run"]["target"]) == ("small_conv", "ink" if data == "digits" else "West")
    assert first["run"]["image_size"] == (0 if data == "digits" else 32)
    for name, result in found.items():
        for part in ("run", "fingerprint", "hparams", "split"):
            assert result[part] == first[part], (name, part)
        for which in ("selected", "last"):
            for part in ("validation", "test", "target"):
                assert result[which][part]["accuracy"] == first[which][part]["accuracy"], (name, which, part)


@pytest.mark.slow
def test_a_fit_is_what_train_makes_of_its_choices(images: str, tmp_path: Path) -> None:
    """A fit chooses network, batch and steps itself; asked for those, `train` gives the same run."""
    longshift.fit(images, target="west", method="erm", steps=5, out=tmp_path / "fit", runtime=CPU)
    kept = read_json(next((tmp_path / "fit" / "sites").iterdir()) / "result.json")
    plan = FitPlan(**{**read_json(tmp_path / "fit" / "plan.json")["plan"], "sites": ("West",)})
    assert plan.base["image_size"] == 32
    (job,) = plan.held_out_jobs(OpenDataset(images), tmp_path / "fit", compare=False)
    asked = {**plan.base, "method": "ERM", "target": "WEST"}
    resolved = longshift.resolve(asked).config
    assert resolved == job.config
    assert resolved.fingerprint() == kept["fingerprint"]
    assert by_python(asked, tmp_path / "train")["selected"] == kept["selected"]


@pytest.fixture
def request_fixture(request: pytest.FixtureRequest) -> Any:
    """A fixture by its name, for parameters that need one."""
    return request.getfixturevalue
