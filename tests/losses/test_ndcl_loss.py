"""NDCLLoss: its parts add up, it stays finite where the equations have 0/0, and it can be compiled whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.losses import check_agreement
from longshift.losses import NDCLLoss, NDCLRecipe, infonce_nd, mine, prototype_alignment, reweighted_cross_entropy
from longshift.losses.contrastive import CONTRASTS
from longshift.losses.ndcl_loss import RELEASED
from longshift.rng import HostDraws
from tests.given_draws import GivenDraws

COUNTS = torch.tensor([[40, 10, 5, 0], [3, 30, 0, 8], [6, 6, 6, 6]])
Case = tuple[Tensor, Tensor]  # labels, domains
EDGES: dict[str, Case] = {
    "single-sample class": (torch.tensor([0, 0, 1, 1, 0, 2, 1, 1, 0]), torch.arange(3).repeat_interleave(3)),
    "one-class batch": (torch.full((9,), 2), torch.arange(3).repeat_interleave(3)),
    "one class, one domain": (torch.full((4,), 1), torch.zeros(4, dtype=torch.int64)),
    "class in one domain only": (torch.tensor([0, 1, 3, 0, 1, 1, 0, 1, 1]), torch.arange(3).repeat_interleave(3)),
    "all classes different": (torch.arange(4), torch.tensor([0, 0, 1, 1])),
    "one sample": (torch.tensor([3]), torch.tensor([0])),
}
OPTIONS: list[dict[str, Any]] = [
    *({"contrast": c, "negatives": n} for c in CONTRASTS for n in ("augmented", "batch", "both")),
    dict(RELEASED),
    {"normalized": True, "prior": "domain", "lambda_max_half": True},
    {"normalized": True, "contrast": "supcon_nd", "reduction": "class", "prior": "global"},
    {"reduction": "sum", "share": "uniform", "weights": "class", "divisor": "all"},
    {"pairs": "released", "aug_scaler": 1.5, "factors": "global", "weight_gradient": True},
]


def constant(x: Tensor) -> Tensor:
    """Weights of zero: the same prediction for every input."""
    return torch.zeros_like(x)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("equal", [False, True], ids=["spread", "all-equal predictions"])
@pytest.mark.parametrize("autocast", [False, True], ids=["fp32", "bf16"])
def test_edge_cases_are_finite(edge: str, equal: bool, autocast: bool) -> None:
    y, d = EDGES[edge]
    x = torch.randn(len(y), 5, generator=torch.Generator().manual_seed(0))
    for options in OPTIONS:
        torch.manual_seed(0)
        model = nn.Linear(5, 4)
        if equal:
            nn.init.zeros_(model.weight)
            nn.init.zeros_(model.bias)
        ndcl = NDCLLoss(COUNTS, **options)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            assert model(x).dtype == (torch.bfloat16 if autocast else torch.float32)
            loss = ndcl(model, x, y, d)
        assert loss.dtype == torch.float32
        loss.backward()
        assert torch.isfinite(loss), options
        for parameter in model.parameters():
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all(), options


def test_one_class_batch_has_no_contrastive_term() -> None:
    y, d = EDGES["one-class batch"]
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    ndcl = NDCLLoss(COUNTS)
    x_hat, cls = ndcl.mined_inputs(x, x, y, torch.rand(9))
    assert torch.isfinite(x_hat).all()
    terms = ndcl.objective(x, y, d, x_hat, cls)
    assert terms.con is not None
    assert terms.con == 0


def test_half_precision_inputs_are_computed_in_float32() -> None:
    g = torch.Generator().manual_seed(0)
    y, d = EDGES["single-sample class"]
    low = torch.randn(9, 4, generator=g).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        half = [
            infonce_nd(low.softmax(1), y),
            prototype_alignment(low.softmax(1), y, d),
            reweighted_cross_entropy(low, y),
        ]
    p = low.softmax(1).float()
    full = [infonce_nd(p, y), prototype_alignment(p, y, d), reweighted_cross_entropy(low.float(), y)]
    for a, b in zip(half, full, strict=True):
        assert a.dtype == torch.float32
        assert torch.equal(a, b)
    assert mine(p.double(), y).cls.tolist() == mine(p.bfloat16(), y).cls.tolist()


def test_the_call_is_the_sum_of_its_parts() -> None:
    torch.manual_seed(0)
    y, d = EDGES["single-sample class"]
    x, model, lam = torch.randn(9, 5).double(), nn.Linear(5, 4).double(), torch.rand(9).double()
    seen: list[Tensor] = []

    def watched(inputs: Tensor) -> Tensor:
        seen.append(inputs)
        result: Tensor = model(inputs)
        return result

    ndcl = NDCLLoss(COUNTS, alpha=0.3, beta=0.7)
    loss = ndcl(watched, x, y, d, lam)
    logits = model(x)
    low, high, cls, _ = mine(logits.softmax(1), y, COUNTS.sum(0))
    x_hat = lam[:, None] * x[low] + (1 - lam[:, None]) * x[high]
    assert len(seen) == 2
    torch.testing.assert_close(seen[1], x_hat)
    p, q = logits.softmax(1), model(x_hat).softmax(1)
    expected = reweighted_cross_entropy(logits, y) + 0.3 * infonce_nd(p, y, q, cls) + 0.7 * prototype_alignment(p, y, d)
    torch.testing.assert_close(loss, expected)
    drawn = NDCLLoss(COUNTS, alpha=0.3, beta=0.7, draws=GivenDraws({"beta": [lam]}))
    torch.testing.assert_close(drawn(model, x, y, d), expected)


def test_without_counts_the_batch_is_counted() -> None:
    y, d = EDGES["single-sample class"]
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    lam = torch.rand(9)
    in_batch = torch.bincount(y, minlength=4)
    assert torch.equal(NDCLLoss()(constant, x, y, d, lam), NDCLLoss(in_batch)(constant, x, y, d, lam))


@pytest.mark.parametrize("prior", ["domain", "global"])
def test_prior_shifts_the_logits_of_eq_ce_only(prior: str) -> None:
    y, d = EDGES["class in one domain only"]
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    plain = NDCLLoss(COUNTS, negatives="batch").objective(logits, y, d)
    # As in training, no sample is of a class that its domain has none of.
    counts = torch.where(COUNTS > 0, COUNTS, 1)
    shifted = NDCLLoss(counts, negatives="batch", prior=prior).objective(logits, y, d)
    prior_counts = counts[d] if prior == "domain" else counts.sum(0)
    expected = reweighted_cross_entropy(logits + prior_counts.log(), y)
    torch.testing.assert_close(shifted.ce, expected)
    assert plain.con is not None
    assert plain.const is not None
    assert shifted.con is not None
    assert shifted.const is not None
    assert torch.equal(plain.con, shifted.con)
    assert torch.equal(plain.const, shifted.const)


@pytest.mark.parametrize("prior", ["domain", "global"])
def test_prior_has_the_precision_of_the_logits(prior: str) -> None:
    y, d = EDGES["single-sample class"]
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    counts = torch.where(COUNTS > 0, COUNTS, 1)
    shift = (counts[d] if prior == "domain" else counts.sum(0)).double().log()
    expected = reweighted_cross_entropy(logits + shift, y)
    for given in (counts, counts.float(), counts.tolist()):
        found = NDCLLoss(given, negatives="batch", prior=prior).objective(logits, y, d).ce
        torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("factors", ["none", "domain", "global"])
@pytest.mark.parametrize("weight_gradient", [False, True])
def test_factors_multiply_the_weights_of_eq_ce(factors: str, weight_gradient: bool) -> None:
    """A plain loop over classes; 1 / count of each domain or of all, with a sum of K."""
    y, d = EDGES["single-sample class"]
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    expected = torch.zeros(())
    for k in set(y.tolist()):
        losses = cross_entropy(logits[y == k], y[y == k], reduction="none")
        weights = losses.exp() / losses.exp().sum()
        for loss, weight, domain in zip(losses, weights, d[y == k].tolist(), strict=True):
            row = COUNTS[domain] if factors == "domain" else COUNTS.sum(0)
            inverse = [1 / max(n, 1) for n in row.tolist()]
            factor = 1.0 if factors == "none" else 4 * inverse[k] / sum(inverse)
            expected = expected + factor * (weight if weight_gradient else weight.detach()) * loss / 3
    ndcl = NDCLLoss(COUNTS, alpha=0, beta=0, factors=factors, weight_gradient=weight_gradient)
    found = ndcl.objective(logits, y, d).total
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, logits)[0] for value in (found, expected)))


def test_more_samples_than_the_batch_has_are_mined() -> None:
    y, d = EDGES["single-sample class"]
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    ndcl = NDCLLoss(COUNTS, aug_scaler=1.5)
    x_hat, cls = ndcl.mined_inputs(x, x, y, ndcl.draw_lambda(9))
    assert len(x_hat) == len(cls) == 13
    assert torch.isfinite(ndcl(constant, x, y, d))
    with pytest.raises(ValueError, match="aug_scaler"):
        NDCLLoss(COUNTS, aug_scaler=0.5)


def test_weights_of_zero_leave_terms_out() -> None:
    y, d = EDGES["single-sample class"]
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    terms = NDCLLoss(alpha=0, beta=0, weights="none").objective(logits, y, d)
    assert terms.con is None
    assert terms.const is None
    torch.testing.assert_close(terms.total, cross_entropy(logits, y))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"`class_counts`.*\(4,\)"):
        NDCLLoss(COUNTS.sum(0), prior="domain")
    with pytest.raises(ValueError, match="None"):
        NDCLLoss(prior="global")
    with pytest.raises(ValueError, match="factors='domain'"):
        NDCLLoss(COUNTS.sum(0), factors="domain")
    with pytest.raises(ValueError, match="share"):
        NDCLLoss(COUNTS, share="equal")
    with pytest.raises(ValueError, match="supcon"):
        NDCLLoss(COUNTS, similarity="exp")
    with pytest.raises(TypeError, match="wheights"):
        NDCLLoss(COUNTS, wheights="none")
    with pytest.raises(ValueError, match="-1"):
        NDCLLoss([[3, -1], [1, 1]], prior="domain")
    with pytest.raises(ValueError, match=r"\(4, 3\)"):
        NDCLLoss(COUNTS.T, prior="domain", negatives="batch").objective(torch.zeros(2, 4), *torch.zeros(2, 2).long())
    with pytest.raises(ValueError, match="`recipe`"):
        NDCLLoss(COUNTS, recipe=NDCLRecipe(), alpha=0.3)


def test_nothing_is_added_to_a_checkpoint() -> None:
    assert NDCLLoss(COUNTS, prior="domain", factors="domain").state_dict() == {}


def test_same_seed_same_loss() -> None:
    y, d = EDGES["single-sample class"]
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))

    def run(make: Callable[[], NDCLLoss]) -> list[float]:
        ndcl = make()
        return [ndcl(lambda v: v, x, y, d).item() for _ in range(3)]

    first = run(lambda: NDCLLoss(COUNTS, seed=5))
    assert first == run(lambda: NDCLLoss(COUNTS, draws=HostDraws(5)))
    assert len(set(first)) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "options"),
    [(20, {}), (4, dict(RELEASED)), (20, {"negatives": "both", "prior": "domain", "normalized": True})],
)
def test_one_graph_without_reading_tensors_on_the_host(classes: int, options: dict[str, Any]) -> None:
    """`fullgraph` fails on anything that depends on data: .item(), nonzero, boolean indexing."""
    y, d = EDGES["single-sample class"]
    g = torch.Generator().manual_seed(0)
    x = torch.randn(9, classes, generator=g)
    lam = torch.rand(NDCLRecipe(**options).n_lambdas(9), generator=g)
    ndcl = NDCLLoss(torch.randint(0, 50, (3, classes), generator=g), **options)

    def loss(x: Tensor, y: Tensor, d: Tensor, lam: Tensor) -> Tensor:
        result: Tensor = ndcl(torch.tanh, x, y, d, lam)
        return result

    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, y, d, lam), loss(x, y, d, lam))
    torch._dynamo.reset()


@pytest.mark.parametrize("classes", [7, 65, 345])
def test_benchmark_versions_agree(classes: int) -> None:
    """The loop over classes that the benchmark times computes the same value and gradients."""
    assert check_agreement(96, classes) < 1e-10
