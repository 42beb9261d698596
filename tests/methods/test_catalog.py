"""Tables of hyper-parameters: what is searched and what is allowed are not mixed up."""

from __future__ import annotations

from longshift.methods import get_method, hyper_parameter_rows


def test_search_and_allowed_values_have_a_column_each() -> None:
    rows = hyper_parameter_rows(get_method("ndcl_plus").Config.hyper_parameters())
    for name, default, search, allowed in (
        ("beta", "0.1", "10^U(-3, 0)", ">= 0"),
        ("style_domain", "own", "not searched", "one of own, partner"),
        ("shared_lambda", "false", "not searched", "true or false"),
    ):
        assert rows[name][:3] == (default, search, allowed)
