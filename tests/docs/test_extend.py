"""Each plugin of docs/guides/extend.md works with the commands that the page gives for it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.methods import Batch, Method, Problem
from longshift.nn import Network
from longshift.rng import HostDraws
from tests.docs.extend_page import blocks
from tests.registries import restore_registries

PLUGINS, COMMANDS = blocks("python"), blocks("bash")
SWEEP = """
settings = ["TotalHeavyTail"]
targets = ["ink"]
methods = ["erm"]
trials = 1
draws = 1

[[datasets]]
path = "digits"

[run]
image_size = 16
steps = 10
eval_every = 10
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands of the page name."""
    root = tmp_path_factory.mktemp("extend")
    rng = np.random.default_rng(0)
    lines = []
    counts = {"Papers": {"circle": 30, "square": 20}, "screen": {"circle": 25, "square": 25}}
    for domain, row in counts.items():
        for label, n in row.items():
            (root / "shapes" / domain / label).mkdir(parents=True)
            for number in range(n):
                path = f"shapes/{domain}/{label}/{number}.png"
                Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(root / path)
                lines.append(f"{domain} {label} {path}")
    (root / "images.list").write_text("\n".join(lines))
    (root / "small-sweep").mkdir()
    (root / "small-sweep" / "sweep.toml").write_text(SWEEP)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("title", PLUGINS)
def test_the_commands_of_the_page_succeed(title: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore_registries(monkeypatch)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LONGSHIFT_CACHE", str(folder / "cache"))
    name = PLUGINS[title].splitlines()[0].removeprefix("# ")
    Path(name).write_text(PLUGINS[title], encoding="utf-8")
    if title in ("report table", "run column"):  # runs what the launcher of the page has not run before
        assert CliRunner().invoke(app, ["sweep", "run", "small-sweep"]).exit_code == 0
    for line in COMMANDS[title].splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    if title == "report table":
        assert "Finished runs" in done.output
    if title == "run column":
        assert "learning_rate" in Path("runs.csv").read_text(encoding="utf-8")


def test_the_method_of_the_page_learns_and_has_the_stated_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    restore_registries(monkeypatch)
    names: dict[str, object] = {"__name__": "tests.docs.tilted"}
    monkeypatch.setitem(sys.modules, "tests.docs.tilted", type(sys)("tests.docs.tilted"))
    exec(compile(PLUGINS["method"], "docs/guides/extend.md", "exec", dont_inherit=True), names)
    cls = names["Tilted"]
    assert isinstance(cls, type)
    assert issubclass(cls, Method)
    torch.manual_seed(0)
    config = cls.Config.make({"lr": 0.05, "tilt": 3.0})
    method = cls(Network(nn.Identity(), nn.Linear(4, 3)), Problem(3, 2, ((9, 9, 9), (9, 9, 9))), config)
    method.start(HostDraws(0))
    x = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
    batch = Batch(x, x[:, :3].argmax(1), torch.arange(2).repeat_interleave(6), 2)
    losses = []
    for index in range(30):
        method.before_step(index)
        losses.append(float(method.step(batch)["loss"]))
    assert losses[-1] < 0.5 * losses[0]
    torch.manual_seed(0)
    risk = cross_entropy(nn.Linear(4, 3)(x), batch.y, reduction="none").reshape(2, 6).mean(1)
    assert losses[0] == pytest.approx(float((3 * risk).exp().mean().log().detach() / 3), abs=1e-5)
