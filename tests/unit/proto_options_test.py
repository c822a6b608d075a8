#!/usr/bin/env python3
"""Every file of the contract says where its code goes in Go, Java and C#.

    proto_options_test.py PROTOC PROTO_FOLDER

protoc-gen-go refuses a file without go_package. Where the machine has it, it is asked too.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

PROTOC, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.proto"))
GENPROTO = "google.golang.org/genproto/googleapis/rpc/"
# go_package, java_package and csharp_namespace of what others declare, as everybody has them: other values would be other types.
PUBLISHED = {"google/rpc/status.proto": (GENPROTO + "status;status", "com.google.rpc", "Google.Rpc"),
             "google/rpc/error_details.proto": (GENPROTO + "errdetails;errdetails", "com.google.rpc", "Google.Rpc"),
             "grpc/health/v1/health.proto": ("google.golang.org/grpc/health/grpc_health_v1", "io.grpc.health.v1", "Grpc.Health.V1")}


def protoc(*arguments):
    return subprocess.run([PROTOC, "-I", str(FOLDER), *arguments, *FILES], capture_output=True, text=True, check=False)


class ProtoOptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_every_file_names_its_packages(self):
        path = f"{self.folder}/set"
        done = protoc("--descriptor_set_out", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
        self.assertEqual(sorted(file.name for file in files), FILES)
        self.assertIn("tilewire/v1/kernels.proto", FILES)
        for file in files:
            with self.subTest(file.name):
                options = file.options
                ours = ("tilewire/v1;tilewirev1", "tilewire.v1", "Tilewire.V1")
                self.assertEqual((options.go_package, options.java_package, options.csharp_namespace),
                                 PUBLISHED.get(file.name, ours))
                self.assertTrue(options.java_multiple_files)

    @unittest.skipUnless(shutil.which("protoc-gen-go"), "no protoc-gen-go here")
    def test_go_takes_them(self):
        done = protoc("--go_out", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        code = pathlib.Path(self.folder, "tilewire/v1/kernels.pb.go").read_text(encoding="utf-8")
        self.assertIn("\npackage tilewirev1\n", code)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
