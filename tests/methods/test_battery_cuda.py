"""What only a GPU can show of every method: captured steps, moves between devices, no waiting for the GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from longshift.methods import all_methods
from longshift.methods.base import Batch, Method
from longshift.rng import Draws, HostDraws, Request
from longshift.training.batch_source import Source
from longshift.training.graph_rng import TapedDraws
from longshift.training.steppers import GraphStepper, LossLog, PlainStepper
from tests.methods.tiny import Tiny

pytestmark = pytest.mark.gpu

ALL = [name for name, cls in all_methods().items() if cls.by_steps]
CAPTURABLE = [name for name in ALL if all_methods()[name].capturable]
STEPS = 14
# Sums in another order differ in their last digits, which Adam's division by small second moments makes larger.
RTOL, ATOL = 1e-3, 1e-4


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """The same algorithms on both ways, and no TF32."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before
    torch.backends.cudnn.deterministic = False


def assert_close(method: Method, other: Method) -> None:
    for (key, a), b in zip(method.state_dict().items(), other.state_dict().values(), strict=True):
        gap = (a.cpu().double() - b.cpu().double()).abs()
        worst = float((gap - RTOL * b.cpu().double().abs()).max())
        assert worst <= ATOL, f"{key}: differs by {gap.max():.2e}"


class TinySource(Source):
    """Batches in fixed places on the GPU, as a captured step needs them."""

    def __init__(self, tiny: Tiny) -> None:
        self.tiny = tiny
        self.placed = tiny.on("cuda", tiny.batch(0))

    def prepare(self, step: int) -> None:
        batch = self.tiny.batch(step)
        self.placed.x.copy_(batch.x)
        self.placed.y.copy_(batch.y)

    def batch(self, draws: Draws) -> Batch:
        # Every real source draws samples and augmentations first; the draws of the step come after them.
        draws.permutation(2)
        draws.uniform(1)
        return self.placed


@pytest.mark.parametrize("name", CAPTURABLE)
def test_captured_steps_equal_plain_ones(name: str) -> None:
    tiny = Tiny()
    # Features are passed between steps only by the engine; without them both ways see zero centroids.
    plain, captured = (tiny.make(name).cuda() for _ in range(2))
    host, log = HostDraws(0, device="cuda"), LossLog(torch.device("cuda"))
    plain.start(host)
    steps = PlainStepper(plain, TinySource(tiny), host, log)
    for step in range(STEPS):
        steps.run(step)

    draws = TapedDraws(0, 0, torch.device("cuda"))
    captured.start(draws)
    stepper = GraphStepper(captured, TinySource(tiny), draws, LossLog(torch.device("cuda")), STEPS)
    for step in range(STEPS):
        stepper.run(step)
    torch.cuda.synchronize()
    assert stepper.graphs
    assert_close(plain, captured)


@pytest.mark.parametrize("name", ALL)
def test_cpu_and_gpu_train_alike_and_a_state_moves_between_them(name: str) -> None:
    tiny = Tiny()
    here = tiny.make(name)
    here.start(HostDraws(0))
    tiny.train(here, 0, 3)
    there = tiny.make(name, seed=1).cuda()
    there.start(HostDraws(0, device="cuda"))
    there.load_state(here.state())
    tiny.train(here, 3, 5)
    tiny.train(there, 3, 5)
    assert all(value.is_cuda for value in there.state_dict().values())
    for optimizer in there.optimizers.values():
        assert all(group.get("capturable", True) for group in optimizer.param_groups)
    assert_close(here, there)
    back = tiny.make(name, seed=2)
    back.start(HostDraws(0))
    back.load_state(there.state())
    tiny.train(here, 5, 6)
    tiny.train(back, 5, 6)
    assert_close(here, back)


class Recorded(Draws):
    """Keeps what another source of draws answered."""

    def __init__(self, draws: HostDraws) -> None:
        self.draws, self.answers = draws, list[Tensor]()

    def answer(self, request: Request) -> Tensor:
        self.answers.append(self.draws.answer(request))
        return self.answers[-1]


class Repeated(Draws):
    """Gives recorded answers, which are on the device already."""

    def __init__(self, answers: list[Tensor]) -> None:
        self.answers = iter(answers)

    def answer(self, request: Request) -> Tensor:
        return next(self.answers)


@pytest.mark.parametrize("name", CAPTURABLE)
def test_step_does_not_wait_for_the_gpu(name: str) -> None:
    tiny = Tiny()
    method = tiny.make(name).cuda()
    method.start(HostDraws(0, device="cuda"))
    tiny.train(method, 0, 3)
    batch = tiny.on("cuda", tiny.batch(3))
    recorded = method.draws = Recorded(HostDraws(0, device="cuda"))
    method.before_step(3)
    method.step(batch)
    method.draws = Repeated(recorded.answers)
    torch.cuda.set_sync_debug_mode("error")
    try:
        method.step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")
