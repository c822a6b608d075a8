#!/usr/bin/env python3
"""The container image that deploy/image.sh makes: what is in it, and that it runs. Usage: image_test.py BUNDLE"""
import filecmp
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import engine

IMAGE_SCRIPT = os.path.join(engine.ROOT, "deploy/image.sh")
CHECK_SCRIPT = os.path.join(engine.ROOT, "deploy/check.sh")
MAX_BYTES = 90_000_000
USER = "65532:65532"
# All that an image may hold; programs and libraries apart, nothing of it is executable.
PROGRAMS = re.compile(r"opt/tilewire/bin/(tilewired|tilewire|tilewire-load)|"
                      r"opt/tilewire/lib/lib[^/]+\.so[.\d]*|"
                      r"(usr/)?lib(64|/[^/]+)?/(ld-linux-x86-64|lib(c|m|mvec|dl|pthread|rt|resolv|anl))\.so\.\d+")
FILES = re.compile(r"etc/(passwd|group|nsswitch\.conf|debian_version|os-release|ssl/certs/ca-certificates\.crt)|"
                   r"opt/tilewire/share/licenses/[^/]+|lib|lib64")

bundle = None


class Archive:
    """An OCI archive of one image with one layer."""

    def __init__(self, path):
        with tarfile.open(path) as outer:
            def blob(descriptor):
                return outer.extractfile("./blobs/" + descriptor["digest"].replace(":", "/")).read()
            descriptor, = json.load(outer.extractfile("./index.json"))["manifests"]
            manifest = json.loads(blob(descriptor))
            layer, = manifest["layers"]
            self.digest = descriptor["digest"]
            self.config = json.loads(blob(manifest["config"]))
            self.entries = tarfile.open(fileobj=io.BytesIO(blob(layer))).getmembers()


def make_image(output, **environment):
    return engine.run([IMAGE_SCRIPT, "--bundle", bundle, "--output", output],
                      env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **environment})


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = engine.Engine()
        cls.addClassCleanup(cls.engine.close)
        cls.file = cls.engine.path("image.tar")
        cls.said = make_image(cls.file)
        cls.archive = Archive(cls.file)

    def test_two_builds_have_one_digest(self):
        """Neither the bundle's place, nor its files' dates and modes, nor the umask count."""
        folder = self.engine.path("else where")
        shutil.copytree(bundle, folder, copy_function=shutil.copyfile)
        for program in os.listdir(os.path.join(folder, "bin")):
            os.chmod(os.path.join(folder, "bin", program), 0o700)
        again = self.engine.path("again.tar")
        engine.run(["sh", "-c", 'umask 077; exec "$@"', "sh", IMAGE_SCRIPT, "--bundle", "else where", "--output",
                    "again.tar"], cwd=self.engine.folder, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        self.assertEqual(Archive(again).digest, self.archive.digest)
        self.assertTrue(filecmp.cmp(again, self.file, shallow=False), "the archives differ")
        self.assertIn(f"digest: {self.archive.digest}\n", self.said)

    def test_is_dated_as_asked(self):
        self.assertEqual(self.archive.config["created"], "2023-11-14T22:13:20Z")
        self.assertEqual({entry.mtime for entry in self.archive.entries}, {1700000000})

    def test_size(self):
        total = sum(entry.size for entry in self.archive.entries)
        self.assertLessEqual(total, MAX_BYTES)
        self.assertIn(f"size: {total} bytes", self.said)

    def test_holds_nothing_else(self):
        """No shell, no tools, nothing that only root may read or that makes its caller root."""
        files = [entry for entry in self.archive.entries if not entry.isdir()]
        names = {entry.name for entry in files}
        self.assertLessEqual({"opt/tilewire/bin/tilewired", "opt/tilewire/bin/tilewire",
                              "etc/ssl/certs/ca-certificates.crt"}, names)
        # The NVIDIA driver's libraries, which come with the container, link to all of these.
        self.assertLessEqual({"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"},
                             {os.path.basename(name) for name in names if name.startswith("usr/lib/")})
        for entry in self.archive.entries:
            entry.mode &= 0o7777  # buildah also writes the file's type
        for entry in files:
            if entry.issym():
                self.assertRegex(f"{entry.name} {entry.linkname}", "^(lib usr/lib|lib64 usr/lib64)$")
            elif PROGRAMS.fullmatch(entry.name):
                self.assertEqual(entry.mode, 0o755, entry.name)
            else:
                self.assertRegex(entry.name, f"^({FILES.pattern})$")
                self.assertEqual(entry.mode, 0o644, entry.name)
        for entry in self.archive.entries:
            self.assertEqual((entry.uid, entry.gid), (0, 0), entry.name)
            if entry.isdir():
                self.assertEqual(entry.mode, 0o1777 if entry.name.rstrip("/") == "tmp" else 0o755, entry.name)

    def test_describes_itself(self):
        config = self.archive.config["config"]
        self.assertEqual(config["User"], USER)
        self.assertEqual(config["Entrypoint"], ["/opt/tilewire/bin/tilewired"])
        self.assertEqual(config["Cmd"], ["--listen", "0.0.0.0:50051", "--health-listen", "localhost:50052"])
        self.assertEqual(config["ExposedPorts"], {"50051/tcp": {}})
        self.assertEqual(config["StopSignal"], "SIGTERM")
        version = engine.run([os.path.join(bundle, "bin/tilewire"), "--version"]).split()[1]
        self.assertEqual(config["Labels"]["org.opencontainers.image.version"], version)
        self.assertEqual(config["Labels"]["org.opencontainers.image.licenses"], "Apache-2.0")

    def test_has_a_bill_of_materials(self):
        with open(self.file.replace(".tar", ".spdx.json"), encoding="utf-8") as file:
            document = json.load(file)
        listed = {each["fileName"].removeprefix("./") for each in document["files"]}
        there = {entry.name.removeprefix("opt/tilewire/") for entry in self.archive.entries
                 if entry.isfile() and re.match(r"opt/tilewire/(bin|lib)/", entry.name)}
        self.assertEqual(listed, there)
        self.assertLessEqual({"tilewire", "libc6", "ca-certificates"}, {package["name"] for package in document["packages"]})

    def test_serves_and_stops(self):
        """Read-only, without capabilities and as its user it passes the quickstart's checks and ends with 0."""
        image = self.engine.load(self.file)
        with self.engine.server(image, "--device", "auto", "--listen", "localhost:0") as server:
            subprocess.run([CHECK_SCRIPT, server.address, os.path.join(bundle, "bin/tilewire")], check=True)
            server.execute("/opt/tilewire/bin/tilewire", "--server", server.address, "ping")
            with self.assertRaisesRegex(AssertionError, "no such file"):
                server.execute("/bin/sh", "-c", "true")
            processes = server.processes()
            self.assertEqual([process["Name"] for process in processes], ["tilewired"])
            for process in processes:
                self.assertEqual(set(process["Uid"].split() + process["Gid"].split()), {"65532"})
                self.assertEqual({int(process[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")}, {0})
                self.assertEqual(process["NoNewPrivs"], "1")
            self.assertEqual(server.stop(), 0)


class Errors(unittest.TestCase):
    def refused(self, *arguments, **environment):
        done = subprocess.run([IMAGE_SCRIPT, *arguments], text=True, capture_output=True, check=False,
                              env={**os.environ, **environment})
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as empty:
            os.mkdir(os.path.join(empty, "bin"))
            self.assertIn("there is no bundle in /nowhere", self.refused("--bundle", "/nowhere"))
            self.assertIn("no program bin/tilewired", self.refused("--bundle", empty))
            self.assertIn("unknown option --bundel", self.refused("--bundel", bundle))
            self.assertIn("--output needs a value", self.refused("--output"))
            self.assertIn("SOURCE_DATE_EPOCH is 'now'", self.refused("--bundle", bundle, SOURCE_DATE_EPOCH="now"))
            for program in ("bash", "dirname", "realpath"):
                os.symlink(shutil.which(program), os.path.join(empty, program))
            self.assertIn("buildah is not installed", self.refused("--bundle", bundle, PATH=empty))


def main():
    global bundle  # noqa: PLW0603: unittest gives its cases no arguments
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    bundle = os.path.abspath(sys.argv.pop(1))
    engine.require("buildah", "podman", "runc")
    unittest.main()


if __name__ == "__main__":
    main()
