"""One file outside the package adds one thing of each kind, and the command line uses all of them together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.commands import Command

PLUGIN = '''
from pathlib import Path

import numpy as np
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.data import Manifest, Row as Sample, register_benchmark, register_reader
from longshift.methods import Batch, Losses, Method, MethodConfig, hp, register, uniform
from longshift.nn import Backbone, register_backbones
from longshift.report import Cell, Column, ReportRuns, Row, Table, register_table
from longshift.results import register_column
from longshift.settings import CountsGenerator, register_generator
from longshift.sweep import Launch, execute, register_launcher
from longshift.training import TaskCache, register_augmentation


@register_reader(".list")
def read_list(path: Path, name: str) -> Manifest:
    return Manifest.from_rows(name, path.parent, [Sample(*line.split()) for line in path.read_text().splitlines()])


register_benchmark(
    "Shapes", domains={"P": "paper", "S": "screen"}, classes=["disc", "ring"], totals={"P": [12, 8], "S": [8, 12]}
)


@register_generator
class Quarter(CountsGenerator):
    name = "Quarter"

    def table(self, pool, turn):
        return np.where(pool.totals > 0, np.maximum(pool.spare // 4, 1), 0)


def smooth_loss(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    return cross_entropy(logits, labels, label_smoothing=smoothing)


class SmoothConfig(MethodConfig):
    smoothing: float = hp(0.1, uniform(0.0, 0.5), "share of the other classes", at_least=0)


@register("smooth", title="Smooth labels", family="imbalance", paper="-", idea="smoothed cross-entropy")
class Smooth(Method):
    """Cross-entropy with smoothed labels."""

    Config = SmoothConfig

    def loss(self, batch: Batch) -> Losses:
        total = smooth_loss(self.network(batch.x), batch.y, self.config.smoothing)
        return Losses(total, {"loss": total})


def make(name: str, pretrained: bool) -> Backbone:
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    return Backbone(layers, 16, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


register_backbones("lab", make, names=lambda: ["tiny"])


@register_augmentation("dim", uniforms=1)
def dim(images: Tensor, u: Tensor) -> Tensor:
    return images * (1 - 0.5 * u[:, :, None, None])


@register_launcher("here")
def run_here(launch: Launch) -> None:
    queue, tasks = launch.queue, TaskCache(launch.runtime)
    while not launch.stop() and (job := queue.next_job()) is not None:
        queue.finish(job, execute(job, queue.store, launch.runtime, tasks, launch.stop, launch.track))
        queue.tell()


register_column("smoothing", "number", "share of the other classes", lambda r: r["hparams"].get("smoothing"))


@register_table("smoothing", "smoothing of each run", default=False)
def smoothing_table(runs: ReportRuns) -> list[Table]:
    rows = tuple(
        Row(name, name, "", (Cell(float(value), digits=2),))
        for name, value in zip(runs.frame["method"], runs.frame["smoothing"], strict=True)
    )
    return [Table("smoothing", "smoothing", "Smoothing per run", (Column("smoothing"),), rows)]
'''
SWEEP = """
settings = ["quarter"]
methods = ["Smooth labels"]
trials = 1
draws = 1

[[datasets]]
path = "../images.list"
benchmark = "shapes"
targets = ["S"]

[run]
steps = 4
eval_every = 4
image_size = 8
backbone = "lab/tiny"
augment = "dim"
hparams = { smoothing = 0.25 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outside")
    (root / "mine.py").write_text(PLUGIN, encoding="utf-8")
    rng, lines = np.random.default_rng(0), []
    for domain, row in {"paper": {"disc": 12, "ring": 8}, "screen": {"disc": 8, "ring": 12}}.items():
        for label, n in row.items():
            for number in range(n):
                name = f"{domain}-{label}-{number}.png"
                Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(root / name)
                lines.append(f"{domain} {label} {name}")
    (root / "images.list").write_text("\n".join(lines))
    (root / "sweep").mkdir()
    (root / "sweep" / "sweep.toml").write_text(SWEEP)
    return root


def run(folder: Path, *words: str) -> str:
    process = Command("--plugin", "mine.py", *words, cwd=folder)
    shown, error = process.communicate()
    assert process.returncode == 0, f"{words}\n{error}"
    return shown


@pytest.mark.slow
def test_train_with_everything_from_outside(folder: Path) -> None:
    options = "--data images.list --benchmark shapes --setting quarter --target S --method smooth --backbone lab/tiny"
    training = "--augment dim --set smoothing=0.25 --image-size 8 --steps 4 --eval-every 4 --cache cache --out run"
    run(folder, "train", *options.split(), *training.split(), "--quiet")
    config = json.loads((folder / "run" / "config.json").read_text())["run"]
    expected = {
        "benchmark": "Shapes", "target": "screen", "method": "smooth", "backbone": "lab/tiny", "augment": "dim",
    }  # fmt: skip
    assert {key: config[key] for key in expected} == expected
    # A quarter of what validation (a third of the smallest class, at most 5) leaves of 12 and 8 samples.
    split = json.loads(run(folder, "split", "show", "images.list", "-s", "Quarter", "-t", "S", "--json"))
    assert split["sources"]["paper"]["train"] == [(12 - 2) // 4, (8 - 2) // 4]
    refused = Command("evaluate", "run", cwd=folder)
    assert "--plugin FILE.py" in refused.communicate()[1]
    assert refused.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["here", "local"])
def test_sweep_and_report_with_everything_from_outside(launcher: str, folder: Path) -> None:
    sweep = folder / f"sweep-{launcher}"
    sweep.mkdir()
    (sweep / "sweep.toml").write_text(SWEEP)
    made = json.loads(run(folder, "sweep", "run", sweep.name, "--launcher", launcher, "--json", "--quiet"))
    assert made == {"total": 1, "done": 1, "failed": 0, "here": 1, "in_table": 0}
    run(folder, "sweep", "collect", sweep.name, "--out", "runs.csv")
    assert pd.read_csv(folder / "runs.csv")["smoothing"].tolist() == [0.25]
    report = run(folder, "report", sweep.name, "--table", "smoothing", "--format", "markdown")
    assert "Smoothing per run" in report
    assert "0.25" in report
    assert "Smooth labels" in run(folder, "report", sweep.name, "--table", "average", "--format", "markdown")
