"""Methods for your own training loop: list them, and create one around your network."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from longshift.errors import UsageError
from longshift.methods.base import Method, Problem
from longshift.methods.info import FAMILIES
from longshift.methods.registry import Family, all_methods, get_method
from longshift.nn import Network, timm_feature_dim


def list_methods(pattern: str = "*", *, family: Family | None = None) -> list[str]:
    """List the names of methods, those of plugins included.

    Args:
        pattern: Wildcard that the names must match, such as "ndcl*".
        family: "dg" (domain generalization), "imbalance" or "idg" (both); all by default.

    Returns:
        The names, sorted by family and then by name.

    Raises:
        UsageError: If the family is unknown.

    Example:
        >>> list_methods("ndcl*")
        ['ndcl', 'ndcl_plus']
        >>> list_methods(family="imbalance")
        ['bsoftmax', 'focal', 'ldam', 'reweight']
    """
    if family is not None and family not in FAMILIES:
        raise UsageError(f"Expected `family` to be one of {', '.join(FAMILIES)}, got {family!r}.")
    return [
        name
        for name, cls in all_methods().items()
        if fnmatchcase(name, pattern.casefold()) and family in (None, cls.info.family)
    ]


def create_method(
    name: str,
    network: nn.Module,
    class_counts: Tensor | Sequence[Sequence[int]] | npt.NDArray[Any],
    *,
    feature_dim: int | None = None,
    steps: int = 5000,
    small: bool = False,
    seed: int = 0,
    **hparams: float | int | str | bool,
) -> Method:
    """Create a method around your network, ready for `before_step` and `step` in your own loop.

    The method adds a linear classifier (and, if it needs them, layers of its own), creates its optimizers on the
    device of the network, and takes one training step for each batch. Style mixing, augmentation and the selection of
    weights belong to `longshift.train` and do not take place; `longshift.losses.AmplitudeMix` mixes styles in your
    own loop.

    Args:
        name: A name from `list_methods()`.
        network: A featurizer that maps inputs (B, ...) to features (B, feature_dim), on its device; or a
            `longshift.nn.Network`, which has a classifier already.
        class_counts: Training samples, (domains, classes).
        feature_dim: Length of a feature vector; not needed for a timm model, which must have `num_classes=0`.
        steps: Length of the training, for methods with schedules.
        small: Use the defaults for small images and vectors, with larger learning rates, instead of those for
            fine-tuning.
        seed: Seed of the classifier, of a method's own layers and of its random numbers.
        **hparams: Hyper-parameters, such as `lr=1e-3`; `longshift methods NAME` lists them.

    Returns:
        The method. `method.step(batch)` trains, `method.predict(x)` gives logits, `method.state()` is a checkpoint.

    Raises:
        UsageError: If the method or a hyper-parameter is unknown, or a value is not accepted.
        ValueError: If the shapes do not fit.

    Example:
        >>> from longshift.methods import Batch
        >>> featurizer = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        >>> method = create_method("ndcl", featurizer, [[50, 5], [5, 50]], feature_dim=16, steps=10, lr=1e-3)
        >>> x, y, d = torch.randn(12, 8), torch.arange(12) % 2, torch.arange(12) // 6
        >>> for index in range(10):
        ...     method.before_step(index)
        ...     terms = method.step(Batch.from_samples(x, y, d, domains=2))
        >>> sorted(terms), method.predict(x).shape
        (['ce', 'con', 'const', 'loss'], torch.Size([12, 2]))
    """
    cls = get_method(name)
    config = cls.Config.make(hparams, ("small",) if small else ())
    counts = torch.as_tensor(class_counts)
    if counts.dim() != 2:
        raise ValueError(f"Expected `class_counts` of shape (domains, classes), got {tuple(counts.shape)}.")
    table = tuple(tuple(int(n) for n in row) for row in counts.tolist())
    problem = Problem(counts.shape[1], counts.shape[0], table, steps)
    device = next((tensor.device for tensor in network.parameters()), torch.device("cpu"))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not `torch.manual_seed`, which also seeds the GPUs
        method = cls(_with_head(network, problem.classes, feature_dim, config.dropout), problem, config)
    method.to(device)
    method.start(seed)
    return method


def _with_head(network: nn.Module, classes: int, feature_dim: int | None, dropout: float) -> Network:
    if isinstance(network, Network):
        if network.classifier.out_features != classes:
            found = network.classifier.out_features
            raise ValueError(f"Expected a network for {classes} classes, as the counts have, got one for {found}.")
        return network
    width = timm_feature_dim(network) if feature_dim is None else feature_dim
    if width is None:
        raise ValueError("Expected `feature_dim`, the length of the features of this network, got none.")
    own = getattr(network, "num_classes", 0)
    if feature_dim is None and isinstance(own, int) and own > 0:
        raise ValueError(
            f"Expected a network that gives features, got one with a classifier for {own} classes. Create a timm model "
            "with num_classes=0."
        )
    # The statistics of batch norms are trained, as in any PyTorch loop; the protocol's networks freeze them.
    return Network(network, nn.Linear(width, classes), dropout, freeze_bn=False)
