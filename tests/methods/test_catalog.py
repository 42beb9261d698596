"""What is searched and what is allowed are not mixed up."""

from __future__ import annotations

from longshift.methods import get_method, hyper_parameter


def test_search_and_allowed_values_are_apart() -> None:
    known = get_method("ndcl_plus").Config.hyper_parameters()
    for name, default, search, allowed in (
        ("beta", 0.1, "10^U(-3, 0)", ">= 0"),
        ("style_domain", "own", "not searched", "one of own, partner"),
        ("shared_lambda", False, "not searched", "true or false"),
    ):
        found = hyper_parameter(known[name])
        assert (found["default"], found["range"], found["limits"]) == (default, search, allowed)
