"""What is known of methods from their source files is what their classes say."""

from __future__ import annotations

import pytest

from longshift.errors import UsageError
from longshift.methods import all_methods
from longshift.methods.info import check_names, own_hyper_parameters


def test_hyper_parameters_in_the_source_are_those_of_the_classes() -> None:
    known = {name: set(cls.Config.hyper_parameters()) for name, cls in all_methods().items()}
    assert {name: set(found) for name, found in own_hyper_parameters().items()} == {
        name: known[name] for name in own_hyper_parameters()
    }
    assert {"erm", "ndcl", "ndcl_plus", "dann"} <= set(own_hyper_parameters())


def test_names_that_do_not_exist() -> None:
    check_names("NDCL-plus", ["alpha", "lr"])
    with pytest.raises(UsageError, match="unknown method 'ndcll'; did you mean ndcl"):
        check_names("ndcll")
    with pytest.raises(UsageError, match="--set: unknown hyper-parameter 'alpa'; did you mean alpha"):
        check_names("ndcl", ["lr", "alpa"])
    with pytest.raises(UsageError, match=r"`longshift methods erm` lists them all"):
        check_names("erm", ["alpha"])
