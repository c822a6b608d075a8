"""The results page of tilewire-load in a real browser: what is on it, for which result. Usage: load_page_test.py PROGRAM"""
import json
import os

import load_samples
from load_page import PageTest, main


class Page(PageTest):
    def test_run(self):
        result = load_samples.run_result()
        self.show("run", result)
        self.assertEqual(self.charts(), ["over-time", "histogram", "percentiles", "stages", "trace-0", "trace-1"])
        self.assertEqual(self.texts("section h2"), ["Over time", "Latency", "Latency by percentile", "Stages at the server",
                                                    "Typical requests", "Operations", "Errors", "Facts"])
        self.assertIn("calls a second with p99", self.texts("h1")[0])
        self.assertEqual(self.texts(".findings li"), result["findings"])
        self.assertEqual(self.count(".note"), 0)
        self.assertEqual(self.drawn("over-time", "c.data.datasets.map(d => d.label)"), ["rate", "max", "p99", "p50", "errors"])
        points = self.drawn("over-time", "c.getDatasetMeta(2).data.filter(e => !e.skip).length")
        self.assertEqual(points, len([step for step in result["timeline"] if step["calls"]]))
        self.assertGreater(self.drawn("histogram", "c.data.datasets[0].data.filter(d => d.y > 0).length"), 20)
        self.assertEqual(self.drawn("percentiles", "c.data.datasets.map(d => d.label)"),
                         [*(s["name"] for s in result["operations"]), "all calls", "all calls, from the actual start"])
        self.assertEqual(self.drawn("stages", "c.data.labels"), [s["name"] for s in result["operations"]])
        self.assertEqual(self.drawn("stages", "c.data.datasets.flatMap(d => d.data.filter(v => v > 0)).length"),
                         sum(len(s["stages_us"]) for s in result["operations"]))
        for index, trace in enumerate(result["traces"]):
            drawn = self.browser.run(f"[...document.querySelectorAll('[data-chart=trace-{index}] [data-spans]')]"
                                     ".reduce((n, e) => n + Number(e.dataset.spans), 0)")
            self.assertEqual(drawn, len(trace["spans"]))
        self.assertEqual(self.count("#operations tbody tr"), 4)
        self.assertEqual(self.count("#errors tbody tr"), len(result["total"]["errors"]))

    def test_merged_spans_are_said(self):
        result = load_samples.run_result()
        trace = result["traces"][0]
        trace["spans"][0].update(spans=12, busy_us=30.5)
        trace.update(recorded=len(trace["spans"]) + 11, dropped=7)
        result["traces"][1].update(recorded=len(result["traces"][1]["spans"]), dropped=0)
        self.show("merged", result)
        said = self.texts(".trace .omitted")
        self.assertEqual(len(said), 1, "the second one omits nothing")
        self.assertIn(f"{trace['recorded']} spans are drawn as {len(trace['spans'])}:", said[0])
        self.assertIn("7 more spans were not kept.", said[0])
        root = "document.querySelector('[data-chart=trace-0] svg')"
        self.browser.run(f"{root}.focus()")
        for key in ("Home", *["ArrowRight"] * 40):
            self.browser.run(f"{root}.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
            if "Merged 12 spans, busy" in self.texts("#live")[0]:
                break
        else:
            self.fail("no span says that it was merged")

    def test_what_was_not_sent_is_said(self):
        result = load_samples.run_result()
        kept, sent = result["operations"][:2]
        kept.update(access="resident", wire_bytes=kept["bytes"] / 2)
        sent.update(wire_bytes=sent["bytes"])
        self.show("resident", result)
        ways = self.texts("#operations tbody .small")
        self.assertIn("resident, 8 connections, 50% sent", ways)
        self.assertEqual(len([way for way in ways if "sent" in way]), 1)

    def test_study(self):
        result = load_samples.study_result()
        self.show("study", result)
        self.assertEqual(self.charts(), ["study-blocks-on", "study-blocks-off", "study-wire-on", "study-wire-off", "gain"])
        self.assertEqual([self.count(f"[data-chart={name}] [data-cell]") for name in self.charts()[:4]], [16, 16, 20, 20])
        self.assertEqual(self.drawn("gain", "c.data.datasets.map(d => d.data.length)"), [10, 10])
        self.assertEqual(len([text for text in self.texts("[data-chart^=study] .cell") if text.startswith("★")]), 2)
        self.assertEqual(self.count("#cells tbody tr"), 20)
        self.browser.run("document.querySelector('#cells button.quiet').click()")
        self.assertEqual(self.count("#cells tbody tr"), len(result["study"]))
        self.browser.run("document.querySelectorAll('#study .segments input')[1].click()")
        self.check()
        self.assertEqual(self.count("[data-chart=study-blocks-on] [data-cell]"), 16)
        self.browser.run("(s => { s.value = s.options.length - 1; s.dispatchEvent(new Event('change')) })(document.querySelector('#study select'))")
        self.assertEqual(self.count("[data-chart=study-blocks-on] [data-cell]"), 16)
        self.check()

    def test_study_of_two_ways(self):
        result = load_samples.two_way_study()
        self.show("two-ways", result)
        title = self.texts("h1")[0].replace("\u00a0", " ")
        self.assertIn("Overlap is worth 1.60× ± 4.8% through shared memory and 1.01× ± 1.7% over the wire;", title)
        self.assertIn("45.0 GB/s ± 3.4% at best, with rmse of", title)
        figures = dict(zip(self.texts(".figure dt"), self.texts(".figure dd:not(.small)")))
        self.assertEqual(figures["Overlap through shared memory"], "1.60×")
        self.assertEqual(figures["Overlap over the wire"], "1.01×")
        self.assertEqual(self.texts("#study .segments span"), ["through shared memory", "over the wire"])
        ways = {cell["via"] for cell in result["study"]}
        for index, way in enumerate(("region", "wire")):
            self.browser.run(f"document.querySelectorAll('#study .segments input')[{index}].click()")
            self.check()
            cells = [cell for cell in result["study"] if cell["via"] == way and cell["overlap"]]
            sizes = {cell["bytes"] for cell in cells}
            drawn = "[data-chart=study-wire-on] [data-cell]"
            self.assertEqual(self.count(drawn), len(sizes) * len({cell["connections"] for cell in cells}), way)
        self.assertEqual(self.drawn("gain", "c.data.labels").count("rmse region 1\u00a0MiB"), 1)
        self.assertEqual(self.drawn("gain", "c.data.datasets[0].data.length"), len(sizes) * len(ways))
        self.assertIn("±", self.texts("#cells tbody td")[6])

    def test_few_calls_tell_no_tail(self):
        result = load_samples.run_result(operations=1, calls=60, errors=False)
        for stat in (result["total"], *result["operations"]):
            for name in ("latency_us", "service_us"):
                del stat[name]["p99"], stat[name]["p99_9"]
        for step in result["timeline"]:
            del step["p99_us"]
        result["total"]["noise"] = 0.021
        result["generator"].update(checking_share=0.18, checkers=2)
        self.show("few", result)
        self.assertIn("±\u00a02.1%", self.texts("h1")[0])
        self.assertNotIn("p99", self.texts("h1")[0])
        figures = self.texts(".figure dt")
        self.assertNotIn("Latency, p99", figures)
        self.assertIn("Longest call", figures)
        self.assertEqual(self.drawn("over-time", "c.data.datasets.map(d => d.label)"), ["rate", "max", "p50", "errors"])
        self.assertIn("Callers waited 18% of the time", self.texts(".note")[0])
        ramp = load_samples.ramp_result()
        low = min(ramp["ramp"], key=lambda step: step["rate"])
        low["max_us"] = low.pop("p99_us")
        self.show("few-ramp", ramp)

    def test_a_server_that_died_shows_as_errors(self):
        result = load_samples.study_result(operations=1)
        result["total"].update(wrong=0, errors={"UNAVAILABLE": 3})
        result["study"][0]["errors"] = {"UNAVAILABLE": 3}
        result["stop"] = {"reason": "server_lost", "text": "the server could not be reached any more"}
        self.show("dead", result)
        self.assertEqual(self.count(".note.warn"), 0)
        self.assertIn("3 calls failed: UNAVAILABLE.", self.texts(".note")[0])
        self.assertIn("Errors", self.texts("#cells th button"))

    def test_ramp(self):
        result = load_samples.ramp_result()
        self.show("ramp", result)
        self.assertEqual(self.charts()[0], "ramp")
        self.assertEqual(self.drawn("ramp", "c.getDatasetMeta(0).data.map(e => e.options.pointStyle)"),
                         ["circle" if s["held"] else "crossRot" for s in sorted(result["ramp"], key=lambda s: s["rate"])])
        label = self.browser.run("document.querySelector('[data-chart=ramp] canvas').getAttribute('aria-label')")
        self.assertRegex(label.replace("\u00a0", " "), r"7\.30 k/s held, bound 5\.00 ms;")
        self.assertEqual(self.count("#errors"), 0)

    def test_reading_values(self):
        self.show("values", load_samples.run_result())
        for name in self.charts():
            root = f"document.querySelector('[data-chart={name}] > *')"
            self.browser.run(f"{root}.scrollIntoView({{block: 'center'}})")
            self.browser.run(f"(b => {root}.dispatchEvent(new PointerEvent('pointermove', {{clientX: b.left + b.width / 2, "
                             f"clientY: b.top + b.height * 0.4, bubbles: true}})))({root}.getBoundingClientRect())")
            self.browser.run(f"{root}.focus()")
            for key in ("Home", "ArrowRight", "ArrowDown", "End", "ArrowLeft"):
                self.browser.run(f"{root}.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")
                self.assertFalse(self.browser.run("document.getElementById('tip').hidden"), (name, key))
                self.check()
            self.assertTrue(self.texts("#live")[0], name)
            self.browser.run(f"{root}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Escape', bubbles: true}}))")
            self.assertTrue(self.browser.run("document.getElementById('tip').hidden"), name)

    def test_controls(self):
        self.show("controls", load_samples.run_result())
        before = self.browser.run("document.querySelector('[data-chart=histogram]').innerHTML")
        self.browser.run("(s => { s.value = 1; s.dispatchEvent(new Event('change')) })(document.querySelector('#latency select'))")
        self.assertNotEqual(self.browser.run("document.querySelector('[data-chart=histogram]').innerHTML"), before)
        self.browser.run("document.querySelector('.toggles button').click()")
        self.assertEqual(self.drawn("percentiles", "c.data.datasets.length"), 4)
        self.browser.run("document.querySelectorAll('#stages .segments input').forEach(e => { if (!e.checked) e.click() })")
        zoom = "document.querySelector('[data-chart=trace-0] svg').dispatchEvent(new KeyboardEvent('keydown', {key: '%s'}))"
        self.browser.run(zoom % "+")
        self.assertFalse(self.browser.run("document.querySelector('.trace button').hidden"))
        self.browser.run(zoom % "0")
        self.assertTrue(self.browser.run("document.querySelector('.trace button').hidden"))
        self.browser.run("document.querySelectorAll('#operations thead button')[2].click()")
        self.assertEqual(self.count("#operations [aria-sort=descending]"), 1)
        self.check()

    def test_download_is_the_data(self):
        result = load_samples.run_result(points=10)
        # Blobs stay out of reach of the page's own rules, so the page is watched while it makes one.
        watch = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source="const make = URL.createObjectURL; "
                                  "URL.createObjectURL = (blob) => (window.blob = blob, make.call(URL, blob))")
        self.show("download", result)
        self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=watch["identifier"])
        self.assertEqual(json.loads(self.browser.run("blob.text()")), result)
        link = self.browser.run("(a => [a.download, a.href])(document.querySelector('a[download]'))")
        self.assertEqual(link[0], "tilewire-load-run-20260131T120000Z.json")
        self.assertTrue(link[1].startswith("blob:"))

    def test_schemes_widths_and_paper(self):
        paper = {}
        for dark in (False, True):
            for width in (340, 390, 768, 1280, 1920):
                for name, result in (("run", load_samples.run_result()), ("study", load_samples.study_result())):
                    with self.subTest(name=name, dark=dark, width=width):
                        self.show(f"{name}-{width}-{'dark' if dark else 'light'}", result, width=width, dark=dark)
            if not dark:
                light = self.colour("m-rate")
            paper[dark] = self.browser.run("getComputedStyle(document.body).backgroundColor")
        self.assertNotEqual(paper[False], paper[True])
        self.browser.look(dark=True, media="print")
        self.assertEqual(self.browser.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.browser.run("window.dispatchEvent(new Event('beforeprint'))")
        self.browser.look(width=900, dark=True, media="print")
        self.browser.settle()
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.plot > *')].map(e => e.viewBox ? e.viewBox.baseVal.width : "
                                          "e.clientWidth).filter(w => w !== 680)"), [])
        gain = self.drawn("gain", "(e => [e.x - 3, e.y])(c.getDatasetMeta(0).data[0])")
        self.assertEqual(self.pixel("gain", *gain), light)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.segments')).display"), "none")
        self.browser.run("window.dispatchEvent(new Event('afterprint'))")
        self.assertNotEqual(self.browser.run("document.querySelector('svg').viewBox.baseVal.width"), 680)

    def test_charts_follow_the_colour_scheme(self):
        self.show("schemes", load_samples.run_result())
        seen = []
        for dark in (False, True):
            self.browser.look(dark=dark)
            self.browser.settle()
            bar = self.drawn("stages", "(e => [e.x - 3, e.y - 9])(c.getDatasetMeta(3).data[0])")
            seen.append(self.pixel("stages", *bar))
            self.assertEqual(seen[-1], self.colour("m-h2d"))
        self.assertNotEqual(*seen)

    def test_warnings(self):
        result = load_samples.run_result()
        result["generator"].update(bottleneck=True, text="It used 98% of its cores.")
        result["total"]["wrong"] = 3
        result["stop"] = {"reason": "server_lost", "text": "no answer for 10 s"}
        self.show("warnings", result)
        self.assertEqual(self.count(".note.warn"), 2)
        self.assertIn("3 answers had wrong bits.", self.texts(".note")[0])
        self.assertIn("The load generator was the bottleneck.", self.texts(".note")[1])
        self.assertIn("No answer for 10 s.", self.texts(".note")[2])

    def test_what_is_absent_is_left_out(self):
        zero = dict.fromkeys(("min", "mean", "p50", "p90", "p99", "p99_9", "max"), 0)
        nothing = {"name": "total", "operation": "rmse", "dtype": "f32", "shape": [8], "access": "unary", "connections": 1, "calls": 0,
                   "good": 0, "wrong": 0, "errors": {}, "bytes": 0, "bytes_per_second": 0, "calls_per_second": 0, "latency_us": zero,
                   "service_us": zero, "histogram": [], "stages_us": {}}
        cases = {"empty": {}, "nulls": {"total": None, "operations": None, "timeline": None, "study": None, "server": None, "findings": None},
                 "nothing": {"kind": "run", "total": nothing, "operations": [nothing], "timeline": [
                     {"t": t, "calls": 0, "good": 0, "errors": 0, "bytes": 0, "p50_us": 0, "p99_us": 0, "max_us": 0} for t in range(3)]},
                 "one": {"kind": "study", "study": load_samples.study_result()["study"][:1]}}
        one_call = load_samples.run_result(operations=1, points=1, calls=1, errors=False)
        one_call["traces"][0]["spans"] = one_call["traces"][0]["spans"][:1]
        for name, result in {**cases, "one call": one_call}.items():
            with self.subTest(name):
                self.show(f"absent-{name}", result)
                self.assertEqual(self.count("#traces"), 1 if name == "one call" else 0)

    def test_text_stays_text(self):
        attack = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">{{result}}"
        result = load_samples.run_result()
        for stat in (*result["operations"], result["total"]):
            stat.update(name=attack, operation=attack, dtype=attack, access=attack, errors={attack: 3})
        for key in ("address", "device", "device_name", "version"):
            result["server"][key] = attack
        result.update(findings=[attack], scenario={attack: attack, "o": {attack: [attack]}}, ceilings={attack: 1e9}, started=attack)
        result["traces"][0].update(operation=attack)
        result["traces"][0]["spans"][0].update(stage=attack, track=attack, process=attack)
        self.show("attack", result)
        self.assertEqual(self.count("img"), 0)
        self.assertEqual(self.count("script"), 3)
        self.assertEqual(self.texts(".findings li")[0], attack)
        self.assertNotIn("taken", self.browser.run("document.title").split("'")[0])
        study = load_samples.study_result(operations=1)
        for cell in study["study"]:
            cell.update(operation=attack, bottleneck=attack)
        self.show("attack-study", study)
        self.assertEqual(self.count("img"), 0)

    def test_large_results_stay_small(self):
        run = load_samples.run_result(operations=20, points=600)
        study = load_samples.study_result(operations=3, sizes=tuple(1 << k for k in range(20, 29)), blocks=tuple(1 << k for k in range(16, 25)),
                                          lanes=(1, 2, 3, 4, 6, 8), connections=(1, 2, 4, 6, 8, 12, 16))
        self.assertGreaterEqual(len(study["study"]), 500)
        for name, result in (("large-run", run), ("large-study", study)):
            page = self.show(name, result)
            self.assertLess(os.path.getsize(page), 1_000_000)
            self.assertLess(self.count("*"), 6000)


if __name__ == "__main__":
    main()
