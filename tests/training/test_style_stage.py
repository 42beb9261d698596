"""The style stage: its random choices, and its place in the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.agreement import config_for, term_difference, trained, weight_difference
from longshift.errors import ConfigError, LongshiftError
from longshift.losses import KERNELS_SHAPE, STYLE_KINDS, choose_partners
from longshift.methods import MethodConfig
from longshift.methods.batch import Batch
from longshift.rng import HostDraws
from longshift.training import resolve, style_stage
from longshift.training.batches import Inputs
from longshift.training.idle_options import style_mistakes
from longshift.training.run_config import Runtime
from longshift.training.style_stage import Style
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.training.frozen import head_config, small_weights
from tests.training.small_runs import CPU, config, train

OPTIONS: list[dict[str, Any]] = [
    {"style_share": 0.5},
    {"style_share": 0.5, "style_views": 2, "style_partner": "class"},
]
DOMAINS = torch.arange(3).repeat_interleave(4)
CLASSES = torch.tensor([0, 1, 2, 3, 0, 0, 1, 1, 4, 4, 1, 0])
CENTER = torch.full((1, 3, 1, 1), 0.4, dtype=torch.float64)


def _images(n: int = 12, height: int = 12, width: int = 10, seed: int = 0) -> Tensor:
    return HostDraws(seed, dtype=torch.float64).uniform(n, 3, height, width)


def _styled(how: Style, seed: int = 1, d: Tensor = DOMAINS) -> tuple[Tensor, style_stage.Styled]:
    images = _images()
    draws = HostDraws(seed, dtype=torch.float64)
    return images, style_stage.draw_styled(images, CLASSES, d, CENTER, how, draws)


def test_every_kind_of_style_is_an_option_of_the_methods() -> None:
    assert MethodConfig.hyper_parameters()["style"].options == ("none", *STYLE_KINDS)


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_choices_follow_from_the_numbers(kind: str) -> None:
    u = torch.tensor([[0.1, 0.5, 0.59, 0.49, 0.0], [0.2, 1.0, 0.6, 0.5, 1.0]], dtype=torch.float64)
    drawn = style_stage.Drawn.of(u, Style(kind, amount=0.4, share=0.6))
    assert drawn.partner.tolist() == [0.1, 0.2]
    assert drawn.amount.tolist() == [0.2, 0.4]
    assert drawn.styled.tolist() == [True, False]
    assert drawn.mixed.tolist() == {"both": [True, False], "convolution": [False, False]}.get(kind, [True, True])
    assert drawn.kernel.tolist() == [0, 5]  # 1 is what rounding may make of a number below 1
    assert style_stage.Drawn.of(u, Style(kind), torch.float32).amount.dtype == torch.float32


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_stage_reads_no_tensor(kind: str) -> None:
    # Tensors without values: what runs on them can be captured as a CUDA graph.
    images, y, d = torch.empty(12, 3, 8, 8, device="meta"), CLASSES.to("meta"), DOMAINS.to("meta")
    how, draws = Style(kind, share=0.5, same_class=True), HostDraws(0, device="meta")
    styled = style_stage.draw_styled(images, y, d, torch.empty(1, 3, 1, 1, device="meta"), how, draws)
    assert styled.images.shape == images.shape
    assert styled.d.shape == d.shape


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_stage_compiles_as_one_function(kind: str) -> None:
    # `fullgraph=True` is an error if any part cannot be compiled; the eager backend checks it without generating code.
    torch.compiler.reset()
    images, draws = _images().float(), HostDraws(1)
    drawn = style_stage.Drawn.of(draws.uniform(12, style_stage.UNIFORMS), Style(kind))
    normal = draws.normal(*KERNELS_SHAPE) if kind in ("convolution", "both") else None
    given = images, CLASSES, DOMAINS, CENTER.float(), drawn, normal, kind, False
    compiled = torch.compile(style_stage.apply_style, backend="eager", fullgraph=True, dynamic=False)
    for got, wanted in zip(compiled(*given), style_stage.apply_style(*given), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_no_amount_and_no_share_change_nothing(kind: str) -> None:
    for how in (Style(kind, amount=0.0), Style(kind, share=0.0)):
        images, (styled, _) = _styled(how)
        torch.testing.assert_close(styled, images)


@pytest.mark.parametrize("kind", STYLE_KINDS)
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
        u = HostDraws(seed, dtype=torch.float64).uniform(12, style_stage.UNIFORMS)
        partners = choose_partners(u[:, 0], CLASSES, DOMAINS)
        styled, _ = style_stage.draw_styled(images, CLASSES, DOMAINS, CENTER, Style("amplitude", amount=0.4), draws)
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("method", "hparams", "message"),
    [
        ("erm", {"style": "both", "style_share": 0}, "style_share: expected more than 0 with style = 'both', got 0"),
        ("erm", {"style": "amplitude", "style_amount": 0.0}, "style_amount: expected more than 0 .*use style = 'none'"),
        ("erm", {"style": "convolution", "style_partner": "class"}, "style_partner: has no effect with style"),
        ("ndcl", {"style": "convolution", "style_domain": "partner"}, "style_domain: has no effect .*convolution"),
    ],
)
def test_options_that_a_style_does_not_use_are_refused(method: str, hparams: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"hparams.{message}"):
        resolve({"target": "ink", "method": method, "hparams": hparams})


def test_options_that_a_style_uses_are_accepted(tmp_path: Path) -> None:
    every = {"style_share": 0.5, "style_amount": 0.1, "style_views": 2}
    for hparams in (
        {"style": "convolution", **every},
        {"style": "both", **every, "style_partner": "class", "style_domain": "partner"},
        # All hyper-parameters of a run, as its record has them.
        resolve({"target": "ink", "method": "ndcl", "hparams": {"style": "convolution"}})
        .config.method_config()
        .to_dict(),
    ):
        assert resolve({"target": "ink", "method": "ndcl", "hparams": hparams}).config.method_config().style != "none"
    head = head_config(small_weights(tmp_path), method="ndcl", views=4, hparams={"style": "both"})
    record = {**head.model_dump(), "hparams": head.method_config().to_dict()}
    assert resolve(record).config.method_config() == head.method_config()


def test_style_has_no_part_in_a_fingerprint_while_it_is_off() -> None:
    off = config()
    assert off.fingerprint() == config(hparams={"style": "none"}).fingerprint()
    fingerprints = {
        config(hparams=hparams).fingerprint()
        for hparams in ({}, {"style": "both"}, {"style": "both", "style_amount": 0.5}, {"style": "amplitude"})
    }
    assert len(fingerprints) == 4


def _assert_equal_runs(method: str, other: Runtime, **hparams: Any) -> None:
    """Terms and weights of 20 steps are those of the plain path on the CPU."""
    task = make_task(config_for(method, 20))
    plain = trained(method, 20, task, Runtime("cpu", "fp32"), **hparams)
    found = trained(method, 20, task, other, **hparams)
    assert term_difference(plain, found) < 1e-4
    assert weight_difference(plain, found) < 0.02
    unstyled = trained(method, 20, task, Runtime("cpu", "fp32"), style="none")
    assert weight_difference(plain, unstyled) > 0.2  # the styles were mixed


@pytest.mark.gpu
@pytest.mark.parametrize("kind", STYLE_KINDS)
@pytest.mark.parametrize("graphs", ["off", "on"])
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_styled_runs_on_a_gpu_are_those_of_the_cpu(kind: str, graphs: str, compiled: str) -> None:
    on_gpu = Runtime("cuda", "fp32", graphs=graphs, compile=compiled)  # type: ignore[arg-type]
    _assert_equal_runs("erm", on_gpu, style=kind)


@pytest.mark.gpu
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", STYLE_KINDS)
@pytest.mark.parametrize("graphs", ["off", "on"])
def test_styled_runs_of_ndcl_plus_on_a_gpu_are_those_of_the_cpu(
    kind: str, graphs: str, options: dict[str, Any]
) -> None:
    on_gpu = Runtime("cuda", "fp32", graphs=graphs, compile="off")  # type: ignore[arg-type]
    _assert_equal_runs("ndcl_plus", on_gpu, style=kind, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options"), [("both", OPTIONS[0]), ("statistics", OPTIONS[1])])
def test_compiled_styled_runs_of_ndcl_plus_are_the_plain_ones(kind: str, options: dict[str, Any]) -> None:
    _assert_equal_runs("ndcl_plus", Runtime("cpu", "fp32", compile="on"), style=kind, **options)


@pytest.mark.slow
def test_a_compiled_style_stage_gives_the_same_images() -> None:
    images, plain = _styled(Style("both", share=0.7))
    again, compiled = _styled(Style("both", share=0.7, compiled=True))
    assert torch.equal(images, again)
    torch.testing.assert_close(compiled.images, plain.images, rtol=1e-6, atol=1e-6)
    assert torch.equal(compiled.d, plain.d)
