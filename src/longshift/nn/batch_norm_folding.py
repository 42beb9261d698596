"""Differentiable folding of frozen batch norm into the preceding convolution.

With frozen statistics, batch norm after a convolution is the same convolution with weights W * a and bias b, where
a = gamma / sqrt(var + eps) and b = beta - mean * a. Computing a and b from the parameters in every forward pass gives
the same function and the same gradients for W, gamma and beta, but works on small weight tensors instead of on every
activation: a step is up to twice as fast and keeps fewer activations.

Modules change their class, not their names or parameters, so checkpoints and optimizers stay valid.
"""

from __future__ import annotations

from typing import Any

import torch
from timm.layers.conv2d_same import Conv2dSame
from timm.layers.norm_act import BatchNormAct2d
from timm.layers.padding import pad_same
from torch import Tensor, nn

from longshift.nn.network import without_kernel_tuning

# Only these exact types are supported; a subclass may behave differently.
CONVS = (nn.Conv2d, Conv2dSame)
NORMS = (nn.BatchNorm2d, BatchNormAct2d)


class FoldedConv2d(nn.Conv2d):
    """A convolution that applies the frozen batch norm in `norm`."""

    norm: tuple[nn.BatchNorm2d]  # in a tuple, so that it is not registered a second time

    def folded(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias that include the batch norm."""
        norm = self.norm[0]
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        shift = norm.bias - norm.running_mean * scale
        if self.bias is not None:
            shift = shift + self.bias * scale
        return self.weight * scale[:, None, None, None], shift

    def forward(self, input: Tensor) -> Tensor:
        """Convolve."""
        result: Tensor = self._conv_forward(input, *self.folded())
        return result


class FoldedConv2dSame(FoldedConv2d):
    """A `FoldedConv2d` with TensorFlow's padding."""

    def forward(self, input: Tensor) -> Tensor:
        """Pad, convolve."""
        kernel, stride, dilation = self.kernel_size, self.stride, self.dilation
        padded = pad_same(input, list(kernel), list(stride), list(dilation))
        result: Tensor = self._conv_forward(padded, *self.folded())
        return result


class FoldedNorm(nn.BatchNorm2d):
    """A batch norm that the preceding convolution applies."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class FoldedNormAct(BatchNormAct2d):
    """timm's batch norm with activation, whose norm the preceding convolution applies."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        result: Tensor = self.act(self.drop(x))
        return result


class OneDnnConv2d(nn.Conv2d):
    """A convolution that always takes oneDNN's kernels.

    In one thread, PyTorch computes 1x1 convolutions of small batches by a slower path of its own.
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        result: Tensor = torch.ops.aten.mkldnn_convolution(
            input, weight, bias, self.padding, self.stride, self.dilation, self.groups
        )
        return result


class OneDnnConv2dSame(OneDnnConv2d):
    """An `OneDnnConv2d` with TensorFlow's padding."""

    def forward(self, input: Tensor) -> Tensor:
        """Pad, convolve."""
        padded = pad_same(input, list(self.kernel_size), list(self.stride), list(self.dilation))
        return self._conv_forward(padded, self.weight, self.bias)


def use_onednn(module: nn.Module) -> None:
    """Make a frozen network faster on a CPU: folded weights are computed once, convolutions take oneDNN's kernels.

    The weights change: they are no longer those of a checkpoint.
    """
    if not torch.backends.mkldnn.is_available():
        return
    for part in module.modules():
        if not isinstance(part, nn.Conv2d) or type(part) not in (*CONVS, FoldedConv2d, FoldedConv2dSame):
            continue
        if part.padding_mode != "zeros" or isinstance(part.padding, str):  # what oneDNN's kernels do not take
            continue
        if isinstance(part, FoldedConv2d):
            with torch.no_grad():
                weight, bias = part.folded()
            part.weight, part.bias = nn.Parameter(weight, False), nn.Parameter(bias, False)
        part.__class__ = OneDnnConv2dSame if type(part) in (FoldedConv2dSame, Conv2dSame) else OneDnnConv2d


def fold_frozen_norms(module: nn.Module, example: Tensor) -> int:
    """Fold every batch norm that directly follows a convolution, and return their number.

    Pairs are found by running `example` once and tracing the tensors. If the folded module gives another output (a
    convolution whose output is also used elsewhere), all modules are restored.
    """
    modes = {part: part.training for part in module.modules()}
    module.eval()  # in training mode, tracing would change the statistics
    try:
        with without_kernel_tuning(exact=True):  # in TF32, equal functions differ by more than the check allows
            return _fold(module, example)
    finally:
        for part, mode in modes.items():
            part.training = mode


def _fold(module: nn.Module, example: Tensor) -> int:
    pairs, before = _trace(module, example)
    originals = [(part, part.__class__) for pair in pairs for part in pair]
    for conv, norm in pairs:
        object.__setattr__(conv, "norm", (norm,))
        conv.__class__ = FoldedConv2dSame if type(conv) is Conv2dSame else FoldedConv2d
        norm.__class__ = FoldedNormAct if type(norm) is BatchNormAct2d else FoldedNorm
    with torch.no_grad():
        after = module(example)
    if not torch.allclose(before, after, rtol=1e-3, atol=1e-3 * float(before.abs().max())):
        for part, cls in originals:
            part.__class__ = cls
        return 0
    return len(pairs)


def _trace(module: nn.Module, example: Tensor) -> tuple[list[tuple[nn.Conv2d, nn.BatchNorm2d]], Tensor]:
    made: dict[int, tuple[nn.Conv2d, Tensor]] = {}  # the tensor is kept, so that its id stays unique
    pairs: list[tuple[nn.Conv2d, nn.BatchNorm2d]] = []

    def seen(part: nn.Module, given: tuple[Any, ...], out: Any) -> None:
        if isinstance(part, nn.BatchNorm2d) and type(part) in NORMS and given and id(given[0]) in made:
            if part.affine and part.track_running_stats:
                pairs.append((made[id(given[0])][0], part))
            return
        if isinstance(part, nn.Conv2d) and type(part) in CONVS:
            made[id(out)] = (part, out)

    hooks = [part.register_forward_hook(seen) for part in module.modules() if not list(part.children())]
    # BatchNormAct2d has children (its activation), so it needs its own hook.
    hooks += [
        p.register_forward_hook(seen) for p in module.modules() if type(p) is BatchNormAct2d and list(p.children())
    ]
    try:
        with torch.no_grad():
            result: Tensor = module(example)
    finally:
        for hook in hooks:
            hook.remove()
    convs = [id(conv) for conv, _ in pairs]
    return [pair for pair in pairs if convs.count(id(pair[0])) == 1], result
