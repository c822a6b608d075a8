"""The layout checks against small trees that break one rule each: a check that cannot fail checks nothing."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def run(check, files):
    """Exit status and output of a check over a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        command = [sys.executable, "-B", os.path.join(HERE, check + ".py"), root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class LayoutRules(unittest.TestCase):
    def wrong(self, check, files, complaint):
        status, output = run(check, files)
        self.assertEqual(status, 1, output)
        self.assertIn(complaint, output)

    def right(self, check, files):
        status, output = run(check, files)
        self.assertEqual(status, 0, output)

    def test_include_downward(self):
        self.right("includes", {"kernels/array/a.h": "#include <vector>\n",
                                "server/base/b.h": '#include "kernels/array/a.h"\n',
                                "server/rpc/c.h": '#include <grpcpp/grpcpp.h>\n#include "server/base/b.h"\n'})

    def test_include_upward(self):
        self.wrong("includes", {"kernels/array/a.h": '\n#include "kernels/rmse/r.h"\n', "kernels/rmse/r.h": ""},
                   'kernels/array/a.h:2: kernels/array/ may not include "kernels/rmse/r.h"')
        self.wrong("includes", {"server/engine/e.cc": '#include "server/rpc/r.h"\n'}, "server/engine/e.cc:1:")
        self.wrong("includes", {"client/cpp/c.cc": '#include "server/base/limits.h"\n'}, "client/cpp/c.cc:1:")

    def test_folders_of_the_engine(self):
        job = '#include "server/engine/job/j.h"\n'
        self.right("includes", {"server/engine/job/j.h": '#include "server/engine/stores/s.h"\n',
                                "server/engine/stores/s.h": '#include "server/engine/device/d.h"\n',
                                "server/engine/device/d.h": "", "server/engine/engine.cc": job})
        for folder in ("device", "operation", "admission", "measure", "stores"):
            path = f"server/engine/{folder}/x.cc"
            self.wrong("includes", {path: job}, f"{path}:1: server/engine/{folder}/ may not include")
        self.wrong("includes", {"server/engine/engine.cc": '#include "tests/devices/d.h"\n'}, "server/engine/engine.cc:1:")
        self.wrong("includes", {"server/rpc/transport/t.cc": '#include "server/rpc/calls/c.h"\n'},
                   "server/rpc/transport/ may not include")
        whole = '#include "server/engine/engine.h"\n'
        self.right("includes", {"server/rpc/conversions/c.h": job, "server/engine/job/j.h": "",
                                "server/rpc/calls/c.h": whole, "server/engine/engine.h": ""})
        for path in ("server/rpc/transport/t.cc", "server/rpc/conversions/c.cc"):
            self.wrong("includes", {path: whole}, f"{path}:1:")
        self.wrong("includes", {"server/rpc/transport/t.cc": job}, "server/rpc/transport/ may not include")

    def test_only_the_table_names_operations(self):
        rmse = {"kernels/rmse/problem.h": '#include "kernels/operation/problem.h"\n', "kernels/operation/problem.h": ""}
        include = '#include "kernels/rmse/problem.h"\n'
        self.right("includes", rmse | {"server/rpc/conversions/operations.cc": include,
                                       "server/engine/job/j.h": '#include "kernels/operation/problem.h"\n'})
        for path in ("server/engine/job/j.cc", "server/engine/device/cuda/l.cc", "server/rpc/calls/c.cc",
                     "kernels/operation/o.cc", "tests/devices/d.cc"):
            self.wrong("includes", rmse | {path: include}, f"{path}:1:")
        # Reductions share the tree of rmse; nothing else is shared.
        self.right("includes", rmse | {"kernels/compare/c.cc": include})
        other = {"kernels/transpose/problem.h": "", "kernels/rmse/r.cc": '#include "kernels/transpose/problem.h"\n'}
        self.wrong("includes", other, "kernels/rmse/r.cc:1:")

    def test_relative_include(self):
        self.wrong("includes", {"server/base/b.cc": '#include "b.h"\n'}, 'may not include "b.h"')

    def test_kernels_without_threads(self):
        self.wrong("includes", {"kernels/rmse/r.cc": "#  include <mutex>\n"}, "kernels/rmse/r.cc:1:")

    def test_grpc_reached_through_own_headers(self):
        self.wrong("includes", {"server/ops/o.cc": '#include "server/rpc/mid.h"\n',
                                "server/rpc/mid.h": '#include "server/rpc/deep.h"\n',
                                "server/rpc/deep.h": "#include <grpcpp/server.h>\n"},
                   "(through server/rpc/mid.h -> server/rpc/deep.h)")

    def test_protobuf_in_engine(self):
        self.wrong("includes", {"server/engine/e.h": '#include "tilewire/v1/types.pb.h"\n'}, "types.pb.h")

    def test_cuda_places(self):
        cuda = "#include <cuda_runtime_api.h>\n"
        self.right("includes", {"kernels/rmse/rmse_cuda.h": cuda, "kernels/rmse/rmse.cu": cuda,
                                "kernels/bench/b.h": cuda, "server/engine/device/cuda/lane.h": cuda})
        self.wrong("includes", {"server/base/b.h": cuda}, "CUDA headers only in")
        self.wrong("includes", {"kernels/rmse/host.cc": '#include "kernels/rmse/rmse_cuda.h"\n',
                                "kernels/rmse/rmse_cuda.h": cuda}, "kernels/rmse/host.cc:1:")

    def test_locks_that_nobody_checks(self):
        self.right("includes", {"server/base/mutex.h": "#include <mutex>\n",
                                "server/engine/e.h": '#include "server/base/mutex.h"\n',
                                "client/cpp/c.h": '#include "server/base/mutex.h"\n'})
        self.wrong("includes", {"server/engine/e.cc": "#include <mutex>\n"}, "server/engine/e.cc:1: <mutex>: use")
        self.wrong("includes", {"client/cpp/c.h": "#include <condition_variable>\n"}, "client/cpp/c.h:1:")

    def test_unknown_layer(self):
        self.wrong("includes", {"server/extra/x.h": ""}, "belongs to no layer")

    def test_sizes(self):
        self.right("sizes", {"a/b.cc": "x\n" * 300, "build/big.cc": "x\n" * 999, "notes.txt": "x\n" * 999})
        self.wrong("sizes", {"a/b.cc": "x\n" * 301}, "a/b.cc:301: 301 lines; allowed: 300")

    def test_links(self):
        self.right("links", {"README.md": "# Top\n[a](docs/a.md#two-words) [b](#top) [c](https://example.com/x)\n"
                                          "```\n[no](link.md)\n```\n",
                             "docs/a.md": "## Two words\n[up](../README.md)\n"})
        self.wrong("links", {"README.md": "\n[a](missing.md)\n"}, "README.md:2: link missing.md: does not exist")
        self.wrong("links", {"README.md": "[a](#nowhere)\n"}, "has no such heading")
        self.wrong("links", {"README.md": "[a](../outside.md)\n"}, "leaves the repository")

    LIST = "## Tests that see real time\n| file | why |\n|---|---|\n| `unit/slow_test.cc` | a clock |\n"

    def test_waits(self):
        sleeps = "  std::this_thread::sleep_for(milliseconds(5));\n"
        self.right("waits", {"tests/README.md": self.LIST, "tests/unit/slow_test.cc": sleeps,
                             "tests/unit/good_test.cc": "Eventually(done);\n", "tests/bench/pace.cc": sleeps})
        for line in (sleeps, "  sleep_until(later);\n", "  usleep(5);\n", "    time.sleep(0.1)\n", "    sleep 0.1\n",
                     "EXPECT_EQ(f.wait_for(5ms), std::future_status::timeout);\n", "crowd.WaitUntilQuiet(5s);\n"):
            self.wrong("waits", {"tests/unit/a_test.cc": "\n" + line}, "tests/unit/a_test.cc:2: sleeps")
        self.wrong("waits", {"tests/bench/a_test.py": "time.sleep(1)\n"}, "tests/bench/a_test.py:1: sleeps")

    def test_waits_lists_only_what_needs_it(self):
        self.wrong("waits", {"tests/README.md": self.LIST, "tests/unit/slow_test.cc": ""},
                   "tests/README.md:4: tests/unit/slow_test.cc does not sleep")
        self.wrong("waits", {"tests/README.md": self.LIST + "".join(f"| `unit/{i}.cc` | x |\n" for i in range(10)),
                             "tests/unit/slow_test.cc": "usleep(1);\n",
                             **{f"tests/unit/{i}.cc": "usleep(1);\n" for i in range(10)}}, "11 files see real time")

    def test_an_empty_tree_is_wrong(self):
        for check in ("includes", "sizes", "links", "waits"):
            self.wrong(check, {"x.txt": ""}, "found no files")


if __name__ == "__main__":
    unittest.main()
