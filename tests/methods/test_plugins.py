"""Methods from outside the package, with exactly the code that docs/extend.md shows."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from longshift.errors import ConfigError, LongshiftError, UsageError
from longshift.methods import all_methods, get_method, registry
from longshift.methods.base import Method, Problem
from longshift.methods.batch import Batch
from longshift.nn.network import Network
from longshift.rng import HostDraws

DOCS = Path(__file__).parents[2] / "docs" / "extend.md"


def documented(language: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


@pytest.fixture(autouse=True)
def forget_plugins() -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    registry.load_all()
    known = dict(registry._METHODS)
    yield
    registry._METHODS.clear()
    registry._METHODS.update(known)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tilted.py"
    path.write_text(documented("python"), encoding="utf-8")
    return path


def train(cls: type[Method]) -> None:
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


def test_the_documented_example_is_a_file_of_thirty_lines_that_trains(file: Path) -> None:
    assert len(documented("python").splitlines()) <= 35
    cls = get_method(f"{file}:Tilted")
    assert cls.info.name == "tilted"
    assert get_method(f"{file}:Tilted") is cls  # run once
    train(cls)
    with pytest.raises(ConfigError, match="tilt: expected at least"):
        cls.Config.make({"tilt": 0.0})


def test_the_documented_entry_point_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = documented("toml").splitlines()
    assert declared[0] == '[project.entry-points."longshift.methods"]'
    name, value = (part.strip().strip('"') for part in declared[1].split("="))
    info = file.parent / "tilted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tilted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[longshift.methods]\n{name} = {value}\nbroken = no_such_module:Nothing\n")
    monkeypatch.syspath_prepend(str(file.parent))
    with pytest.warns(UserWarning, match=r"plugin broken = no_such_module:Nothing was left out"):
        listed = all_methods()
    assert "tilted" in listed
    train(get_method("tilted"))
    sys.modules.pop("tilted")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (None, "Mine", "no file .*mine.py"),
        ("x = 1", "Mine", "defines no method"),
        ("class Mine: pass", "Mine", "the class Mine, not a method; expected a subclass"),
        ("Mine = 3", "Mine", "is a int, not a method"),
        ("from longshift.methods.erm import ERM\nclass Mine(ERM): pass", "Mine", "decorate it with @register"),
        ("from longshift.methods.erm import ERM", "Erm", "unknown class 'Erm'; did you mean ERM"),
        ("import no_such_thing", "Mine", "cannot import .*mine.py: .*no_such_thing"),
        ("def", "Mine", "cannot import .*mine.py: SyntaxError"),
        ("1 / 0", "Mine", "cannot import .*mine.py: ZeroDivisionError"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str | None, name: str, message: str) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message):
        get_method(f"{path}:{name}")


def test_a_file_cannot_take_a_name_that_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(documented("python").replace('"tilted"', '"erm"'))
    with pytest.raises(LongshiftError, match="two methods are called 'erm'"):
        get_method(f"{path}:Tilted")
    assert get_method("erm").__module__ == "longshift.methods.erm"
