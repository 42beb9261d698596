"""The one way from a request to a run: fill in what the data decide, and check everything before work begins."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from longshift.data import DIGITS, DataChanged, Manifest, data_version, fitting_size, load_dataset, what_changed
from longshift.errors import ConfigError, LongshiftError
from longshift.io import split_paths
from longshift.nn import SMALL_CONV, check_backbone, network_of
from longshift.progress import Bar, no_bar
from longshift.settings import NATURAL_SHARE, Setting, find_target, recognize, setting_for
from longshift.training.run_config import PROTOCOL_SIZE, SMALL_IMAGE, RunConfig, read_keys

Request = RunConfig | Mapping[str, Any]
SOURCE = "the run's configuration"


@dataclass(frozen=True, eq=False)
class ResolvedRun:
    """A run that can start: its complete configuration and the manifest of its data.

    Attributes:
        config: The configuration, with benchmark, target and image size as the data decide them.
        manifest: The samples of the dataset.
        setting: The counts of the run, where they were looked up.
    """

    config: RunConfig
    manifest: Manifest
    setting: Setting | None = None


def resolve(request: Request, source: str = SOURCE, *, cache: Path | None = None, bar: Bar = no_bar) -> ResolvedRun:
    """Complete and check a request, as every way to start a run does.

    The benchmark is declared where the names of domains and classes tell it, the target gets the name that it has in
    the data, and small images keep their size (and go through the network for small images) unless something else is
    asked for. Keys, hyper-parameters, dataset, target, setting and backbone are checked.

    Args:
        request: A `RunConfig`, or a mapping of its keys.
        source: What the request is called in errors, such as the name of a file.
        cache: Folder that keeps the hashes of the data's files; by default $LONGSHIFT_CACHE.
        bar: Shows the progress of hashing them.

    Returns:
        The configuration and the manifest.

    Raises:
        UsageError: The request has a mistake. Where it has several, all are listed.
        LongshiftError: The data cannot be read.

    Example:
        >>> run = resolve({"data": "digits", "target": "INK", "method": "erm"})
        >>> run.config.target, run.config.backbone_name, len(run.manifest)
        ('ink', 'small_conv', 1797)
    """
    values = _values(request)
    try:
        dataset = OpenDataset(str(values.get("data", DIGITS)), cache=cache, bar=bar)
    except LongshiftError as error:
        _, mistakes = read_keys({"target": "", **values})
        _fail([text for texts in mistakes.values() for text in texts], [error], source)
    return dataset.resolve(values, source)


class OpenDataset:
    """A dataset on which many runs are resolved: it is read, recognized and measured once."""

    def __init__(
        self, data: str, manifest: Manifest | None = None, *, cache: Path | None = None, bar: Bar = no_bar
    ) -> None:
        self.data, self.manifest = data, manifest or load_dataset(data)
        self.cache, self._bar = cache, bar
        self._settings: dict[tuple[object, ...], Setting] = {}
        self._recognized: dict[str | None, str | None] = {}

    def recognized_as(self, benchmark: str | None = None) -> str | None:
        """The benchmark that is declared (an error if it cannot be), or that the names of the data tell."""
        if benchmark not in self._recognized:
            self._recognized[benchmark] = recognize(self.manifest, benchmark)
        return self._recognized[benchmark]

    @functools.cached_property
    def version(self) -> str:
        """The version of the data: a hash of their content; "" for the embedded digits."""
        return data_version(self.manifest, self.cache, bar=self._bar)

    @functools.cached_property
    def fitting_size(self) -> int:
        """The image size that suits the images, up to that of the protocol."""
        return fitting_size(self.manifest, PROTOCOL_SIZE)

    def resolve(self, request: Request, source: str = SOURCE, planned: Collection[Path] = ()) -> ResolvedRun:
        """As the function `resolve`, for runs on this dataset; `planned` files of counts need not exist yet."""
        asked, mistakes = read_keys({"data": self.data, **_values(request)})
        failures: list[LongshiftError] = []
        wrong = mistakes.keys()
        config, setting = asked, None
        try:
            if not wrong & {"benchmark", "ratio"}:
                if config.benchmark or config.ratio is None:  # counts of a stated ratio are not the published ones
                    config = config.model_copy(update={"benchmark": self.recognized_as(config.benchmark)})
                if config.data_version or not config.benchmark:  # its files are hashed only if a version is stated
                    what = f"{self.data} is not the expected version of the data"
                    require_version(config.data_version, self.version, what, self.cache)
                # The version is a part of the run unless a benchmark names the data.
                config = config.model_copy(update={"data_version": "" if config.benchmark else self.version})
                own_natural = config.setting.casefold() == "natural" and not config.benchmark  # others: as published
                if own_natural and config.validation is None and "validation" not in wrong:
                    config = config.model_copy(update={"validation": NATURAL_SHARE})
            if "target" not in wrong:
                target = find_target(self.manifest, config.target, config.benchmark)
                config = config.model_copy(update={"target": target})
            if not wrong & {"setting", "target", "ratio", "validation", "benchmark"}:
                setting = self._setting(config, planned)
        except LongshiftError as error:
            failures.append(error)
        if not wrong & {"image_size", "backbone"}:
            config = self._with_size(config)
            try:
                if config.backbone == "auto" and config.weights and not config.vectors:
                    config = config.model_copy(update={"backbone": network_of(Path(config.weights)) or "auto"})
                check_backbone(config.backbone_name)
            except LongshiftError as error:
                failures.append(error)
        if not mistakes and not failures:
            mistakes = combination_mistakes(config)  # which may depend on the size of the images
        if mistakes or failures:
            _fail([text for texts in mistakes.values() for text in texts], failures, source)
        return ResolvedRun(config, self.manifest, setting)

    def _with_size(self, config: RunConfig) -> RunConfig:
        """The image size, where none is stated and the images are smaller than the protocol's.

        Images of 64 pixels or less stay as they are and go, unless a network or weights are named, through the network
        for small images. Digits, vectors, benchmarks and what starts from published weights keep the sizes they have.
        """
        stated = config.image_size or config.benchmark or config.vectors or config.data == DIGITS
        if stated or config.pretrained or config.weights or config.backbone not in ("auto", SMALL_CONV):
            return config
        size = self.fitting_size
        if size >= config.size or (config.backbone == "auto" and size > SMALL_IMAGE):
            return config
        return config.model_copy(update={"image_size": size})

    def _setting(self, config: RunConfig, planned: Collection[Path]) -> Setting | None:
        """The counts of a run; raise where the data do not allow them."""
        if Path(config.setting) in planned:
            return None
        key = (config.setting, config.target, config.benchmark, config.ratio, config.validation)
        if key not in self._settings:
            self._settings[key] = find_setting(self.manifest, config)
        return self._settings[key]


def find_setting(manifest: Manifest, config: RunConfig) -> Setting:
    """The counts of a run."""
    return setting_for(
        manifest, config.setting, config.target, benchmark=config.benchmark, ratio=config.ratio,
        validation=config.validation, third=config.validation is not None,
    )  # fmt: skip


def combination_mistakes(config: RunConfig) -> dict[str, list[str]]:
    """Stated options that would have no effect on these data and this kind of training: nobody must rely on them."""
    why: dict[str, str] = {}
    style = config.style_config()
    if config.vectors:
        images = ("pretrained", "weights", "preprocessing", "image_size", "augment", "style")
        names = (*images, "trainable", "views", "freeze_bn")
        why = dict.fromkeys(names, "on vectors")
        if config.backbone not in ("auto", config.head):
            why["head"] = f"on vectors with backbone = {config.backbone!r}"
    elif not config.frozen:
        why = dict.fromkeys(("head", "views", "preprocessing"), "with trainable = 'all'")
    else:
        why["freeze_bn"] = "with trainable = 'head'"
        if config.views == 1:
            why |= dict.fromkeys(("augment", "style"), "with trainable = 'head' and views = 1 (use views = 2 to 8)")
        elif not (config.augmentation or style):
            why["views"] = "without augmentation and style"
    _, space = config.method_class.Style.hyper_parameters()["mix"].resolve(config.contexts)
    stated = config.style.model_fields_set if config.style else set[str]()
    drawn = config.hparam_seed > 0 and space.kind != "fixed" and "mix" not in stated
    if not style and stated - {"mix"} and not drawn:
        why.setdefault("style", "while style.mix is none")
    if not style and stated <= {"mix"}:
        why.pop("style", None)  # off is stated, and it is off
    found = {
        name: [f"{name}: has no effect {reason}; drop it"]
        for name, reason in why.items()
        if getattr(config, name) != RunConfig.model_fields[name].default
    }
    # A copy for a head has one domain, and there is no batch of both views.
    if config.frozen and {"views"} <= stated:
        found["style"] = ["style.views: has no effect with trainable = 'head'; drop it"]
    if config.hparams.get("style_domain", "own") != "own" and (not style or config.frozen):
        found["hparams"] = ["hparams.style_domain: has no effect without style mixing in training; drop it"]
    if config.frozen and not (config.pretrained or config.weights):
        text = "expected starting weights (pretrained or weights) with 'head', got none: features of random weights"
        found["trainable"] = [f"trainable: {text} are useless"]
    return found


def require_version(expected: str, found: str, what: str, cache: Path | None = None) -> None:
    """Raise if the data are another version than the one that a run is about; "" expects none."""
    if expected and found != expected:
        raise DataChanged(
            f"{what}: {what_changed(expected, found, cache)}. Restore the files, or start a new run in another folder."
        )


def describe_network(config: RunConfig) -> str:
    """Network, start and image size of a run on images, in a line."""
    files = ", ".join(file.name for file in split_paths(config.weights)) if config.weights else ""
    start = files or ("pretrained" if config.pretrained else "random")
    network = f"{config.backbone_name} from {start} weights, on {config.size}x{config.size} pixels"
    return f"a head ({config.head}) on the features of {network}" if config.frozen else network


def _values(request: Request) -> dict[str, Any]:
    return request.model_dump() if isinstance(request, RunConfig) else dict(request)


def _fail(mistakes: Sequence[str], failures: Sequence[LongshiftError], source: str) -> NoReturn:
    """Raise what is wrong: a single failure as it is, several things as one list."""
    if not mistakes and len(failures) == 1:
        raise failures[0]
    raise ConfigError([*mistakes, *map(str, failures)], source)
