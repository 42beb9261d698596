"""Every registered method presents itself in full."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.errors import UsageError
from longshift.methods import all_methods, get_method
from longshift.methods.base import Method

METHODS = all_methods()


@pytest.mark.parametrize("cls", METHODS.values(), ids=METHODS)
def test_a_method_says_what_it_is(cls: type[Method]) -> None:
    info = cls.info
    assert info.name == info.name.casefold()
    assert info.title
    assert info.paper
    assert info.idea
    assert "\n" not in info.idea
    assert cls.__doc__
    assert cls.__doc__ != Method.__doc__
    assert cls.Config.__doc__
    assert isinstance(cls.repairs, tuple)
    assert all(cls.repairs)


@pytest.mark.parametrize("cls", METHODS.values(), ids=METHODS)
def test_every_hyper_parameter_has_default_space_and_meaning(cls: type[Method]) -> None:
    known = cls.Config.hyper_parameters()
    fields = set(cls.Config.model_fields)
    assert fields == set(known), f"without hp(): {sorted(fields - set(known))}"
    for name, info in known.items():
        assert info.meaning, name
        assert getattr(cls.Config(), name) == info.default
        if not info.instead:
            for value in (info.default, *(value for value, _ in info.variants.values())):
                assert getattr(cls.Config.make({name: value}), name) == value


@pytest.mark.parametrize("cls", METHODS.values(), ids=METHODS)
def test_random_draws_are_accepted_values(cls: type[Method]) -> None:
    contexts: tuple[tuple[str, ...], ...] = ((), ("small",), ("PACS",), ("OfficeHome",), ("DomainNet",))
    for seed, context in enumerate(contexts * 10):
        drawn = cls.Config.make({}, context, cls.Config.sample(np.random.default_rng(seed), context))
        assert cls.Config.make(drawn.to_dict()).to_dict() == drawn.to_dict()


def test_names_are_found_in_any_case_and_close_ones_offered() -> None:
    assert get_method("GroupDRO") is get_method("groupdro")
    with pytest.raises(UsageError, match="unknown method 'vrexx'; did you mean vrex"):
        get_method("vrexx")
