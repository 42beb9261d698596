"""The run configuration: errors, draws of hyperparameters, fingerprints, schedules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.errors import ConfigError, LongshiftError
from longshift.methods import MethodConfig, all_methods
from longshift.training.run_config import RunConfig, hparam_rng, parse_run_config
from longshift.training.run_folder import RunFolder, write_config

PACS: dict[str, Any] = {"data": "PACS.zip", "benchmark": "PACS", "target": "A"}


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_run_config(
            {"target": "ink", "stepz": 3, "steps": 0, "augment": "maybe", "method": "ndcl",
             "hparams": {"alpha": -1.0, "gamma": 2}}
        )  # fmt: skip
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert len(caught.value.mistakes) == 5
    for part in ("stepz", "steps", "steps:", "augment:", "hparams.alpha", "gamma"):
        assert part in text


def test_a_missing_target_is_named() -> None:
    with pytest.raises(ConfigError, match="target"):
        parse_run_config({"method": "erm"})


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


def test_a_shared_draw_gives_all_methods_the_same_common_values() -> None:
    base = {"target": "A", "data": "x", "hparam_seed": 3, "shared_draws": True}
    common = list(MethodConfig.hyper_parameters())
    found = {
        m: parse_run_config({**base, "method": m}).method_config().to_dict() for m in ("erm", "ndcl", "irm", "rdm")
    }
    assert [found["erm"][name] for name in common] == [found["ndcl"][name] for name in common]
    # RDM's narrower space has the same place in it: 10^U(-4.5, -4) where the others have 10^U(-5, -3.5)
    place = (math.log10(float(found["erm"]["lr"])) + 5) / 1.5
    assert math.log10(float(found["rdm"]["lr"])) == pytest.approx(-4.5 + 0.5 * place)
    own = parse_run_config({**base, "method": "irm", "shared_draws": False}).method_config().to_dict()
    assert all(found["irm"][name] != own[name] for name in ("lr", "weight_decay", "batch_size"))
    other = parse_run_config({**base, "hparam_seed": 4, "method": "erm"}).method_config().to_dict()
    assert other["lr"] != found["erm"]["lr"]
    assert (
        parse_run_config({**base, "hparam_seed": 0}).method_config()
        == parse_run_config({**base, "hparam_seed": 0, "shared_draws": False}).method_config()
    )


def test_shared_draws_name_other_runs_only_where_something_is_drawn() -> None:
    base: dict[str, Any] = {"target": "A", "data": "x", "method": "erm"}
    for seed, same in ((0, True), (3, False)):
        one, two = (RunConfig(**base, hparam_seed=seed, shared_draws=shared).fingerprint() for shared in (False, True))
        assert (one == two) is same


def test_small_images_have_their_own_defaults() -> None:
    small, large = RunConfig(target="ink"), RunConfig(target="A", data="PACS.zip")
    assert (small.method_config().lr, large.method_config().lr) == (1e-3, 5e-5)
    assert (small.backbone_name, large.backbone_name) == ("small_conv", "resnet50")
    assert (small.augmentation, large.augmentation) == ("", "domainbed")


def test_the_protocol_starts_from_torchvisions_first_weights() -> None:
    """timm keeps the same file under a tag; the URL is the one that torchvision's IMAGENET1K_V1 has."""
    import timm
    from torchvision.models import ResNet50_Weights

    name = RunConfig(target="A", data="PACS.zip", pretrained=True).backbone_name
    found = timm.get_pretrained_cfg(name)
    assert found is not None
    assert found.url == ResNet50_Weights.IMAGENET1K_V1.url
    assert RunConfig(target="A", data="PACS.zip", pretrained=True, backbone="resnet50").backbone_name == "resnet50"


@pytest.mark.parametrize("start", [{"pretrained": True}, {"weights": "w.safetensors"}])
def test_published_weights_are_fine_tuned_gently_at_any_size(start: dict[str, Any]) -> None:
    run = RunConfig(target="A", data="PACS.zip", image_size=64, backbone="mobilenetv2_100", **start)
    assert (run.method_config().lr, run.method_config().batch_size, run.augmentation) == (5e-5, 32, "domainbed")


def test_vectors_have_no_published_weights(tmp_path: Path) -> None:
    file = tmp_path / "v.npz"
    np.savez(file, x=np.zeros((4, 2)), label=list("abab"), domain=list("nnss"))
    plain, asked = (RunConfig(target="n", data=str(file), pretrained=asked) for asked in (False, True))
    assert asked.small
    assert asked.method_config() == plain.method_config()


def test_the_fingerprint_is_about_the_run_and_not_about_the_machine() -> None:
    here = RunConfig(target="A", data="/a/PACS.zip", benchmark="PACS")
    there = RunConfig(target="A", data="/b/pacs", benchmark="PACS")
    assert here.fingerprint() == there.fingerprint()
    assert here.fingerprint() != RunConfig(target="A", data="/a/PACS.zip", benchmark="PACS", steps=1).fingerprint()
    # A hyper-parameter given at its default is the same run.
    assert RunConfig(target="ink").fingerprint() == RunConfig(target="ink", hparams={"alpha": 0.1}).fingerprint()


@pytest.mark.parametrize("values", [{}, {"method": "dann", "hparam_seed": 3}, {**PACS, "method": "ndcl_plus"}])
def test_a_new_field_or_hyper_parameter_at_its_default_changes_no_fingerprint(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wider(RunConfig):
        new_field: int = 3

    values = {"target": "ink", **values}
    before = RunConfig.model_validate(values).fingerprint()
    monkeypatch.setattr("longshift.training.run_config.RunConfig", Wider)
    assert Wider.model_validate(values).fingerprint() == before
    assert Wider.model_validate({**values, "new_field": 4}).fingerprint() != before


def test_values_that_are_given_at_what_they_amount_to_change_no_fingerprint() -> None:
    plain = RunConfig(target="ink")
    for same in ({"image_size": 32}, {"backbone": "small_conv"}, {"average_from": 7}, {"style": {"mix": "none"}}):
        assert RunConfig.model_validate({"target": "ink", **same}).fingerprint() == plain.fingerprint()
    swa = RunConfig(target="ink", average="swa")
    assert swa.fingerprint() == RunConfig(target="ink", average="swa", average_from=2501).fingerprint()
    assert swa.fingerprint() != plain.fingerprint()


def test_a_given_default_that_a_preset_would_change_makes_another_run() -> None:
    released, mixed = ({"preset": "released"}, {"preset": "released", "share": "inverse"})
    assert RunConfig(target="ink", hparams=dict(released)).fingerprint() != (
        RunConfig(target="ink", hparams=dict(mixed)).fingerprint()
    )


def test_a_hyper_parameter_without_effect_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(ConfigError, match=r"hparams\.lr.* lr_g .* lr_d") as caught:
        parse_run_config({"target": "ink", "method": "dann", "hparams": {"lr": 0.1, "weight_decay": 0.1}})
    assert len(caught.value.mistakes) == 2
    assert "lr" not in parse_run_config({"target": "ink", "method": "dann"}).method_config().to_dict()


def test_weights_count_by_their_contents_and_not_by_name_or_place(tmp_path: Path) -> None:
    def fingerprint(name: str, contents: bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents)
        return RunConfig(target="ink", weights=str(path)).fingerprint()

    first = fingerprint("a/w.safetensors", b"one")
    assert fingerprint("b/w.safetensors", b"one") == first
    assert fingerprint("b/other.safetensors", b"one") == first
    assert fingerprint("b/w.safetensors", b"two") != first
    assert fingerprint("a/w.safetensors", b"longer") != first  # the file itself is replaced: nothing old is remembered
    assert RunConfig(target="ink").fingerprint() != first
    with pytest.raises(LongshiftError, match=r"absent\.safetensors"):
        RunConfig(target="ink", weights=str(tmp_path / "absent.safetensors")).fingerprint()


def test_a_folder_is_refused_when_its_weights_were_replaced(tmp_path: Path) -> None:
    weights, folder = tmp_path / "w.safetensors", RunFolder(tmp_path / "run")
    weights.write_bytes(b"one")
    config = RunConfig(target="ink", weights=str(weights))
    write_config(folder, config)
    weights.write_bytes(b"other")
    with pytest.raises(LongshiftError, match="weights"):
        write_config(folder, config)


def test_vectors_of_a_benchmark_count_by_their_contents(tmp_path: Path) -> None:
    def run(name: str, value: float) -> str:
        file = tmp_path / name
        np.savez(file, x=np.full((2, 3), value), label=np.array(["a", "b"]), domain=np.array(["s", "t"]))
        values = {"data": str(file), "benchmark": "PACS", "setting": "Duality", "target": "A", "method": "erm"}
        return parse_run_config(values).fingerprint()

    assert run("one.npz", 1.0) == run("copy.npz", 1.0)
    assert run("one.npz", 1.0) != run("other.npz", 2.0)


def _schedule(method: str, **values: Any) -> dict[str, Any]:
    return parse_run_config({"target": "ink", "method": method, **values}).method_config().to_dict()


@pytest.mark.parametrize(
    ("method", "name", "published"),
    [("irm", "anneal", 500), ("vrex", "anneal", 500), ("fishr", "anneal", 1500), ("eqrm", "burnin", 2500),
     ("rdm", "anneal", 1500), ("tcri", "anneal", 500), ("boda", "start_step", 500), ("boda", "feat_update_freq", 120),
     ("ginidg", "recon_end", 1000)],
)  # fmt: skip
def test_schedules_in_proportion_to_the_steps(method: str, name: str, published: int) -> None:
    assert _schedule(method, steps=500)[name] == published
    assert _schedule(method, steps=500, schedules="scaled")[name] == published // 10
    assert _schedule(method, steps=5000, schedules="scaled")[name] == published
    assert _schedule(method, steps=1, schedules="scaled")[name] == 1
    assert _schedule(method, steps=500, schedules="scaled", hparams={name: 77})[name] == 77


def test_every_hyper_parameter_that_counts_steps_says_so() -> None:
    for name, method in all_methods().items():
        for key, info in method.Config.hyper_parameters().items():
            speaks = key in ("anneal", "burnin", "start_step", "recon_end") or key.endswith("_freq")
            assert info.steps == speaks, (name, key)


def test_a_random_draw_is_scaled_as_well() -> None:
    drawn = _schedule("rdm", hparam_seed=3, steps=1000)["anneal"]
    assert _schedule("rdm", hparam_seed=3, steps=1000, schedules="scaled")["anneal"] == round(drawn / 5)


def test_what_never_starts_is_told() -> None:
    late = parse_run_config({"target": "ink", "method": "fishr", "steps": 300})
    assert "anneal" in late.never_starts()
    assert "--schedules scaled" in late.never_starts()
    assert not parse_run_config(
        {"target": "ink", "method": "fishr", "steps": 300, "schedules": "scaled"}
    ).never_starts()
    assert not parse_run_config({"target": "ink", "method": "ndcl", "steps": 3}).never_starts()


def test_scaled_schedules_change_the_name_of_runs_that_have_some_only() -> None:
    def name(method: str, **values: Any) -> str:
        return parse_run_config({"target": "ink", "method": method, "steps": 300, **values}).fingerprint()

    assert name("ndcl") == name("ndcl", schedules="scaled")
    assert name("fishr") != name("fishr", schedules="scaled")
    assert name("fishr", schedules="scaled") == name("fishr", hparams={"anneal": 90})


@pytest.mark.parametrize("spelling", ["auto", "on", "off", "domainbed", "DomainBed"])
def test_a_config_is_the_same_after_it_was_written_and_read(spelling: str) -> None:
    config = RunConfig(target="ink", augment=spelling)
    assert RunConfig.model_validate(config.model_dump()) == config
