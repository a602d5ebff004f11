"""The documentation site builds without a network, leaves nothing out, and leads astray nowhere.

That the code of its pages runs is in `test_pages.py`.
"""

import gc
import inspect
import re
import socket
import subprocess
import warnings
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import pogp
import pogp.checks
import pogp.river
import pogp.sklearn
from pogp.models import Model

from ..browser import DESKTOP, PHONE, Browser
from ..processes import started

DOCS = Path(__file__).parents[2] / "docs"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a page fetches by itself, and the attribute that says from where."""
LOOKED_AT = ("index.html", "start.html", "howto/control-loop.html", "why-not.html")


class Page(HTMLParser):
    """What a page has: places to link to, links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {value for name, value in given.items() if name == "id"}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if LOADED.get(tag) in given:
            self.loads.add(given[LOADED[tag]])


read = cache(Page)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from nothing, where any warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    builder = started(lambda: build_offline(folder), stderr=subprocess.PIPE, text=True)
    _, errors = builder.communicate(timeout=300)
    assert builder.returncode == 0, errors
    return folder


def build_offline(folder: Path) -> int:
    """Build the site in a process of its own, without a network and without the search index."""
    from sphinx.builders.html import StandaloneHTMLBuilder
    from sphinx.cmd.build import main

    def refuse(*arguments: object) -> None:
        raise OSError(f"the site must build without a network, and asked for {arguments}")

    gc.disable()  # to look for garbage takes a fifth of the time
    warnings.resetwarnings()
    socket.socket.connect = socket.getaddrinfo = refuse
    StandaloneHTMLBuilder.search = False  # the index takes an eighth of the time
    return main(["-W", "-q", str(DOCS), str(folder)])


@pytest.fixture(scope="module")
def documented(site: Path) -> set[str]:
    """The names of the API that the site explains."""
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]  # after four lines of text
    rows = [line.split() for line in zlib.decompress(packed).decode().splitlines()]
    return {name for name, kind, *_ in rows if kind.startswith("py:")}


def public(module: ModuleType) -> set[str]:
    """What a module offers, by full name, but for types that are only names for others."""
    things = {name: getattr(module, name) for name in module.__all__}
    kinds = (inspect.isclass, inspect.isroutine, inspect.ismodule)
    chosen = [name for name, thing in things.items() if any(kind(thing) for kind in kinds)]
    return {f"{module.__name__}.{name}" for name in chosen}


def html(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(?:[a-z]+:)?//", address))


def test_every_page_is_there(site: Path) -> None:
    sources = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    assert {page.relative_to(site).with_suffix("") for page in html(site)} >= sources


@pytest.mark.parametrize(
    "module", [pogp, pogp.metrics, pogp.datasets, pogp.checks, pogp.sums, pogp.plot]
)
def test_every_public_name_is_documented(module: ModuleType, documented: set[str]) -> None:
    assert public(module) - documented == set()


@pytest.mark.parametrize("module", [pogp.sklearn, pogp.river])
def test_the_adapters_are_documented(module: ModuleType, documented: set[str]) -> None:
    name = f"{module.__name__}.POGRegressor"
    members = [member for member in vars(module.POGRegressor) if member[0] != "_"]
    own = [member for member in members if not re.fullmatch("set_.*_request", member)]
    assert {name, *(f"{name}.{member}" for member in own)} - documented == set()


def test_every_member_of_a_model_is_documented(documented: set[str]) -> None:
    shared = {name for kind in (Model,) for name in vars(kind) if name[0] != "_"}
    protocol = {f"pogp.models.Model.{name}" for name in shared & vars(Model).keys()}
    assert protocol - documented == set()
    things = (getattr(pogp, name) for name in pogp.__all__)
    models = [thing for thing in things if inspect.isclass(thing) and issubclass(thing, Model)]
    own = {
        f"pogp.{model.__name__}.{member}"
        for model in models
        for member in dir(model)
        if member[0] != "_" and member not in shared
    }
    assert len(own) > 50
    assert own - documented == set()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {address for page in html(site) for address in read(page).loads}
    for sheet in site.rglob("*.css"):
        loaded |= set(re.findall(r"(?:url\(|@import )['\"]?([^'\")]*)", sheet.read_text("utf-8")))
    assert len(loaded) > 20
    assert [address for address in loaded if is_elsewhere(address)] == []


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    lost = []
    for page in html(site):
        for link in read(page).links:
            path, _, place = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if is_elsewhere(link) or link.startswith("mailto:"):
                continue
            if not target.is_file() or (place and place not in read(target).ids):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


@pytest.mark.parametrize("name", LOOKED_AT)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_pages_fit_their_window(site: Path, browser: Browser, name: str, width: int) -> None:
    browser.open(site / name, width)
    measured = browser.driver.execute_script(
        "const whole = document.documentElement;"
        "const lost = [...document.images].filter(image => !image.naturalWidth);"
        "return [whole.scrollWidth, whole.clientWidth, lost.map(image => image.src)]"
    )
    assert measured == [width, width, []]
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("file:")] == []
