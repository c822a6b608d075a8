"""What the tests of the results page of tilewire-load share: a browser with a page in it.

The one argument is a program that writes the page of a result. Set TILEWIRE_SCREENSHOTS to a folder to get pictures of
every page; they are what the page should be judged by.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import load_browser

PROGRAM = sys.argv.pop(1)
SKIPPED = 77

# Every text that a reader can see, with tips and titles; what only stands in the data does not count.
TEXT = "[document.title, ...[...document.querySelectorAll('body *:not(script):not(pre)')].flatMap(e => " \
       "[...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data)), " \
       "...[...document.querySelectorAll('[aria-label]')].map(e => e.getAttribute('aria-label'))].join('\\n')"
# Every number that a drawing is made of.
GEOMETRY = "[...document.querySelectorAll('svg, svg *')].flatMap(e => [...e.attributes].map(a => a.name + '=' + a.value)).join('\\n')"
# Of those that are drawn on a canvas: labels of axes, and every place where something is drawn.
CANVASES = "Object.values(Chart.instances).flatMap(c => [...Object.values(c.scales).flatMap(s => s.ticks.map(t => t.label)), " \
           "...c.getSortedVisibleDatasetMetas().flatMap(m => m.data.filter((_, i) => m._parsed[i][m.vScale.axis] !== null " \
           "&& !Number.isNaN(m._parsed[i][m.vScale.axis])).flatMap(e => [e.x, e.y, e.base]))]).map(v => v === undefined ? '' : String(v)).join('\\n')"
NONSENSE = ("NaN", "undefined", "null", "[object", "Infinity")


def write_page(folder, name, result):
    source, page = (os.path.join(folder, name + ending) for ending in (".json", ".html"))
    with open(source, "w", encoding="utf-8") as file:
        json.dump(result, file)
    subprocess.run([PROGRAM, source, page], check=True, timeout=60)
    return page


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = load_browser.Browser(load_browser.find())
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.browser.__exit__)

    def show(self, name, result, **look):
        """Opens the page of a result and holds it to what is true of every page."""
        page = write_page(self.folder.name, name, result)
        self.browser.look(**look)
        self.browser.open(page)
        self.browser.settle()
        self.check()
        pictures = os.environ.get("TILEWIRE_SCREENSHOTS")
        if pictures:
            self.browser.screenshot(os.path.join(pictures, f"{name}.png"))
        return page

    def check(self):
        run = self.browser.run
        self.assertEqual(run("document.documentElement.dataset.errors"), None)
        self.assertEqual(run("document.documentElement.dataset.ready"), "true")
        self.assertEqual(self.browser.console, [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith(("file://", "data:"))], [])
        self.assertEqual(len([url for url in self.browser.requests if url.startswith("file://")]), 1)
        for text in (run(TEXT), run(GEOMETRY), run(CANVASES)):
            for word in NONSENSE:
                at = text.find(word)
                self.assertLess(at, 0, text[max(0, at - 80):at + 80])
        self.assertEqual(run("document.documentElement.scrollWidth"), run("innerWidth"), "the page is wider than the window")

    def count(self, selector):
        return self.browser.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def texts(self, selector):
        return self.browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def drawn(self, chart, what):
        """A JavaScript expression of `c`, a chart on a canvas."""
        return self.browser.run(f"(c => {what})(Chart.getChart(document.querySelector('[data-chart={chart}] canvas')))")

    def pixel(self, chart, x, y):
        """The colour at a place of a chart on a canvas, as a style sheet's."""
        return self.drawn(chart, f"(p => `rgb(${{p[0]}}, ${{p[1]}}, ${{p[2]}})`)(c.ctx.getImageData(Math.round({x} * c.currentDevicePixelRatio), "
                                 f"Math.round({y} * c.currentDevicePixelRatio), 1, 1).data)")

    def colour(self, mark):
        return self.browser.run(f"(e => {{ e.className = 'probe {mark}'; document.body.append(e); const c = getComputedStyle(e).color; "
                                "e.remove(); return c })(document.createElement('i'))")

    def charts(self):
        return self.browser.run("[...document.querySelectorAll('[data-chart]')].map(e => e.dataset.chart)")


def main():
    """Runs the tests of the program; without a browser it says so, and CTest counts it as skipped."""
    if load_browser.find() is None:
        print(f"skipped: {os.path.basename(sys.argv[0])} needs Chromium (deploy/install-deps.sh --tests installs it on Debian)")
        sys.exit(SKIPPED)
    unittest.main()
