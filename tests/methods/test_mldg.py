"""MLDG: at least one domain is always left for meta-training."""

from __future__ import annotations

import pytest
import torch

from tests.methods.tiny import Tiny


@pytest.mark.parametrize("domains", [2, 3, 5])
def test_some_domain_is_always_left_to_train_on(domains: int) -> None:
    tiny = Tiny(domains=domains)
    most = tiny.trained("mldg", values={"n_meta_test": domains - 1})
    more = tiny.trained("mldg", values={"n_meta_test": domains})
    assert torch.equal(most.network.classifier.weight, more.network.classifier.weight)
    assert not torch.equal(most.network.classifier.weight, tiny.make("mldg").network.classifier.weight)
