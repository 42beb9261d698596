"""Options of a run that would have no effect: they are errors, so that nobody relies on them."""

from __future__ import annotations

from longshift.methods import of_style
from longshift.training.run_config import RunConfig

# A head is trained on the image itself and on its copies, which have one domain.
NOT_FOR_HEADS = ("style_views", "style_domain")


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
    if config.vectors:
        texts = _style_on_vectors(config, style)
    elif style != "none":
        texts = _idle_with_style(config)
    else:
        texts = _idle_without_style(config)
    return {"hparams": [f"hparams.{text}" for text in texts]} if texts else {}


def _given_options(config: RunConfig) -> list[str]:
    """Options of the style stage that are given by name, without the style itself.

    If draws decide whether there is a style, there are none: what is idle in this draw has an effect in others.
    """
    _, space = config.method_class.Config.hyper_parameters()["style"].resolve(config.contexts)
    if config.hparam_seed > 0 and space.kind != "fixed" and "style" not in config.hparams:
        return []
    return [name for name in config.hparams if of_style(name) and name != "style"]


def _style_on_vectors(config: RunConfig, style: str) -> list[str]:
    """All that has to do with styles: nothing that is set would make an option useful."""
    found = [f"style: expected none with vectors, which have no pixels, got {style!r}"] if style != "none" else []
    return found + [
        f"{name}: has no effect on vectors, which have no style; drop it" for name in _given_options(config)
    ]


def _idle_without_style(config: RunConfig) -> list[str]:
    """Given options while no style is mixed; the advice names everything that they need at once."""
    needed = "style (for example 'both')"
    if config.frozen and config.views == 1:
        needed += " and views = 2 to 8"
    found = []
    for name in _given_options(config):
        if config.frozen and name in NOT_FOR_HEADS:
            found.append(_no_use_for_heads(name))
        else:
            found.append(f"{name}: has no effect while style is none; set {needed}, too")
    return found


def _idle_with_style(config: RunConfig) -> list[str]:
    """Given options that leave nothing of the style, and those that it does not use."""
    chosen, found = config.method_config(), list[str]()
    if config.frozen and config.views == 1:
        found.append(
            f"style: expected none with trainable = 'head' and views = 1, got {chosen.style!r}; use views = 2 to 8"
        )
    for name, what in (("style_share", "no image would be styled"), ("style_amount", "images would stay as they are")):
        if getattr(chosen, name) == 0:
            found.append(
                f"{name}: expected more than 0 with style = {chosen.style!r}, got 0: {what}; use style = 'none'"
            )
    # A full record of a run's hyper-parameters also has the defaults: only another value is a mistake.
    defaults = {name: info.resolve(config.contexts)[0] for name, info in chosen.hyper_parameters().items()}
    for name in (name for name, value in config.hparams.items() if value != defaults[name]):
        if config.frozen and name in NOT_FOR_HEADS:
            found.append(_no_use_for_heads(name))
        elif name in chosen.idle_options():
            found.append(f"{name}: has no effect with style = {chosen.style!r}, which has no partner; drop it")
    return found


def _no_use_for_heads(name: str) -> str:
    return f"{name}: has no effect with trainable = 'head'; drop it"
