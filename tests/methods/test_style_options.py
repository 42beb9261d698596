"""The options of the style stage in configs: what draws give them, and which names they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from longshift.methods import MethodConfig, all_methods, get_method, hp, of_style, uniform
from longshift.methods.method_config import STYLE_OPTIONS
from longshift.training.run_config import RunConfig


@dataclass(frozen=True)
class Weighted(MethodConfig):
    """A method of a plugin with a hyper-parameter whose name starts like those of the style stage."""

    style_weight: float = hp(1.0, uniform(0.5, 2.0), "weight of a style loss")


def draw(method: str, seed: int, **hparams: float | str) -> RunConfig:
    """A run on large images, which are not opened."""
    return RunConfig(data="photos", target="ink", method=method, hparam_seed=seed, hparams={**hparams})


@pytest.mark.parametrize("method", ["bsoftmax", "ndcl_plus"])
def test_options_of_a_given_style_are_drawn_from_their_spaces(method: str) -> None:
    runs = [draw(method, seed, style="both") for seed in range(1, 41)]
    drawn = [run.method_config() for run in runs]
    assert {one.style for one in drawn} == {"both"}
    for name in ("style_amount", "style_share"):
        values = np.array([getattr(one, name) for one in drawn])
        assert len(set(values)) == 40
        assert values.min() >= 0.3
        assert values.max() < 1
        assert values.mean() == pytest.approx(0.65, abs=0.1)  # of U(0.3, 1), with a standard error of 0.03
    assert {one.style_partner for one in drawn} == {"any", "class"}
    assert len({run.fingerprint() for run in runs}) == 40


def test_a_given_style_changes_no_other_draw() -> None:
    for seed in range(1, 6):
        plain = draw("ndcl", seed).method_config()
        styled = draw("ndcl", seed, style="both").method_config()
        assert plain.to_dict().items() < styled.to_dict().items()
        assert plain == get_method("ndcl").Config.make(plain.to_dict())  # idle options have their defaults


def test_a_given_option_wins_over_its_draw() -> None:
    drawn = draw("bsoftmax", 2, style="both", style_share=0.5).method_config()
    assert drawn.style_share == 0.5
    assert drawn.style_amount not in (1.0, 0.5)


def test_a_convolution_does_not_keep_a_drawn_partner() -> None:
    for seed in range(1, 11):
        assert draw("bsoftmax", seed, style="convolution").method_config().style_partner == "any"


def test_style_options_are_those_of_the_methods() -> None:
    names = {name for cls in all_methods().values() for name in cls.Config.hyper_parameters()}
    assert {name for name in names if name.startswith("style")} == {"style", *STYLE_OPTIONS}


def test_a_similar_name_of_a_plugin_is_its_own() -> None:
    assert not of_style("style_weight")
    given = Weighted.make({"style_weight": 1.7})
    assert given.style == "none"
    assert given.style_weight == 1.7
    assert given.identity()["style_weight"] == given.to_dict()["style_weight"] == 1.7
    drawn = [Weighted.make({}, base=Weighted.sample(np.random.default_rng(seed))) for seed in range(5)]
    assert len({one.style_weight for one in drawn}) == 5
