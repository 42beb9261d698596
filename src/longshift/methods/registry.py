"""Methods by name: those of this package, one file each, and those of plugins; and one around your own network."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

import numpy.typing as npt
import torch
from torch import Tensor, nn

from longshift.errors import LongshiftError, UsageError
from longshift.methods.base import Method, Problem
from longshift.methods.catalog import FAMILIES, MethodInfo
from longshift.nn import Network, timm_feature_dim
from longshift.registry import Registry

Family = Literal["dg", "imbalance", "idg"]
M = TypeVar("M", bound=type[Method])

METHODS = Registry[type[Method]]("method", "longshift methods")


def register(
    name: str,
    *,
    title: str,
    family: Family,
    paper: str,
    idea: str,
    row: int = 0,
    preset_of: str = "",
    formula: str = "",
    use: str = "",
    card: str = "",
) -> Callable[[M], M]:
    """Decorate a subclass of `Method`: `longshift train --method NAME` then trains it.

    Args:
        name: What users type, in lower case.
        title: What tables and figures show.
        family: "dg" (domain generalization), "imbalance" or "idg" (both).
        paper: Reference, such as an arXiv number.
        idea: One line about how it works.
        row: Its row in the paper's tables; 0, the default, puts it after those of its family.
        preset_of: The method that this one is with other defaults, if it is a preset.
        formula: What it minimizes, in LaTeX.
        use: When to use it, in one or two sentences.
        card: What it does, in plain words for the model card of `fit`; by default the idea.

    Returns:
        The decorator.

    Raises:
        LongshiftError: If another method has this name, or a preset has more of its own than other defaults.

    Example:
        >>> @register("tilted", title="Tilted", family="dg", paper="arXiv:2007.01162", idea="soft maximum of risks")
        ... class Tilted(Method):
        ...     ...
    """

    def add(cls: M) -> M:
        if not (isinstance(cls, type) and issubclass(cls, Method)):
            raise LongshiftError(f"Expected a subclass of longshift.methods.Method, got {cls!r}.")
        if not cls.__module__.startswith("longshift.methods."):
            _load_package()  # first, so that the built-in names are taken
        if preset_of:
            _check_preset(name, cls, preset_of)
        cls.info = MethodInfo(name, title, family, paper, idea, row, preset_of, formula, use, card)
        METHODS.add(name, cls)
        return cls

    return add


def _check_preset(name: str, cls: type[Method], base: str) -> None:
    """A preset shares its runs with its method, so it may differ only in its defaults."""
    known = METHODS.peek(base)
    if known is None or not issubclass(cls, known):
        raise LongshiftError(f"Expected {name!r}, a preset of {base!r}, to be a subclass of it.")
    own = [word for word in vars(cls) if not word.startswith("_") and word not in ("Config", "Style", "info")]
    if own or set(cls.Config.hyper_parameters()) != set(known.Config.hyper_parameters()):
        raise LongshiftError(f"Expected {name!r}, a preset of {base!r}, to differ only in defaults.")


@functools.cache
def _load_package() -> None:
    """Once per process: listing the folder each time would take most of the time of naming a sweep's jobs."""
    package = importlib.import_module("longshift.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"longshift.methods.{module.name}")


def all_methods() -> dict[str, type[Method]]:
    """Return all registered methods.

    Returns:
        A mapping from name to class, sorted by family (dg, imbalance, idg) and then by name.

    Example:
        >>> list(all_methods())[:2]
        ['coral', 'dann']
    """
    _load_package()
    order = list(FAMILIES)
    found = sorted(METHODS.values(), key=lambda cls: (order.index(cls.info.family), cls.info.name))
    return {cls.info.name: cls for cls in found}


def method_infos() -> list[MethodInfo]:
    """Return the facts of all methods: those of longshift and those of plugins.

    Returns:
        A `MethodInfo` per method, by family and name.

    Example:
        >>> [info.title for info in method_infos()][:2]
        ['CORAL', 'DANN']
    """
    return [cls.info for cls in all_methods().values()]


def methods_without_presets() -> dict[str, type[Method]]:
    """The methods that "all" stands for in a comparison; presets and methods without steps only when they are named."""
    return {name: cls for name, cls in all_methods().items() if cls.by_steps and not cls.info.preset_of}


def get_method(name: str) -> type[Method]:
    """Return the class of a method.

    Args:
        name: Its name or title, in any case.

    Returns:
        The class.

    Raises:
        UsageError: If there is no such method; the message names similar ones.

    Example:
        >>> get_method("NDCL").info.family
        'idg'
    """
    _load_package()
    if (exact := METHODS.peek(name)) is not None:  # the usual case: a sweep asks several times per job
        return exact
    known = all_methods()
    spellings = {cls.info.title.casefold(): cls for cls in known.values()}
    spellings |= {key.casefold(): cls for key, cls in known.items()}  # a name wins over another method's title
    if name.casefold() in spellings:
        return spellings[name.casefold()]
    raise UsageError(METHODS.unknown(name))


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
