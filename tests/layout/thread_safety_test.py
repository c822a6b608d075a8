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


if __name__ == "__main__":
    if thread_safety.find_clang(None) is None:
        print("skipped: no clang that is new enough")
        sys.exit(thread_safety.SKIPPED)
    unittest.main()
