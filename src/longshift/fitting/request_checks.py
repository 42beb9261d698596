"""Turn a request into a draft of the plan and report its errors, before images are opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longshift.fitting.held_out import held_out_site
from longshift.fitting.network_choice import choose_network, try_network
from longshift.fitting.plan import usual_batch
from longshift.nn import VECTOR_LINEAR
from longshift.settings import NO_TARGET
from longshift.training import OpenDataset, RunConfig

VALIDATION = 5  # samples per class and site; a third of the samples of small classes


@dataclass(frozen=True)
class Draft:
    """A plan without the number of steps."""

    sites: tuple[str, ...]  # held out in turn
    base: dict[str, Any]  # values of RunConfig that all runs share
    config: RunConfig  # of the final model
    reason: str  # why this network


def make_draft(dataset: OpenDataset, request: dict[str, Any], gpu: bool) -> Draft:
    """Check sites, method, hyper-parameters and network, quick checks first."""
    manifest = dataset.manifest
    sites = manifest.domain_names
    if request["target"] is not None:
        sites = (held_out_site(manifest, request["target"]),)
    base: dict[str, Any] = {
        "data": dataset.data, "setting": "Natural", "shrink": True, "validation": VALIDATION,
        "hparams": request["hparams"], "style": request["style"], "average": request["average"], "schedules": "scaled",
        "split_seed": request["split_seed"], "train_seed": request["train_seed"],
    }  # fmt: skip
    own = {"method": request["method"], "target": NO_TARGET}
    # What is trained is not known yet: a head may get the weights that are downloaded for it.
    network = {key: request[key] for key in ("backbone", "weights", "pretrained", "image_size")}
    given = {key: value for key, value in network.items() if value is not None}
    dataset.resolve({**base, **own, **given}, "the fit")
    chosen, reason = choose_network(
        manifest, gpu, request["backbone"], request["weights"], request["pretrained"], request["image_size"],
        request["trainable"],
    )  # fmt: skip
    base |= {**chosen, "head": request["head"], "views": request["views"]}
    config = dataset.resolve({**base, **own}, "the fit").config
    if manifest.vectors:
        linear = config.backbone_name == VECTOR_LINEAR
        reason = f"The network for vectors {'is linear' if linear else 'has one hidden layer (256 units)'}."
    try_network(config, manifest)
    if "batch_size" not in request["hparams"]:
        batch = usual_batch(len(manifest), len(manifest.domain_names), config)
        base["hparams"] = {**request["hparams"], "batch_size": batch}
        config = config.model_copy(update={"hparams": base["hparams"]})
    return Draft(sites, base, config, reason)
