"""A network: a featurizer, dropout and a linear classifier; and how its kernels are chosen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

Precision = Literal["fp32", "bf16"]
# Batch shapes a process may compile for. Batch sizes differ between draws and some methods split batches, so the runs
# of a sweep worker exceed torch's default of 8, after which it silently stops compiling.
COMPILED_SHAPES = 256


class Network(nn.Module):
    """`forward(x)` = classifier(dropout(features(x))).

    `features` returns float32 (or float64), so that heads, losses and gradients per sample are computed in full
    precision, whatever the precision of the backbone.

    Args:
        featurizer: Maps inputs to features (B, F).
        classifier: Maps features to logits (B, K).
        dropout: Probability of dropping a feature before the classifier.
        freeze_bn: Whether batch norms keep their statistics during training.
        precision: Arithmetic of the featurizer: "fp32" or "bf16".

    Example:
        >>> import torch
        >>> network = Network(nn.Flatten(), nn.Linear(12, 5))
        >>> network(torch.rand(4, 3, 2, 2)).shape, network.features(torch.rand(4, 3, 2, 2)).shape
        (torch.Size([4, 5]), torch.Size([4, 12]))
    """

    def __init__(
        self,
        featurizer: nn.Module,
        classifier: nn.Linear,
        dropout: float = 0.0,
        freeze_bn: bool = True,
        precision: Precision = "fp32",
    ) -> None:
        super().__init__()
        self.featurizer = featurizer
        self.classifier = classifier
        self.dropout = nn.Dropout(dropout)
        self.freeze_bn = freeze_bn
        self.precision: Precision = precision
        # The compiled featurizer for training steps; in a tuple, so that it is not a second submodule.
        self._compiled: tuple[Callable[[Tensor], Tensor], ...] = ()

    @property
    def feature_dim(self) -> int:
        """Length of a feature vector."""
        return self.classifier.in_features

    def features(self, x: Tensor) -> Tensor:
        """Compute feature vectors (B, feature_dim), with dropout in training mode."""
        region: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if self.precision == "bf16":
            # No weight cache: a cached cast would be frozen into a CUDA graph.
            region = torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False)
        featurizer: Callable[[Tensor], Tensor] = self.featurizer
        if self._compiled and self.training:
            # Mixing and joining samples may change the memory layout, which would trigger another compilation.
            featurizer, x = self._compiled[0], _channels_last(x)
        with region:
            features = featurizer(x)
        if features.dtype in (torch.bfloat16, torch.float16):
            features = features.float()
        dropped: Tensor = self.dropout(features)
        return dropped

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits (B, classes)."""
        logits: Tensor = self.classifier(self.features(x))
        return logits

    def compile_featurizer(self) -> None:
        """Compile the featurizer for training steps; evaluation, whose shapes vary, is not compiled."""
        shapes = max(torch._dynamo.config.recompile_limit, COMPILED_SHAPES)
        _set_everywhere(torch._dynamo.config, "recompile_limit", shapes)
        # Methods may take several gradients of one pass; compiled code that reuses its inputs' memory prevents that.
        _set_everywhere(torch._functorch.config, "donated_buffer", False)
        self._compiled = (torch.compile(self.featurizer, dynamic=False),)

    def train(self, mode: bool = True) -> Network:
        """Set the training mode; batch-norm statistics stay frozen if `freeze_bn` is set."""
        super().train(mode)
        if mode and self.freeze_bn:
            for module in self.featurizer.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def _set_everywhere(config: Any, name: str, value: object) -> None:
    """Set an option of torch for all threads.

    In newer versions of torch (2.13, not 2.11) an assignment is valid only in its thread or notebook cell. Gradients on
    a GPU are computed in a thread of autograd, which reads `donated_buffer` again and would find the default.
    """
    setattr(config, name, value)
    config._config[name].default = value


@contextmanager
def without_kernel_tuning(exact: bool = False) -> Iterator[None]:
    """Use cuDNN's first choice instead of timing all kernels for each new shape; `exact` also disables TF32."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.allow_tf32
    cudnn.benchmark = False
    cudnn.allow_tf32 = cudnn.allow_tf32 and not exact
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.allow_tf32 = before
