"""The comparison that `longshift demo` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.demo.demo_report import (
        SETTINGS as SETTINGS,
        demo_page as demo_page,
        what_to_look_at as what_to_look_at,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)
