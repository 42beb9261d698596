"""Defaults and search spaces as published with the reference code."""

from __future__ import annotations

import pytest

from longshift.methods import get_method

COMMON = {
    "lr": (5e-5, "10^U(-5, -3.5)"), "weight_decay": (0.0, "10^U(-6, -2)"), "batch_size": (32, "int(2^U(3, 5.5))"),
    "dropout": (0.0, "one of 0.0, 0.1, 0.5"),
}  # fmt: skip
# Images of 64 pixels or less; the published 2^U(3, 9) images a domain is capped.
SMALL = {
    "lr": (1e-3, "10^U(-4.5, -2.5)"), "weight_decay": (0.0, "not searched"), "batch_size": (64, "int(2^U(3, 7))"),
    "dropout": (0.0, "one of 0.0, 0.1, 0.5"),
}  # fmt: skip
OWN: dict[str, dict[str, tuple[float, str]]] = {
    "erm": {},
    "ginidg": {"recon_end": (1000, "not searched"), "zdim": (64, "not searched"), "grl_weight": (1.0, "not searched")},
    "mixup": {"alpha": (0.2, "10^U(-1, 1)")},
    "mldg": {"beta": (1.0, "10^U(-1, 1)"), "n_meta_test": (2, "one of 1, 2")},
    "sagnet": {"w_adv": (0.1, "10^U(-2, 1)")},
    "fish": {"meta_lr": (0.5, "one of 0.05, 0.1, 0.5")},
    "pgrad": {"lr": (5e-5, "not searched"), "weight_decay": (0.0, "10^U(-6, -4)"), "batch_size": (32, "not searched")},
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
    "irm": {"irm_lambda": (1e2, "10^U(-1, 5)"), "anneal": (500, "int(10^U(0, 4))")},
    "vrex": {"vrex_lambda": (10.0, "10^U(-1, 5)"), "anneal": (500, "int(10^U(0, 4))")},
    "groupdro": {"eta": (1e-2, "10^U(-3, -1)")},
    "coral": {"gamma": (1.0, "10^U(-1, 1)")},
    "mmd": {"gamma": (1.0, "10^U(-1, 1)")},
    "fishr": {
        "fishr_lambda": (1000.0, "10^U(1, 4)"), "anneal": (1500, "int(U(0, 5000))"), "ema": (0.95, "U(0.9, 0.99)"),
    },
    "eqrm": {
        "quantile": (0.75, "U(0.5, 0.99)"), "burnin": (2500, "int(10^U(2.5, 3.5))"), "eqrm_lr": (1e-6, "10^U(-7, -5)"),
    },
    "rdm": {
        "lr": (5e-5, "10^U(-4.5, -4)"), "weight_decay": (0.0, "10^U(-8, -5)"), "dropout": (0.0, "one of 0.0, 0.003"),
        "anneal": (1500, "int(U(800, 2700))"), "variance_weight": (0.004, "U(0.001, 0.007)"),
        "rdm_lr": (1.5e-5, "U(8e-06, 2e-05)"),
    },
    "tcri": {
        "alpha": (1.0, "10^U(-2, 1)"), "beta": (1.0, "10^U(-1, 2)"), "anneal": (500, "int(10^U(0, 4))"),
    },
    "focal": {"gamma": (1.0, "10^U(-0.30103, 0.69897)")},
    "ldam": {"max_m": (0.5, "10^U(-1, -0.1)"), "scale": (30.0, "one of 10.0, 30.0")},
}  # fmt: skip


@pytest.mark.parametrize("method", OWN)
def test_defaults_and_spaces_are_the_published_ones(method: str) -> None:
    known = get_method(method).Config.hyper_parameters()
    for name, expected in {**COMMON, **OWN[method]}.items():
        default, space = known[name].resolve(())
        assert (default, space.describe()) == expected, f"{method}.{name}"


DOMAINNET: dict[str, dict[str, tuple[float, str]]] = {
    "erm": {"batch_size": (32, "int(2^U(3, 5))")},
    "ndcl": {"batch_size": (32, "int(2^U(3, 5))")},
    "pgrad": {"batch_size": (32, "not searched")},
    "rdm": {
        "batch_size": (32, "int(2^U(3, 5))"), "dropout": (0.0, "one of 0.0, 0.003, 0.03"),
        "rdm_lambda": (0.5, "U(0.1, 1)"), "anneal": (2400, "int(U(1500, 3000))"),
        "variance_weight": (0.0, "not searched"),
    },
    "boda": {
        "start_step": (3000, "one of 2000, 3000, 4000, 5000"), "feat_update_freq": (2000, "int(U(1500, 3000))"),
        "momentum": (0.2, "U(0, 0.4)"),
    },
}  # fmt: skip


@pytest.mark.parametrize("method", DOMAINNET)
def test_domainnet_has_its_own(method: str) -> None:
    known = get_method(method).Config.hyper_parameters()
    for name, expected in DOMAINNET[method].items():
        default, space = known[name].resolve(("DomainNet",))
        assert (default, space.describe()) == expected, f"{method}.{name}"


@pytest.mark.parametrize("method", ["erm", "ndcl", "mixup", "boda"])
def test_small_images_have_their_own(method: str) -> None:
    known = get_method(method).Config.hyper_parameters()
    for name, expected in SMALL.items():
        default, space = known[name].resolve(("small",))
        assert (default, space.describe()) == expected, f"{method}.{name}"
