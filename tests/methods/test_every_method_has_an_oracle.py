"""Every method is compared with numbers of its reference implementation, or says why it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.methods import registry
from tests.methods.oracle import oracle_folder

# The fixture of each method; None where no code was ever published to make one with.
FIXTURES: dict[str, str | None] = {
    "erm": "ERM", "irm": "IRM", "groupdro": "GroupDRO", "mixup": "Mixup", "mldg": "MLDG", "coral": "CORAL",
    "mmd": "MMD", "dann": "DANN", "sagnet": "SagNet", "vrex": "VREx", "fish": "Fish", "fishr": "Fishr", "eqrm": "EQRM",
    "rdm": "RDM", "pgrad": "PGrad", "tcri": "TCRI_HSIC", "focal": "Focal", "reweight": "ReWeight",
    "bsoftmax": "BSoftmax", "ldam": "LDAM", "ginidg": "GINIDG", "boda": "BoDA", "samaltdg": None,
    "ndcl": "NDCL_released_update",
}  # fmt: skip


def test_every_method_names_its_fixture() -> None:
    built_in = {name for name, cls in registry.without_presets().items() if cls.__module__.startswith("longshift.")}
    assert built_in == set(FIXTURES)


@pytest.mark.parametrize(("method", "fixture"), [(m, f) for m, f in FIXTURES.items() if f])
def test_a_test_replays_the_fixture(method: str, fixture: str) -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*oracle.py")]
    assert any(f'"{fixture}"' in text for text in texts), f"no oracle test of {method} reads {fixture}.json"


@pytest.mark.oracle
def test_the_folder_has_all_fixtures() -> None:
    folder = oracle_folder()
    if not folder.exists():
        pytest.skip(f"no folder {folder}; set LONGSHIFT_ORACLES")
    missing = [fixture for fixture in FIXTURES.values() if fixture and not (folder / f"{fixture}.json").exists()]
    assert not missing


def test_the_method_without_published_code_says_so() -> None:
    text = registry.get("samaltdg").__doc__ or ""
    module = __import__(registry.get("samaltdg").__module__, fromlist=["x"]).__doc__ or ""
    assert "no code" in (text + module).casefold()
