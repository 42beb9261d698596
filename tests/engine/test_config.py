from __future__ import annotations

import pytest

from longshift.engine.config import RunConfig, hparam_rng, parse_run_config
from longshift.errors import ConfigError


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_run_config(
            {"target": "ink", "stepz": 3, "steps": 0, "augment": "maybe", "method": "ndcl",
             "hparams": {"alpha": -1.0, "gamma": 2}}
        )  # fmt: skip
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert len(caught.value.mistakes) == 5
    for part in ("stepz", "did you mean steps", "steps:", "augment:", "hparams.alpha: expected at least 0", "gamma"):
        assert part in text


def test_a_missing_target_is_named() -> None:
    with pytest.raises(ConfigError, match="target: is required"):
        parse_run_config({"method": "erm"})


def test_an_unknown_method_lists_the_close_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean fish"):
        parse_run_config({"target": "ink", "method": "fihs"})


def test_draw_zero_is_the_defaults_and_others_repeat() -> None:
    base = {"target": "A", "method": "ndcl", "data": "x"}
    assert parse_run_config(base).method_config().to_dict()["alpha"] == 0.1
    first = parse_run_config({**base, "hparam_seed": 3}).method_config()
    assert first == parse_run_config({**base, "hparam_seed": 3}).method_config()
    assert first != parse_run_config({**base, "hparam_seed": 4}).method_config()
    assert hparam_rng("ndcl", 3).random() == hparam_rng("NDCL", 3).random()


def test_given_hyper_parameters_win_over_a_draw() -> None:
    run = parse_run_config({"target": "A", "data": "x", "hparam_seed": 3, "hparams": {"alpha": 0.7}})
    assert run.method_config().to_dict()["alpha"] == 0.7


def test_small_images_have_their_own_defaults() -> None:
    small, large = RunConfig(target="ink"), RunConfig(target="A", data="PACS.zip")
    assert (small.method_config().lr, large.method_config().lr) == (1e-3, 5e-5)
    assert (small.backbone_name, large.backbone_name) == ("small_conv", "resnet50")
    assert (small.augmented, large.augmented) == (False, True)


def test_the_fingerprint_is_about_the_run_and_not_about_the_machine() -> None:
    here = RunConfig(target="A", data="/a/PACS.zip", benchmark="PACS", weights="/a/w.safetensors")
    there = RunConfig(target="A", data="/b/pacs", benchmark="PACS", weights="/c/w.safetensors")
    assert here.fingerprint() == there.fingerprint()
    assert here.fingerprint() != RunConfig(target="A", data="/a/PACS.zip", benchmark="PACS", steps=1).fingerprint()
    # A hyper-parameter given at its default is the same run.
    assert RunConfig(target="ink").fingerprint() == RunConfig(target="ink", hparams={"alpha": 0.1}).fingerprint()
