"""Defaults and search spaces as published with the reference code, for the methods not pinned elsewhere."""

from __future__ import annotations

import pytest

from longshift.methods import get_method

COMMON = {
    "lr": (5e-5, "10^U(-5, -3.5)"), "weight_decay": (0.0, "10^U(-6, -2)"), "batch_size": (32, "int(2^U(3, 5.5))"),
    "dropout": (0.0, "one of 0.0, 0.1, 0.5"),
}  # fmt: skip
# Images of 64 pixels or less; the published 2^U(3, 9) images a domain is capped.
SMALL = {
    "lr": (1e-3, "10^U(-4.5, -2.5)"), "weight_decay": (0.0, "fixed"), "batch_size": (64, "int(2^U(3, 7))"),
    "dropout": (0.0, "one of 0.0, 0.1, 0.5"),
}  # fmt: skip
OWN: dict[str, dict[str, tuple[float, str]]] = {
    "erm": {},
    "ginidg": {"recon_end": (1000, "fixed"), "zdim": (64, "fixed"), "grl_weight": (1.0, "fixed")},
    "mixup": {"alpha": (0.2, "10^U(-1, 1)")},
    "mldg": {"beta": (1.0, "10^U(-1, 1)"), "n_meta_test": (2, "one of 1, 2")},
    "sagnet": {"w_adv": (0.1, "10^U(-2, 1)")},
    "fish": {"meta_lr": (0.5, "one of 0.05, 0.1, 0.5")},
    "pgrad": {"lr": (5e-5, "fixed"), "weight_decay": (0.0, "10^U(-6, -4)"), "batch_size": (32, "fixed")},
    "dann": {
        "dann_lambda": (1.0, "10^U(-2, 2)"), "weight_decay_d": (0.0, "10^U(-6, -2)"),
        "d_steps_per_g_step": (1, "int(2^U(0, 3))"), "grad_penalty": (0.0, "10^U(-2, 1)"),
        "beta1": (0.5, "one of 0.0, 0.5"), "mlp_width": (256, "int(2^U(6, 10))"), "mlp_depth": (3, "one of 3, 4, 5"),
        "mlp_dropout": (0.0, "one of 0.0, 0.1, 0.5"), "lr_g": (5e-5, "10^U(-5, -3.5)"),
        "lr_d": (5e-5, "10^U(-5, -3.5)"), "weight_decay_g": (0.0, "10^U(-6, -2)"),
    },
    "boda": {
        "start_step": (500, "one of 300, 400, 500, 600"), "feat_update_freq": (120, "int(U(100, 150))"),
        "nu": (0.5, "10^U(-0.5, 0)"), "weight": (0.1, "10^U(-2, -0.5)"), "temperature": (1.0, "10^U(-1, 0.5)"),
        "macro_weight": (1.0, "10^U(-1, 1)"), "momentum": (0.2, "U(0, 0.4)"),
    },
    "samaltdg": {
        "rho": (0.05, "10^U(-2, -0.5)"), "lambda_adv": (0.1, "10^U(-2, 0)"), "lambda_ent": (0.1, "10^U(-2, 0)"),
        "lambda_square": (0.1, "10^U(-2, 0)"),
    },
}  # fmt: skip


@pytest.mark.parametrize("method", OWN)
def test_defaults_and_spaces_are_the_published_ones(method: str) -> None:
    known = get_method(method).Config.hyper_parameters()
    for name, expected in {**COMMON, **OWN[method]}.items():
        default, space = known[name].resolve(())
        assert (default, space.describe()) == expected, f"{method}.{name}"


@pytest.mark.parametrize("method", ["erm", "ndcl", "mixup", "boda"])
def test_small_images_have_their_own(method: str) -> None:
    known = get_method(method).Config.hyper_parameters()
    for name, expected in SMALL.items():
        default, space = known[name].resolve(("small",))
        assert (default, space.describe()) == expected, f"{method}.{name}"
