"""GINIDG: generated samples, gradient reversal and its two phases."""

from __future__ import annotations

import math

import pytest
import torch

from longshift.methods.ginidg import GINIDG
from longshift.rng import HostDraws
from tests.given_draws import GivenDraws
from tests.methods.tiny import FEATURES, Tiny


def made(domains: int, **values: int) -> GINIDG:
    method = Tiny(domains=domains).make("ginidg", values=values)
    assert isinstance(method, GINIDG)
    return method


@pytest.mark.parametrize("domains", [2, 3, 4, 5])
@pytest.mark.parametrize("sample_size", [0, 1, 6])
def test_generates_from_the_mean_of_all_domains(domains: int, sample_size: int) -> None:
    method, tiny = made(domains, sample_size=sample_size), Tiny(domains=domains)
    batch, copies = tiny.batch(0), sample_size or 2 * domains
    rows = copies * tiny.per_domain
    noise = torch.randn(rows, 3, generator=torch.Generator().manual_seed(0))
    method.start(GivenDraws({"normal": [noise.tolist()]}, dtype=torch.float32))
    features = torch.randn(len(batch), FEATURES, generator=torch.Generator().manual_seed(1))
    generated = method.generate(features, batch)
    assert generated.shape == (rows, FEATURES)
    for row in (0, 1, rows - 1):
        own = torch.stack([features[d * tiny.per_domain + row % tiny.per_domain] for d in range(domains)]).mean(0)
        deviation = method.generator["log_variance"](own).exp().add(1e-8).sqrt()
        latent = method.generator["mean"](own) + noise[row] * deviation
        torch.testing.assert_close(generated[row], method.generator["decoder"](latent.relu()))


def test_reversal_grows_from_nothing_to_its_weight() -> None:
    method = Tiny().make("ginidg", values={"grl_weight": 0.5})
    assert isinstance(method, GINIDG)
    found = []
    for index in (0, 3, 6, 12):
        method.before_step(index)
        found.append(method.strength.item())
    assert found == pytest.approx([0.5 * math.tanh(5 * index / 12) for index in (0, 3, 6, 12)], abs=1e-6)


def test_discriminators_are_the_released_ones() -> None:
    """256 units for real against generated, twice 1,024 for the domain; half of them are dropped in training."""
    method = GINIDG(Tiny().network(), Tiny().problem(), GINIDG.Config.make({}))
    sizes = {"real": method.real_discriminator, "domain": method.domain_discriminator}
    widths = {name: [layer.get_parameter("weight").shape[0] for layer in mlp.layers] for name, mlp in sizes.items()}
    assert widths == {"real": [256, 2], "domain": [1024, 1024, 3]}
    x = torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(0))
    for mlp in sizes.values():
        torch.manual_seed(3)
        found = mlp.train()(x)
        torch.manual_seed(3)
        hidden = x
        for layer in mlp.layers[:-1]:
            hidden = layer(hidden)
            kept = torch.empty_like(hidden).bernoulli_(0.5)  # the masks that torch's dropout draws
            hidden = (2 * kept * hidden).relu()
        torch.testing.assert_close(found, mlp.layers[-1](hidden))
        assert not torch.allclose(found, mlp.eval()(x))


def test_real_discriminator_waits_for_the_second_phase() -> None:
    tiny = Tiny()
    method = tiny.make("ginidg")
    assert isinstance(method, GINIDG)
    method.start(HostDraws(0))
    before = method.real_discriminator.layers[0].get_parameter("weight").clone()
    tiny.train(method, 0, 2)
    assert torch.equal(before, method.real_discriminator.layers[0].get_parameter("weight"))
    tiny.train(method, 2, 3)
    assert not torch.equal(before, method.real_discriminator.layers[0].get_parameter("weight"))
