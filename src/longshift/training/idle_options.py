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
    """Vectors have no style that could be mixed, and options that a style does not use have no effect."""
    style = config.method_config().style
    if config.vectors and style != "none":
        texts = [f"style: expected none with vectors, which have no pixels, got {style!r}"]
    elif config.frozen and style != "none" and config.views == 1:
        texts = [f"style: expected none with trainable = 'head' and views = 1, got {style!r}; use views = 2 to 8"]
    elif style != "none":
        texts = _idle_with_style(config)
    else:
        idle = [name for name in config.hparams if name.startswith("style_")] if config.hparam_seed == 0 else []
        texts = [f"{name}: has no effect while style is none; set style, too" for name in idle]
    return {"hparams": [f"hparams.{text}" for text in texts]} if texts else {}


def _idle_with_style(config: RunConfig) -> list[str]:
    """Given options that leave nothing of the style, and those that it does not use."""
    chosen, found = config.method_config(), list[str]()
    for name, what in (("style_share", "no image would be styled"), ("style_amount", "images would stay as they are")):
        if getattr(chosen, name) == 0:
            found.append(
                f"{name}: expected more than 0 with style = {chosen.style!r}, got 0: {what}; use style = 'none'"
            )
    if config.frozen:
        used = {"style_views", "style_domain"} & config.hparams.keys()
        found += [f"{name}: has no effect with trainable = 'head'" for name in sorted(used)]
    if chosen.style == "convolution":
        # A full record of a run's hyper-parameters also has the defaults: only another value is a mistake.
        defaults = {name: info.default for name, info in chosen.hyper_parameters().items()}
        for name in ("style_partner", *(() if config.frozen else ("style_domain",))):
            if config.hparams.get(name, defaults.get(name)) != defaults.get(name):
                found.append(f"{name}: has no effect with style = 'convolution', which has no partner; drop it")
    return found
