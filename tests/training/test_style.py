"""Style mixing against NumPy and SciPy, its random choices, and its place in the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import ndimage
from torch import Tensor

from longshift.errors import ConfigError, LongshiftError
from longshift.methods.batch import Batch
from longshift.rng import HostDraws
from longshift.training import resolve, style
from longshift.training.batches import Inputs
from longshift.training.idle_options import style_mistakes
from longshift.training.run_config import Runtime
from longshift.training.style import Style
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.training.small_runs import CPU, config, train

KINDS = ("amplitude", "convolution", "both", "statistics")
DOMAINS = torch.arange(3).repeat_interleave(4)
CLASSES = torch.tensor([0, 1, 2, 3, 0, 0, 1, 1, 4, 4, 1, 0])
CENTER = torch.full((1, 3, 1, 1), 0.4, dtype=torch.float64)


def _images(n: int = 12, height: int = 12, width: int = 10, seed: int = 0) -> Tensor:
    return HostDraws(seed, dtype=torch.float64).uniform(n, 3, height, width)


def _styled(how: Style, seed: int = 1, d: Tensor = DOMAINS) -> tuple[Tensor, style.Styled]:
    images = _images()
    draws = HostDraws(seed, dtype=torch.float64)
    return images, style.draw_styled(images, CLASSES, d, CENTER, how, draws)


def test_amplitude_mixing_is_the_formula_in_numpy() -> None:
    images = _images(4, 9, 8)  # an odd and an even side
    partners, amount = torch.tensor([2, 3, 0, 0]), torch.tensor([0.0, 0.3, 0.8, 1.0], dtype=torch.float64)
    found = style.mix_amplitude(images, partners, amount).numpy()
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
    mixed = style.mix_amplitude(images, torch.tensor([1, 0]), torch.full((2,), share, dtype=torch.float64))
    before, after = np.fft.fft2(images.numpy()), np.fft.fft2(mixed.numpy())
    np.testing.assert_allclose((after * before.conj()).imag, 0, atol=1e-8 * np.abs(before).max() ** 2)
    assert ((after * before.conj()).real > -1e-8 * np.abs(before).max() ** 2).all()
    means = images.mean((2, 3))
    torch.testing.assert_close(mixed.mean((2, 3)), (1 - share) * means + share * means.flip(0))


def test_a_blank_image_stays_smooth() -> None:
    # It has one frequency only; rounding errors at all others must not be blown up to the partner's amplitude.
    images = torch.stack([torch.full((3, 16, 16), 0.7), _images(1, 16, 16)[0].float()])
    mixed = style.mix_amplitude(images, torch.tensor([1, 0]), torch.ones(2))
    assert float(mixed[0].std((1, 2)).max()) < 1e-3
    torch.testing.assert_close(mixed[0].mean((1, 2)), images[1].mean((1, 2)))


def test_random_convolution_is_that_of_scipy() -> None:
    images = _images(6) - 0.4
    kernels = style.random_kernels(HostDraws(3, dtype=torch.float64).normal(*style.KERNELS_SHAPE))
    which, amount = torch.tensor([5, 0, 1, 2, 3, 4]), torch.linspace(0, 1, 6, dtype=torch.float64)
    found = style.random_convolution(images, kernels, which, amount).numpy()
    for i in range(6):
        size = style.KERNEL_SIZES[which[i]]
        margin = (style.LARGEST - size) // 2
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
        kernels = style.random_kernels(HostDraws(seed, dtype=torch.float64).normal(*style.KERNELS_SHAPE))
        which = torch.arange(40) % len(style.KERNEL_SIZES)
        scales.append(style.random_convolution(noise, kernels, which, torch.ones(40, dtype=torch.float64)).square())
    assert float(torch.stack(scales).mean()) == pytest.approx(1, abs=0.15)


def test_statistics_are_the_mixed_ones() -> None:
    images = _images(2)
    share = torch.tensor([0.25, 1.0], dtype=torch.float64)
    mixed = style.mix_statistics(images, images.flip(0), share)
    weight = share.numpy()[:, None]
    for measure in (np.mean, np.std):
        own, found = (measure(x.numpy(), axis=(2, 3)) for x in (images, mixed))
        np.testing.assert_allclose(found, (1 - weight) * own + weight * own[::-1])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), same_class=st.booleans())
def test_partners_are_of_another_domain(seed: int, same_class: bool) -> None:
    u = HostDraws(seed).uniform(12)
    partners = style.choose_partners(u, CLASSES, DOMAINS, same_class=same_class)
    assert (DOMAINS[partners] != DOMAINS).all()
    if same_class:
        alike = (CLASSES[:, None] == CLASSES) & (DOMAINS[:, None] != DOMAINS)
        assert (alike.any(1) == (CLASSES[partners] == CLASSES)).all()  # classes 2 to 4 have none elsewhere


def test_all_partners_are_equally_likely() -> None:
    draws = HostDraws(0)
    found = torch.stack([style.choose_partners(draws.uniform(12), CLASSES, DOMAINS) for _ in range(4000)])
    counts = torch.stack([torch.bincount(found[:, i], minlength=12) for i in range(12)]) / 4000
    assert float((counts[DOMAINS[:, None] != DOMAINS] - 1 / 8).abs().max()) < 0.025
    last = style.choose_partners(torch.ones(12), CLASSES, DOMAINS)  # 1 is what rounding may make of a number below 1
    assert last.tolist() == [11] * 8 + [7] * 4


def test_with_one_domain_a_partner_is_any_other_image() -> None:
    draws, together = HostDraws(0), torch.zeros(12, dtype=torch.int64)
    found = torch.stack([style.choose_partners(draws.uniform(12), CLASSES, together) for _ in range(500)])
    assert all(set(found[:, i].tolist()) == set(range(12)) - {i} for i in range(12))


@pytest.mark.parametrize("kind", KINDS)
def test_no_amount_and_no_share_change_nothing(kind: str) -> None:
    for how in (Style(kind, amount=0.0), Style(kind, share=0.0)):
        images, (styled, _) = _styled(how)
        torch.testing.assert_close(styled, images)


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_of_the_images_is_styled(kind: str) -> None:
    changed, moved = [], []
    for seed in range(150):
        images, (styled, style_d) = _styled(Style(kind, share=0.3), seed)
        changed.append((styled - images).abs().amax((1, 2, 3)) > 1e-6)
        moved.append(style_d != DOMAINS)
    assert float(torch.stack(changed).double().mean()) == pytest.approx(0.3, abs=0.04)
    with_partner = {"amplitude": 1.0, "statistics": 1.0, "both": 0.5, "convolution": 0.0}[kind]
    assert float(torch.stack(moved).double().mean()) == pytest.approx(0.3 * with_partner, abs=0.04)


def test_amount_is_the_largest_coefficient() -> None:
    # On means, the coefficient can be read off: the mean of a styled image lies between its own and the partner's.
    images = torch.arange(12, dtype=torch.float64)[:, None, None, None].expand(12, 3, 4, 4) / 12 + 0.01
    shares = []
    for seed in range(100):
        draws = HostDraws(seed, dtype=torch.float64)
        u = HostDraws(seed, dtype=torch.float64).uniform(12, style.UNIFORMS)
        partners = style.choose_partners(u[:, 0], CLASSES, DOMAINS)
        styled, _ = style.draw_styled(images, CLASSES, DOMAINS, CENTER, Style("amplitude", amount=0.4), draws)
        means = images.mean((1, 2, 3))
        shares.append((styled.mean((1, 2, 3)) - means) / (means[partners] - means))
    found = torch.stack(shares)
    assert float(found.min()) >= -1e-9
    assert 0.38 < float(found.max()) <= 0.4 + 1e-9
    assert float(found.mean()) == pytest.approx(0.2, abs=0.01)


def _batch(how: Style | None, domains: int = 3) -> Batch:
    stored = (255 * _images(height=8, width=8)).to(torch.uint8).permute(0, 2, 3, 1)
    mean = torch.full((1, 3, 1, 1), 0.5)
    inputs = Inputs(mean, mean, None, style=how)
    return inputs.batch(stored, CLASSES, domains, HostDraws(5))


def test_two_views_are_domain_major_and_keep_label_and_domain() -> None:
    plain, one, two = _batch(None), _batch(Style("both")), _batch(Style("both", views=2))
    assert len(two) == 24
    assert one.style_d is not None
    assert two.style_d is not None
    views = [two.by_domain(values) for values in (two.x, two.y, two.d, two.style_d)]
    for first, given_values in zip(views, (plain.x, plain.y, plain.d, plain.d), strict=True):
        torch.testing.assert_close(first[:, :4], plain.by_domain(given_values))
    for second, given_values in zip(views, (one.x, plain.y, plain.d, one.style_d), strict=True):
        torch.testing.assert_close(second[:, 4:], plain.by_domain(given_values))


def test_pooled_samples_can_be_styled() -> None:
    batch = _batch(Style("amplitude"), domains=1)
    assert batch.style_d is not None
    assert (batch.style_d == 0).all()
    assert not torch.equal(batch.x, _batch(None, domains=1).x)


@pytest.mark.parametrize("hparams", [{"style": "both"}, {"style": "amplitude", "style_views": 2}])
@pytest.mark.parametrize("method", ["erm", "ndcl", "mldg"])
def test_a_styled_run_trains_and_resumes_equal(method: str, hparams: dict[str, Any], tmp_path: Path) -> None:
    run = config(method=method, hparams=hparams)
    task = make_task(run)
    result = train(run, tmp_path / "whole", task)
    plain = train(config(method=method), tmp_path / "plain", task)
    assert result["status"] == "done"
    assert result["hparams"]["style"] == hparams["style"]
    assert "style" not in plain["hparams"]
    halves = Trainer(run, task, tmp_path / "halves", CPU, stop=lambda: True)
    with pytest.raises(LongshiftError, match="stopped"):
        halves.run()
    again = Trainer(run, task, tmp_path / "halves", CPU).run(resume=True)
    assert again["selected"] == result["selected"]
    assert plain["selected"] != result["selected"]


def test_streamed_samples_are_styled_the_same(tmp_path: Path) -> None:
    run = config(hparams={"style": "both"})
    task = make_task(run)
    found = [
        train(run, tmp_path / str(stream), task, Runtime("cpu", "fp32", stream=stream)) for stream in (True, False)
    ]
    assert found[0]["selected"] == found[1]["selected"]


def test_vectors_and_idle_options_are_refused(tmp_path: Path) -> None:
    (text,) = style_mistakes(config(data=str(tmp_path / "some.npz"), hparams={"style": "both"}))["hparams"]
    assert "style: expected none with vectors" in text
    with pytest.raises(ConfigError, match="style_amount: has no effect while style is none"):
        resolve({"target": "ink", "method": "erm", "hparams": {"style_amount": 0.5}})
    with pytest.raises(ConfigError, match="style: expected one of none, amplitude"):
        config(hparams={"style": "oil"})


def test_style_has_no_part_in_a_fingerprint_while_it_is_off() -> None:
    off = config()
    assert off.fingerprint() == config(hparams={"style": "none"}).fingerprint()
    fingerprints = {
        config(hparams=hparams).fingerprint()
        for hparams in ({}, {"style": "both"}, {"style": "both", "style_amount": 0.5}, {"style": "amplitude"})
    }
    assert len(fingerprints) == 4


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("graphs", ["off", "on"])
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_styled_losses_on_a_gpu_are_those_of_the_cpu(kind: str, graphs: str, compiled: str) -> None:
    from benchmarks.agreement import config_for, largest_difference, term_values

    found = []
    task = make_task(config_for("erm", 20))
    on_gpu = Runtime("cuda", "fp32", graphs=graphs, compile=compiled)  # type: ignore[arg-type]
    for how in (Runtime("cpu", "fp32"), on_gpu):
        found.append(term_values("erm", 20, task, how, style=kind))
    assert largest_difference(*found) < 1e-4


@pytest.mark.slow
def test_a_compiled_style_stage_gives_the_same_images() -> None:
    images, plain = _styled(Style("both", share=0.7))
    again, compiled = _styled(Style("both", share=0.7, compiled=True))
    assert torch.equal(images, again)
    torch.testing.assert_close(compiled.images, plain.images, rtol=1e-6, atol=1e-6)
    assert torch.equal(compiled.d, plain.d)
