"""Helpers on parameters: gradients, temporary shifts, flattening."""

import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from longshift.nn.parameters import (
    assign_tensors,
    copy_tensors,
    first_adam_step,
    flatten_tensors,
    gradients,
    set_gradients,
    shifted_weights,
    trainable,
    unflatten_tensors,
)


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def test_trainable_leaves_out_frozen_weights() -> None:
    model = layers()
    model[0].bias.requires_grad_(False)
    assert [tuple(w.shape) for w in trainable(model)] == [(4, 3), (2, 4), (2,)]


def test_gradients_of_unused_weights_are_zero() -> None:
    used, unused = nn.Parameter(torch.tensor([2.0])), nn.Parameter(torch.tensor([5.0]))
    first, second = gradients(used.square().sum(), [used, unused])
    assert first.item() == 4.0
    assert second.item() == 0.0


def test_shifted_weights_come_back_bit_for_bit() -> None:
    model = layers()
    weights = trainable(model)
    before = copy_tensors(weights)
    with shifted_weights(weights, [torch.full_like(w, 1e-3) for w in weights]):
        for w, b in zip(weights, before, strict=True):
            assert torch.equal(w, b + 1e-3)
    assert all(torch.equal(w, b) for w, b in zip(weights, before, strict=True))


def test_shifted_weights_come_back_after_an_error() -> None:
    weights = trainable(layers())
    before = copy_tensors(weights)
    try:
        with shifted_weights(weights, [torch.ones_like(w) for w in weights]):
            raise RuntimeError
    except RuntimeError:
        pass
    assert all(torch.equal(w, b) for w, b in zip(weights, before, strict=True))


def test_flat_and_unflat_are_inverse_and_put_writes_in_place() -> None:
    weights = trainable(layers())
    places = [w.data_ptr() for w in weights]
    vector = flatten_tensors(weights)
    assert vector.shape == (3 * 4 + 4 + 4 * 2 + 2,)
    assign_tensors(weights, unflatten_tensors(vector * 2, weights))
    assert torch.equal(flatten_tensors(weights), vector * 2)
    assert [w.data_ptr() for w in weights] == places


@settings(deadline=None)
@given(
    lr=st.floats(1e-5, 1.0),
    weight_decay=st.sampled_from([0.0, 1e-3, 0.5]),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, 1e3]),
)
def test_first_adam_step_is_that_of_a_fresh_adam(lr: float, weight_decay: float, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)

    def values() -> list[Tensor]:
        return [torch.randn(s, generator=generator, dtype=torch.float64) for s in ((3, 2), (4,))]

    weights = [nn.Parameter(v) for v in values()]
    grads = [scale * v for v in values()]
    grads[1][0] = 0.0
    moves = first_adam_step(weights, grads, lr, weight_decay)
    expected = [w.detach() + m for w, m in zip(weights, moves, strict=True)]
    set_gradients(weights, grads)
    torch.optim.Adam(weights, lr=lr, weight_decay=weight_decay).step()
    for w, e in zip(weights, expected, strict=True):
        torch.testing.assert_close(w.detach(), e, rtol=1e-12, atol=1e-13)
