"""Copies of images: partners are of other domains, and numbers do not depend on the batch."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

from longshift import losses
from longshift.data import Manifest, load_dataset
from longshift.losses import STYLE_KINDS, mix_statistics
from longshift.methods import StyleConfig
from longshift.training.feature_views import PARTNER_RULE, CopyRecipe, ViewPlan, choose_partners_in_dataset

DIGITS = load_dataset("digits")
CENTER = torch.full((1, 3, 1, 1), 0.5)


def test_partners_are_of_another_domain_and_all_domains_are_used() -> None:
    u = np.random.default_rng(0).random((len(DIGITS), 2))
    partners = choose_partners_in_dataset(DIGITS, u)
    assert (DIGITS.domains[partners] != DIGITS.domains).all()
    pairs = set(zip(DIGITS.domains.tolist(), DIGITS.domains[partners].tolist(), strict=True))
    assert len(pairs) == 12
    alike = choose_partners_in_dataset(DIGITS, u, same_class=True)
    assert (DIGITS.labels[alike] == DIGITS.labels).all()
    assert (DIGITS.domains[alike] != DIGITS.domains).all()


def _manifest(domains: list[int], labels: list[int]) -> Manifest:
    names = tuple(str(i) for i in range(len(labels)))
    return Manifest("made-up", None, names, np.array(labels), np.array(domains), ("a", "b", "c"), ("d", "e", "f"))


@pytest.mark.parametrize(
    ("domains", "labels"),
    [
        ([0] * 9, [0, 0, 0, 1, 1, 1, 1, 2, 0]),  # one domain; class 2 once
        ([0, 0, 0, 2, 2, 2], [0, 1, 2, 0, 0, 1]),  # a domain without images
        ([0, 0, 1, 1, 2, 2, 2], [0, 2, 1, 1, 0, 1, 1]),  # classes that not every domain has
        ([1], [0]),
    ],
)
@pytest.mark.parametrize("same_class", [False, True])
def test_partners_are_those_that_training_may_choose(domains: list[int], labels: list[int], same_class: bool) -> None:
    n, rng = len(labels), np.random.default_rng(0)
    y, d = torch.tensor(labels), torch.tensor(domains)
    ours, theirs = (np.zeros((n, n), bool) for _ in range(2))
    for u in rng.random((300, n, 2)):
        ours[np.arange(n), choose_partners_in_dataset(_manifest(domains, labels), u, same_class)] = True
        drawn = losses.choose_partners(torch.from_numpy(u[:, 0]), y, d, same_class=same_class)
        theirs[np.arange(n), drawn.numpy()] = True
    np.testing.assert_array_equal(ours, theirs)
    assert n == 1 or not ours.diagonal().any()


def test_other_images_of_a_single_domain_are_equally_likely() -> None:
    rng, single = np.random.default_rng(0), _manifest([0] * 5, [0] * 5)
    found = np.stack([choose_partners_in_dataset(single, u) for u in rng.random((4000, 5, 2))])
    for i in range(5):
        shares = np.bincount(found[:, i], minlength=5) / 4000
        assert np.abs(np.delete(shares, i) - 0.25).max() < 0.03


def test_partners_of_the_same_class_are_drawn_by_domain_first_but_uniformly_in_training() -> None:
    domains, labels = [0] + [1] * 6 + [2] * 2, [0] * 9
    u = np.random.default_rng(0).random((3000, 9, 2))
    found = np.array([choose_partners_in_dataset(_manifest(domains, labels), row, True)[0] for row in u])
    assert (np.array(domains)[found] == 1).mean() == pytest.approx(1 / 2, abs=0.04)
    y, d = torch.tensor(labels), torch.tensor(domains)
    trained = [int(losses.choose_partners(torch.from_numpy(row[:, 0]), y, d, same_class=True)[0]) for row in u]
    assert (np.array(domains)[trained] == 1).mean() == pytest.approx(6 / 8, abs=0.04)


def test_whoever_changes_the_choice_of_partners_raises_its_version() -> None:
    # Features in a cache were computed with the partners of their version. If this hash changes, raise PARTNER_RULE,
    # then write the new version and the new hash here.
    digest = hashlib.sha256()
    for domains, labels in ([0, 0, 0, 1, 1, 2, 2, 2, 2], [0, 1, 2, 0, 1, 0, 0, 1, 1]), ([0] * 5, [0, 0, 1, 1, 2]):
        for kind in ("amplitude", "both", "statistics"):
            for same_class in (False, True):
                style = StyleConfig(mix=kind, share=0.7, partner="class" if same_class else "any")
                for view in (1, 2):
                    plan = ViewPlan(_manifest(domains, labels), CopyRecipe("domainbed", style), view)
                    digest.update(plan.style_samples.astype("<i8").tobytes())
    assert (PARTNER_RULE, digest.hexdigest()[:16]) == (2, "e28aa12057579796")


@pytest.mark.parametrize("kind", ["amplitude", "both", "statistics"])
def test_the_key_of_copies_with_partners_has_the_version_of_their_choice(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = CopyRecipe("domainbed", StyleConfig(mix=kind))
    first = {"augmentation": "domainbed", "style": [kind, 1.0, 1.0, False]}  # of the first rule, which had no version
    assert recipe.key() == {**first, "partners": PARTNER_RULE}
    before = recipe.key()
    monkeypatch.setattr("longshift.training.feature_views.PARTNER_RULE", PARTNER_RULE + 1)
    assert recipe.key() != before


def test_copies_without_partners_are_kept_when_their_choice_changes() -> None:
    for recipe in (CopyRecipe("domainbed"), CopyRecipe("", StyleConfig(mix="convolution"))):
        assert "partners" not in recipe.key()


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_a_copy_does_not_depend_on_its_batch(kind: str) -> None:
    plan = ViewPlan(DIGITS, CopyRecipe("domainbed", StyleConfig(mix=kind, share=0.7)), 1)
    images = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    partners = images.flip(0)
    indices = np.array([3, 900, 17, 1200, 44, 5])
    whole = plan.apply(images, partners, indices, CENTER)
    for i in range(6):
        one = plan.apply(images[i : i + 1], partners[i : i + 1], indices[i : i + 1], CENTER)
        torch.testing.assert_close(one[0], whole[i], rtol=1e-4, atol=1e-5)


def test_style_is_that_of_the_partner() -> None:
    plan = ViewPlan(DIGITS, CopyRecipe("", StyleConfig(mix="statistics", share=0.5)), 2)
    assert plan.partners is not None
    styled = plan.style_samples != np.arange(len(DIGITS))
    assert 0.4 < styled.mean() < 0.6
    np.testing.assert_array_equal(plan.style_samples[styled], plan.partners[styled])
    images, partners = torch.rand(40, 3, 8, 8), torch.rand(40, 3, 8, 8)
    indices = np.arange(40)
    found = plan.apply(images, partners, indices, CENTER)
    torch.testing.assert_close(found[~styled[:40]], images[~styled[:40]])
    # The mean of a copy lies between its own and that of its partner.
    expected = mix_statistics(images, torch.arange(40), plan._style_u[:40, 1].float(), partners)
    torch.testing.assert_close(found[styled[:40]], expected[styled[:40]])


def test_convolution_has_no_partner() -> None:
    plan = ViewPlan(DIGITS, CopyRecipe("", StyleConfig(mix="convolution")), 1)
    assert plan.partners is None
    np.testing.assert_array_equal(plan.style_samples, np.arange(len(DIGITS)))
