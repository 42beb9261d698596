"""Optimizers, gradients of lists of parameters, sharpness-aware minimization."""

from __future__ import annotations

import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from longshift.nn import optim
from longshift.nn.optim import (
    assign_tensors,
    copy_tensors,
    first_adam_step,
    flatten_tensors,
    gradients,
    set_gradients,
    sharpest_shift,
    sharpness_aware_gradients,
    shifted_weights,
    trainable,
    unflatten_tensors,
)


def stepped(rate: float | Tensor, steps: int) -> tuple[nn.Parameter, torch.optim.Adam]:
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.Adam([weight], lr=rate, foreach=False, capturable=isinstance(rate, Tensor))
    for _ in range(steps):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
    return weight, optimizer


def test_reset_makes_the_next_step_that_of_a_fresh_adam() -> None:
    weight, optimizer = stepped(0.1, 3)
    optim.reset(optimizer, 0.01)
    start = weight.detach().clone()
    weight.grad = torch.tensor([3.0, -4.0])
    optimizer.step()
    torch.testing.assert_close(weight.detach(), start - 0.01 * torch.tensor([1.0, -1.0]))


def test_loaded_state_shares_nothing_with_the_saved_one() -> None:
    _, first = stepped(0.1, 3)
    weight, second = stepped(0.2, 1)
    optim.load_state(second, first.state_dict())
    before = float(next(iter(first.state.values()))["step"])
    moments = next(iter(first.state.values()))["exp_avg"].clone()
    weight.grad = torch.ones(2)
    second.step()
    assert float(next(iter(first.state.values()))["step"]) == before == 3.0
    assert torch.equal(next(iter(first.state.values()))["exp_avg"], moments)
    assert float(second.state[weight]["step"]) == 4.0
    assert second.param_groups[0]["lr"] == 0.1


def test_a_rate_in_a_tensor_stays_in_that_tensor() -> None:
    _, plain = stepped(0.1, 2)
    rate = torch.tensor(0.5)
    weight = nn.Parameter(torch.zeros(2))
    captured = torch.optim.SGD([weight], lr=rate)
    optim.load_state(captured, torch.optim.SGD([nn.Parameter(torch.zeros(2))], lr=0.25).state_dict())
    assert captured.param_groups[0]["lr"] is rate
    assert rate.item() == 0.25
    optim.load_state(
        plain, {**plain.state_dict(), "param_groups": [{**plain.state_dict()["param_groups"][0], "lr": rate}]}
    )
    assert plain.param_groups[0]["lr"] == 0.25
    assert isinstance(plain.param_groups[0]["lr"], float)


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


def test_gradient_on_a_quadratic_is_the_one_found_by_hand() -> None:
    # f(a, b) = a^2 + 2 b^2 at (3/2, 1): gradient (3, 4) of length 5. With rho = 1/2 the point is moved by (0.3, 0.4)
    # to (1.8, 1.4), where the gradient is (3.6, 5.6) and f = 3.24 + 3.92.
    a, b = (nn.Parameter(torch.tensor([v], dtype=torch.float64)) for v in (1.5, 1.0))

    def loss() -> torch.Tensor:
        return (a.square() + 2 * b.square()).sum()

    up = gradients(loss(), [a, b])
    value, down = sharpness_aware_gradients(loss, [a, b], up, rho=0.5)
    torch.testing.assert_close(torch.cat(down), torch.tensor([3.6, 5.6], dtype=torch.float64), rtol=0, atol=1e-14)
    assert abs(value.item() - 7.16) < 1e-14
    assert (a.item(), b.item()) == (1.5, 1.0)


def test_shift_has_the_length_rho_over_all_weights_together() -> None:
    grads = [torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])]
    shift = sharpest_shift(grads, 0.1)
    torch.testing.assert_close(torch.cat([s.flatten() for s in shift]), torch.tensor([0.06, 0.0, 0.08]))


def test_zero_gradient_gives_no_shift() -> None:
    (shift,) = sharpest_shift([torch.zeros(3)], 0.1)
    assert torch.equal(shift, torch.zeros(3))
