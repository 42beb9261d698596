"""The loss-only methods agree with the published implementation on every fixture."""

from __future__ import annotations

from typing import Any

import pytest

from longshift.methods.base import Method
from longshift.methods.groupdro import GroupDRO
from longshift.methods.tcri import TCRI
from tests.methods.oracle import Replay, check_linear, close, run, set_linear


def check_q(method: Method, expected: dict[str, Any]) -> None:
    assert isinstance(method, GroupDRO)
    close(method.q, expected["q"], "q")


def set_tcri(method: Method, extra: dict[str, Any]) -> None:
    assert isinstance(method, TCRI)
    set_linear(method.general, extra["domain_general_featurizer"])
    set_linear(method.spurious, extra["spurious_featurizer"])
    for layer, given in zip(method.spurious_classifiers, extra["spurious_classifiers"], strict=True):
        set_linear(layer, given)


def check_tcri(method: Method, final: dict[str, Any]) -> None:
    assert isinstance(method, TCRI)
    check_linear(method.general, final["domain_general_featurizer"], "general")
    check_linear(method.spurious, final["spurious_featurizer"], "spurious")
    for index, layer in enumerate(method.spurious_classifiers):
        if f"spurious_classifier_{index}" in final:
            check_linear(layer, final[f"spurious_classifier_{index}"], f"spurious classifier {index}")


REPLAYS = [
    Replay("irm", "IRM", {"irm_penalty_anneal_iters": "anneal"}),
    Replay("vrex", "VREx", {"vrex_penalty_anneal_iters": "anneal"}),
    Replay("groupdro", "GroupDRO", {"groupdro_eta": "eta"}, after_step=check_q),
    Replay("coral", "CORAL", {"mmd_gamma": "gamma"}),
    Replay("mmd", "MMD", {"mmd_gamma": "gamma"}),
    Replay("fishr", "Fishr", {"lambda": "fishr_lambda", "penalty_anneal_iters": "anneal"}),
    Replay("eqrm", "EQRM", {"eqrm_quantile": "quantile", "eqrm_burnin_iters": "burnin"}),
    Replay("rdm", "RDM", {"rdm_penalty_anneal_iters": "anneal"}),
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
]


@pytest.mark.oracle
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.method)
def test_agrees_with_the_reference(replay: Replay) -> None:
    run(replay)
