"""Style mixing against NumPy and SciPy, its partners, and its modules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import ndimage
from torch import Tensor

from longshift.losses import AmplitudeMix, RandomConvolution, style_mixing
from longshift.rng import HostDraws

DOMAINS = torch.arange(3).repeat_interleave(4)
CLASSES = torch.tensor([0, 1, 2, 3, 0, 0, 1, 1, 4, 4, 1, 0])


def _images(n: int = 12, height: int = 12, width: int = 10, seed: int = 0) -> Tensor:
    return HostDraws(seed, dtype=torch.float64).uniform(n, 3, height, width)


def test_amplitude_mixing_is_the_formula_in_numpy() -> None:
    images = _images(4, 9, 8)  # an odd and an even side
    partners, amount = torch.tensor([2, 3, 0, 0]), torch.tensor([0.0, 0.3, 0.8, 1.0], dtype=torch.float64)
    found = style_mixing.mix_amplitude(images, partners, amount).numpy()
    x = images.numpy()
    for i, (j, share) in enumerate(zip(partners.tolist(), amount.tolist(), strict=True)):
        for channel in range(3):
            own, other = np.fft.fft2(x[i, channel]), np.fft.fft2(x[j, channel])
            amplitude = (1 - share) * np.abs(own) + share * np.abs(other)
            expected = np.fft.ifft2(amplitude * np.exp(1j * np.angle(own))).real
            np.testing.assert_allclose(found[i, channel], expected, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0, 1), height=st.integers(2, 9), width=st.integers(2, 9))
def test_amplitude_mixing_keeps_the_phase_and_takes_the_mean_along(
    seed: int, share: float, height: int, width: int
) -> None:
    images = _images(2, height, width, seed)
    mixed = style_mixing.mix_amplitude(images, torch.tensor([1, 0]), torch.full((2,), share, dtype=torch.float64))
    before, after = np.fft.fft2(images.numpy()), np.fft.fft2(mixed.numpy())
    np.testing.assert_allclose((after * before.conj()).imag, 0, atol=1e-8 * np.abs(before).max() ** 2)
    assert ((after * before.conj()).real > -1e-8 * np.abs(before).max() ** 2).all()
    means = images.mean((2, 3))
    torch.testing.assert_close(mixed.mean((2, 3)), (1 - share) * means + share * means.flip(0))


def test_a_blank_image_stays_smooth() -> None:
    # It has one frequency only; rounding errors at all others must not be blown up to the partner's amplitude.
    images = torch.stack([torch.full((3, 16, 16), 0.7), _images(1, 16, 16)[0].float()])
    mixed = style_mixing.mix_amplitude(images, torch.tensor([1, 0]), torch.ones(2))
    assert float(mixed[0].std((1, 2)).max()) < 1e-3
    torch.testing.assert_close(mixed[0].mean((1, 2)), images[1].mean((1, 2)))


def test_random_convolution_is_that_of_scipy() -> None:
    images = _images(6) - 0.4
    kernels = style_mixing.random_kernels(HostDraws(3, dtype=torch.float64).normal(*style_mixing.KERNELS_SHAPE))
    which, amount = torch.tensor([5, 0, 1, 2, 3, 4]), torch.linspace(0, 1, 6, dtype=torch.float64)
    found = style_mixing.random_convolution(images, kernels, which, amount).numpy()
    for i in range(6):
        size = style_mixing.KERNEL_SIZES[which[i]]
        margin = (style_mixing.LARGEST - size) // 2
        kernel = kernels[which[i]].numpy()
        small = kernel[:, :, margin : margin + size, margin : margin + size]
        assert np.abs(small).sum() == pytest.approx(np.abs(kernel).sum())
        for channel in range(3):
            blurred = sum(ndimage.correlate(images[i, c].numpy(), small[channel, c], mode="constant") for c in range(3))
            expected = (1 - float(amount[i])) * images[i, channel].numpy() + float(amount[i]) * blurred
            np.testing.assert_allclose(found[i, channel], expected, atol=1e-10)


def test_random_kernels_keep_the_scale_on_average() -> None:
    noise = HostDraws(0, dtype=torch.float64).normal(40, 3, 24, 24)
    scales = []
    for seed in range(40):
        kernels = style_mixing.random_kernels(HostDraws(seed, dtype=torch.float64).normal(*style_mixing.KERNELS_SHAPE))
        which = torch.arange(40) % len(style_mixing.KERNEL_SIZES)
        scales.append(
            style_mixing.random_convolution(noise, kernels, which, torch.ones(40, dtype=torch.float64)).square()
        )
    assert float(torch.stack(scales).mean()) == pytest.approx(1, abs=0.15)


def test_statistics_are_the_mixed_ones() -> None:
    images = _images(2)
    share = torch.tensor([0.25, 1.0], dtype=torch.float64)
    mixed = style_mixing.mix_statistics(images, torch.tensor([1, 0]), share)
    weight = share.numpy()[:, None]
    for measure in (np.mean, np.std):
        own, found = (measure(x.numpy(), axis=(2, 3)) for x in (images, mixed))
        np.testing.assert_allclose(found, (1 - weight) * own + weight * own[::-1])


@pytest.mark.parametrize("mix", [style_mixing.mix_amplitude, style_mixing.mix_statistics])
def test_partners_are_indices_of_the_batch_or_of_given_styles(mix: Callable[..., Tensor]) -> None:
    images, styles = _images(4), _images(3, seed=1)
    partners, amount = torch.tensor([2, 0, 0, 1]), torch.linspace(0.2, 1, 4, dtype=torch.float64)
    rest = torch.arange(3)
    together = mix(torch.cat([images, styles]), torch.cat([4 + partners, rest]), torch.cat([amount, amount[:3]]))
    torch.testing.assert_close(mix(images, partners, amount, styles), together[:4])
    assert torch.equal(mix(images, partners, amount, images), mix(images, partners, amount))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), same_class=st.booleans())
def test_partners_are_of_another_domain(seed: int, same_class: bool) -> None:
    u = HostDraws(seed).uniform(12)
    partners = style_mixing.choose_partners(u, CLASSES, DOMAINS, same_class=same_class)
    assert (DOMAINS[partners] != DOMAINS).all()
    if same_class:
        alike = (CLASSES[:, None] == CLASSES) & (DOMAINS[:, None] != DOMAINS)
        assert (alike.any(1) == (CLASSES[partners] == CLASSES)).all()  # classes 2 to 4 have none elsewhere


def test_all_partners_are_equally_likely() -> None:
    draws = HostDraws(0)
    found = torch.stack([style_mixing.choose_partners(draws.uniform(12), CLASSES, DOMAINS) for _ in range(4000)])
    counts = torch.stack([torch.bincount(found[:, i], minlength=12) for i in range(12)]) / 4000
    assert float((counts[DOMAINS[:, None] != DOMAINS] - 1 / 8).abs().max()) < 0.025
    last = style_mixing.choose_partners(
        torch.ones(12), CLASSES, DOMAINS
    )  # 1 is what rounding may make of a number below 1
    assert last.tolist() == [11] * 8 + [7] * 4


def test_with_one_domain_a_partner_is_any_other_image() -> None:
    draws, together = HostDraws(0), torch.zeros(12, dtype=torch.int64)
    found = torch.stack([style_mixing.choose_partners(draws.uniform(12), CLASSES, together) for _ in range(500)])
    assert all(set(found[:, i].tolist()) == set(range(12)) - {i} for i in range(12))


def test_amplitude_mix_mixes_with_another_domain_by_its_draws() -> None:
    images = _images()
    mix = AmplitudeMix(0.7, draws=HostDraws(5, dtype=torch.float64))
    u = HostDraws(5, dtype=torch.float64).uniform(12, 3)
    partners = style_mixing.choose_partners(u[:, 0], CLASSES, DOMAINS)
    torch.testing.assert_close(mix(images, DOMAINS), style_mixing.mix_amplitude(images, partners, 0.7 * u[:, 1]))
    alike = AmplitudeMix(same_class=True, draws=HostDraws(5, dtype=torch.float64))
    partners = style_mixing.choose_partners(u[:, 0], CLASSES, DOMAINS, same_class=True)
    expected = style_mixing.mix_amplitude(images, partners, u[:, 1])
    torch.testing.assert_close(alike(images, DOMAINS, CLASSES), expected)


def test_random_convolution_leaves_the_center_and_a_share_of_the_images() -> None:
    gray = torch.full((8, 3, 9, 9), 0.3)
    assert torch.allclose(RandomConvolution(center=0.3)(gray), gray)
    images = _images(64).float()
    for module in (RandomConvolution(share=0.25), AmplitudeMix(share=0.25)):
        mixed = module(images) if isinstance(module, RandomConvolution) else module(images, torch.arange(64) % 4)
        changed = (mixed != images).flatten(1).any(1)
        assert 6 <= int(changed.sum()) <= 28
    colors = RandomConvolution(center=(0.1, 0.2, 0.3))
    plain = torch.tensor([0.1, 0.2, 0.3])[None, :, None, None].expand(4, 3, 8, 8)
    torch.testing.assert_close(colors(plain), plain)


def test_modules_draw_anew_by_their_seed_and_do_nothing_in_evaluation() -> None:
    images = _images().float()
    first, second = AmplitudeMix(seed=1), AmplitudeMix(seed=1)
    once = first(images, DOMAINS)
    assert torch.equal(once, second(images, DOMAINS))
    assert not torch.equal(once, first(images, DOMAINS))
    assert torch.equal(first.eval()(images, DOMAINS), images)
    assert torch.equal(RandomConvolution().eval()(images), images)
    assert first.train()(images.bfloat16(), DOMAINS).dtype == torch.bfloat16
    assert not first.state_dict()
    assert not RandomConvolution().state_dict()


def test_modules_compute_in_full_precision_under_autocast() -> None:
    images = _images().float()
    plain = [RandomConvolution()(images), AmplitudeMix()(images, DOMAINS)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = [RandomConvolution()(images), AmplitudeMix()(images, DOMAINS)]
    for value, expected in zip(found, plain, strict=True):
        assert value.dtype == torch.float32
        assert torch.equal(value, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_only_at_the_end(dtype: torch.dtype) -> None:
    images, which, amount = _images(4).to(dtype), torch.tensor([2, 3, 0, 0]), torch.tensor([0.0, 0.3, 0.8, 1.0])
    kernels = style_mixing.random_kernels(HostDraws(3).normal(*style_mixing.KERNELS_SHAPE))
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda x: style_mixing.mix_amplitude(x, which, amount),
        lambda x: style_mixing.random_convolution(x, kernels, which, amount),
        lambda x: RandomConvolution()(x),
        lambda x: AmplitudeMix()(x, torch.arange(4)),
    ]
    for call in calls:
        found = call(images)
        assert found.dtype == dtype
        assert torch.equal(found, call(images.float()).to(dtype))


def test_default_random_numbers_of_the_modules_differ() -> None:
    images, d = _images(64).float(), torch.arange(64) % 4
    mixed, blended = AmplitudeMix(share=0.5)(images, d), RandomConvolution(share=0.5)(images)
    changed = [(styled != images).flatten(1).any(1) for styled in (mixed, blended)]
    # By chance half of the images are in the same state; equal numbers would make it all of them.
    assert 0.3 < float((changed[0] == changed[1]).double().mean()) < 0.7


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_modules_keep_the_memory_format(memory_format: torch.memory_format) -> None:
    images = _images().float().contiguous(memory_format=memory_format)
    for styled in (AmplitudeMix()(images, DOMAINS), RandomConvolution()(images)):
        assert styled.is_contiguous(memory_format=memory_format)
        assert not torch.equal(styled, images)


def test_an_empty_batch_stays_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def transform(images: Tensor) -> Tensor:
        raise RuntimeError("MKL FFT error")  # PyTorch 2.11 with MKL

    monkeypatch.setattr(torch.fft, "rfft2", transform)
    images, none = torch.rand(0, 3, 8, 8), torch.zeros(0, dtype=torch.int64)
    assert AmplitudeMix()(images, none).shape == images.shape
    assert AmplitudeMix(same_class=True)(images, none, none).shape == images.shape
    assert RandomConvolution()(images).shape == images.shape
    assert style_mixing.mix_amplitude(images, none, torch.zeros(0)).shape == images.shape


def test_mistakes_of_the_modules_are_named() -> None:
    for center in ((0.1, 0.2), (), (0.1, 0.2, 0.3, 0.4)):
        with pytest.raises(ValueError, match="`center`"):
            RandomConvolution(center=center)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`amount`"):
        AmplitudeMix(2)
    with pytest.raises(ValueError, match=r"\(2, 1, 4, 4\)"):
        RandomConvolution()(torch.rand(2, 1, 4, 4))
    with pytest.raises(ValueError, match="`y`"):
        AmplitudeMix(same_class=True)(torch.rand(2, 3, 4, 4), torch.tensor([0, 1]))


@pytest.mark.parametrize("training", [True, False])
def test_integer_images_are_refused(training: bool) -> None:
    images, d = torch.randint(0, 256, (4, 3, 6, 6), dtype=torch.uint8), torch.tensor([0, 0, 1, 1])
    mix, convolve = AmplitudeMix().train(training), RandomConvolution().train(training)
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda x: mix(x, d),
        convolve,
        lambda x: style_mixing.mix_amplitude(x, d, torch.ones(4)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="uint8"):
            call(images)
        with pytest.raises(ValueError, match="int64"):
            call(images.long())
        assert call(images.float() / 255).isfinite().all()  # the advice works


def test_domains_and_classes_are_one_per_image() -> None:
    images, d = torch.rand(4, 3, 6, 6), torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match="`d`"):
        AmplitudeMix()(images, d[:3])
    with pytest.raises(ValueError, match="`d`"):
        AmplitudeMix()(images, d[:, None])
    with pytest.raises(ValueError, match="`y`"):
        AmplitudeMix(same_class=True)(images, d, torch.arange(5))
    with pytest.raises(ValueError, match="`partners`"):
        style_mixing.mix_amplitude(images, d[:1], torch.ones(4))
    with pytest.raises(ValueError, match="`amount`"):
        style_mixing.mix_amplitude(images, d, torch.tensor(0.5))
    with pytest.raises(ValueError, match="`styles`"):
        style_mixing.mix_amplitude(images, d, torch.ones(4), torch.rand(4, 3, 6, 8))
