"""Options of a run that would have no effect: they are errors, so that nobody relies on them."""

from __future__ import annotations

from longshift.training.run_config import RunConfig


def idle_options(config: RunConfig) -> dict[str, list[str]]:
    """Options that would have no effect on this data and kind of training, by key."""
    found: dict[str, list[str]] = {}
    for name, why in _idle_fields(config).items():
        if getattr(config, name) != RunConfig.model_fields[name].default:
            found.setdefault(name, []).append(f"{name}: has no effect {why}; drop it")
    if config.frozen and not (config.pretrained or config.weights):
        found.setdefault("trainable", []).append(
            "trainable: expected starting weights (pretrained or weights) with 'head', got none: features of random "
            "weights are useless"
        )
    for name, texts in style_mistakes(config).items():
        found.setdefault(name, []).extend(texts)
    return found


def _idle_fields(config: RunConfig) -> dict[str, str]:
    """Fields without effect, and why."""
    if config.vectors:
        names = ("pretrained", "weights", "trainable", "views", "freeze_bn", "image_size", "augment")
        idle = dict.fromkeys(names, "on vectors")
        if config.backbone not in ("auto", config.head):
            idle["head"] = f"on vectors with backbone = {config.backbone!r}"
        return idle
    if not config.frozen:
        return dict.fromkeys(("head", "views"), "with trainable = 'all'")
    found = {"freeze_bn": "with trainable = 'head'"}
    if config.views == 1:
        found["augment"] = "with trainable = 'head' and views = 1"
    elif not config.augmentation and config.method_config().style == "none":
        found["views"] = "without augmentation and style: every copy would be the image itself"
    return found


def style_mistakes(config: RunConfig) -> dict[str, list[str]]:
    """Vectors have no style that could be mixed, and options of a style stage that is off have no effect."""
    style = config.method_config().style
    if config.vectors and style != "none":
        return {"hparams": [f"hparams.style: expected none with vectors, which have no pixels, got {style!r}"]}
    if config.frozen and style != "none":
        if config.views == 1:
            text = f"expected none with trainable = 'head' and views = 1, got {style!r}; use views = 2 to 8"
            return {"hparams": [f"hparams.style: {text}"]}
        used = {"style_views", "style_domain"} & config.hparams.keys()
        texts = [f"hparams.{name}: has no effect with trainable = 'head'" for name in sorted(used)]
        return {"hparams": texts} if texts else {}
    idle = [name for name in config.hparams if name.startswith("style_")]
    if style == "none" and idle and config.hparam_seed == 0:
        return {"hparams": [f"hparams.{name}: has no effect while style is none; set style, too" for name in idle]}
    return {}
