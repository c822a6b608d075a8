"""What the charts of the results page say, held to the data: positions, lengths and read-outs. Usage: ... PROGRAM"""
import math

import load_samples
from load_page import PageTest, main


def read(text):
    """The number of a text like "24.9 GB/s", in bytes, seconds or times."""
    number, _, unit = text.replace("\u00a0", " ").partition(" ")
    scale = {"": 1, "G": 1e9, "M": 1e6, "k": 1e3, "T": 1e12, "s": 1e6, "ms": 1e3, "µs": 1, "ns": 1e-3}
    return float(number.replace(",", "").rstrip("×%")) * scale[unit.removesuffix("B/s").removesuffix("/s")]


class Values(PageTest):
    def near(self, found, expected, share=0.006, note=None):
        self.assertLessEqual(abs(found - expected), share * abs(expected), (found, expected, note))

    def tips(self, chart, keys):
        """Title and {label: value} of the tip after each key."""
        out = []
        for key in keys:
            self.browser.run(f"document.querySelector('[data-chart={chart}] > *').dispatchEvent("
                             f"new KeyboardEvent('keydown', {{key: '{key}'}}))")
            rows = self.browser.run("[...document.querySelectorAll('#tip tr')].map(r => [r.cells[0].textContent, r.cells[1].textContent])")
            out.append((self.texts("#tip .tip-title")[0].replace("\u00a0", " "), dict(rows)))
        return out

    def test_over_time(self):
        result = load_samples.run_result()
        self.show("values-time", result)
        steps, seconds = result["timeline"], load_samples.SECONDS / len(result["timeline"])
        for (title, tip), step in zip(self.tips("over-time", ["Home", *["ArrowRight"] * 5]), steps):
            self.assertEqual(float(title.partition(" to ")[0]), step["t"])
            self.near(read(tip["Throughput"]), step["bytes"] / seconds)
            for name in ("p50", "p99", "max"):
                self.near(read(tip[name]), step[name + "_us"])
        empty = next(i for i, step in enumerate(steps) if not step["calls"])
        _, tip = self.tips("over-time", ["Home", *["ArrowRight"] * empty])[-1]
        self.assertEqual(tip["p99"], "\u2013")
        self.assertEqual(tip["Throughput"], "0\u00a0B/s")

    def test_latency(self):
        result = load_samples.run_result()
        self.show("values-latency", result)
        _, last = self.tips("histogram", ["End"])[0]
        self.assertEqual(last["At most this"], "100%")
        label = self.browser.run("document.querySelector('[data-chart=histogram] canvas').getAttribute('aria-label')")
        marks = label.partition(";")[0].split(", ")[1:]
        self.assertEqual(sorted(mark.split(" ")[0] for mark in marks), ["max", "p50", "p90", "p99", "p99.9"])
        for mark in marks:
            name, _, value = mark.partition(" ")
            self.near(read(value), result["total"]["latency_us"][name.replace(".", "_")])
            # The bar under the mark is the one that holds the percentile.
            at = result["total"]["latency_us"][name.replace(".", "_")]
            self.drawn("histogram", "(b => c.canvas.dispatchEvent(new PointerEvent('pointermove', {clientY: b.top + 80, bubbles: true, "
                                    f"clientX: b.left + c.scales.x.getPixelForValue({at})}})))(c.canvas.getBoundingClientRect())")
            low, _, high = self.texts("#tip .tip-title")[0].partition(" to ")
            self.assertLessEqual(read(low) * 0.98, read(value), mark)
            self.assertGreaterEqual(read(high) * 1.02, read(value), mark)
        seen = {}
        tips = [self.tips("percentiles", ["Home"])[0]]
        while len(tips) < 400 and (len(tips) < 4 or tips[-1] != tips[-4]):
            tips += self.tips("percentiles", ["ArrowRight"])
        for title, tip in tips:
            seen[float(title.partition("%")[0])] = tip
        for share, key in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99_9")):
            self.near(read(seen[share]["all calls"]), result["total"]["latency_us"][key], 0.05, share)
            self.near(read(seen[share][result["operations"][1]["name"]]), result["operations"][1]["latency_us"][key], 0.05, share)

    def test_stages(self):
        result = load_samples.run_result()
        self.show("values-stages", result)
        for row, stat in enumerate(result["operations"]):
            drawn = self.drawn("stages", f"c.data.datasets.map((d, i) => [d, c.getDatasetMeta(i).data[{row}], d.data[{row}]])"
                                         ".filter(([d, e, v]) => v !== null).map(([d, e]) => [d.label, e.base, e.x, e.y])")
            total = sum(stat["stages_us"].values())
            whole = drawn[-1][2] - drawn[0][1]
            self.assertEqual([stage for stage, *_ in drawn], [s for s in load_samples.STAGES if s in stat["stages_us"]])
            for stage, begin, end, y in drawn:
                self.assertLess(abs(end - begin - whole * stat["stages_us"][stage] / total), 1, stage)  # pixels
                if end - begin > 6:
                    self.assertEqual(self.pixel("stages", end - 3, y - 9), self.colour("m-" + stage))

    def test_traces(self):
        result = load_samples.run_result()
        self.show("values-trace", result)
        spans = result["traces"][0]["spans"]
        begins = sorted(s["begin_us"] for s in spans if s["process"] == "server" and s["track"] == "lane 2" and s["stage"] == "h2d")
        drawn = self.browser.run("[...document.querySelectorAll('[data-chart=trace-0] [data-track=\"lane 2\"] [data-stage=h2d]')]"
                                 ".flatMap(e => [...e.getAttribute('d').matchAll(/M([0-9.]+)/g)].map(m => Number(m[1])))")
        self.assertEqual(len(drawn), len(begins))
        scale = (drawn[-1] - drawn[0]) / (begins[-1] - begins[0])
        for x, begin in zip(drawn, begins):
            self.assertLess(abs(drawn[0] + (begin - begins[0]) * scale - x), 0.3)

    def test_study(self):
        result = load_samples.study_result()
        self.show("values-study", result)
        cells = [c for c in result["study"] if c["operation"] == "rmse" and c["bytes"] == 64 << 20 and c["connections"] == 8]
        for chart, overlap in (("study-blocks-on", True), ("study-blocks-off", False)):
            order = sorted((c for c in cells if c["overlap"] == overlap), key=lambda c: (c["block_bytes"], c["lanes"]))
            for (_, tip), cell in zip(self.tips(chart, ["Home", *["ArrowRight"] * 15]), order, strict=True):
                self.near(read(tip["Rate"]), cell["bytes_per_second"])
                self.near(read(tip["Latency, p50"]), cell["p50_us"])
                self.assertEqual(tip["Lanes"], str(cell["lanes"]))
                partner = next(c for c in cells if c is not cell and all(c[k] == cell[k] for k in ("block_bytes", "lanes")))
                gain = cell["bytes_per_second"] / partner["bytes_per_second"]
                self.near(read(tip["Gain by overlap" if overlap else "With overlap"]), gain if overlap else 1 / gain)
                self.near(float(tip["Share"].partition("%")[0]), cell["bytes_per_second"] / 55.6e9 * 100, 0.06)
        for chart, overlap in (("study-wire-on", True), ("study-wire-off", False)):
            order = sorted((c for c in result["study"] if c["operation"] == "rmse" and c["block_bytes"] == 4 << 20 and c["lanes"] == 4
                            and c["overlap"] == overlap), key=lambda c: (c["bytes"], c["connections"]))
            for index, cell in enumerate(order):
                self.browser.run(f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
                                 "e.dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + 9, clientY: b.top + 9, bubbles: true})) })"
                                 f"(document.querySelectorAll('[data-chart={chart}] [data-cell] rect')[{index}])")
                tip = dict(zip(self.texts("#tip th"), self.texts("#tip td")))
                self.near(read(tip["Rate"]), cell["bytes_per_second"])
                self.assertEqual(tip["Connections"], str(cell["connections"]))
        best = max(result["study"], key=lambda c: c["bytes_per_second"])
        self.near(read(self.texts(".figure dd")[0]), best["bytes_per_second"])

    def test_ramp(self):
        result = load_samples.ramp_result()
        self.show("values-ramp", result)
        order = sorted(result["ramp"], key=lambda step: step["rate"])
        for (title, tip), step in zip(self.tips("ramp", ["Home", *["ArrowRight"] * (len(order) - 1)]), order, strict=True):
            self.near(read(title.removesuffix(" offered")), step["rate"])
            self.near(read(tip["p99"]), step["p99_us"])
            self.assertEqual(tip["Held"], "yes" if step["held"] else "no")
        self.near(read(self.texts(".figure dd")[0]), result["mode"]["best_rate"])
        # The axis says what a point's height means: log2 of a latency is linear in y.
        ticks = self.drawn("ramp", "c.scales.y.ticks.map((tick, i) => [Number(tick.label), c.scales.y.getPixelForTick(i)])")
        (low, low_y), (high, high_y) = ticks[0], ticks[-1]
        points = self.drawn("ramp", "c.getDatasetMeta(0).data.map(e => e.y)")
        for y, step in zip(points, order, strict=True):
            power = math.log2(low) + (y - low_y) / (high_y - low_y) * math.log2(high / low)
            self.near(2 ** power * 1e3, step["p99_us"], 0.01)


if __name__ == "__main__":
    main()
