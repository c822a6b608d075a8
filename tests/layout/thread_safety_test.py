"""thread_safety.py against a source that is right and one with every mistake: a check that cannot fail checks nothing."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import thread_safety

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HEADERS = ("server/base/mutex.h", "server/base/thread_annotations.h")
COUNTER = """#include "server/base/mutex.h"
namespace tilewire {
struct Counter {
  void Add() {
    const MutexLock lock(mutex_);
    AddLocked();
  }
  void Wait() {
    RelockableMutexLock lock(mutex_);
    while (count_ == 0) wake_.Wait(mutex_);
    lock.Unlock();
    lock.Lock();
    --count_;
  }
  int Mistake();
  void AddLocked() TILEWIRE_REQUIRES(mutex_) { ++count_; }
  Mutex mutex_, other_;
  CondVar wake_;
  int count_ TILEWIRE_GUARDED_BY(mutex_) = 0;
};
BODIES
}  // namespace tilewire
"""
MISTAKES = {
    "return count_;": "reading variable 'count_' requires holding mutex 'mutex_'",
    "const MutexLock lock(other_); return count_;": "reading variable 'count_' requires holding mutex 'mutex_'",
    "RelockableMutexLock lock(mutex_); lock.Unlock(); return count_;": "reading variable 'count_' requires",
    "AddLocked(); return 0;": "calling function 'AddLocked' requires holding mutex 'mutex_'",
    "wake_.Wait(mutex_); return 0;": "calling function 'Wait' requires holding mutex 'mutex_'",
    "const MutexLock one(mutex_), two(mutex_); return 0;": "acquiring mutex 'mutex_' that is already held",
    "mutex_.Lock(); return 0;": "mutex 'mutex_' is still held at the end of function",
}


def run(sources, together=()):
    """Exit status and output over a tree of these sources, {path: text}; those of `together` are compiled as one."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "server/base"))
        for header in HEADERS:
            shutil.copy(os.path.join(ROOT, header), os.path.join(root, header))
        commands = []
        for path, text in sources.items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
            if path not in together:
                commands.append({"directory": root, "file": os.path.join(root, path), "command": f"c++ -I{root} -std=c++20"})
        if together:
            one = os.path.join(root, "Unity/unity_0_cxx.cxx")
            os.makedirs(os.path.dirname(one))
            with open(one, "w", encoding="utf-8") as file:
                file.writelines(f'#include "{os.path.join(root, path)}"\n' for path in together)
            commands.append({"directory": root, "file": one, "command": f"c++ -I{root} -std=c++20"})
        with open(os.path.join(root, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(commands, file)
        command = [sys.executable, "-B", os.path.join(HERE, "thread_safety.py"), root, root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class ThreadSafety(unittest.TestCase):
    def test_every_mistake_is_told(self):
        bodies = [f"struct Counter{i} : Counter {{ int Mistake(); }};\nint Counter{i}::Mistake() {{ {body} }}"
                  for i, body in enumerate(MISTAKES)]
        right = "int Counter::Mistake() { const MutexLock lock(mutex_); return count_; }"
        status, output = run({"server/base/right.cc": COUNTER.replace("BODIES", right),
                              "server/base/wrong.cc": COUNTER.replace("BODIES", "\n".join(bodies))})
        self.assertEqual(status, 1, output)
        self.assertIn("2 sources, 1 wrong", output)
        lines = [line for line in output.splitlines() if "error:" in line]
        self.assertEqual(len(lines), len(MISTAKES), output)
        for line, complaint in zip(lines, MISTAKES.values()):
            self.assertIn(complaint, line)

    def test_what_is_compiled_together_must_compile_alone(self):
        first, second = "server/base/first.cc", "server/base/second.cc"
        status, output = run({first: "inline int One() { return 1; }\n", second: "int Two() { return One() + One(); }\n"}, (first, second))
        self.assertEqual(status, 1, output)
        self.assertIn("2 sources, 1 wrong", output)
        self.assertIn(f"{second}: not thread-safe, or does not compile alone", output)

    def test_a_header_that_another_includes_is_missed(self):
        header = "#pragma once\ninline int One() { return 1; }\nstruct Whole { int one; };\n"
        right = "#include \"server/base/one.h\"\nint Right() { return One(); }\n"
        for wrong in ("int Wrong() { return One(); }\n", "struct Whole;\nint Wrong(Whole* whole) { return whole->one; }\n"):
            first, second = "server/base/first.cc", "server/base/second.cc"
            for sources in ({first: right, second: wrong}, {first: wrong, second: right}):
                status, output = run({"server/base/one.h": header, **sources}, (first, second))
                self.assertEqual(status, 1, output)
                self.assertIn("2 sources, 1 wrong", output)
                self.assertIn(f"{first if sources[first] == wrong else second}: not thread-safe, or does not compile alone", output)

    def test_a_type_that_only_a_template_needs_whole_is_missed(self):
        sources = {"server/base/owner.h": "#pragma once\n#include <memory>\nstruct Thing;\n"
                                          "struct Owner { std::unique_ptr<Thing> thing; ~Owner(); };\n",
                   "server/base/thing.h": "#pragma once\nstruct Thing {};\n",
                   "server/base/right.cc": "#include \"server/base/owner.h\"\n#include \"server/base/thing.h\"\n"
                                           "Owner::~Owner() = default;\n",
                   "server/base/wrong.cc": "#include \"server/base/owner.h\"\nvoid Drop(Owner* owner) { owner->thing.reset(); }\n"}
        status, output = run(sources, ("server/base/right.cc", "server/base/wrong.cc"))
        self.assertEqual(status, 1, output)
        self.assertIn("2 sources, 1 wrong", output)
        self.assertIn("server/base/wrong.cc: not thread-safe, or does not compile alone", output)

    def test_names_of_a_source_are_its_own(self):
        text = "namespace {\nint Help() { return 1; }\n}  // namespace\n#define HELP Help()\nint NAME() { return HELP; }\n"
        paths = ("server/base/first.cc", "server/base/second.cc")
        sources = {path: text.replace("NAME", name) for path, name in zip(paths, ("main", "Second"))}
        status, output = run(sources, paths)
        self.assertEqual((status, output), (0, "thread safety: 2 sources, 0 wrong\n"))

    def test_what_is_right_alone_hides_no_other(self):
        # As in two programs: the same name twice, which at once is an error after which clang looks at no locks.
        paths = tuple(f"server/base/{name}.cc" for name in ("first", "second", "third"))
        wrong = COUNTER.replace("BODIES", "int Counter::Mistake() { return count_; }")
        sources = dict(zip(paths, ("struct Twice { int a; };\n", "struct Twice { long a, b; };\n", wrong)))
        status, output = run(sources)
        self.assertEqual(status, 1, output)
        self.assertIn("reading variable 'count_' requires holding mutex 'mutex_'", output)


if __name__ == "__main__":
    if thread_safety.find_clang(None) is None:
        print("skipped: no clang that is new enough")
        sys.exit(thread_safety.SKIPPED)
    unittest.main()
