"""Drawings: matplotlib figures in one look that become SVG inside a page, or PNG and SVG files."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import matplotlib.style
from markupsafe import Markup
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from longshift.io import replacing

# Okabe and Ito: distinguishable with every common kind of color blindness. A page replaces these colors with its own
# (`drawing.PAGE_COLORS`), so that figures follow the light or dark theme.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A7B00", "#5A5A5A")
INK, FAINT, LINE, PAPER = "#222222", "#666666", "#DDDDDD", "#FFFFFF"
DASHES: tuple[Any, ...] = (
    "-", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)), (0, (5, 2)), (0, (2, 2)), (0, (0.5, 1.5)),
    (0, (6, 1, 1, 1)),
)  # fmt: skip
MARKS = ("o", "D", "s", "^", "v", "P", "X", "h")
Place = Literal["outside upper left", "outside lower left"]
BELOW: Place = "outside lower left"
LETTER = 0.62  # width of a letter, in font sizes


def plain(axes: Axes, heading: str = "", x_label: str = "", y_label: str = "", size: float = 9) -> None:
    """Draw the axes with as little ink as possible."""
    axes.spines[:].set_visible(False)
    axes.patch.set_visible(False)
    axes.tick_params(left=False, bottom=False, colors=FAINT, labelsize=size)
    axes.grid(axis="y", color=LINE, lw=0.8)
    axes.set_axisbelow(True)
    if heading:
        axes.set_title(heading, loc="left", fontsize=size + 1, color=INK)
    axes.set_xlabel(x_label, fontsize=size, color=FAINT)
    axes.set_ylabel(y_label, fontsize=size, color=FAINT)


def headline(figure: Figure, text: str) -> None:
    """Put a title at the upper left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=12, color=INK)


def series_style(index: int) -> dict[str, Any]:
    """Return color, dashes and mark of a series: color is never the only difference."""
    return {
        "color": PALETTE[index % len(PALETTE)], "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKS[index % len(MARKS)],
    }  # fmt: skip


def legend(
    figure: Figure, handles: Sequence[Any], width: float, size: float = 9, place: Place = "outside upper left"
) -> None:
    """Put a legend above or below the axes, in as many columns as fit into `width` points."""
    lengths = [LETTER * size * len(str(handle.get_label())) + 4 * size for handle in handles]
    fitting = [n for n in range(len(lengths), 1, -1) if sum(max(lengths[k::n]) for k in range(n)) <= width]
    columns = max([*fitting, 1])
    by_row = [handle for column in range(columns) for handle in handles[column::columns]]  # it is filled by columns
    figure.legend(
        handles=by_row, loc=place, ncols=columns, frameon=False, fontsize=size,
        labelcolor=INK, handlelength=1.8, columnspacing=1.4, handletextpad=0.5, borderaxespad=0.2,
    )  # fmt: skip


def short(name: str, most: int = 16) -> str:
    """Cut a name to `most` letters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def class_axis(
    axes: Axes, names: Sequence[str], room: float, most: int = 40, size: float = 8, shown: bool = True
) -> None:
    """Name the classes below the x axis, tilted where they would touch within `room` points; none beyond `most`."""
    axes.set_xlim(-0.6, len(names) - 0.4)
    if len(names) > most or not shown:
        axes.set_xticks([])
        return
    labels = [short(name, 14) for name in names]
    tilt = LETTER * size * (max(map(len, labels)) + 1) * len(labels) > room
    axes.set_xticks(
        range(len(names)), labels, fontsize=size, rotation=40 if tilt else 0, ha="right" if tilt else "center",
        rotation_mode="anchor" if tilt else "default", color=INK,
    )  # fmt: skip


PAGE_COLORS = {color.lower(): f"var(--c{index})" for index, color in enumerate(PALETTE)} | {
    INK.lower(): "var(--ink)", FAINT.lower(): "var(--faint)", LINE.lower(): "var(--line)", PAPER.lower(): "var(--paper)"
}  # fmt: skip
MORE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Micro Hei", "PingFang SC", "Hiragino Sans",
    "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Noto Sans Devanagari", "Nirmala UI",
    "Arial Unicode MS",
)  # fmt: skip
DRAWN = ("path", "use", "text", "image")
_T = TypeVar("_T")
_P = ParamSpec("_P")


@contextlib.contextmanager
def _own_settings(**more: Any) -> Iterator[None]:
    """Draw with matplotlib's own defaults, whatever is in a `matplotlibrc`, then with the settings of before.

    matplotlib reads that file from the current folder, which may be a stranger's; it could start LaTeX
    (`text.usetex`). Names are drawn as text, never as formulas: a class may be called "$5_$10".
    """
    plain = {"text.usetex": False, "text.parse_math": False, "font.family": ["sans-serif", *_more_fonts()]}
    with matplotlib.style.context(["default", {**plain, **more}]), warnings.catch_warnings():
        # In a page the browser draws the letters, whatever fonts are here.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")
        yield


@functools.cache
def _more_fonts() -> tuple[str, ...]:
    """Fonts of this machine for letters that matplotlib's own font lacks."""
    present = set(font_manager.get_font_names())
    return tuple(name for name in MORE_FONTS if name in present)


def draws(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function that makes a figure: it draws with matplotlib's defaults."""

    @functools.wraps(function)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with _own_settings():
            return function(*args, **kwargs)

    return drawn


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure, a description for people who cannot see it, and texts that its parts show on hover.

    On a page it scales with its column, but never below `least` pixels: narrower screens scroll.
    """

    figure: Figure
    label: str
    least: int = 350
    tips: dict[str, Sequence[str]] = field(default_factory=dict)

    def tip(self, artist: Artist, *texts: str) -> None:
        """Show a text when the pointer is over an artist, or one text for each of its points or cells."""
        name = f"tip{len(self.tips)}"
        artist.set_gid(name)
        self.tips[name] = texts

    def svg(self, caption: str = "") -> Markup:
        """Return the `svg` element of a page: colors and font are those of the page, all names are escaped.

        The caption tells the ids of equal drawings on one page apart.
        """
        raw = io.BytesIO()
        with self._rendering(**{"svg.fonttype": "none"}):
            self.figure.patch.set_visible(False)
            self.figure.savefig(raw, format="svg", metadata={"Date": None})
            self.figure.patch.set_visible(True)
        root = ElementTree.fromstring(raw.getvalue())
        width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
        body = _Writer(self.tips, hashlib.sha256(raw.getvalue() + caption.encode()).hexdigest()[:8]).children(root)
        return Markup(
            f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label={quoteattr(self.label)} '
            f'style="stroke-linejoin:round;min-width:{self.least}px;max-width:{1.25 * width:g}px">{body}</svg>'
        )

    def save(self, path: Path | str, dpi: int = 150) -> None:
        """Write a PNG or SVG file, by the ending of its name; the same drawing gives the same bytes."""
        path = Path(path)
        kind = path.suffix.lstrip(".")
        with self._rendering(), replacing(path) as temporary:
            metadata = {"Date": None} if kind == "svg" else {}
            self.figure.savefig(temporary, format=kind, dpi=dpi, facecolor="white", metadata=metadata)

    @contextlib.contextmanager
    def _rendering(self, **more: Any) -> Iterator[None]:
        with _own_settings(**{"svg.hashsalt": "longshift"}, **more):
            for text in self.figure.findobj(Text):
                text.set_parse_math(False)
            yield


def new_drawing(width: float, height: float, label: str, least: int = 350) -> Drawing:
    """Return an empty drawing of a size in points, whose parts do not overlap."""
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03)
    return Drawing(Figure(figsize=(width / 72, height / 72), layout=layout), label, least)


class _Writer:
    """Rewrites matplotlib's SVG: a third of its size, without global styles, with ids that no other figure has."""

    def __init__(self, tips: dict[str, Sequence[str]], prefix: str) -> None:
        self.tips, self.prefix = tips, prefix
        self.ids: dict[str, str] = {}

    def children(self, element: ElementTree.Element) -> str:
        return "".join(map(self.element, element))

    def element(self, element: ElementTree.Element) -> str:
        name = _local(element.tag)
        only = _local(element[0].tag) if name == "defs" and len(element) == 1 else name
        if only in ("metadata", "style"):
            return ""
        if name == "g":
            return self.group(element)
        if name == "title":
            return f"<title>{escape(element.text or '')}</title>"
        attributes = self.attributes(element, ("d", "x", "y", "width", "height", "transform", "clip-path"))
        for key, value in element.attrib.items():
            if _local(key) == "href":
                attributes += f' href="{value if name == "image" else "#" + self.name(value[1:])}"'
            elif key == "id" and name in ("path", "clipPath"):
                attributes += f' id="{self.name(value)}"'
        attributes += self.style(element)
        inside = (escape(element.text or "") if name == "text" else "") + self.children(element)
        return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes}/>"

    def group(self, element: ElementTree.Element) -> str:
        texts = self.tips.get(element.attrib.get("id", ""), ())
        title = ""
        if texts:
            drawn = [part for part in element.iter() if _local(part.tag) in DRAWN and "id" not in part.attrib]
            if len(texts) == len(drawn) > 1:
                for part, text in zip(drawn, texts, strict=True):
                    ElementTree.SubElement(part, "title").text = text
            else:
                title = f"<title>{escape(texts[0])}</title>"
        shared = self.shared_style(element)
        inside = title + self.children(element)
        attributes = self.attributes(element, ("clip-path", "transform"))
        return f"<g{attributes}{shared}>{inside}</g>" if title or shared or attributes else inside

    def shared_style(self, element: ElementTree.Element) -> str:
        """Move the style that all points of a curve repeat to their group."""
        styles = {part.attrib.get("style", "") for part in element}
        if len(element) < 2 or len(styles) > 1 or not all(_local(part.tag) == "use" for part in element):
            return ""
        found = self.style(element[0])
        for part in element:
            part.attrib.pop("style", None)
        return found

    def attributes(self, element: ElementTree.Element, names: Sequence[str]) -> str:
        made = ""
        for name in names:
            value = element.attrib.get(name)
            if value is None or value.startswith("rotate(-0 "):
                continue
            if name == "clip-path":
                value = f"url(#{self.name(value[5:-1])})"
            elif name == "d":
                value = re.sub(r"\s*([MLQCz])\s*", r"\1", _rounded(value, 2 if "id" in element.attrib else 1)).strip()
            else:
                value = _rounded(value, 2)
            made += f" {name}={quoteattr(value)}"
        return made

    def style(self, element: ElementTree.Element) -> str:
        """Colors of the page for ours, and the font of the page for matplotlib's."""
        found = dict(part.strip().split(": ", 1) for part in element.attrib.get("style", "").split(";") if part.strip())
        found.pop("font-family", None)
        # With a weight or a slant, matplotlib writes all of the font as one property.
        font = re.fullmatch(r"(.*?)([\d.]+)px .*", found.pop("font", ""))
        if font:
            found |= {"font-size": f"{font[2]}px", "font-weight": "600" if re.search("bold|[67]00", font[1]) else "400"}
        found = {key: PAGE_COLORS.get(value.lower(), _rounded(value, 3)) for key, value in found.items()}
        return f' style="{";".join(f"{key}:{value}" for key, value in found.items())}"' if found else ""

    def name(self, given: str) -> str:
        return self.ids.setdefault(given, f"f{self.prefix}-{len(self.ids)}")


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]


def _rounded(text: str, digits: int) -> str:
    shorten: Callable[[re.Match[str]], str] = lambda found: f"{float(found[0]):.{digits}f}".rstrip("0").rstrip(".")  # noqa: E731
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", shorten, text)
