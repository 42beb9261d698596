"""NDCL-plus, a preset of NDCL: eq. align with balanced softmax on the counts of each domain (docs/ndcl-plus.md)."""

from __future__ import annotations

from dataclasses import dataclass

from longshift.methods.ndcl import NDCL, NDCLConfig
from longshift.methods.registry import register
from longshift.methods.search_space import kept_at


@dataclass(frozen=True)
class NDCLPlusConfig(NDCLConfig):
    """NDCL's hyper-parameters with three other defaults. Those used only by mining are not searched."""

    alpha: float = kept_at(NDCLConfig, "alpha", 0.0)
    rho: float = kept_at(NDCLConfig, "rho", 0.2)
    weights: str = kept_at(NDCLConfig, "weights", "none")
    prior: str = kept_at(NDCLConfig, "prior", "domain")


@register(
    "ndcl_plus",
    title="NDCL-plus",
    family="idg",
    paper="our own preset; eq. align is of arXiv:2601.21999, the shift of arXiv:2007.10740",
    idea="combine NDCL's alignment with logits shifted by the log counts of the sample's domain; no mining",
    preset_of="ndcl",
)
class NDCLPlus(NDCL):
    """NDCL with the domain prior, without weights and contrastive term: selected by validation accuracy on PACS."""

    Config = NDCLPlusConfig
    config: NDCLPlusConfig
