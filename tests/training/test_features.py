"""Features of a frozen network: what is computed, kept and resumed; copies of images."""

from __future__ import annotations

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data.transforms_factory import create_transform
from torch import Tensor, nn

from longshift import losses
from longshift.data import Manifest, load_dataset, open_store, ordered_map
from longshift.errors import LongshiftError
from longshift.io import locked
from longshift.losses import STYLE_KINDS, mix_statistics
from longshift.methods import StyleConfig
from longshift.nn import Backbone, make_backbone
from longshift.nn.sources import SOURCES
from longshift.training import features as feature_cache
from longshift.training.augment import AUGMENTATIONS
from longshift.training.features import (
    PARTNER_RULE,
    CopyRecipe,
    FeatureFile,
    FeatureRequest,
    FrozenNetwork,
    ViewPlan,
    choose_partners_in_dataset,
    feature_folder,
    open_features,
    require_readable,
    unreadable,
    usable_rows,
)
from longshift.training.run_config import Runtime, parse_run_config
from tests.training.runs import CPU

ONE = Runtime(device="cpu", threads=1)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for site in ("north", "south"):
        for name in ("cat", "dog"):
            (tmp_path / "photos" / site / name).mkdir(parents=True)
            for i in range(21):
                pixels = rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / "photos" / site / name / f"{i:02d}.png")
    return tmp_path / "photos"


def network(seed: int = 0) -> FrozenNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FrozenNetwork("small_conv", make_backbone("small_conv"))


def by_hand(photos: Path, frozen: FrozenNetwork, size: int = 16) -> np.ndarray:
    pixels = torch.from_numpy(np.array(open_store(load_dataset(photos), size).inputs)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (frozen.backbone.mean, frozen.backbone.std))
    with torch.no_grad():
        return np.asarray(frozen.backbone.module.eval()((pixels - mean) / std))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))


class Counting:
    def __init__(self, stop_at: int = 10**9) -> None:
        self.done, self.stop_at = 0, stop_at

    def __call__(self, done: int = 1, note: str = "") -> None:
        self.done += done
        if self.done >= self.stop_at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("threads", [1, 3])
def test_features_are_those_of_the_network(photos: Path, threads: int) -> None:
    ticks = Counting()
    request = FeatureRequest(16)
    found = open_features(
        load_dataset(photos), network(), request, runtime=Runtime(device="cpu", threads=threads), tick=ticks
    )
    np.testing.assert_allclose(found.inputs, by_hand(photos, network()), rtol=1e-4, atol=1e-5)
    assert ticks.done == len(found) == 84
    assert isinstance(found.inputs, np.memmap)


def test_images_are_cropped_as_timm_states(photos: Path, tmp_path: Path) -> None:
    name, weights = "mobilenetv3_small_050", tmp_path / "w.safetensors"
    save_file(timm.create_model(name, num_classes=0).state_dict(), weights)
    values = {"data": str(photos), "target": "", "backbone": name, "weights": str(weights), "trainable": "head"}
    plain, own = (
        FrozenNetwork.of(parse_run_config({**values, "image_size": 32, "preprocessing": how}))
        for how in ("resize", "network")
    )
    assert feature_folder(plain, 32) != feature_folder(own, 32)
    found = open_features(load_dataset(photos), own, FeatureRequest(32), runtime=CPU)
    stated = timm.get_pretrained_cfg(name)
    assert stated
    transform = create_transform(
        32, mean=stated.mean, std=stated.std, interpolation=stated.interpolation, crop_pct=stated.crop_pct
    )
    images = [transform(Image.open(photos / path)) for path in found.manifest.paths]
    with torch.no_grad():
        expected = own.backbone.module.eval()(torch.stack(images))
    np.testing.assert_allclose(found.inputs, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_a_gpu_computes_the_same(photos: Path) -> None:
    found = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=Runtime(device="cuda"))
    np.testing.assert_allclose(found.inputs, by_hand(photos, network()), rtol=1e-3, atol=1e-4)


def test_they_are_computed_once(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    again = network()
    monkeypatch.setattr(again.backbone.module, "forward", lambda x: pytest.fail("computed again"))
    second = open_features(load_dataset(photos), again, FeatureRequest(16), runtime=CPU)
    np.testing.assert_array_equal(first.inputs, second.inputs)


def test_another_size_network_or_normalization_has_other_features() -> None:
    kept = feature_folder(network(), 16)
    assert feature_folder(network(), 16) == kept
    other = FrozenNetwork("small_conv", Backbone(network().backbone.module, 64, (0.4,) * 3, (0.5,) * 3))
    for found in (feature_folder(network(1), 16), feature_folder(network(), 17), feature_folder(other, 16)):
        assert found != kept


class Watched(nn.Module):
    """Mean colors; counts the images that pass, without those that fill up a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def __deepcopy__(self, memo: object) -> Watched:
        return self

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(int((x.amax((1, 2, 3)) > 0).sum()))
        return x.mean((2, 3))


def watched() -> tuple[FrozenNetwork, list[int]]:
    module = Watched()
    return FrozenNetwork("watched", Backbone(module, 3, (0.0,) * 3, (1.0,) * 3)), module.seen


def test_an_image_is_computed_once_whatever_dataset_it_is_in(photos: Path, tmp_path: Path) -> None:
    def computed(folder: Path) -> int:
        frozen, seen = watched()
        manifest = load_dataset(folder)
        found = open_features(manifest, frozen, FeatureRequest(16), runtime=CPU)
        pixels = np.array(open_store(manifest, 16).inputs, dtype=np.float64) / 255
        np.testing.assert_allclose(found.inputs, pixels.mean((1, 2)), rtol=1e-5)
        return sum(seen)

    assert computed(photos) == 84
    moved = tmp_path / "elsewhere"
    for site, new in (("north", "west"), ("south", "east")):  # other names and another order
        shutil.copytree(photos / site, moved / new)
    assert computed(moved) == 0
    Image.new("RGB", (20, 20), "red").save(moved / "east" / "cat" / "30.png")
    shutil.copy(moved / "east" / "cat" / "30.png", moved / "west" / "dog" / "30.png")  # a copy has the same row
    os.utime(moved / "east" / "cat" / "00.png", ns=(1, 1))
    assert computed(moved) == 1
    shutil.rmtree(moved / "west" / "cat")
    assert computed(moved) == 0


def test_features_do_not_depend_on_what_else_is_computed(photos: Path, tmp_path: Path) -> None:
    whole = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    shutil.rmtree(photos / "north" / "cat")
    (photos / "north" / "dog" / "05.png").unlink()
    manifest = load_dataset(photos)
    alone = open_features(
        manifest, network(), FeatureRequest(16), runtime=Runtime(device="cpu", cache=tmp_path / "other")
    )
    place = {path: row for row, path in enumerate(whole.manifest.paths)}
    np.testing.assert_array_equal(alone.inputs, whole.inputs[[place[path] for path in manifest.paths]])


def test_images_that_change_while_they_are_read_are_refused(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = load_dataset(photos)

    def change_then_lock(path: Path, waiting: object) -> object:
        Image.new("RGB", (20, 20)).save(photos / manifest.paths[0])
        return locked(path, lambda: None)

    monkeypatch.setattr(feature_cache, "locked", change_then_lock)
    with pytest.raises(LongshiftError, match="changed"):
        open_features(manifest, network(), FeatureRequest(16), runtime=CPU)


def test_other_images_partners_and_recipes_give_other_copies(photos: Path) -> None:
    manifest = load_dataset(photos)
    hashes = [f"{i:064x}" for i in range(len(manifest))]
    recipe = CopyRecipe("", StyleConfig(mix="statistics", share=1.0))
    plan = ViewPlan(manifest, recipe, 1)
    keys = plan.keys(hashes, "m")
    changed = [*hashes]
    changed[3] = "f" * 64
    differ = {i for i, (a, b) in enumerate(zip(keys, plan.keys(changed, "m"), strict=True)) if a != b}
    assert differ == {3, *np.flatnonzero(plan.style_samples == 3).tolist()}
    others = [ViewPlan(manifest, recipe, 2).keys(hashes, "m"), plan.keys(hashes, "n")]
    others.append(ViewPlan(manifest, CopyRecipe("domainbed"), 1).keys(hashes, "m"))
    assert len({*keys, *(key for found in others for key in found)}) == 4 * len(keys)


def test_edited_code_of_a_plugin_gives_other_features(photos: Path, tmp_path: Path) -> None:
    manifest, seen = load_dataset(photos), []
    for factor in (0.5, 0.25):
        file = tmp_path / f"plugin{factor}" / "same.py"
        file.parent.mkdir()
        file.write_text(
            "import longshift.nn, longshift.training.augment as a\n"
            "from longshift.nn import sources as sources\n"
            f"def dim(images, u):\n    return images * {factor}\n"
            "def make(name, pretrained):\n    return longshift.nn.make_backbone('small_conv')\n"
            "a.AUGMENTATIONS._entries.pop('edited_dim', None)\n"
            "sources.SOURCES._entries.pop('edited', None)\n"
            "a.register_augmentation('edited_dim', uniforms=1)(dim)\n"
            "longshift.nn.register_backbones('edited', make, lambda: ['conv'])\n"
        )
        runpy.run_path(str(file), run_name="same")
        views = ViewPlan(manifest, CopyRecipe("edited_dim"), 1).keys(["0" * 64] * len(manifest), "")
        plain = feature_folder(FrozenNetwork("edited/conv", network().backbone), 16)
        seen.append((views, plain))
    AUGMENTATIONS._entries.pop("edited_dim")
    SOURCES._entries.pop("edited")
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_few_batches_wait_in_memory() -> None:
    started: list[int] = []

    def work(item: int) -> int:
        started.append(item)
        return item

    results = ordered_map(work, range(100), threads=2, ahead=4)
    assert next(results) == 0
    assert len(started) <= 4
    assert list(results) == list(range(1, 100))


def test_after_a_kill_only_the_rest_is_computed(photos: Path) -> None:
    manifest = load_dataset(photos)
    with pytest.raises(KeyboardInterrupt):
        open_features(manifest, watched()[0], FeatureRequest(16), runtime=ONE, tick=Counting(stop_at=60))
    folder = feature_folder(watched()[0], 16)
    for name in ("rows.bin", "keys.bin"):  # a kill in the middle of a write
        with (folder / name).open("ab") as file:
            file.write(b"part")
    frozen, seen = watched()
    ticks = Counting()
    found = open_features(manifest, frozen, FeatureRequest(16), runtime=ONE, tick=ticks)
    assert sum(seen) == 84 - 60
    assert ticks.done == 84
    pixels = np.array(open_store(manifest, 16).inputs, dtype=np.float64) / 255
    np.testing.assert_allclose(found.inputs, pixels.mean((1, 2)), rtol=1e-5)


def test_an_image_that_cannot_be_read_has_no_features(photos: Path) -> None:
    (photos / "north" / "cat" / "05.png").write_bytes(b"no image")
    found = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    assert np.isnan(found.inputs).any(axis=1).sum() == 1
    assert "north/cat/05.png" in unreadable(found)
    with pytest.raises(LongshiftError, match=r"north/cat/05\.png"):
        require_readable(found)


def test_rows_of_images_that_are_not_there_are_nan(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path, 2)
    keys = [f"{i:064x}" for i in range(4)]
    with file.appending() as write:
        write(keys[:3], np.arange(6, dtype=np.float32).reshape(3, 2))
    assert np.isnan(file.take(keys[3:])).all()
    assert file.take([]).shape == (0, 2)
    np.testing.assert_array_equal(file.take(keys[1:3]), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(file.take([keys[2], keys[3], keys[0]]), [[4, 5], [np.nan, np.nan], [0, 1]])


def test_a_cache_that_cannot_be_written_is_not_used(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    found = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    np.testing.assert_allclose(found.inputs, by_hand(photos, network()), rtol=1e-4, atol=1e-5)
    assert not FeatureFile(feature_folder(network(), 16), 64).count()


def test_an_image_for_which_the_network_gives_nan_does_not_vanish(photos: Path) -> None:
    class Partly(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            means = x.mean((2, 3))
            means[means[:, 0] < 0.01, 2] = torch.nan
            return means

    Image.new("RGB", (20, 20)).save(photos / "north" / "cat" / "05.png")
    frozen = FrozenNetwork("partly", Backbone(Partly(), 3, (0.0,) * 3, (1.0,) * 3))
    found = open_features(load_dataset(photos), frozen, FeatureRequest(16), runtime=CPU)
    assert set(unreadable(found)) == {"north/cat/05.png"}
    assert usable_rows(found).sum() == 83


def test_features_are_not_rounded_to_tf32(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)  # PyTorch's own default
    rounds: list[bool] = []

    class Asking(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            rounds.append(torch.backends.cudnn.allow_tf32)
            return x.mean((2, 3))

    frozen = FrozenNetwork("asking", Backbone(Asking(), 3, (0.0,) * 3, (1.0,) * 3))
    open_features(load_dataset(photos), frozen, FeatureRequest(16), runtime=CPU)
    assert not any(rounds)
    assert torch.backends.cudnn.allow_tf32


def test_views_are_added_to_those_that_are_there(photos: Path) -> None:
    manifest, recipe = load_dataset(photos), CopyRecipe("domainbed", StyleConfig(mix="both", share=0.5))
    plain = open_features(manifest, network(), FeatureRequest(16), runtime=CPU)
    two = open_features(manifest, network(), FeatureRequest(16, 2, recipe), runtime=CPU)
    ticks = Counting()
    four = open_features(manifest, network(), FeatureRequest(16, 4, recipe), runtime=CPU, tick=ticks)
    assert four.inputs.shape == (4 * 84, 64)
    assert ticks.done == 4 * 84
    np.testing.assert_array_equal(four.inputs[:84], plain.inputs)
    np.testing.assert_array_equal(four.inputs[: 2 * 84], two.inputs)
    views = four.inputs.reshape(4, 84, 64)
    assert (np.abs(views[1:] - views[:1]).max(axis=2) > 1e-3).all()  # every copy differs from its image
    assert np.abs(views[3] - views[2]).max() > 1e-3


OTHER = """
import os, sys
from longshift.data import load_dataset
from longshift.training import FeatureRequest, Runtime, open_features
from tests.training.test_features import network

def tick(done=1, note=""):
    if done and sys.argv[2] == "kill":
        os._exit(9)  # as a kill: nothing is cleaned up

open_features(load_dataset(sys.argv[1]), network(), FeatureRequest(16), runtime=Runtime(device="cpu"), tick=tick)
"""


def start(photos: Path, how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", OTHER, str(photos), how], cwd=Path(__file__).parents[2])


@pytest.mark.slow
def test_a_killed_process_leaves_what_it_has_computed(photos: Path) -> None:
    assert start(photos, "kill").wait() == 9
    assert FeatureFile(feature_folder(network(), 16), 64).count() == CPU.images_at_once(on_cpu=True)
    whole = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    np.testing.assert_allclose(whole.inputs, by_hand(photos, network()), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_two_processes_compute_each_image_once(photos: Path) -> None:
    both = [start(photos, "finish") for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert FeatureFile(feature_folder(network(), 16), 64).count() == 84
    found = open_features(load_dataset(photos), network(), FeatureRequest(16), runtime=CPU)
    np.testing.assert_allclose(found.inputs, by_hand(photos, network()), rtol=1e-4, atol=1e-5)


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
    monkeypatch.setattr("longshift.training.features.PARTNER_RULE", PARTNER_RULE + 1)
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
