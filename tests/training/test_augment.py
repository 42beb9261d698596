"""Augmentation against torchvision, image by image."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.v2 import functional as tv

from longshift.rng import HostDraws
from longshift.training import augment as aug

Jitter = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _images(n: int = 4, size: int = 16, seed: int = 0) -> torch.Tensor:
    return HostDraws(seed, dtype=torch.float64).uniform(n, 3, size, size)


FACTORS = torch.tensor([0.7, 0.9, 1.1, 1.3], dtype=torch.float64)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (aug.brightness, tv.adjust_brightness),
        (aug.contrast, tv.adjust_contrast),
        (aug.saturation, tv.adjust_saturation),
    ],
)
def test_jitter_agrees_with_torchvision_image_by_image(ours: Jitter, theirs: Callable[..., torch.Tensor]) -> None:
    images = _images()
    expected = torch.stack([theirs(image, float(f)) for image, f in zip(images, FACTORS, strict=True)])
    torch.testing.assert_close(ours(images, FACTORS), expected, rtol=0, atol=1e-6)


def test_hue_agrees_with_torchvision() -> None:
    images = _images()
    images[0, :, 0, 0] = 0.5  # a gray pixel has no hue and must stay as it is
    turns = torch.tensor([-0.3, -0.05, 0.12, 0.3], dtype=torch.float64)
    expected = torch.stack([tv.adjust_hue(image, float(t)) for image, t in zip(images, turns, strict=True)])
    torch.testing.assert_close(aug.rotate_hue(images, turns), expected, rtol=0, atol=1e-6)


def test_a_crop_is_the_resized_box() -> None:
    images = _images(2, 16)
    left, top, width, height = torch.tensor([2, 4, 12, 8], dtype=torch.float64).div(16)[:, None].expand(4, 2).unbind(0)
    cropped = aug.crop_and_flip(images, left, top, width, height, torch.tensor([False, True]))
    box = images[:, :, 4:12, 2:14]
    expected = torch.nn.functional.interpolate(box, (16, 16), mode="bilinear", align_corners=False)
    inner = slice(2, -2)  # at the border interpolate clamps to the box, while the crop sees the pixels beside it
    torch.testing.assert_close(cropped[0, :, inner, inner], expected[0, :, inner, inner])
    torch.testing.assert_close(cropped[1, :, inner, inner], expected[1].flip(-1)[:, inner, inner])


def test_full_box_without_flip_changes_nothing() -> None:
    images = _images()
    one, zero = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    torch.testing.assert_close(aug.crop_and_flip(images, zero, zero, one, one, zero > 1), images)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 0.999), min_size=4, max_size=4))
def test_boxes_lie_inside_the_image_and_have_the_asked_area(values: list[float]) -> None:
    area_u, aspect_u, left_u, top_u = torch.tensor(values)[:, None].unbind(0)
    left, top, width, height = aug.crop_box(area_u, aspect_u, left_u, top_u)
    assert 0 <= left <= left + width <= 1 + 1e-6
    assert 0 <= top <= top + height <= 1 + 1e-6
    assert 0.7 - 1e-5 <= width * height <= 1 + 1e-6
    assert 3 / 4 - 1e-5 <= width / height <= 4 / 3 + 1e-5


@pytest.mark.slow
def test_boxes_are_distributed_like_torchvisions() -> None:
    torch.manual_seed(0)
    n, image = 20_000, torch.empty(3, 1000, 1000)
    drawn = [RandomResizedCrop.get_params(image, scale=[0.7, 1.0], ratio=[3 / 4, 4 / 3]) for _ in range(n)]
    theirs = torch.tensor(drawn, dtype=torch.float64)[:, 2:].div(1000)
    u = HostDraws(0, dtype=torch.float64).uniform(4, n)
    _, _, width, height = aug.crop_box(u[0], u[1], u[2], u[3])
    ours_area, their_area = width * height, theirs.prod(1)
    for q in (0.1, 0.5, 0.9):
        assert float(ours_area.quantile(q)) == pytest.approx(float(their_area.quantile(q)), abs=0.006)
    ours_aspect, their_aspect = (width / height).log(), (theirs[:, 1] / theirs[:, 0]).log()
    assert float(ours_aspect.std()) == pytest.approx(float(their_aspect.std()), rel=0.03)
    nearly_full = [float((sides > 0.985).double().mean()) for sides in (width, theirs[:, 1])]
    assert nearly_full[0] == pytest.approx(nearly_full[1], abs=0.015)


def test_images_are_treated_one_by_one() -> None:
    """An image's result depends on its own pixels and numbers only."""
    images = _images()
    u = HostDraws(3, dtype=torch.float64).uniform(4, 10)
    together = aug.augment_like_domainbed(images, u)
    alone = torch.cat([aug.augment_like_domainbed(images[i : i + 1], u[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(together, alone)
    assert together.min() >= 0
    assert together.max() <= 1


def test_share_of_flips_and_grays() -> None:
    n = 4000
    images = _images(1, 4).expand(n, 3, 4, 4)
    u = HostDraws(1, dtype=torch.float64).uniform(n, 10)
    u[:, 0], u[:, 5:9] = 1.0, 0.5  # the whole image, with its own colors
    out = aug.augment_like_domainbed(images, u)
    gray = ((out - out[:, :1]).abs().amax((1, 2, 3)) < 1e-9).double().mean().item()
    assert gray == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / n))
    color = out[(out - out[:, :1]).abs().amax((1, 2, 3)) > 1e-9]
    flipped = ((color - images[0].flip(-1)).abs().amax((1, 2, 3)) < 1e-6).double().mean().item()
    assert flipped == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / n))


@pytest.mark.slow
def test_compiled_augmentation_is_one_graph() -> None:
    domainbed = aug.find_augmentation("domainbed")
    found = torch._dynamo.explain(domainbed.apply)(torch.rand(4, 3, 8, 8), torch.rand(4, domainbed.uniforms))
    assert (found.graph_count, found.graph_break_count) == (1, 0)
    operations = sum(node.op == "call_function" for node in found.graphs[0].graph.nodes)
    assert operations < 400  # the table of quantiles is looked up, not traced
