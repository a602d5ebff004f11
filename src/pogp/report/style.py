"""How methods look, in one place: the same name and colour in every table and figure."""

from dataclasses import dataclass
from typing import Any

# Okabe & Ito (2008): told apart under every common kind of colour blindness.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#767676"  # not of the palette: for what belongs to no method


@dataclass(frozen=True)
class Look:
    """The label and the colour of a method."""

    label: str
    colour: str


METHODS = {
    "online": Look("OnlineGP", PURPLE),
    "pog": Look("POG", BLUE),
    "absorbing": Look("absorbing POG", VERMILLION),
    "sogp": Look("SOGP", GREEN),
    "random": Look("random subset", ORANGE),
    "dense": Look("dense GP", BLACK),
}

FIGURE: dict[Any, Any] = {  # matplotlib's parameters, for figures about 7 inches wide
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.columnspacing": 1.2,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.6,
    "savefig.dpi": 160,
}

# Colours of pages, light and dark. On a dark background the colours of marks are brighter.
LIGHT = {
    "paper": "#FFFFFF",
    "ink": "#1F2328",
    "quiet": "#5C636B",
    "rule": "#D5D9DE",
    "grid": "#E9ECEF",
    "blue": BLUE,
    "green": GREEN,
    "orange": ORANGE,
    "vermillion": VERMILLION,
    "purple": PURPLE,
    "grey": GREY,
}
DARK = LIGHT | {
    "paper": "#15181C",
    "ink": "#E4E7EA",
    "quiet": "#A2A9B1",
    "rule": "#3B4149",
    "grid": "#262B31",
    "blue": SKY_BLUE,
    "green": "#2FC796",
    "vermillion": "#F5813D",
    "grey": "#9AA0A6",
}
