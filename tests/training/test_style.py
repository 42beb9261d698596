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
from longshift.methods import StyleConfig
from longshift.methods.base import Batch
from longshift.rng import HostDraws
from longshift.training import resolve, style as style_stage
from longshift.training.inputs import Inputs
from longshift.training.run_config import RunConfig, Runtime
from longshift.training.task import make_task
from longshift.training.trainer import Trainer
from tests.training.small_runs import CPU, config, train

OPTIONS: list[dict[str, Any]] = [
    {"share": 0.5},
    {"share": 0.5, "views": 2, "partner": "class"},
]
DOMAINS = torch.arange(3).repeat_interleave(4)
CLASSES = torch.tensor([0, 1, 2, 3, 0, 0, 1, 1, 4, 4, 1, 0])
CENTER = torch.full((1, 3, 1, 1), 0.4, dtype=torch.float64)


def _images(n: int = 12, height: int = 12, width: int = 10, seed: int = 0) -> Tensor:
    return HostDraws(seed, dtype=torch.float64).uniform(n, 3, height, width)


def _styled(how: StyleConfig, seed: int = 1) -> tuple[Tensor, style_stage.Styled]:
    images = _images()
    draws = HostDraws(seed, dtype=torch.float64)
    return images, style_stage.draw_styled(images, CLASSES, DOMAINS, CENTER, how, draws)


def test_every_kind_of_style_is_an_option_of_the_methods() -> None:
    assert StyleConfig.hyper_parameters()["mix"].options == ("none", *STYLE_KINDS)


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_choices_follow_from_the_numbers(kind: str) -> None:
    u = torch.tensor([[0.1, 0.5, 0.59, 0.49, 0.0], [0.2, 1.0, 0.6, 0.5, 1.0]], dtype=torch.float64)
    drawn = style_stage.Drawn.of(u, StyleConfig(mix=kind, amount=0.4, share=0.6))
    assert drawn.partner.tolist() == [0.1, 0.2]
    assert drawn.amount.tolist() == [0.2, 0.4]
    assert drawn.styled.tolist() == [True, False]
    assert drawn.mixed.tolist() == {"both": [True, False], "convolution": [False, False]}.get(kind, [True, True])
    assert drawn.kernel.tolist() == [0, 5]  # 1 is what rounding may make of a number below 1
    assert style_stage.Drawn.of(u, StyleConfig(mix=kind), torch.float32).amount.dtype == torch.float32


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_stage_reads_no_tensor(kind: str) -> None:
    # Tensors without values: what runs on them can be captured as a CUDA graph.
    images, y, d = torch.empty(12, 3, 8, 8, device="meta"), CLASSES.to("meta"), DOMAINS.to("meta")
    how, draws = StyleConfig(mix=kind, share=0.5, partner="class"), HostDraws(0, device="meta")
    styled = style_stage.draw_styled(images, y, d, torch.empty(1, 3, 1, 1, device="meta"), how, draws)
    assert styled.images.shape == images.shape
    assert styled.d.shape == d.shape


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_the_stage_compiles_as_one_function(kind: str) -> None:
    # `fullgraph=True` is an error if any part cannot be compiled; the eager backend checks it without generating code.
    torch.compiler.reset()
    images, draws = _images().float(), HostDraws(1)
    drawn = style_stage.Drawn.of(draws.uniform(12, style_stage.UNIFORMS), StyleConfig(mix=kind))
    normal = draws.normal(*KERNELS_SHAPE) if kind in ("convolution", "both") else None
    given = images, CLASSES, DOMAINS, CENTER.float(), drawn, normal, kind, False
    compiled = torch.compile(style_stage.apply_style, backend="eager", fullgraph=True, dynamic=False)
    for got, wanted in zip(compiled(*given), style_stage.apply_style(*given), strict=True):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_no_amount_and_no_share_change_nothing(kind: str) -> None:
    for how in (StyleConfig(mix=kind, amount=0.0), StyleConfig(mix=kind, share=0.0)):
        images, (styled, _) = _styled(how)
        torch.testing.assert_close(styled, images)


@pytest.mark.parametrize("kind", STYLE_KINDS)
def test_a_share_of_the_images_is_styled(kind: str) -> None:
    changed, moved = [], []
    for seed in range(150):
        images, (styled, style_d) = _styled(StyleConfig(mix=kind, share=0.3), seed)
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
        styled, _ = style_stage.draw_styled(
            images, CLASSES, DOMAINS, CENTER, StyleConfig(mix="amplitude", amount=0.4), draws
        )
        means = images.mean((1, 2, 3))
        shares.append((styled.mean((1, 2, 3)) - means) / (means[partners] - means))
    found = torch.stack(shares)
    assert float(found.min()) >= -1e-9
    assert 0.38 < float(found.max()) <= 0.4 + 1e-9
    assert float(found.mean()) == pytest.approx(0.2, abs=0.01)


def _batch(how: StyleConfig | None, domains: int = 3) -> Batch:
    stored = (255 * _images(height=8, width=8)).to(torch.uint8).permute(0, 2, 3, 1)
    mean = torch.full((1, 3, 1, 1), 0.5)
    inputs = Inputs(mean, mean, None, style=how)
    return inputs.batch(stored, CLASSES, domains, HostDraws(5))


def test_two_views_are_domain_major_and_keep_label_and_domain() -> None:
    plain, one, two = _batch(None), _batch(StyleConfig(mix="both")), _batch(StyleConfig(mix="both", views=2))
    assert len(two) == 24
    assert one.style_d is not None
    assert two.style_d is not None
    views = [two.by_domain(values) for values in (two.x, two.y, two.d, two.style_d)]
    for first, given_values in zip(views, (plain.x, plain.y, plain.d, plain.d), strict=True):
        torch.testing.assert_close(first[:, :4], plain.by_domain(given_values))
    for second, given_values in zip(views, (one.x, plain.y, plain.d, one.style_d), strict=True):
        torch.testing.assert_close(second[:, 4:], plain.by_domain(given_values))


def test_pooled_samples_can_be_styled() -> None:
    batch = _batch(StyleConfig(mix="amplitude"), domains=1)
    assert batch.style_d is not None
    assert (batch.style_d == 0).all()
    assert not torch.equal(batch.x, _batch(None, domains=1).x)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "style"), [("ndcl", {"mix": "both"}), ("mldg", {"mix": "amplitude", "views": 2})])
def test_a_styled_run_trains_and_resumes_equal(method: str, style: dict[str, Any], tmp_path: Path) -> None:
    run = config(method=method, style=style)
    task = make_task(run)
    result = train(run, tmp_path / "whole", task)
    plain = train(config(method=method), tmp_path / "plain", task)
    assert result["status"] == "done"
    assert result["style"]["mix"] == style["mix"]
    assert plain["style"] is None
    halves = Trainer(run, task, tmp_path / "halves", CPU, stop=lambda: True)
    with pytest.raises(LongshiftError, match="stopped"):
        halves.run()
    again = Trainer(run, task, tmp_path / "halves", CPU).run()
    assert again["selected"] == result["selected"]
    assert plain["selected"] != result["selected"]


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"style": {"amount": 0.5}}, "style"),
        ({"style": {"mix": "none", "amount": 0.5}, "method": "ndcl_plus", "hparam_seed": 1}, "style"),
        ({"style": {"mix": "oil"}}, "style.mix"),
        ({"style": {"share": 2.0}}, "style.share"),
        ({"style": {"kind": "both"}}, "style.kind"),
        ({"hparams": {"style": "both"}}, "style"),
        ({"hparams": {"style_domain": "partner"}}, "style_domain"),
    ],
)
def test_options_without_effect_and_wrong_ones_are_refused(request_: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"target": "ink", "method": "ndcl", **request_})
    assert named in str(caught.value)


def test_options_of_a_stated_style_are_drawn_and_stated_ones_win() -> None:
    def draw(seed: int, **style: Any) -> RunConfig:
        stated = {"mix": "both", **style}
        return RunConfig(data="photos", target="ink", method="bsoftmax", hparam_seed=seed, style=stated)  # type: ignore[arg-type]

    drawn = [style for seed in range(1, 41) if (style := draw(seed).style_config())]
    assert {one.mix for one in drawn} == {"both"}
    assert {one.partner for one in drawn} == {"any", "class"}
    for values in ([one.amount for one in drawn], [one.share for one in drawn]):
        assert len(set(values)) == 40
        assert 0.3 <= min(values) < max(values) < 1
    assert len({draw(seed).fingerprint() for seed in range(1, 41)}) == 40
    chosen = draw(2, share=0.5).style_config()
    assert chosen is not None
    assert chosen.share == 0.5
    assert chosen.amount not in (1.0, 0.5)
    assert (
        draw(3).method_config()
        == RunConfig(data="photos", target="ink", method="bsoftmax", hparam_seed=3).method_config()
    )


def test_a_record_of_a_run_is_read_as_it_was_written() -> None:
    run = config(method="ndcl_plus", image_size=96, style={"share": 0.3})
    again = RunConfig.model_validate(run.model_dump())
    assert again.model_dump()["style"] == {"share": 0.3}
    assert again.style_config() == run.style_config()
    assert again.fingerprint() == run.fingerprint()


def _assert_equal_runs(method: str, other: Runtime, **style: Any) -> None:
    """Terms and weights of 20 steps are those of the plain path on the CPU."""
    task = make_task(config_for(method, 20))
    plain = trained(method, 20, task, Runtime("cpu", "fp32"), style)
    found = trained(method, 20, task, other, style)
    assert term_difference(plain, found) < 1e-4
    assert weight_difference(plain, found) < 0.02
    unstyled = trained(method, 20, task, Runtime("cpu", "fp32"), {"mix": "none"})
    assert weight_difference(plain, unstyled) > 0.2  # the styles were mixed


@pytest.mark.gpu
@pytest.mark.parametrize("kind", STYLE_KINDS)
@pytest.mark.parametrize("graphs", ["off", "on"])
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_styled_runs_on_a_gpu_are_those_of_the_cpu(kind: str, graphs: str, compiled: str) -> None:
    on_gpu = Runtime("cuda", "fp32", graphs=graphs, compile=compiled)  # type: ignore[arg-type]
    _assert_equal_runs("erm", on_gpu, mix=kind)


@pytest.mark.gpu
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", STYLE_KINDS)
@pytest.mark.parametrize("graphs", ["off", "on"])
def test_styled_runs_of_ndcl_plus_on_a_gpu_are_those_of_the_cpu(
    kind: str, graphs: str, options: dict[str, Any]
) -> None:
    on_gpu = Runtime("cuda", "fp32", graphs=graphs, compile="off")  # type: ignore[arg-type]
    _assert_equal_runs("ndcl_plus", on_gpu, mix=kind, **options)


@pytest.mark.slow
def test_compiled_styled_runs_of_ndcl_plus_are_the_plain_ones() -> None:
    _assert_equal_runs("ndcl_plus", Runtime("cpu", "fp32", compile="on"), mix="both", **OPTIONS[0])
