"""What a fit trains: runs with each site held out in turn, then the final model on all sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from longshift.errors import LongshiftError
from longshift.fitting.network_choice import choose_network, named_network, try_network
from longshift.fitting.request import FitRequest, held_out_sites
from longshift.inference import FINAL_FOLDER
from longshift.io import read_json, write_json
from longshift.methods import MethodConfig
from longshift.report import slug
from longshift.settings import NATURAL_SHARE, NO_TARGET
from longshift.training import OpenDataset, ResolvedRun, RunConfig

SCHEMA = 2
ON_FEATURES, ON_IMAGES = "logistic", "ndcl_plus"  # the methods of a fit
COMPARED = ("erm", "bsoftmax", "ndcl_plus")  # by --compare, in addition to the method of the fit
# Passes over the training samples, the least and the most steps, and the most where time is given, by kind of network.
EFFORT = {"mlp": (20, 200, 300, 1000), "small_conv": (40, 300, 1500, 3000), "timm": (20, 200, 3000, 5000)}
LONGER = 3  # times the usual steps if there is time; harmless, since weights are selected during training
LONGEST_NAME = 60  # characters of a site in the name of a folder
NO_STYLE = "none"


@dataclass(frozen=True)
class FitJob:
    """One run of a fit."""

    method: str
    site: str  # held out; "" for the final model
    folder: Path
    run: ResolvedRun
    style: str = ""  # where styles are tried: the one of this run

    @property
    def config(self) -> RunConfig:
        """Its configuration."""
        return self.run.config

    @property
    def label(self) -> str:
        """For the progress bar and for errors."""
        if not self.site:
            return "final model on all sites"
        tried = f", style mixing {'off' if self.style == NO_STYLE else 'on'}" if self.style else ""
        return f"{self.method} without {self.site}{tried}"


@dataclass(frozen=True)
class FitPlan:
    """Everything that decides what is trained; kept in the folder, so that an interrupted fit can resume.

    Unlike the plan of a sweep, it does not list its runs: the style of the final model is known only after the others.
    """

    method: str
    sites: tuple[str, ...]  # held out in turn
    base: dict[str, Any]  # values of RunConfig that all runs share
    fingerprint: str  # of the manifest
    version: str  # of the data, by the content of their files
    usual_steps: int  # without --minutes
    styles: tuple[str, ...] = ()  # tried at each held-out site
    tried: tuple[str, ...] = ()  # methods of which the better one at the held-out sites becomes `method`
    unreached: str = ""  # where the weights are that were wanted and cannot be downloaded
    why_trainable: Literal["requested", "gpu", "no gpu"] = "requested"
    compared: bool = False  # the methods of --compare are trained: later calls keep the comparison
    what_if_labeled: bool = False  # the value of labels was simulated: later calls keep it

    def held_out_jobs(self, dataset: OpenDataset, out: Path, compare: bool) -> list[FitJob]:
        """The runs with a site held out, site by site: each with every style, then the methods to compare with."""
        on_features = dataset.manifest.vectors or self.base.get("trainable") == "head"
        compared = (*COMPARED, *((ON_FEATURES,) if on_features else ()))
        tried = self.tried or (self.method,)
        others = [name for name in compared if compare and name not in tried]
        found = []
        for site in self.sites:
            found += [self._job(dataset, name, site, out, style) for name in tried for style in self.styles or ("",)]
            found += [self._job(dataset, name, site, out) for name in others]
        return found

    def final_job(self, dataset: OpenDataset, out: Path, style: str) -> FitJob:
        """The run on all sites."""
        return self._job(dataset, self.method, NO_TARGET, out, style if self.styles else "")

    def _job(self, dataset: OpenDataset, method: str, site: str, out: Path, style: str = "") -> FitJob:
        """One run; methods to compare with use the common hyper-parameters and their own defaults for the others."""
        values, name = {**self.base, "method": method, "target": site}, slug(method)
        if method != self.method:
            common = MethodConfig.hyper_parameters()
            values |= {"style": None, "hparams": {k: v for k, v in self.base["hparams"].items() if k in common}}
        elif style:
            # The options of a style that is off have no effect and would be refused.
            kept = self.base["style"] or {} if style != NO_STYLE else {}
            values["style"], name = {**kept, "mix": style}, f"{name}-style-{style}"
        folder = out / FINAL_FOLDER
        if site != NO_TARGET:
            folder = out / "sites" / f"{name}-{self.sites.index(site) + 1}-{slug(site)[:LONGEST_NAME]}"
        return FitJob(method, site, folder, dataset.resolve(values, "the fit"), style)


def make_plan(dataset: OpenDataset, request: FitRequest, gpu: bool) -> FitPlan:
    """Check sites, method, hyper-parameters and network, quick checks first; choose what the user did not."""
    manifest = dataset.manifest
    base: dict[str, Any] = {
        "data": dataset.data, "setting": "Natural", "validation": NATURAL_SHARE,
        "hparams": dict(request.hparams), "style": request.identity()["style"],
        "schedules": "scaled",
        "split_seed": request.split_seed, "train_seed": request.train_seed,
    }  # fmt: skip
    on_features = ON_FEATURES if request.views == 1 and request.style is None else ON_IMAGES
    auto = on_features if manifest.vectors else ON_IMAGES
    own = {"method": auto if request.method == "auto" else request.method, "target": NO_TARGET}
    sites = held_out_sites(manifest, request.target)
    # What is trained is not known yet: a head may get the weights that are downloaded for it.
    network = {key: getattr(request, key) for key in ("weights", "pretrained", "image_size")}
    named = {"backbone": named_network(request.network), **{k: v for k, v in network.items() if v is not None}}
    dataset.resolve({**base, **own, **named}, "the fit")
    chosen, unreached = choose_network(manifest, gpu, request.network, **network, trainable=request.trainable)
    base |= {**chosen, "head": request.head, "views": request.views}
    started = chosen.get("trainable") == "all" and bool(chosen.get("weights") or chosen.get("pretrained"))
    average = request.average if request.average != "auto" else "swa" if started else "none"
    base |= {"average": average, "average_only": average != "none"}
    if request.method == "auto" and chosen.get("trainable") == "head":
        own["method"] = on_features
    config = dataset.resolve({**base, **own}, "the fit").config
    try_network(config, manifest)
    samples, domains = len(manifest), len(manifest.domain_names)
    if "batch_size" not in request.hparams:
        base["hparams"]["batch_size"] = usual_batch(samples, domains, config)
        config = config.model_copy(update={"hparams": base["hparams"]})
    usual = request.steps or usual_steps(samples, domains, config)
    longest = request.steps or max(usual, min(LONGER * usual, _effort(config)[3]))
    base |= step_keys(usual if request.minutes is None else longest)
    default, asked = config.style_config(), request.style_is_chosen
    styles = () if asked or default is None else (NO_STYLE, default.mix)
    # A penalty or a batch size is for one method: then the other is not tried.
    both = request.method == "auto" and config.method == ON_FEATURES and not request.hparams
    return FitPlan(
        config.method_class.info.name, sites, base, manifest.fingerprint(), dataset.version,
        usual, styles, (ON_FEATURES, ON_IMAGES) if both else (),
        unreached, "requested" if request.trainable else "gpu" if gpu else "no gpu",
    )  # fmt: skip


def step_keys(steps: int) -> dict[str, int]:
    """The keys of a run that say how long it is."""
    return {"steps": steps, "eval_every": max(steps // 10, 1)}


def _effort(config: RunConfig) -> tuple[int, int, int, int]:
    small = "mlp" if config.vectors or config.frozen else config.backbone_name
    return EFFORT.get(small, EFFORT["timm"])


def usual_steps(samples: int, domains: int, config: RunConfig) -> int:
    """The usual number of steps: some passes over the data, within limits."""
    passes, least, most, _ = _effort(config)
    batch = config.method_config().batch_size * domains
    return min(max(round(passes * samples / batch), least), most)


def usual_batch(samples: int, domains: int, config: RunConfig) -> int:
    """Samples per site and step: the default of the method, but at most about half of a typical site."""
    half = max(samples // (2 * domains), 1)
    return max(min(config.method_config().batch_size, 1 << (half.bit_length() - 1)), 8)


def keep_plan(path: Path, request: FitRequest, plan: FitPlan) -> None:
    """Write the plan and the request it is for."""
    write_json(path, {"schema": SCHEMA, "request": request.identity(), "plan": asdict(plan)})


def earlier_plan(path: Path, request: FitRequest) -> FitPlan | None:
    """The plan of an interrupted fit in the same folder, or None; raise if that fit had another request."""
    if not path.exists():
        return None
    try:
        value = read_json(path)
        if value["schema"] != SCHEMA:
            raise ValueError(f"expected schema {SCHEMA}, got {value['schema']!r}")
        before: Mapping[str, Any] = dict(value["request"])
        plan = FitPlan(**value["plan"])
        plan = replace(plan, sites=tuple(plan.sites), styles=tuple(plan.styles), tried=tuple(plan.tried))
    except (LongshiftError, KeyError, TypeError, ValueError) as error:
        raise LongshiftError(
            f"{path} is not a valid plan of a fit: {error}. Choose another --out, or remove that file and run the same "
            "command again; finished runs are kept."
        ) from error
    if other := sorted(before.keys() ^ request.identity().keys()):
        raise LongshiftError(
            f"{path.parent} holds a fit of another version of longshift, which cannot be resumed (the options "
            f"{', '.join(other)} are not the same). Choose another --out, or remove the folder."
        )
    changed = [name for name, value in request.identity().items() if before[name] != value]
    if changed:
        listed = ", ".join(f"{name}: {before[name]!r} there, {getattr(request, name)!r} now" for name in changed)
        raise LongshiftError(
            f"{path.parent} holds another fit (it differs in {listed}). Choose another --out, or remove the folder."
        )
    return plan
