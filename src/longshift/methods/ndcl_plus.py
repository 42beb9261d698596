"""NDCL-plus, a preset of NDCL: eq. align beside balanced softmax with the counts of each domain (docs/ndcl-plus.md)."""

from __future__ import annotations

from dataclasses import dataclass

from longshift.methods.ndcl import NDCL, NDCLConfig
from longshift.methods.registry import register
from longshift.methods.search_space import kept_at


@dataclass(frozen=True)
class NDCLPlusConfig(NDCLConfig):
    """NDCL's with three other defaults. What only mining uses is not searched."""

    alpha: float = kept_at(NDCLConfig, "alpha", 0.0)
    rho: float = kept_at(NDCLConfig, "rho", 0.2)
    weights: str = kept_at(NDCLConfig, "weights", "none")
    prior: str = kept_at(NDCLConfig, "prior", "domain")


@register(
    "ndcl_plus",
    title="NDCL-plus",
    family="idg",
    paper="our own preset; eq. align is of arXiv:2601.21999, the shift of arXiv:2007.10740",
    idea="NDCL's alignment, on logits shifted by the log-counts of the sample's own domain; nothing is mined",
    preset_of="ndcl",
)
class NDCLPlus(NDCL):
    """NDCL with the domain prior, without weights and contrastive term: what validation accuracy on PACS chose."""

    Config = NDCLPlusConfig
    config: NDCLPlusConfig
