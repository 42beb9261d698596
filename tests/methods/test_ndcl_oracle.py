"""NDCL with `preset="released"` agrees, step by step, with numbers recorded from the authors' code."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn

from longshift.methods.base import Batch
from longshift.methods.ndcl import NDCL
from tests.given_draws import GivenDraws
from tests.losses import loops
from tests.methods.oracle import Replay, batch, cases, check_linear, close, make_method, tensor

REPLAY = Replay("ndcl", "NDCL_released_update", {"mixup": "rho"}, extra_config=lambda case: {"preset": "released"})
WEIGHTS = {"loss_margin": "alpha", "loss_align": "beta"}
NAMES = {"loss": "loss", "loss_cls": "ce", "loss_margin": "con", "loss_align": "const"}


def released_ndcl(problem: dict[str, Any], case: dict[str, Any]) -> NDCL:
    method = make_method(REPLAY, problem, case)
    assert isinstance(method, NDCL)
    method.ndcl.factors = tensor(case["weights_per_env"])
    method.start(GivenDraws({}))
    method.train()
    return method


def test_the_released_preset_takes_the_published_steps() -> None:
    for problem, case in cases(REPLAY):
        method, probe = released_ndcl(problem, case), tensor(problem["probe"])
        close(method.predict(probe), case["expected"]["initial_probe_logits"], f"{case['name']}: initial logits")
        for index, expected in enumerate(case["expected"]["steps"]):
            where = f"{case['name']}, step {index}"
            method.before_step(index)
            samples, given = batch(problem, index), case["given"]["per_step"][index]
            x_hat, cls_hat = tensor(given["aug_x"]), tensor(given["aug_y"], torch.int64)
            losses = method.objective(samples, method.network(samples.x), x_hat, cls_hat)
            for name, value in expected["returned"].items():
                if NAMES[name] in losses.terms:
                    close(losses.terms[NAMES[name]], value, f"{where}: {name}")
                else:  # a term with weight 0 is not computed
                    assert case["hparams"][WEIGHTS[name]] == 0, f"{where}: no {name}"
            method.minimize(losses.total)
            close(method.predict(probe), expected["probe_logits"], f"{where}: logits")
        final, featurizer = case["expected"]["final"], method.network.featurizer
        assert isinstance(featurizer, nn.Sequential)
        check_linear(featurizer[0], final["featurizer"], f"{case['name']}: final featurizer")
        check_linear(method.network.classifier, final["classifier"], f"{case['name']}: final classifier")


def test_released_shares_are_those_of_the_update() -> None:
    """The classes of the published augmented samples, up to the one sample by which its rounding can be off."""
    for problem, case in cases(REPLAY):
        method = released_ndcl(problem, case)
        for index, given in enumerate(case["given"]["per_step"]):
            samples = batch(problem, index)
            cls = method.ndcl.mine(method.network(samples.x), samples.y).cls
            ours = torch.bincount(cls, minlength=problem["n_classes"])
            theirs = torch.bincount(tensor(given["aug_y"], torch.int64), minlength=problem["n_classes"])
            assert len(cls) == len(samples)
            assert ours.sum() == len(samples)
            assert (theirs - ours).abs().max() <= 1


def looped(samples: Batch, predictions: Tensor, given: dict[str, Any]) -> Tensor:
    """The mined samples of one update by plain loops, with all of its draws."""
    lams, orders = iter(given["lam"]), iter(given["permutations"])
    shares = Counter(int(k) for k in given["aug_y"])
    made = loops.released_mix(
        samples.x,
        predictions,
        samples.y.tolist(),
        shares,
        next(lams),
        lambda start: float(next(lams)),
        lambda turn, size: (next(orders), next(orders)),
    )
    assert not [*lams, *orders]
    return torch.stack(made)


def test_plain_loops_give_the_mined_samples_of_the_update() -> None:
    """The loops of `tests/losses/test_mining.py` are those of the authors' code."""
    for problem, case in cases(REPLAY):
        method = released_ndcl(problem, case)
        for index, given in enumerate(case["given"]["per_step"]):
            method.before_step(index)
            samples, cls_hat = batch(problem, index), tensor(given["aug_y"], torch.int64)
            logits = method.network(samples.x)
            close(looped(samples, logits.softmax(1), given), given["aug_x"], f"{case['name']}, step {index}")
            method.minimize(method.objective(samples, logits, tensor(given["aug_x"]), cls_hat).total)


def test_the_preset_weighs_samples_as_reweight_does() -> None:
    """`weights_per_env` of the authors' ReWeight: 1 / count in each domain, with a sum of K."""
    problem, case = next(iter(cases(REPLAY)))
    method = make_method(REPLAY, problem, case)
    assert isinstance(method, NDCL)
    assert method.ndcl.factors is not None
    rows = [[1 / n for n in row] for row in problem["env_labels"]]
    close(method.ndcl.factors, [[len(row) * value / sum(row) for value in row] for row in rows], "factors")
