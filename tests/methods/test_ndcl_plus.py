"""The preset of NDCL: its loss written out, and its runs, which are NDCL's with those values under one fingerprint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longshift.errors import ConfigError, LongshiftError
from longshift.methods import all_methods, get_method, methods_without_presets, registry
from longshift.rng import HostDraws
from longshift.training.run_config import RunConfig
from tests.losses.loops import similarity
from tests.methods.tiny import Tiny
from tests.sweep.small import small_plan
from tests.training.small_runs import config, train

VALUES: dict[str, Any] = {"prior": "domain", "weights": "none", "alpha": 0.0}
STYLE: dict[str, Any] = {"mix": "both", "share": 0.5}
LARGE: dict[str, Any] = {"image_size": 96}  # more than 64 pixels: the defaults are those of fine-tuning


def alignment(p: Tensor, y: list[int], d: list[int]) -> Tensor:
    """Eq. align: each class mean of a domain against those of the other domains, its own class leading."""
    groups = sorted(set(zip(d, y, strict=True)))
    means = [p[[i for i in range(len(y)) if (d[i], y[i]) == group]].mean(0) for group in groups]
    terms = []
    for i, (_, own) in enumerate(groups):
        scores = {j: similarity(means[i], means[j]).exp() for j in range(len(groups)) if j != i}
        lead = [score for j, score in scores.items() if groups[j][1] == own]
        if lead:
            total = torch.stack(list(scores.values())).sum()
            terms.append(-torch.stack([(score / total).log() for score in lead]).mean())
    return torch.stack(terms).mean() if terms else torch.zeros(())


@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0])
def test_the_loss_is_balanced_softmax_by_domain_and_alignment(beta: float) -> None:
    tiny = Tiny(per_domain=6)
    method, batch = tiny.make("ndcl_plus", values={"beta": beta}), tiny.batch(0)
    method.start(HostDraws(0))
    found = method.loss(batch).total
    logits = method.network(batch.x).double()
    counts = torch.tensor(tiny.problem().counts, dtype=torch.float64)
    shifted = (logits + counts[batch.d].log()).log_softmax(1)
    expected = -sum(shifted[i, label] for i, label in enumerate(batch.y.tolist())) / len(batch)
    if beta:
        expected = expected + beta * alignment(logits.softmax(1), batch.y.tolist(), batch.d.tolist())
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_it_is_a_run_of_ndcl_under_its_fingerprint(tmp_path: Path) -> None:
    plus, ndcl = config(method="ndcl_plus"), config(method="ndcl", hparams=VALUES)
    assert plus.fingerprint() == ndcl.fingerprint()
    assert plus.fingerprint() != config(method="ndcl").fingerprint()
    results = [train(one, tmp_path / one.method) for one in (plus, ndcl)]
    assert results[0]["run"]["method"] == "ndcl_plus"
    assert results[0]["selected"] == results[1]["selected"]
    assert results[0]["hparams"] == results[1]["hparams"]


@pytest.mark.parametrize("given", [{"alpha": 0.1}, {"weights": "adaptive"}, {"prior": "none"}, {"preset": "released"}])
def test_given_values_win(given: dict[str, Any]) -> None:
    made = config(method="ndcl_plus", hparams=given).method_config()
    assert made.to_dict() | given == made.to_dict()
    assert (
        config(method="ndcl_plus", hparams=given).fingerprint()
        == config(method="ndcl", hparams={**VALUES, **given}).fingerprint()
    )


def test_a_search_keeps_what_makes_it_the_preset() -> None:
    drawn = [get_method("ndcl_plus").Config.sample(np.random.default_rng(seed)).to_dict() for seed in range(5)]
    assert all(VALUES.items() <= values.items() for values in drawn)
    assert len({values["beta"] for values in drawn}) == 5


def test_images_are_styled_by_default_and_small_ones_and_vectors_are_not(tmp_path: Path) -> None:
    styled = config(method="ndcl_plus", **LARGE)
    assert styled.method_config().to_dict().items() >= VALUES.items()
    assert (found := styled.style_config()) is not None
    assert (found.mix, found.share) == ("both", 0.5)
    assert styled.fingerprint() == config(method="ndcl", hparams=VALUES, style=STYLE, **LARGE).fingerprint()
    plain = config(method="ndcl_plus", style={"mix": "none"}, **LARGE)
    assert plain.fingerprint() == config(method="ndcl", hparams=VALUES, **LARGE).fingerprint()
    assert config(method="ndcl_plus").style_config() is None
    np.savez(tmp_path / "v.npz", x=np.zeros((4, 3), np.float32), y=["a", "b"] * 2, d=["p", "p", "q", "q"])
    assert config(data=str(tmp_path / "v.npz"), method="ndcl_plus").style_config() is None


def test_a_search_draws_the_style_of_images_only() -> None:
    sample = get_method("ndcl_plus").Style.sample
    drawn = [sample(np.random.default_rng(seed)) for seed in range(40)]
    assert {one.mix for one in drawn} == {"none", "amplitude", "both"}
    assert len({one.share for one in drawn if one.mix != "none"}) > 10
    assert {sample(np.random.default_rng(seed), ("small",)).mix for seed in range(10)} == {"none"}


def test_all_means_methods_and_a_preset_is_named(tmp_path: Path) -> None:
    everything = [job.method for job in small_plan(tmp_path / "all", methods="all", trials=1, draws=1).jobs]
    assert set(everything) == set(methods_without_presets())
    beside = small_plan(tmp_path / "both", methods=["all", "ndcl_plus"], trials=1, draws=1)
    assert {job.method for job in beside.jobs} == {*everything, "ndcl_plus"}
    assert set(all_methods()) - set(methods_without_presets()) == {"logistic", "ndcl_plus"}


@pytest.mark.parametrize("spelled", ["NDCL_Plus", "NDCL-plus", "ndcl_plus"])
def test_however_it_is_spelled_it_has_one_name_in_results(spelled: str) -> None:
    assert config(method=spelled).method == "ndcl_plus"
    assert config(method=spelled).fingerprint() == config(method="NDCL", hparams=VALUES).fingerprint()


def test_overrides_and_variants_of_the_preset(tmp_path: Path) -> None:
    strong = {"name": "strong", "method": "ndcl_plus", "hparams": {"beta": 1.0}}
    own = {"ndcl_plus": {"hparams": {"batch_size": 9}}}
    plan = small_plan(tmp_path, methods=["ndcl", "ndcl_plus"], variants=[strong], overrides=own, trials=1, draws=1)
    made = {job.method: RunConfig.model_validate(job.run).method_config().to_dict() for job in plan.jobs}
    found = {name: (values["batch_size"], values["prior"], values["beta"]) for name, values in made.items()}
    assert found == {"ndcl": (64, "none", 0.1), "ndcl_plus": (9, "domain", 0.1), "strong": (9, "domain", 1.0)}


@pytest.mark.parametrize("name", ["NDCL-plus", "ndcl_plus", "BSoftmax"])
def test_a_variant_cannot_take_a_name_or_title_of_a_method(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        small_plan(tmp_path, methods=["erm"], variants=[{"name": name, "method": "ndcl"}])


def test_a_preset_has_nothing_of_its_own_but_defaults() -> None:
    base = get_method("ndcl")
    described: dict[str, Any] = {"title": "x", "family": "idg", "paper": "x", "idea": "x"}
    with pytest.raises(LongshiftError, match="mine"):
        registry.register("mine", **described, preset_of="ndcl")(get_method("erm"))
    with pytest.raises(LongshiftError, match="mine"):
        registry.register("mine", **described, preset_of="ndcl")(type("Mine", (base,), {"loss": lambda *_: None}))
    assert "mine" not in all_methods()
