"""What a run is: every choice that can change its numbers. How it is executed is in `Runtime`.

The fields below are the only place where a run's options are written: a run.toml, a sweep file, `longshift.train` and
the options of the command line follow from them. Importing this module does not import PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_serializer, field_validator
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError

from longshift.data import vector_file
from longshift.errors import ConfigError, LongshiftError
from longshift.io import content_hash, file_hash, split_paths
from longshift.methods import MethodConfig, StyleConfig, key_mistakes

if TYPE_CHECKING:
    import numpy as np

    from longshift.methods import Method

T = TypeVar("T")
PROTOCOL_STEPS = 5000  # what published schedules (annealing, burn-in) are meant for
PROTOCOL_SIZE = 224  # pixels
PROTOCOL_WEIGHTS = "resnet50.tv_in1k"  # DomainBed's start: torchvision's IMAGENET1K_V1
DOMAINBED = "domainbed"  # the protocol's augmentation
SMALL_IMAGE = 64  # up to this many pixels the small-image defaults apply

# Under which heading `longshift train --help` lists a field.
_DATA: dict[str, Any] = {"panel": "Data"}
_MODEL: dict[str, Any] = {"panel": "Method and network"}
_STYLE: dict[str, Any] = {"panel": "Style mixing"}
_TRAINING: dict[str, Any] = {"panel": "Training"}
_SEEDS: dict[str, Any] = {"panel": "Seeds"}
_EXECUTION: dict[str, Any] = {"panel": "Execution (does not change what the run is)"}


class RunConfig(BaseModel):
    """One training run.

    The fields are the options of `longshift train` and the keys of a run.toml. `longshift.resolve` fills in what the
    data decide (benchmark, spelling of the target, image size); `longshift.train` does so by itself.

    Example:
        >>> config = RunConfig(data="digits", target="ink", method="erm", steps=300)
        >>> config.backbone_name, config.size
        ('small_conv', 32)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, use_attribute_docstrings=True)

    data: str = Field(default="digits", min_length=1, json_schema_extra=_DATA)
    """Folder domain/class/image, .zip, .csv, .parquet, .npz (vectors), 'digits' or 'pacs-features'."""
    data_version: str = Field(default="", json_schema_extra=_DATA)
    """Expect this version of your own data, and stop if it is another; by default the present one."""
    benchmark: str | None = Field(default=None, json_schema_extra=_DATA)
    """Benchmark whose counts to use; by default recognized by the names of its classes."""
    setting: str = Field(default="TotalHeavyTail", json_schema_extra=_DATA)
    """TotalHeavyTail, Duality, GINIDG, Cross, Balanced, Natural, or a .json or .csv file of counts."""
    target: str = Field(..., json_schema_extra=_DATA)
    """Domain to hold out; '' holds out none, for a final model."""
    ratio: float | None = Field(default=None, gt=1, json_schema_extra=_DATA)
    """Imbalance ratio of a generated setting."""
    shrink: bool = Field(default=False, json_schema_extra=_DATA)
    """Take fewer samples where the data has too few."""
    validation: float | None = Field(default=None, gt=0, json_schema_extra=_DATA)
    """Validation samples per class and source (with shrink, at most a third); or, for Natural, their share (0.2)."""
    method: str = Field(default="ndcl", json_schema_extra=_MODEL)
    """A name from `longshift methods`."""
    hparams: dict[str, float | int | str | bool] = Field(default_factory=dict, json_schema_extra=_MODEL)
    """Set a hyper-parameter of the method; repeatable."""
    style: StyleConfig | None = Field(default=None, json_schema_extra=_STYLE)
    """Style mixing of training images; what is not stated is as the method has it."""
    backbone: str = Field(default="auto", json_schema_extra=_MODEL)
    """A timm model, torchvision/NAME, resnet50_v1 or small_conv; auto: by weights and data."""
    pretrained: bool = Field(default=False, json_schema_extra=_MODEL)
    """Start from the published weights of the backbone; with auto, from torchvision's IMAGENET1K_V1, as DomainBed."""
    weights: str | None = Field(default=None, json_schema_extra=_MODEL)
    """Start from the weights in a .safetensors file; for several backbones, one file each, with commas."""
    trainable: Literal["all", "head"] = Field(default="all", json_schema_extra=_MODEL)
    """all: train the whole network; head: only a head on its features."""
    head: Literal["mlp", "linear"] = Field(default="mlp", validate_default=True, json_schema_extra=_MODEL)
    """Head on features or vectors; mlp has a hidden layer of 256 units."""
    views: int = Field(default=1, ge=1, le=8, json_schema_extra=_MODEL)
    """Versions of each image for a head: itself and views - 1 augmented or styled copies."""
    preprocessing: Literal["resize", "network"] = Field(default="resize", json_schema_extra=_MODEL)
    """resize: the whole image, as DomainBed; network: resize and crop as the network states."""
    freeze_bn: bool = Field(default=True, json_schema_extra=_MODEL)
    """Freeze the statistics of batch norms, as the protocol does."""
    image_size: int = Field(default=0, ge=0, le=1024, json_schema_extra=_MODEL)
    """Image size in pixels; 0: 224 (digits: 32; images of up to 64 pixels keep their size)."""
    augment: str = Field(default="auto", json_schema_extra=_TRAINING)
    """Augmentation of training images: domainbed, a plugin's, or off; auto: off for small images."""
    sampling: Literal["domain", "pooled"] = Field(default="domain", json_schema_extra=_TRAINING)
    """domain: as many samples from each source; pooled: all sources as one."""
    steps: int = Field(default=PROTOCOL_STEPS, ge=1, validate_default=True, json_schema_extra=_TRAINING)
    """Training steps."""
    schedules: Literal["given", "scaled"] = Field(default="given", json_schema_extra=_TRAINING)
    """scaled: shorten the method's schedules, published for 5,000 steps."""
    eval_every: int = Field(default=300, ge=1, json_schema_extra=_TRAINING)
    """Steps between validations."""
    evaluate: Literal["selected", "full"] = Field(default="selected", json_schema_extra=_TRAINING)
    """selected: measure test and target at the end; full: at each validation."""
    average: Literal["none", "ema", "swa"] = Field(default="none", json_schema_extra=_TRAINING)
    """Also average the weights over the steps, as a second model."""
    average_from: int = Field(default=0, ge=0, json_schema_extra=_TRAINING)
    """First step of the average; 0: the first step for ema, half of the steps for swa."""
    average_only: bool = Field(default=False, json_schema_extra=_TRAINING)
    """Once the average has begun, validate and keep the average instead of the weights of a step."""
    split_seed: int = Field(default=0, ge=0, json_schema_extra=_SEEDS)
    """Seed of the split into training, validation and test."""
    hparam_seed: int = Field(default=0, ge=0, json_schema_extra=_SEEDS)
    """0: default hyper-parameters; n > 0: random draw n of them."""
    shared_draws: bool = Field(default=False, json_schema_extra=_SEEDS)
    """Draw learning rate, weight decay, batch size and dropout once for all methods, as DomainBed does."""
    train_seed: int = Field(default=0, ge=0, json_schema_extra=_SEEDS)
    """Seed of initial weights, batches and augmentation."""

    @field_serializer("style")
    def _stated(self, style: StyleConfig | None) -> dict[str, Any] | None:
        """The keys that the table has: the others follow from the method."""
        return None if style is None else style.model_dump(include=style.model_fields_set)

    @field_validator("validation")
    @classmethod
    def _number_or_share(cls, value: float | None) -> float | None:
        if value is not None and value > 1 and value != int(value):
            raise PydanticCustomError(
                "longshift", "expected a whole number or a share below 1, got {text}", {"text": value}
            )
        return value if value is None or value < 1 else int(value)

    @field_validator("benchmark")
    @classmethod
    def _known_benchmark(cls, value: str | None) -> str | None:
        from longshift.data import get_benchmark

        return None if value is None else _known(lambda: get_benchmark(value).name)

    @field_validator("augment")
    @classmethod
    def _known_augmentation(cls, value: str) -> str:
        if value in ("auto", "on", "off"):
            return value
        if value.casefold() == DOMAINBED:
            return "on"  # its name in runs that were made before there were others
        from longshift.training.augment import AUGMENTATIONS  # which imports PyTorch

        _known(lambda: AUGMENTATIONS.find(value))
        return AUGMENTATIONS.spelling(value) or value

    @field_validator("method")
    @classmethod
    def _as_listed(cls, value: str) -> str:
        """In results and tables a method has one name, however it is spelled."""
        from longshift.methods import get_method

        try:
            return get_method(value).info.name
        except LongshiftError:
            return value  # `read_keys` reports it with all other mistakes

    @field_validator("head", "steps")
    @classmethod
    def _of_a_method_without_steps(cls, value: str | int, info: ValidationInfo) -> str | int:
        """Logistic regression has a linear head and is solved at the first step."""
        from longshift.data import holds_vectors
        from longshift.methods import all_methods

        method = all_methods().get(info.data.get("method", ""))
        if method is None or method.by_steps:
            return value
        on_features = info.data.get("trainable") == "head" or holds_vectors(info.data.get("data", ""))
        return 1 if info.field_name == "steps" else "linear" if on_features else value

    @property
    def vectors(self) -> bool:
        """Whether the data are embeddings and not images."""
        from longshift.data import holds_vectors

        return holds_vectors(self.data)

    @property
    def frozen(self) -> bool:
        """Whether images pass through a frozen network once and only a head is trained."""
        return self.trainable == "head" and not self.vectors

    @property
    def size(self) -> int:
        """Image size in pixels; 0 for vectors."""
        if self.vectors:
            return 0
        return self.image_size or (32 if self.data == "digits" else PROTOCOL_SIZE)

    @property
    def small(self) -> bool:
        """Whether the defaults for small images (and for vectors and features) apply.

        They are for networks trained from scratch; published weights are fine-tuned gently at any size. There are none
        for vectors, and the weights below a head are not trained.
        """
        return self.vectors or self.frozen or (self.size <= SMALL_IMAGE and not (self.pretrained or self.weights))

    @property
    def augmentation(self) -> str:
        """The augmentation of training images, "" for none; by default small images have none, as in DomainBed."""
        none = self.views == 1 if self.frozen else self.augment == "auto" and self.small
        if none or self.vectors or self.augment == "off":
            return ""
        return DOMAINBED if self.augment in ("auto", "on") else self.augment

    @property
    def backbone_name(self) -> str:
        """The backbone, with "auto" resolved: the protocol's for images, the head for vectors."""
        if self.backbone != "auto":
            return self.backbone
        if self.vectors:
            return self.head
        if self.pretrained:
            return PROTOCOL_WEIGHTS
        return "small_conv" if self.small and not self.frozen else "resnet50"

    @property
    def pooled(self) -> bool:
        """Whether training knows no domains."""
        return self.sampling == "pooled"

    @property
    def contexts(self) -> tuple[str, ...]:
        """Which variants of hyper-parameter defaults and spaces apply, the first that there is."""
        benchmark = (self.benchmark,) if self.benchmark else ()
        return (*(("small",) if self.small else ()), *benchmark)

    @property
    def average_start(self) -> int:
        """How many steps pass before weights are averaged."""
        if self.average_from:
            return self.average_from - 1
        return self.steps // 2 if self.average == "swa" else 0

    @property
    def method_class(self) -> type[Method]:
        """The method's class."""
        from longshift.methods import get_method

        return get_method(self.method)

    def method_config(self) -> MethodConfig:
        """Hyper-parameters: the defaults or random draw `hparam_seed`, schedules scaled if asked, `hparams` on top."""
        scale = self.steps / PROTOCOL_STEPS if self.schedules == "scaled" else 0.0
        kind, seed = self.method_class.Config, self.hparam_seed
        base = _drawn_config(kind, self.method, seed, self.contexts, scale, self.shared_draws)
        return type(base).make(self.hparams, base=base) if self.hparams else base

    def style_config(self) -> StyleConfig | None:
        """Style mixing: the method's default or random draw `hparam_seed`, `style` on top; None without mixing."""
        kind = self.method_class.Style
        drawn = None
        if self.hparam_seed > 0:
            # A generator of its own: the draws of the hyper-parameters do not depend on it.
            drawn = kind.sample(hparam_rng(self.method, self.hparam_seed).spawn(1)[0], self.contexts)
        stated = self.style.model_dump(include=self.style.model_fields_set) if self.style else {}
        found = kind.make(stated, self.contexts, drawn)
        return None if found.mix == "none" else found

    def never_starts(self) -> str:
        """A warning where a part of the method would begin after the last step; empty where none does."""
        late = self.method_config().beyond(self.steps)
        if not late:
            return ""
        listed = ", ".join(f"{name} = {value:,}" for name, value in late.items())
        return (
            f"{self.method} with {listed} in a run of {self.steps:,} steps: that part of the method never starts. "
            f'Schedules in proportion to the steps: schedules = "scaled" (--schedules scaled)'
        )

    def fingerprint(self) -> str:
        """Content hash of everything that differs from the defaults, hyper-parameters and style resolved.

        A benchmark counts by its name, other data by their content, a file of weights by its contents and a benchmark's
        vectors by theirs, wherever they lie: a run has one fingerprint on all machines, and runs on other data or from
        other weights have another.
        """
        from longshift.methods import get_method

        # A preset is its method with those values, and such a run has one fingerprint.
        kind = get_method(self.method_class.info.preset_of or self.method)
        style = self.style_config()
        settled = {"schedules", "shared_draws"}  # in the hyper-parameters
        values = self.model_dump(exclude={"head", *settled} if self.vectors else settled)
        values |= {
            "method": kind.info.name,
            "data": self.benchmark or ("" if self.data_version else self.data),
            "weights": ",".join(map(file_hash, split_paths(self.weights))) if self.weights else None,
            "image_size": self.size,
            "backbone": self.backbone_name,
            "average_from": self.average_start if self.average != "none" else 0,
            "average_only": self.average_only and self.average != "none",
            "hparams": self.method_config().differences(kind.Config),
            "style": style.differences(kind.Style) if style else None,
        }
        if self.vectors and self.benchmark:  # one benchmark has many tables of vectors, by the network they are from
            values["vectors"] = file_hash(vector_file(self.data))
        fields = RunConfig.model_fields.items()
        defaults = {name: field.get_default(call_default_factory=True) for name, field in fields}
        return content_hash({name: value for name, value in values.items() if value != defaults.get(name)})


def _known(find: Callable[[], T]) -> T:
    """The result of a lookup; pydantic collects the message about a name that is not known."""
    try:
        return find()
    except LongshiftError as error:
        raise PydanticCustomError("longshift", "{text}", {"text": str(error)}) from error


@functools.lru_cache(maxsize=4096)
def _drawn_config(
    kind: type[MethodConfig], method: str, seed: int, contexts: tuple[str, ...], scale: float, shared: bool
) -> MethodConfig:
    """The default or drawn hyper-parameters: the same for all settings, targets and trials of a sweep."""
    common = functools.partial(_generator, seed=seed) if shared else None
    drawn = kind.sample(hparam_rng(method, seed), contexts, common) if seed > 0 else kind.make({}, contexts)
    return drawn.shortened(scale) if scale else drawn


def hparam_rng(method: str, seed: int) -> np.random.Generator:
    """The generator of random draw `seed` of a method: the same for everybody, everywhere."""
    from longshift.methods import get_method

    return _generator(get_method(method).info.name, seed)


def _generator(name: str, seed: int) -> np.random.Generator:
    """The generator of random draw `seed` of a method, or of a hyper-parameter that all methods share."""
    import numpy as np

    digits = content_hash(["longshift hyper-parameters", name, seed])
    return np.random.Generator(np.random.PCG64(int(digits[:32], 16)))


def parse_run_config(values: Mapping[str, Any], source: str = "the run's configuration") -> RunConfig:
    """Check a mapping and report every mistake at once: unknown keys, wrong types, values out of range."""
    config, mistakes = read_keys(values)
    if mistakes:
        raise ConfigError([text for texts in mistakes.values() for text in texts], source)
    return config


def read_keys(values: Mapping[str, Any]) -> tuple[RunConfig, dict[str, list[str]]]:
    """The configuration that the correct keys give, and the mistakes in the others, by key."""
    mistakes: dict[str, list[str]] = {}
    good = dict(values)
    try:
        config = RunConfig.model_validate(good)
    except ValidationError as error:
        for key, text in key_mistakes(error, RunConfig.model_fields):
            mistakes.setdefault(key, []).append(text)
            good.pop(key, None)
        config = RunConfig.model_validate({"target": "", **good})
    for key, text in _method_mistakes(config, values):
        mistakes.setdefault(key, []).append(text)
    return config, mistakes


def _method_mistakes(config: RunConfig, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Mistakes that only show once the method is known."""
    from longshift.methods import all_methods, get_method

    try:
        method = get_method(str(values.get("method", config.method)))
    except LongshiftError as error:
        return [("method", f"method: {error}")]
    found = []
    hparams = values.get("hparams")
    try:
        method.Config.make(hparams if isinstance(hparams, Mapping) else {})
    except ConfigError as error:
        found += [("hparams", f"hparams{': ' if m.startswith('unknown') else '.'}{m}") for m in error.mistakes]
    if config.pooled and not (method.info.name == "erm" or method.info.family == "imbalance"):
        alone = [name for name, cls in all_methods().items() if cls.info.family == "imbalance"]
        text = f"expected 'domain' with {method.info.name}, which compares domains, got 'pooled'"
        found.append(("sampling", f"sampling: {text}; pooled is for erm, {', '.join(alone)}"))
    return found


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Runtime:
    """How a run is executed; none of it is part of what the run is.

    Example:
        >>> Runtime(device="cpu", threads=1).precision
        'auto'
    """

    device: str = Field(default="auto", json_schema_extra=_EXECUTION)
    """auto, cpu, cuda, cuda:1 ..."""
    precision: Literal["auto", "fp32", "bf16"] = Field(default="auto", json_schema_extra=_EXECUTION)
    """Arithmetic; auto: bf16 on GPUs that have it."""
    graphs: Literal["auto", "on", "off"] = Field(default="auto", json_schema_extra=_EXECUTION)
    """Capture each step as a CUDA graph."""
    compile: Literal["auto", "on", "off"] = Field(default="auto", json_schema_extra=_EXECUTION)
    """Compile backbone and augmentation; auto: in long runs on a GPU."""
    deterministic: bool = Field(default=False, json_schema_extra=_EXECUTION)
    """Make repeated runs on a GPU bit-identical; slower."""
    stream: bool = Field(default=False, json_schema_extra=_EXECUTION)
    """Keep the images on the host even if they fit on the GPU."""
    threads: int = Field(default=0, ge=0, json_schema_extra=_EXECUTION)
    """Threads on the CPU; 0: one per processor, or one for small models."""
    cache: Path | None = Field(default=None, json_schema_extra=_EXECUTION)
    """Folder of decoded images and features; by default $LONGSHIFT_CACHE."""
    eval_batch: int = Field(default=512, ge=1, json_schema_extra=_EXECUTION)
    """Samples that are predicted at once where nothing is trained."""
    image_batch: int = Field(default=0, ge=0, json_schema_extra=_EXECUTION)
    """Images that pass a frozen network at once; 0: 4 per thread on the CPU, 64 on a GPU."""
    checkpoint_every: int = Field(default=0, ge=0, json_schema_extra=_EXECUTION)
    """Steps between checkpoints; 0: at each validation."""
    keep_model: bool = Field(default=True, json_schema_extra=_EXECUTION)
    """Keep the selected weights."""
    save_predictions: bool = Field(default=False, json_schema_extra=_EXECUTION)
    """Keep the logits of validation, test and target."""

    def images_at_once(self, on_cpu: bool) -> int:
        """Images of a batch where nothing is trained."""
        # Activations of more images do not fit into the caches of a processor.
        return self.image_batch or (4 if on_cpu else 64)


def parse_runtime(values: Mapping[str, Any]) -> Runtime:
    """Check a mapping of the fields of `Runtime` and report every mistake at once."""
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(Runtime).validate_python(dict(values))
    except ValidationError as error:
        known = Runtime.__dataclass_fields__
        raise ConfigError([text for _, text in key_mistakes(error, known)], "the options") from error
