"""Adam whose state can be reset, saved and loaded."""

import torch
from torch import Tensor, nn

from longshift.nn import optim


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
