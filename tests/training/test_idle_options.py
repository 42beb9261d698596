"""Options of the style stage without effect: when they are errors, and where the advice leads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.errors import ConfigError
from longshift.methods import MethodConfig, hp, register, uniform
from longshift.methods.erm import ERM
from longshift.training import resolve
from longshift.training.idle_options import style_mistakes
from longshift.training.run_config import RunConfig
from tests.registries import restore_registries
from tests.training.frozen import head_config, small_weights


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return small_weights(tmp_path / "weights")


@pytest.fixture
def vectors(tmp_path: Path) -> dict[str, Any]:
    labels, domains = np.repeat(["cat", "dog"], 30), np.tile(["north", "south", "west"], 20)
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.savez(tmp_path / "v.npz", x=x, label=labels, domain=domains)
    return {"data": str(tmp_path / "v.npz"), "target": "west", "setting": "Natural", "shrink": True, "method": "erm"}


@pytest.fixture
def weighted(monkeypatch: pytest.MonkeyPatch) -> str:
    """A method of a plugin with a hyper-parameter of a similar name."""
    restore_registries(monkeypatch)

    @dataclass(frozen=True)
    class Config(MethodConfig):
        style_weight: float = hp(1.0, uniform(0.5, 2.0), "weight of a style loss")

    cls = type("Weighted", (ERM,), {"Config": Config, "__doc__": "ERM with a weight."})
    register("weighted_style", title="Weighted", family="dg", paper="none", idea="none")(cls)
    return "weighted_style"


def _mistakes(request: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(request)
    return str(caught.value)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("method", ["bsoftmax", "ndcl_plus"])  # NDCL-plus searches no styles of small images
def test_options_are_idle_in_every_draw_of_a_method_that_searches_no_style(method: str, seed: int) -> None:
    request = {"target": "ink", "method": method, "hparam_seed": seed, "hparams": {"style_amount": 0.5}}
    assert "style_amount: has no effect while style is none" in _mistakes(request)


def test_draws_that_turn_a_searched_style_off_are_no_mistake() -> None:
    runs = [
        RunConfig(data="photos", target="ink", method="ndcl_plus", hparam_seed=seed, hparams={"style_amount": 0.5})
        for seed in range(1, 21)
    ]
    assert {run.method_config().style for run in runs} == {"none", "amplitude", "both"}
    assert not any(style_mistakes(run) for run in runs)
    off: dict[str, float | int | str | bool] = {"style": "none", "style_amount": 0.5}
    given = RunConfig(data="photos", target="ink", method="ndcl_plus", hparam_seed=1, hparams=off)
    assert "style_amount: has no effect while style is none" in style_mistakes(given)["hparams"][0]


def test_a_similar_name_of_a_plugin_is_accepted(weighted: str) -> None:
    request = {"target": "ink", "method": weighted, "hparams": {"style_weight": 1.7}}
    config = resolve(request).config
    assert config.method_config().to_dict()["style_weight"] == 1.7
    assert config.fingerprint() != resolve({**request, "hparams": {}}).config.fingerprint()


@pytest.mark.parametrize("method", ["erm", "ndcl"])
@pytest.mark.parametrize("style", ["both", "convolution"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_record_of_a_head_is_accepted(weights: Path, method: str, style: str, seed: int) -> None:
    changes: dict[str, Any] = {"method": method, "views": 4, "hparam_seed": seed}
    first = resolve(head_config(weights, **changes, hparams={"style": style}).model_dump()).config
    record = first.method_config().to_dict()
    assert {"style_views", "style_partner"} < record.keys()
    again = resolve({**first.model_dump(), "hparams": record}).config
    assert again.method_config() == first.method_config()


@pytest.mark.parametrize("name", ["style_views", "style_domain"])
@pytest.mark.parametrize("style", [{}, {"style": "both"}])
def test_options_that_heads_do_not_use_are_errors(weights: Path, name: str, style: dict[str, str]) -> None:
    value = {"style_views": 2, "style_domain": "partner"}[name]
    request = {**head_config(weights, method="ndcl", views=2).model_dump(), "hparams": {**style, name: value}}
    assert f"{name}: has no effect with trainable = 'head'; drop it" in _mistakes(request)


def test_the_advice_on_vectors_leads_to_a_run(vectors: dict[str, Any]) -> None:
    text = _mistakes({**vectors, "hparams": {"style_share": 0.5}})
    assert "style_share: has no effect on vectors, which have no style; drop it" in text
    assert "set style" not in text
    text = _mistakes({**vectors, "hparams": {"style": "both", "style_share": 0.5}})  # both at once
    assert "style: expected none with vectors" in text
    assert "style_share: has no effect on vectors" in text
    assert resolve(vectors).config.method_config().style == "none"


def test_the_advice_for_heads_leads_to_a_run(weights: Path) -> None:
    request = {**head_config(weights).model_dump(), "hparams": {"style_share": 0.5}}
    text = _mistakes(request)
    assert re.search(r"style is none; set style \(for example 'both'\) and views = 2 to 8, too", text)
    followed = {**request, "views": 2, "hparams": {"style": "both", "style_share": 0.5}}
    assert resolve(followed).config.method_config().style_share == 0.5
    text = _mistakes({**request, "hparams": {"style": "both", "style_views": 2}})  # both at once
    assert "use views = 2 to 8" in text
    assert "style_views: has no effect with trainable = 'head'; drop it" in text
