"""What a fit trains, and for how long."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
from PIL import Image
from safetensors.torch import save_file

from longshift.errors import LongshiftError, UsageError
from longshift.fitting.plan import earlier_plan, keep_plan, make_plan, usual_steps
from longshift.fitting.request import make_request
from longshift.training import OpenDataset
from longshift.training.run_config import RunConfig


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(60, 4))
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "s" * 250, "west"], 20)
    np.savez(tmp_path / "v.npz", x=x, label=labels, domain=domains)
    return tmp_path / "v.npz"


def test_how_long() -> None:
    config = RunConfig(target="", backbone="small_conv")
    assert usual_steps(10**6, 4, config) == 1500
    assert usual_steps(100, 4, config) == 300
    assert usual_steps(6400, 4, config) == 1000  # 40 passes of 6400 in batches of 4 x 64


@pytest.mark.parametrize(
    ("options", "steps"), [({}, 200), ({"minutes": 5}, 600), ({"steps": 7}, 7), ({"minutes": 5, "steps": 7}, 7)]
)
def test_with_minutes_there_may_be_more_steps(vectors: Path, options: dict[str, Any], steps: int) -> None:
    plan = make_plan(OpenDataset(str(vectors)), make_request(vectors, options), gpu=False)
    assert plan.base["steps"] == steps


def test_the_runs_and_their_folders(vectors: Path, tmp_path: Path) -> None:
    dataset = OpenDataset(str(vectors))
    plan = make_plan(dataset, make_request(vectors, {"method": "ERM", "head": "linear"}), gpu=False)
    jobs = plan.held_out_jobs(dataset, tmp_path, compare=True)
    assert [job.method for job in jobs] == ["erm", "bsoftmax", "ndcl_plus", "logistic"] * 3
    assert {job.config.backbone_name for job in jobs} == {"linear"}
    assert len({job.folder for job in jobs}) == 12
    assert max(len(job.folder.name) for job in jobs) < 100  # also for a site with a long name
    final = plan.final_job(dataset, tmp_path, "")
    assert (final.site, final.folder) == ("", tmp_path / "final")


def test_the_method_of_vectors_takes_one_step(vectors: Path, tmp_path: Path) -> None:
    dataset = OpenDataset(str(vectors))
    plan = make_plan(dataset, make_request(vectors, {}), gpu=False)
    assert (plan.method, plan.usual_steps, plan.tried) == ("logistic", 200, ("logistic", "ndcl_plus"))
    assert make_plan(dataset, make_request(vectors, {"hparams": {"strength": 1.0}}), gpu=False).tried == ()
    jobs = plan.held_out_jobs(dataset, tmp_path, compare=True)[:4]
    assert [(job.method, job.config.steps, job.config.backbone_name) for job in jobs] == [
        ("logistic", 1, "linear"), ("ndcl_plus", 200, "mlp"), ("erm", 200, "mlp"), ("bsoftmax", 200, "mlp"),
    ]  # fmt: skip


def test_a_plan_is_kept_for_one_request(vectors: Path, tmp_path: Path) -> None:
    request, file = make_request(vectors, {"steps": 5}), tmp_path / "plan.json"
    assert earlier_plan(file, request) is None
    plan = make_plan(OpenDataset(str(vectors)), request, gpu=False)
    keep_plan(file, request, plan)
    assert earlier_plan(file, request) == plan
    with pytest.raises(LongshiftError, match="train_seed"):
        earlier_plan(file, make_request(vectors, {"steps": 5, "train_seed": 1}))
    kept = json.loads(file.read_text())
    kept["request"]["backbone"] = kept["request"].pop("network")  # as an earlier version called it
    file.write_text(json.dumps(kept))
    with pytest.raises(LongshiftError, match="backbone, network"):
        earlier_plan(file, request)
    file.write_text("{}")
    with pytest.raises(LongshiftError, match=r"plan\.json"):
        earlier_plan(file, request)


@pytest.mark.parametrize(
    "option", [{"weights": "x.safetensors"}, {"image_size": 64}, {"trainable": "head"}, {"views": 2}]
)
def test_options_of_images_are_errors_on_vectors(vectors: Path, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(option))):
        make_plan(OpenDataset(str(vectors)), make_request(vectors, option), gpu=False)


@pytest.mark.parametrize(
    ("network", "styles"),
    [
        ({"network": "resnet18", "pretrained": False, "image_size": 128}, ("none", "both")),
        ({"image_size": 96}, ("none", "both")),
        ({}, None),  # images of 48 pixels go through the small network, for which style mixing is off
    ],
)
def test_options_of_style_are_judged_for_the_network_of_the_fit(
    tmp_path: Path, network: dict[str, Any], styles: tuple[str, ...] | None
) -> None:
    for site in ("north", "south"):
        for level, name in ((60, "dark"), (190, "light")):
            (tmp_path / "small" / site / name).mkdir(parents=True)
            for i in range(4):
                Image.new("RGB", (48, 48), (level + i,) * 3).save(tmp_path / "small" / site / name / f"{i}.png")
    dataset = OpenDataset(str(tmp_path / "small"))
    request = make_request(tmp_path / "small", {"style": {"share": 0.3}, "steps": 2, **network})
    if styles is None:
        with pytest.raises(UsageError, match="style"):
            make_plan(dataset, request, gpu=False)
    else:
        plan = make_plan(dataset, request, gpu=False)
        assert plan.styles == styles
        off, on = plan.held_out_jobs(dataset, tmp_path / "fit", compare=False)[:2]
        assert off.config.style_config() is None
        style = on.config.style_config()
        assert style
        assert style.share == 0.3


@pytest.mark.parametrize(
    ("options", "average"),
    [({}, "none"), ({"trainable": "all"}, "swa"), ({"trainable": "all", "average": "ema"}, "ema")],
)
def test_a_whole_network_with_weights_is_averaged(tmp_path: Path, options: dict[str, Any], average: str) -> None:
    for site, name, i in product(("north", "south"), ("cat", "dog"), range(4)):
        folder = tmp_path / "sites" / site / name
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (48, 48), (60 * i,) * 3).save(folder / f"{i}.png")
    weights = tmp_path / "resnet10t.safetensors"
    save_file(timm.create_model("resnet10t", num_classes=0).state_dict(), weights)
    request = make_request(tmp_path / "sites", {"weights": str(weights), **options})
    base = make_plan(OpenDataset(str(tmp_path / "sites")), request, gpu=False).base
    assert (base["average"], base["average_only"]) == (average, average != "none")
