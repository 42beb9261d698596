"""The scikit-learn estimator: its checks, domains in cross-validation, reproducibility, pickles without torch's."""

from __future__ import annotations

import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from longshift import DomainClassifier
from longshift.methods import all_methods

Array = npt.NDArray[Any]
# check_name -> reason; all of scikit-learn's checks pass.
EXPECTED_FAILURES: dict[str, str] = {}
SMALL: dict[str, Any] = {"steps": 60, "hparams": {"lr": 0.01}, "random_state": 0}
CHECKED = DomainClassifier(random_state=0)


def samples(n: int = 240, seed: int = 0) -> tuple[Array, Array, Array]:
    """Three long-tailed classes in three shifted domains, with names."""
    rng = np.random.default_rng(seed)
    y, d = rng.choice(3, n, p=(0.6, 0.3, 0.1)), rng.integers(0, 3, n)
    X = 2 * np.eye(5)[y] + 0.3 * rng.normal(size=(3, 5))[d] + rng.normal(size=(n, 5))
    return X, np.array(["cat", "dog", "eel"])[y], np.array(["north", "south", "west"])[d]


@pytest.mark.slow
@parametrize_with_checks([CHECKED], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)  # type: ignore[untyped-decorator]
def test_the_checks_of_scikit_learn(estimator: DomainClassifier, check: Any) -> None:
    check(estimator)


def test_it_learns_and_names_classes_and_domains() -> None:
    X, y, d = samples()
    model = DomainClassifier("ndcl_plus", **SMALL).fit(X, y, domains=d)
    assert model.classes_.tolist() == ["cat", "dog", "eel"]
    assert model.domains_.tolist() == ["north", "south", "west"]
    assert model.n_steps_ == 60
    assert model.model_.info.sources == ("domain 000000", "domain 000001", "domain 000002")
    assert model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.1
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    assert (model.predict(X) == model.classes_[p.argmax(1)]).all()


def test_the_domains_reach_the_method() -> None:
    X, y, d = samples()
    with_domains = DomainClassifier("bsoftmax", **SMALL).fit(X, y, domains=d)
    counts = np.array(with_domains.model_.info.counts)
    present = np.array([[((d == e) & (y == k)).sum() for k in np.unique(y)] for e in np.unique(d)])
    expected = present - np.minimum(5, np.maximum(present // 3, 1))
    assert counts.tolist() == expected.tolist()
    without = DomainClassifier("bsoftmax", **SMALL).fit(X, y)
    assert len(without.model_.info.counts) == 1


def test_a_weight_of_two_is_the_sample_twice() -> None:
    X, y, d = samples()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, len(y))
    rows, order = np.repeat(np.arange(len(y)), weights), rng.permutation(len(y))
    twice = DomainClassifier("bsoftmax", **SMALL).fit(X[rows], y[rows], domains=d[rows])
    weighted = DomainClassifier("bsoftmax", **SMALL).fit(X[order], y[order], d[order], sample_weight=weights[order])
    assert np.array_equal(weighted.predict_proba(X), twice.predict_proba(X))


def test_fractions_are_relative_weights() -> None:
    """Samples are repeated in proportion, and at most a third of those of a class are held out, as without weights."""
    X, y, d = samples()
    weights = np.where(y == "cat", 0.25, 1.5)
    model, plain = (DomainClassifier("bsoftmax", **SMALL).fit(X, y, d, w) for w in (weights, None))
    rows, left = np.divmod(
        np.array(model.model_.info.counts), np.rint(10 * np.array([0.25, 1.5, 1.5]) / weights.mean())
    )
    present = np.array([[((d == e) & (y == k)).sum() for k in np.unique(y)] for e in np.unique(d)])
    assert not left.any()
    assert (rows <= present).all()
    assert (rows >= 2 * present // 3).all()
    assert model.n_steps_ == plain.n_steps_


def test_a_pickle_holds_safetensors_and_no_torch_objects() -> None:
    X, y, d = samples()
    model = DomainClassifier("ndcl_plus", **SMALL).fit(X, y, domains=d)
    stored = pickle.dumps(model)
    names = [str(value) for op, value, _ in pickletools.genops(stored) if "UNICODE" in op.name or "GLOBAL" in op.name]
    assert "longshift.fitting.domain_classifier" in names
    assert not any(name.startswith("torch") for name in names)
    again = pickle.loads(stored)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(clone(model))).get_params() == model.get_params()  # before it is fitted


def test_the_cache_of_the_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    X, y, d = samples()
    DomainClassifier("erm", **SMALL).fit(X, y, domains=d)
    assert list(tmp_path.rglob("*")) == []


def test_a_reversed_view_is_predicted() -> None:
    X, y, d = samples()
    X = X.astype(np.float32)
    model = DomainClassifier("erm", **SMALL).fit(X[::-1], y[::-1], domains=d[::-1])
    np.testing.assert_allclose(model.predict_proba(X[::-1]), model.predict_proba(X)[::-1], rtol=1e-9)


def test_a_pickle_of_a_missing_gpu_is_loaded_on_the_cpu() -> None:
    X, y, _ = samples()
    model = DomainClassifier("erm", **SMALL).fit(X, y)
    stored = pickle.dumps(model.set_params(device="cuda:99"))
    with pytest.warns(UserWarning, match="cuda:99"):
        again = pickle.loads(stored)
    assert again.device == "cuda:99"
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_domains_are_routed_through_cross_validation() -> None:
    X, y, d = samples()
    seen: list[list[str]] = []

    class Noting(DomainClassifier):
        def fit(self, X: Any, y: Any, domains: Any = None, sample_weight: Any = None) -> DomainClassifier:
            seen.append(sorted(set(domains)))
            return super().fit(X, y, domains, sample_weight)

    with sklearn.config_context(enable_metadata_routing=True):
        routed = {"groups": d, "domains": d}
        scores = cross_val_score(
            Noting("ndcl_plus", **SMALL), X, y, cv=LeaveOneGroupOut(), params=routed, error_score="raise"
        )
        assert seen == [["south", "west"], ["north", "west"], ["north", "south"]]
        scaled = make_pipeline(StandardScaler(), DomainClassifier("ndcl_plus", **SMALL))
        search = GridSearchCV(scaled, {"domainclassifier__method": ["erm", "bsoftmax"]}, cv=LeaveOneGroupOut())
        search.fit(X, y, groups=d, domains=d)
        assert search.best_params_["domainclassifier__method"] in ("erm", "bsoftmax")
        expected = scaled.fit(X, y, domains=d).predict_proba(X)
    without_routing = clone(scaled).fit(X, y, domainclassifier__domains=d)
    assert np.array_equal(without_routing.predict_proba(X), expected)
    assert len(scores) == 3
    assert min(scores) > 0.6
    seen.clear()
    plain = cross_val_score(Noting("ndcl_plus", **SMALL), X, y, groups=d, cv=LeaveOneGroupOut(), params={"domains": d})
    assert np.array_equal(plain, scores)  # without routing, scikit-learn passes them on to fit as well
    assert len(seen) == 3


@pytest.mark.slow
@pytest.mark.parametrize("method", list(all_methods()))
def test_every_method_fits_with_and_without_domains(method: str) -> None:
    X, y, d = samples(120)
    for domains in (d, None):
        model = DomainClassifier(method, steps=4, random_state=0).fit(X, y, domains=domains)
        assert np.isfinite(pickle.loads(pickle.dumps(model)).predict_proba(X)).all()


def test_mistakes_are_value_errors() -> None:
    X, y, d = samples(60)
    with pytest.raises(ValueError, match="ndlc"):
        DomainClassifier("ndlc").fit(X, y)
    with pytest.raises(ValueError, match="learning_rate"):
        DomainClassifier(hparams={"learning_rate": 1}).fit(X, y)
    with pytest.raises(ValueError, match="steps"):
        DomainClassifier(steps=0).fit(X, y)
    with pytest.raises(ValueError, match="samples"):
        DomainClassifier().fit(X, y, domains=d[:-1])
    with pytest.raises(ValueError, match="domains"):
        DomainClassifier().fit(X, y, domains=[*d[:-1], None])
    with pytest.raises(ValueError, match="classes"):
        DomainClassifier().fit(X, ["cat"] * 60)
    with pytest.raises(ValueError, match="weight"):
        DomainClassifier().fit(X, y, sample_weight=np.zeros(60))
