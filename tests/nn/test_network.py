"""How often a process compiles a network: once for a shape, whatever a method does with its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, fx, nn

from longshift.nn.network import COMPILED_SHAPES, Network


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Size]]:
    """The shapes compiled so far; nothing is generated."""
    shapes: list[torch.Size] = []

    def backend(graph: fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        shapes.extend(value.shape for value in inputs if value.shape[1:] == (3, 8, 8))
        return graph.forward

    plain = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **options: plain(module, backend=backend, **options))
    before = torch._dynamo.config.recompile_limit, torch._functorch.config.donated_buffer
    for config, name in ((torch._dynamo.config, "recompile_limit"), (torch._functorch.config, "donated_buffer")):
        monkeypatch.setattr(config._config[name], "default", config._config[name].default)
    torch._dynamo.reset()
    yield shapes
    torch._dynamo.reset()
    torch._dynamo.config.recompile_limit, torch._functorch.config.donated_buffer = before


def _network() -> Network:
    features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = Network(features, nn.Linear(4, 2))
    network.compile_featurizer()
    return network


def test_the_layout_of_a_batch_and_the_next_run_compile_nothing(compiled: list[torch.Size]) -> None:
    for _ in range(3):  # runs of one worker
        network = _network()
        x = torch.rand(4, 3, 8, 8)
        for samples in (x.contiguous(memory_format=torch.channels_last), x, x.permute(0, 1, 3, 2)):
            expected = network.classifier(network.featurizer(samples))
            torch.testing.assert_close(network(samples), expected)
    assert compiled == [torch.Size((4, 3, 8, 8))]


@pytest.mark.slow
def test_every_batch_size_of_a_search_is_compiled(compiled: list[torch.Size]) -> None:
    network = _network()
    sizes = range(2, 22)
    for size in sizes:
        network(torch.rand(size, 3, 8, 8))
    assert [shape[0] for shape in compiled] == list(sizes)
    assert (
        COMPILED_SHAPES >= 5 * 2**5.5
    )  # the published search of the batch size ends there; methods make five shapes of it
