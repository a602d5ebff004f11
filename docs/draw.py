"""Draw the pictures of the documentation, and print the numbers that its pages quote.

    python docs/draw.py                      all of them, two minutes
    python docs/draw.py removal forgetting   some

Everything is seeded: the same code draws the same pictures.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read once, when NumPy is imported

from matplotlib import rc_context
from pictures import absorbing, concepts, online
from pictures.frontier import frontier
from pictures.style import STYLE, save

DOCS = Path(__file__).parent
PAGES = {
    "absorbing": (
        absorbing.loses,
        absorbing.removal,
        absorbing.kept,
        absorbing.price,
        absorbing.calibration,
        absorbing.forgetting,
        absorbing.merging,
        frontier,
    ),
    "concepts": (concepts.grows, concepts.distance, concepts.budgets, concepts.views),
    "online": (online.weights, online.bands, online.wakes),
}
"""The pictures of each page, in its order."""
PICTURES = {draw.__name__: (page, draw) for page, draws in PAGES.items() for draw in draws}


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    unknown = set(names) - set(PICTURES)
    if unknown:
        sys.exit(f"no such picture: {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    for name in names or PICTURES:
        page, draw = PICTURES[name]
        folder = DOCS / page
        folder.mkdir(exist_ok=True)
        with rc_context(STYLE):
            save(draw(), folder / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
