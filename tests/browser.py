"""Pages in a real browser: headless Chromium, driven by the chromedriver that comes with it.

The fixture `browser` is one window for all tests of a process.

def test_a_page(browser):
    browser.open(path, PHONE)
    assert browser.faults() == browser.complaints() == browser.requests() == []
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PHONE, DESKTOP = 360, 1280
"""Widths in pixels at which a page has to be right."""
MISSING = "no browser: chromium and chromedriver (Debian's chromium-driver) are not on PATH"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars")

# What is measured in the page. Every entry of a result is a fault, in words.
OUTSIDE = """
const wide = document.documentElement, faults = [];
if (wide.scrollWidth > wide.clientWidth)
  faults.push(`the page is ${wide.scrollWidth} wide in a window of ${wide.clientWidth}`);
for (const text of document.querySelectorAll('svg text')) {
  const inner = text.getBoundingClientRect(), outer = text.closest('svg').getBoundingClientRect();
  if (inner.left < outer.left - 0.5 || inner.right > outer.right + 0.5
      || inner.top < outer.top - 0.5 || inner.bottom > outer.bottom + 0.5)
    faults.push(`"${text.textContent}" sticks out of ${text.closest('svg').id || 'its figure'}`);
}
for (const node of document.querySelectorAll('body *:not(svg *)')) {
  const box = node.getBoundingClientRect();
  const scrolls = node.parentElement.closest('.scroll, pre, [data-scrolls]');
  if (box.width && !scrolls && box.right > wide.clientWidth + 0.5)
    faults.push(`<${node.localName} class="${node.className}"> ends at ${box.right}`);
}
return faults;
"""
OVERLAPS = """
const faults = [], apart = (a, b) =>
  a.left > b.right - 0.5 || b.left > a.right - 0.5 ||
  a.top > b.bottom - 0.5 || b.top > a.bottom - 0.5;
const glyphs = text => {  // the box of a line is taller than its letters
  const box = text.getBoundingClientRect(), trim = 0.18 * box.height;
  return {left: box.left, right: box.right, top: box.top + trim, bottom: box.bottom - trim};
};
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')];
  const boxes = texts.map(glyphs);
  for (let i = 0; i < texts.length; i++)
    for (let j = 0; j < i; j++)
      if (!apart(boxes[i], boxes[j]))
        faults.push(`"${texts[j].textContent}" and "${texts[i].textContent}" overlap in ${svg.id}`);
}
return faults;
"""
UNDRAWN = """
const faults = [];
for (const svg of document.querySelectorAll('svg')) {
  const box = svg.getBoundingClientRect();
  const drawn = [...svg.querySelectorAll('.mark')].filter(mark => {
    const {width, height} = mark.getBoundingClientRect();
    return (width || height) && getComputedStyle(mark).visibility === 'visible';
  });
  if (!(box.width && box.height && drawn.length))
    faults.push(`${svg.id}: ${box.width} × ${box.height}, ${drawn.length} marks`);
}
for (const image of document.querySelectorAll('img'))
  if (!(image.complete && image.naturalWidth)) faults.push(`${image.src} was not drawn`);
return faults;
"""
SMALL = """
const faults = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const holder = node.parentElement;
  if (!node.data.trim() || holder.closest('title, desc, style') || !holder.getClientRects().length)
    continue;
  const svg = holder.closest('svg');
  const zoom = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  const size = zoom * parseFloat(getComputedStyle(holder).fontSize);
  if (size < 11) faults.push(`"${node.data.trim().slice(0, 40)}" is ${size.toFixed(1)} px tall`);
}
return faults;
"""


class Browser:
    """A window of the browser: open a page, give it a width, ask what is wrong with it."""

    def __init__(self) -> None:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = Chrome(options, Service(shutil.which("chromedriver")))

    def open(self, page: Path | str, width: int = DESKTOP, dark: bool = False) -> None:
        """Show a file, or what is at an address, in a window of that width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.resize(width)
        self.driver.get_log("browser")  # what was said before is of another page
        self.driver.get(page if isinstance(page, str) else page.resolve().as_uri())

    def resize(self, width: int, height: int = 800) -> None:
        """Give the window another width, as a device would have it."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def faults(self) -> list[str]:
        """Return what is wrong with how the page looks at this width."""
        scripts = (OUTSIDE, OVERLAPS, UNDRAWN, SMALL)
        return [fault for script in scripts for fault in self.driver.execute_script(script)]

    def complaints(self) -> list[str]:
        """Return what was said on the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return what the page loaded beside itself."""
        script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
        return [str(name) for name in self.driver.execute_script(script)]

    def count(self, selector: str) -> int:
        """Return how many elements a CSS selector finds."""
        script = "return document.querySelectorAll(arguments[0]).length"
        return int(self.driver.execute_script(script, selector))

    def background(self) -> str:
        """Return the colour behind everything."""
        return str(
            self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        )

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return document.documentElement.clientWidth")
        self.resize(width, height)
        self.driver.save_screenshot(str(path))

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()


@contextmanager
def opened() -> Iterator[Browser]:
    """Start a browser, and end it; skip the test if there is none."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip(MISSING)
    pytest.importorskip("selenium")
    browser = Browser()
    try:
        yield browser
    finally:
        browser.close()
