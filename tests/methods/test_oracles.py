"""Every method of the paper agrees, step by step, with numbers recorded from its published code."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from torch import nn

from longshift.methods import Method
from longshift.methods.boda import BoDA
from longshift.methods.dann import DANN
from longshift.methods.ginidg import GINIDG
from longshift.methods.groupdro import GroupDRO
from longshift.methods.sagnet import SagNet
from longshift.methods.tcri import TCRI
from longshift.paper.published_tables import overall_results
from tests.methods import oracle
from tests.methods.oracle import FIXTURES, Replay, check_linear, close, run, set_linear

# Fixtures that hold no updates of a method, and the one that tests/methods/test_ndcl_oracle.py replays.
OTHER_FIXTURES = {"problem", "ndcl_paper", "ndcl_released_losses", "NDCL_released_update"}
REPLAYED_ELSEWHERE = {"ndcl", "samaltdg"}  # no code of SAMALTDG was published: tests/methods/test_samaltdg.py

Given = dict[str, Any]


def check_boda_centroids(method: Method, expected: Given) -> None:
    assert isinstance(method, BoDA)
    close(method.boda.centroids, expected["centroids_after"], "centroids")


def check_groupdro_weights(method: Method, expected: Given) -> None:
    assert isinstance(method, GroupDRO)
    close(method.q, expected["q"], "q")


def set_dann(method: Method, extra: Given) -> None:
    assert isinstance(method, DANN)
    for layer, given in zip(method.discriminator.layers, extra["discriminator"], strict=True):
        set_linear(layer, given)


def check_dann(method: Method, final: Given) -> None:
    assert isinstance(method, DANN)
    layers = method.discriminator.layers
    names = ["disc_input", *[f"disc_hidden{i}" for i in range(len(layers) - 2)], "disc_output"]
    for layer, name in zip(layers, names, strict=True):
        check_linear(layer, final[name], name)


def ginidg_layers(method: Method) -> dict[str, nn.Module]:
    """The layers beyond the network by the names of the fixtures."""
    assert isinstance(method, GINIDG)
    parts = {"mean": "mean", "log_sigma": "log_variance", "decoder": "decoder"}
    named: dict[str, nn.Module] = {f"generator_{theirs}": method.generator[ours] for theirs, ours in parts.items()}
    named |= {f"gdiscriminator_{i}": layer for i, layer in enumerate(method.real_discriminator.layers)}
    named |= {f"discriminator_{i}": layer for i, layer in enumerate(method.domain_discriminator.layers)}
    return named


def set_ginidg(method: Method, extra: Given) -> None:
    given: Given = {}
    for name, value in extra.items():
        given |= {f"{name}_{i}": layer for i, layer in enumerate(value)} if isinstance(value, list) else {name: value}
    named = ginidg_layers(method)
    assert set(given) == set(named)
    for name, layer in named.items():
        set_linear(layer, given[name])


def check_ginidg(method: Method, final: Given) -> None:
    compared = [name for name in ginidg_layers(method) if name in final]
    assert len(compared) >= 5
    for name in compared:
        check_linear(ginidg_layers(method)[name], final[name], name)


def ginidg_sizes(case: Given) -> Given:
    first, second = case["hparams"]["disc_hidden"]
    return {"disc_hidden_1": first, "disc_hidden_2": second, "disc_dropout": 0.0}


def set_sagnet(method: Method, extra: Given) -> None:
    assert isinstance(method, SagNet)
    set_linear(method.style_classifier, extra["style_classifier"])


def check_sagnet(method: Method, final: Given) -> None:
    assert isinstance(method, SagNet)
    check_linear(method.style_classifier, final["style_classifier"], "style classifier")


def sagnet_draws(given: Given) -> dict[str, list[Any]]:
    # The reference also draws coefficients for the two swaps of content, which do not use them.
    return {
        "uniform": [step[0] for step in given["alpha"]],
        "permutation": [permutation for step in given["permutations"] for permutation in step],
    }


def set_tcri(method: Method, extra: Given) -> None:
    assert isinstance(method, TCRI)
    set_linear(method.general, extra["domain_general_featurizer"])
    set_linear(method.spurious, extra["spurious_featurizer"])
    for layer, given in zip(method.spurious_classifiers, extra["spurious_classifiers"], strict=True):
        set_linear(layer, given)


def check_tcri(method: Method, final: Given) -> None:
    assert isinstance(method, TCRI)
    check_linear(method.general, final["domain_general_featurizer"], "general")
    check_linear(method.spurious, final["spurious_featurizer"], "spurious")
    for index, layer in enumerate(method.spurious_classifiers):
        if f"spurious_classifier_{index}" in final:
            check_linear(layer, final[f"spurious_classifier_{index}"], f"spurious classifier {index}")


def pgrad_draws(given: Given) -> dict[str, list[Any]]:
    # The reference draws one more permutation than it has splits.
    return {"permutation": [permutation for step in given["drawn_permutations"] for permutation in step[:-1]]}


REPLAYS = [
    Replay("erm", "ERM", {}),
    Replay("irm", "IRM", {"irm_penalty_anneal_iters": "anneal"}),
    Replay("vrex", "VREx", {"vrex_penalty_anneal_iters": "anneal"}),
    Replay("groupdro", "GroupDRO", {"groupdro_eta": "eta"}, after_step=check_groupdro_weights),
    Replay("coral", "CORAL", {"mmd_gamma": "gamma"}),
    Replay("mmd", "MMD", {"mmd_gamma": "gamma"}),
    # The fixture also names the rates that all methods have; DANN has its own.
    Replay("dann", "DANN", {"lambda": "dann_lambda", "lr": "", "weight_decay": ""}, init=set_dann, final=check_dann),
    Replay("fish", "Fish", {}),
    Replay("fishr", "Fishr", {"lambda": "fishr_lambda", "penalty_anneal_iters": "anneal"}),
    Replay("eqrm", "EQRM", {"eqrm_quantile": "quantile", "eqrm_burnin_iters": "burnin"}),
    Replay("rdm", "RDM", {"rdm_penalty_anneal_iters": "anneal"}),
    Replay(
        "mixup",
        "Mixup",
        {"mixup_alpha": "alpha"},
        draws=lambda given: {"permutation": given["permutations"], "beta": given["lam"]},
    ),
    Replay("mldg", "MLDG", {"mldg_beta": "beta"}, draws=lambda given: {"permutation": given["permutations"]}),
    Replay("pgrad", "PGrad", {}, draws=pgrad_draws),
    Replay("sagnet", "SagNet", {"sag_w_adv": "w_adv"}, draws=sagnet_draws, init=set_sagnet, final=check_sagnet),
    Replay(
        "tcri",
        "TCRI_HSIC",
        {"tcri_alpha": "alpha", "tcri_beta": "beta", "tcri_beta_anneal_iters": "anneal"},
        init=set_tcri,
        final=check_tcri,
    ),
    Replay("focal", "Focal", {}),
    Replay("reweight", "ReWeight", {}),
    Replay("bsoftmax", "BSoftmax", {}),
    Replay("ldam", "LDAM", {}),
    Replay(
        "boda",
        "BoDA",
        {"boda_weight": "weight", "boda_start_step": "start_step"},
        after_step=check_boda_centroids,
    ),
    Replay(
        "ginidg",
        "GINIDG",
        {"n_steps": "", "disc_hidden": ""},
        draws=lambda given: {"normal": given["noise"]},
        init=set_ginidg,
        final=check_ginidg,
        extra_config=ginidg_sizes,
    ),
]


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.method)
def test_a_method_agrees_with_its_published_code(replay: Replay) -> None:
    run(replay)


def test_every_method_of_the_paper_is_replayed() -> None:
    assert {replay.method for replay in REPLAYS} | REPLAYED_ELSEWHERE == set(overall_results()["method"])


def test_every_fixture_is_replayed() -> None:
    found = {path.stem for path in FIXTURES.glob("*.json")}
    assert {replay.fixture for replay in REPLAYS} | OTHER_FIXTURES == found


@pytest.mark.parametrize("quantity", ["returned", "probe_logits", "final", "initial_probe_logits"])
def test_a_replay_fails_when_a_recorded_number_differs(monkeypatch: pytest.MonkeyPatch, quantity: str) -> None:
    right = {name: oracle.load(name) for name in ("ERM", "problem")}
    wrong = copy.deepcopy(right)
    expected = wrong["ERM"]["cases"][-1]["expected"]
    if quantity == "returned":
        expected["steps"][-1]["returned"]["loss"] += 1e-6
    elif quantity == "probe_logits":
        expected["steps"][-1]["probe_logits"][-1][-1] += 1e-6
    elif quantity == "final":
        expected["final"]["classifier"]["bias"][-1] += 1e-6
    else:
        expected["initial_probe_logits"][0][0] += 1e-6
    monkeypatch.setattr(oracle, "load", wrong.__getitem__)
    with pytest.raises(AssertionError):
        run(REPLAYS[0])
    monkeypatch.setattr(oracle, "load", right.__getitem__)
    run(REPLAYS[0])
