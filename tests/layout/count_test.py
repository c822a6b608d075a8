"""tests/count.py against reports of runs that went well and badly: what CI counts must not pass by mistake."""
import os
import subprocess
import sys
import tempfile
import unittest

COUNT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "count.py")
PASSED = '<testcase name="{}" classname="S" status="run" result="completed"/>'
SKIPPED = '<testcase name="{}" classname="S" status="run" result="skipped"><skipped/></testcase>'
FAILED = '<testcase name="{}" classname="S" status="run" result="completed"><failure message="x"/></testcase>'
DISABLED = '<testcase name="{}" classname="S" status="notrun" result="suppressed"/>'


def entry(name, status="run"):
    """One entry of CTest's report."""
    inner = "<failure message='x'/>" if status == "fail" else "<skipped/>" if status == "notrun" else ""
    return f'<testcase name="{name}" time="1" status="{status}">{inner}</testcase>'


class Count(unittest.TestCase):
    def count(self, entries, reports):
        """Exit code and first line for a CTest report and {file: cases, or text that is no XML}."""
        with tempfile.TemporaryDirectory() as folder:
            junit = os.path.join(folder, "junit")
            with open(junit, "w", encoding="utf-8") as file:
                file.write(f"<testsuite>{''.join(entries)}</testsuite>")
            for name, cases in reports.items():
                with open(os.path.join(folder, name + ".xml"), "w", encoding="utf-8") as file:
                    file.write(cases if isinstance(cases, str) else f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
            done = subprocess.run([sys.executable, "-B", COUNT, junit, folder], capture_output=True, text=True, check=False)
            return done.returncode, (done.stdout.splitlines() or [""])[0]

    def test_cases_count_where_there_is_a_report_and_entries_elsewhere(self):
        cases = [PASSED.format("a"), PASSED.format("b"), SKIPPED.format("c"), DISABLED.format("d")]
        self.assertEqual(self.count([entry("P/S"), entry("script"), entry("other", "notrun")], {"prog.P-S": cases}), (0, "3 0 2"))

    def test_a_failed_case_fails(self):
        self.assertEqual(self.count([entry("S", "fail")], {"prog.S": [PASSED.format("a"), FAILED.format("b")]}), (1, "1 1 0"))

    def test_what_fails_behind_its_cases_fails(self):
        self.assertEqual(self.count([entry("S", "fail")], {"prog.S": [PASSED.format("a")]}), (1, "1 1 0"))

    def test_a_crash_is_one_failure(self):
        self.assertEqual(self.count([entry("S", "fail")], {}), (1, "0 1 0"))
        self.assertEqual(self.count([entry("S", "fail")], {"prog.S": "<testsuites><testsu"}), (1, "0 1 0"))

    def test_what_pytest_writes(self):
        entries = ['<testcase name="a"/>', '<testcase name="b"><skipped/></testcase>']
        self.assertEqual(self.count(entries, {}), (0, "1 0 1"))
        for wrong in "failure", "error":
            self.assertEqual(self.count([*entries, f'<testcase name="c"><{wrong}/></testcase>'], {}), (1, "1 1 1"))

    def test_a_suite_without_cases_fails(self):
        self.assertEqual(self.count([entry("S")], {"prog.S": []}), (1, "0 1 0"))

    def test_nothing_at_all_fails(self):
        self.assertEqual(self.count([], {}), (1, "0 0 0"))

    def test_two_suites_of_one_name_are_refused(self):
        self.assertEqual(self.count([entry("S"), entry("S")], {"one.S": [PASSED.format("a")], "two.S": [PASSED.format("b")]})[0], 2)


if __name__ == "__main__":
    unittest.main()
