"""Every published fine-tuned run is one that its sweep file plans today, and the commands on the page are such runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.sweep.jobs import make_plan
from longshift.training import train_run
from longshift.training.resolve_run import ResolvedRun
from longshift.training.run_config import RunConfig
from tests.data.trees import pacs

ROOT = Path(__file__).parents[1]
FINE_TUNED = ROOT / "results" / "pacs-mobilenetv2"
WEIGHTS = "mobilenetv2_100_in1k.safetensors"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """As after a clone, with the data beside the sweep files; fingerprints name weights by their contents."""
    images = pacs()
    weights = images.parent / "weights" / WEIGHTS
    if not weights.exists():
        pytest.skip(f"no weights at {weights}")
    for path in (images, weights):
        (tmp_path / path.name).symlink_to(path.resolve())
    # Fingerprints name a published benchmark by its name, so the original images stand for the re-encoded ones.
    (tmp_path / "PACS-192.zip").symlink_to(images.resolve())
    for file in FINE_TUNED.rglob("sweep.toml"):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return tmp_path


def fine_tuned() -> pd.DataFrame:
    return pd.concat(pd.read_parquet(file).assign(folder=file.parent.name) for file in FINE_TUNED.rglob("runs.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [".", "study", "long", "five-at-224px"]
    + [f"style-{name}" for name in ("choice", "choice/finalists", "confirm", "for-others")],
)
def test_a_sweep_file_plans_the_published_runs(clone: Path, folder: str) -> None:
    _, plan = make_plan(clone / FINE_TUNED.relative_to(ROOT) / folder)
    planned = {(job.fingerprint, job.method, job.trial, job.draw) for job in plan.jobs}
    rows = pd.read_parquet(FINE_TUNED / folder / "runs.parquet")
    assert not rows.duplicated(["fingerprint", "method"]).any()
    made = zip(rows.fingerprint, rows.method.str.removesuffix("+ema"), rows.trial, rows.draw, strict=True)
    assert set(made) <= planned


@pytest.mark.slow
def test_commands_of_the_page_run_published_rows(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "results" / "reproducing.md").read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [line for line in re.findall(r"^    longshift train .*$", text, re.MULTILINE) if "PACS.zip" in line]
    assert len(commands) == 4
    asked: list[RunConfig] = []

    def note(run: ResolvedRun, *_: object) -> None:
        asked.append(run.config)
        raise KeyboardInterrupt  # nothing is to be trained

    monkeypatch.setattr(train_run, "make_task", note)
    monkeypatch.chdir(clone)
    for command in commands:
        CliRunner().invoke(app, shlex.split(command)[1:])
    published = fine_tuned().set_index("fingerprint")
    found = [published.loc[[run.fingerprint()]].iloc[0] for run in asked]
    assert [row.folder for row in found[-2:]] == ["study", "five-at-224px"]
    assert [(row.method, row.setting, row.target, row.trial) for row in found] == [
        ("sagnet", "Duality", "sketch", 0),
        ("NDCL-plus, no style", "Duality", "sketch", 2),
        ("NDCL, uniform", "Duality", "sketch", 1),
        ("NDCL, domain prior, no con", "Duality", "sketch", 1),
    ]
