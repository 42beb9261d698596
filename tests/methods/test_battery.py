"""One battery for every method of the registry: nothing here knows any of them by name."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longshift.errors import ConfigError
from longshift.methods import all_methods, get_method
from longshift.methods.config import HyperParameter
from longshift.rng import HostDraws
from tests.methods.tiny import Tiny

ALL = [name for name, cls in all_methods().items() if cls.by_steps]
every_method = pytest.mark.parametrize("name", ALL)


def assert_same(a: Any, b: Any, where: str) -> None:
    """Equal to the bit, through dictionaries and lists."""
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif isinstance(a, Tensor):
        assert torch.equal(a, b), where
    else:
        assert a == b, where


@every_method
def test_same_seed_same_result(name: str) -> None:
    assert_same(Tiny().trained(name).state(), Tiny().trained(name).state(), name)


@pytest.mark.slow
def test_no_two_methods_are_the_same() -> None:
    ended: dict[bytes, str] = {}
    for name in ALL:
        weights = Tiny().trained(name).network.classifier.weight.detach().numpy().tobytes()
        assert weights not in ended, f"{name} trains the very weights of {ended[weights]}"
        ended[weights] = name


@every_method
@pytest.mark.parametrize("stop", [1, 3])
def test_resumed_training_equals_unbroken_training(name: str, stop: int) -> None:
    tiny = Tiny()
    whole = tiny.make(name)
    whole.start(HostDraws(0))
    terms = tiny.train(whole, 0, 6)

    first = tiny.make(name)
    first.start(HostDraws(0))
    tiny.train(first, 0, stop)
    saved = copy.deepcopy(first.state())
    second = tiny.make(name, seed=1)
    second.start(HostDraws(0))
    second.load_state(saved)
    assert_same(tiny.train(second, stop, 6), terms[stop:], f"{name}: terms")
    assert_same(second.state(), whole.state(), f"{name}: state")


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("domains", [2, 3, 5])
@pytest.mark.parametrize("classes", [2, 65])
def test_any_number_of_domains_and_classes(name: str, domains: int, classes: int) -> None:
    tiny = Tiny(classes=classes, domains=domains)
    method = tiny.trained(name, steps=4)
    assert method.eval().predict(tiny.batch(0).x).shape == (domains * tiny.per_domain, classes)


@every_method
def test_class_missing_from_a_domain(name: str) -> None:
    Tiny(missing=True).trained(name)


@every_method
def test_batch_of_one_class(name: str) -> None:
    Tiny(one_class=True).trained(name)


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("domains", [2, 3])
def test_batch_of_two_per_domain(name: str, domains: int) -> None:
    Tiny(domains=domains, per_domain=2).trained(name)


@every_method
def test_finite_in_mixed_precision(name: str) -> None:
    method = Tiny(precision="bf16").trained(name)
    assert all(p.dtype == torch.float32 for p in method.parameters())


@every_method
def test_every_weight_of_the_network_is_trained(name: str) -> None:
    before = dict(Tiny().make(name).network.named_parameters())
    after = dict(Tiny().trained(name).network.named_parameters())
    still = [key for key in before if torch.equal(before[key], after[key])]
    assert not still


@every_method
def test_prediction_draws_nothing_and_changes_nothing(name: str) -> None:
    tiny = Tiny()
    method = tiny.trained(name).eval()
    before = copy.deepcopy(method.state())
    x = tiny.batch(0).x
    with torch.no_grad():
        assert torch.equal(method.predict(x), method.predict(x))
        torch.testing.assert_close(method.predict(x)[:3], method.predict(x[:3]))
    assert_same(method.state(), before, name)


@every_method
def test_unknown_hyper_parameter_is_rejected(name: str) -> None:
    with pytest.raises(ConfigError, match="no_such_thing"):
        get_method(name).Config.make({"no_such_thing": 1})


@every_method
def test_defaults_and_random_draws_keep_to_the_declared_limits(name: str) -> None:
    config, rng = get_method(name).Config, np.random.default_rng(0)
    for contexts in ((), ("small",)):
        assert (
            config.make(config.make(contexts=contexts).to_dict()).to_dict() == config.make(contexts=contexts).to_dict()
        )
        for _ in range(20):
            drawn = config.make({}, contexts, config.sample(rng, contexts))
            assert config.make(drawn.to_dict()).to_dict() == drawn.to_dict()


def other_value(info: HyperParameter, value: Any) -> Any:
    """Another accepted value of a number."""
    if isinstance(value, int):
        return value + 1 if value // 2 < (info.at_least or 0) or not value else value // 2
    if not value:
        return 0.1
    return value / 2 if value / 2 >= (info.at_least or 0) else value * 2


@pytest.mark.slow
@every_method
def test_every_number_has_an_effect_or_is_refused(name: str) -> None:
    cls, plain = get_method(name), Tiny().trained(name)
    before = plain.state_dict()
    for key, info in cls.Config.hyper_parameters().items():
        value = getattr(plain.config, key)
        if key in ("batch_size", "dropout") or isinstance(value, (str, bool)):
            continue  # batch, style and network belong to training; words choose formulas, tested with their methods
        changed = {key: other_value(info, value)}
        if key in cls.Config.not_used():
            named = [other for other in cls.Config.hyper_parameters() if other in info.instead.split()]
            assert named, f"the message must name what {name} has instead of {key}"
            with pytest.raises(ConfigError, match=f"{key}.*{named[0]}"):
                cls.Config.make(changed)
            continue
        after = Tiny().trained(name, values=changed).state_dict()
        same = all(after[k].shape == v.shape and torch.equal(after[k], v) for k, v in before.items() if k in after)
        if same and cls.info.preset_of and info.space.kind == "fixed":
            continue  # of a part that the preset turns off, and so does not search
        assert not same, f"{key} = {changed[key]} trains the very weights of {value}"


@pytest.mark.slow
@every_method
def test_dropout_of_the_network_has_an_effect(name: str) -> None:
    with_dropout = Tiny().make(name)
    with_dropout.network.dropout.p = 0.5
    with_dropout.start(HostDraws(0))
    Tiny().train(with_dropout, 0, 6)
    assert not torch.equal(with_dropout.network.classifier.weight, Tiny().trained(name).network.classifier.weight)


@every_method
def test_all_tensors_move_with_the_method(name: str) -> None:
    method = Tiny().make(name).to("meta")
    for module in method.modules():
        for key, value in vars(module).items():
            assert not isinstance(value, Tensor), f"{type(module).__name__}.{key} must be a buffer or parameter"
    for key, value in method.state_dict().items():
        assert value.is_meta, key


@pytest.mark.slow
@every_method
def test_step_reads_no_tensor_on_the_host(name: str) -> None:
    """On the meta device tensors have shapes but no numbers: whatever reads one, or sizes one by another, fails."""
    tiny = Tiny()
    method = tiny.make(name).to("meta")
    if not method.capturable:
        pytest.skip(f"{name} says that its step cannot be captured")
    draws = HostDraws(0, device="meta")
    method.start(draws)
    for step in range(4):
        method.before_step(step)
        draws.begin(step)
        terms = method.step(tiny.on("meta", tiny.batch(step)))
        assert all(value.is_meta for value in terms.values())


@every_method
def test_phase_is_known_in_advance_and_hashable(name: str) -> None:
    method = Tiny().make(name)
    phases = [method.phase(step) for step in range(8)]
    assert [hash(p) for p in phases] == [hash(method.phase(step)) for step in range(8)]


@every_method
def test_presents_itself(name: str) -> None:
    cls = get_method(name)
    info = cls.info
    assert info.name == name
    assert info.title
    assert info.family in ("dg", "imbalance", "idg")
    assert len(info.paper) > 10
    assert 10 < len(info.idea) < 120
    assert cls.__doc__
    for key, hyper in cls.Config.hyper_parameters().items():
        assert hyper.meaning, key
