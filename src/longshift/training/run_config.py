"""What a run is: every choice that can change its numbers. How fast it goes is in `Runtime`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from longshift.data import holds_vectors
from longshift.errors import ConfigError, LongshiftError, unknown_name
from longshift.files import content_hash, file_hash
from longshift.methods import Method, MethodConfig, all_methods, get_method, is_file_spec

PROTOCOL_STEPS = 5000  # what published schedules (annealing, burn-in) are meant for
SMALL_IMAGE = 64  # up to this many pixels the small-image defaults apply


class RunConfig(BaseModel):
    """One training run. Names are those of `longshift train --help` and of a run.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    data: str = Field(default="digits", min_length=1, description="folder, .zip, .csv, .parquet, .npz, or 'digits'")
    benchmark: Literal["VLCS", "PACS", "OfficeHome", "DomainNet"] | None = None
    setting: str = "TotalHeavyTail"
    target: str = Field(..., description="the domain that is held out; empty: none is, for a final model")
    ratio: float | None = Field(default=None, gt=1, description="imbalance ratio of a generated setting")
    shrink: bool = False
    validation: int | None = Field(
        default=None, ge=1, description="per class and source; with shrink a third of a class at most"
    )
    method: str = "ndcl"
    hparams: dict[str, float | int | str | bool] = Field(default_factory=dict)
    backbone: str = "auto"
    pretrained: bool = False
    weights: str | None = None
    freeze_bn: bool = True
    image_size: int = Field(
        default=0, ge=0, le=1024, description="0 = 32 for digits, 224 otherwise; train: small images as they are"
    )
    augment: Literal["auto", "on", "off"] = "auto"
    sampling: Literal["domain", "pooled"] = Field(
        default="domain", description="domain: as many samples from each; pooled: all sources are one domain"
    )
    steps: int = Field(default=PROTOCOL_STEPS, ge=1)
    schedules: Literal["given", "scaled"] = Field(
        default="given", description="scaled: a method's schedules in proportion to the steps, 5,000 being the whole"
    )
    eval_every: int = Field(default=300, ge=1)
    evaluate: Literal["selected", "full"] = "selected"
    average: Literal["none", "ema", "swa"] = "none"
    average_from: int = Field(default=0, ge=0, description="first step of the average; 0 = ema: 1st, swa: half way")
    split_seed: int = Field(default=0, ge=0)
    hparam_seed: int = Field(default=0, ge=0, description="0 = defaults; n > 0 = random draw n")
    train_seed: int = Field(default=0, ge=0)

    @field_validator("benchmark", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        known = {name.casefold(): name for name in ("VLCS", "PACS", "OfficeHome", "DomainNet")}
        return known.get(value.casefold(), value) if isinstance(value, str) else value

    @field_validator("method")
    @classmethod
    def _as_listed(cls, value: str) -> str:
        """However it is spelt, a method has one name in results and tables; a file of the user's keeps its path."""
        if is_file_spec(value):
            return value
        try:
            return get_method(value).info.name
        except LongshiftError:
            return value  # `parse_run_config` says what is wrong, with all else that is

    @property
    def vectors(self) -> bool:
        """Whether the data are embeddings and not images."""
        return holds_vectors(self.data)

    @property
    def size(self) -> int:
        """Image size in pixels; 0 for vectors."""
        if self.vectors:
            return 0
        return self.image_size or (32 if self.data == "digits" else 224)

    @property
    def small(self) -> bool:
        """Whether the defaults for small images (and for vectors) apply.

        They are for networks trained from scratch; published weights are fine-tuned gently at any size. There are none
        for vectors.
        """
        return self.vectors or (self.size <= SMALL_IMAGE and not (self.pretrained or self.weights))

    @property
    def augmented(self) -> bool:
        """Whether training images are augmented; small images are not, as in DomainBed."""
        if self.vectors:
            return False
        return self.augment == "on" or (self.augment == "auto" and not self.small)

    @property
    def backbone_name(self) -> str:
        """The backbone, with "auto" resolved: the protocol's for images, an MLP for vectors."""
        if self.backbone == "auto" and self.vectors:
            return "mlp"
        return ("small_conv" if self.small else "resnet50") if self.backbone == "auto" else self.backbone

    @property
    def pooled(self) -> bool:
        """Whether training knows no domains."""
        return self.sampling == "pooled"

    @property
    def contexts(self) -> tuple[str, ...]:
        """Which variants of hyper-parameter defaults and spaces apply, the most specific first."""
        benchmark = (self.benchmark,) if self.benchmark else ()
        vectors = ("vectors",) if self.vectors else ()
        return (*vectors, *benchmark, *(("small",) if self.small else ()))

    @property
    def average_start(self) -> int:
        """How many steps pass before weights are averaged."""
        if self.average_from:
            return self.average_from - 1
        return self.steps // 2 if self.average == "swa" else 0

    @property
    def method_class(self) -> type[Method]:
        """The method's class."""
        return get_method(self.method)

    def method_config(self) -> MethodConfig:
        """Hyper-parameters: the defaults or random draw `hparam_seed`, schedules scaled if asked, `hparams` on top."""
        cls = self.method_class.Config
        base: MethodConfig | None = None
        if self.hparam_seed > 0:
            base = cls.sample(hparam_rng(self.method, self.hparam_seed), self.contexts)
        if self.schedules == "scaled":
            base = (base or cls.make({}, self.contexts)).shortened(self.steps / PROTOCOL_STEPS)
        return cls.make(self.hparams, self.contexts, base)

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
        """Content hash of everything that makes the run what it is, hyper-parameters resolved.

        A benchmark counts by its name, a file of weights by its contents and a benchmark's vectors by theirs, wherever
        they lie: a run has one fingerprint on all machines, and runs that start from other weights have another.
        """
        values = self.model_dump(exclude={"hparams", "average", "average_from", "sampling", "validation", "schedules"})
        if self.validation is not None:
            values["validation"] = self.validation
        if self.sampling != "domain":  # as below: older runs keep their names
            values["sampling"] = self.sampling
        if self.average != "none":  # runs without it keep the name they had before there was averaging
            values["average"], values["average_from"] = self.average, self.average_start
        # A preset is its method with those values, and such a run has one fingerprint.
        values["method"] = self.method_class.info.preset_of or self.method
        values["data"] = self.benchmark or self.data
        if self.vectors and self.benchmark:  # one benchmark has many tables of vectors, by the network they are from
            values["vectors"] = file_hash(Path(self.data))
        values["weights"] = file_hash(Path(self.weights)) if self.weights else None
        values["image_size"], values["backbone"] = self.size, self.backbone_name
        values["hparams"] = self.method_config().identity()
        return content_hash(values)


def hparam_rng(method: str, seed: int) -> np.random.Generator:
    """The generator of random draw `seed` of a method: the same for everybody, everywhere."""
    digits = content_hash(["longshift hyper-parameters", get_method(method).info.name, seed])
    return np.random.Generator(np.random.PCG64(int(digits[:32], 16)))


def parse_run_config(values: Mapping[str, Any], source: str = "the run's configuration") -> RunConfig:
    """Check a mapping and report every mistake at once: unknown keys, wrong types, values out of range."""
    mistakes: list[str] = []
    config: RunConfig | None = None
    try:
        config = RunConfig.model_validate(dict(values))
    except ValidationError as error:
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            if problem["type"] == "extra_forbidden":
                mistakes.append(unknown_name("key", name, RunConfig.model_fields))
            elif problem["type"] == "missing":
                hint = " (the domain to hold out; `longshift data inspect DATA` lists them)" if name == "target" else ""
                mistakes.append(f"{name}: is required{hint}")
            else:
                text = problem["msg"][:1].lower() + problem["msg"][1:]
                mistakes.append(f"{name}: {text}, got {problem['input']!r}")
    try:
        cls = get_method(str(values.get("method", "ndcl"))).Config
        hparams = values.get("hparams", {})
        cls.make(hparams if isinstance(hparams, Mapping) else {})
    except ConfigError as error:
        mistakes.extend(f"hparams{': ' if m.startswith('unknown') else '.'}{m}" for m in error.mistakes)
    except LongshiftError as error:
        mistakes.append(f"method: {error}")
    if config is not None and config.sampling == "pooled" and not mistakes:
        mistakes += _pooled_mistakes(config)
    if config is not None and not mistakes:
        mistakes += _style_mistakes(config)
    if mistakes or config is None:
        raise ConfigError(mistakes, source)
    return config


def _style_mistakes(config: RunConfig) -> list[str]:
    """Vectors have no style that could be mixed, and options of a style stage that is off have no effect."""
    style = config.method_config().style
    if config.vectors and style != "none":
        return [f"hparams.style: expected none with vectors, which have no pixels, got {style!r}"]
    idle = [name for name in config.hparams if name.startswith("style_")]
    if style == "none" and idle and config.hparam_seed == 0:
        return [f"hparams.{name}: has no effect while style is none; set style, too" for name in idle]
    return []


def _pooled_mistakes(config: RunConfig) -> list[str]:
    """Methods that compare domains have nothing to compare where all sources are one."""
    info = config.method_class.info
    if info.name == "erm" or info.family == "imbalance":
        return []
    alone = [name for name, cls in all_methods().items() if cls.info.family == "imbalance"]
    return [
        f"sampling: pooled goes with methods that do not compare domains (erm, {', '.join(alone)}), not {info.name}"
    ]


@dataclass(frozen=True)
class Runtime:
    """How a run is executed; none of it is part of what the run is."""

    device: str = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    graphs: Literal["auto", "on", "off"] = "auto"  # CUDA graphs around the whole step
    compile: Literal["auto", "on", "off"] = "auto"  # backbone and augmentation
    stream: bool = False  # keep the images on the host even if they would fit on the GPU
    cache: Path | None = None
    checkpoint_every: int = 0  # steps; 0 = at each evaluation
    keep_model: bool = True
    save_predictions: bool = False
