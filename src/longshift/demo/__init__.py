"""The comparison that `longshift demo` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.demo.demo_report import (
        demo_page as demo_page,
        demo_sweep as demo_sweep,
        read_demo as read_demo,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)
