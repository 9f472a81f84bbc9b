"""Shared by the scripts of the gallery: the style of figures, and the paths of figures and data."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Ellipse

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Real data, beside the project's folder; scripts generate data where they are absent."""

# Okabe and Ito's colours, which can be told apart with every kind of colour vision.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, GREY = "#CC79A7", "#56B4E9", "#F0E442", "#8A8A8A"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
INK = "#2B2B2B"

mpl.rcParams.update(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": "#B0B0B0",
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.prop_cycle": mpl.cycler(color=COLOURS),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "figure.constrained_layout.h_pad": 0.08,
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.w_pad": 0.12,
        "font.size": 9.5,
        "grid.color": "#E8E8E8",
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "text.color": INK,
        "xtick.color": "#606060",
        "xtick.labelcolor": INK,
        "ytick.color": "#606060",
        "ytick.labelcolor": INK,
    }
)


def figure(rows: int, columns: int, size: tuple[float, float], **options):
    """Open a figure with a grid of axes."""
    return plt.subplots(rows, columns, figsize=size, **options)


def save(fig, path) -> None:
    """Write the figure with few colours, so that the file is small, and close it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    fig.savefig(buffer, dpi=110)
    plt.close(fig)
    image = Image.open(buffer).convert("RGB")
    few = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(f"figure: {path}")


def target(script: str) -> Path:
    """Return the path of a script's figure: its first argument, or in figures/ beside it."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    script = Path(script)
    return script.parent / "figures" / f"{script.stem}.png"


def ellipse(ax, mean, covariance, radius=2.0, **options) -> None:
    """Draw the ellipse of a Normal vector at some standard deviations."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    width, height = 2 * radius * np.sqrt(values[::-1])
    options = {"fill": False, "lw": 1.8, **options}
    ax.add_patch(Ellipse(mean, width, height, angle=angle, **options))
