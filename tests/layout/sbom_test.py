#!/usr/bin/env python3
"""The bill of materials that deploy/sbom.py writes of a bundle: SPDX 2.3, whole, and of what is there."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/sbom.py")
IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
# What SPDX 2.3 demands of each (https://spdx.github.io/spdx-spec/v2.3), and the words of it that are used here.
DOCUMENT = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "files", "relationships"}
PACKAGE = {"SPDXID", "name", "downloadLocation", "filesAnalyzed", "licenseConcluded", "licenseDeclared", "copyrightText", "versionInfo"}
RELATIONS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON"}
LICENCES = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-or-later", "ISC",
            "LGPL-2.1-only", "LGPL-2.1-or-later", "MIT", "Zlib", "NOASSERTION"}
LENGTHS = {"SHA1": 40, "SHA256": 64}


def system_library(pattern):
    """A library of this machine by the name that programs ask for."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if re.fullmatch(pattern, name):
                return os.path.join(folder, name)
    return None


class Sbom(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tilewire-sbom-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.bundle = os.path.join(self.folder, "bundle")
        for name in ("bin", "lib"):
            os.makedirs(os.path.join(self.bundle, name))
        program = os.path.join(self.bundle, "bin/tilewired")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nprintf 'tilewired 1.2.3\\nCUDA: 13.0\\n'\n")
        os.chmod(program, 0o755)

    def add(self, pattern):
        path = system_library(pattern)
        self.assertIsNotNone(path, pattern)
        shutil.copy(path, os.path.join(self.bundle, "lib"))
        return os.path.basename(path)

    def write(self, *arguments, environment=None):
        return subprocess.run([sys.executable, "-B", SCRIPT, self.bundle, *arguments], text=True, capture_output=True, check=False,
                              env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000", **(environment or {})})

    def document(self, *arguments):
        done = self.write(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "tilewire.spdx.json"), encoding="utf-8") as file:
            return json.load(file)

    def check(self, document):
        self.assertLessEqual(DOCUMENT, set(document))
        self.assertEqual((document["spdxVersion"], document["dataLicense"], document["SPDXID"]), ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
        self.assertRegex(document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(all(re.match(r"(Tool|Person|Organization): .", who) for who in document["creationInfo"]["creators"]))
        texts = {each["licenseId"]: each["extractedText"] for each in document.get("hasExtractedLicensingInfos", [])}
        self.assertTrue(all(re.fullmatch(r"LicenseRef-[A-Za-z0-9.-]+", name) and text for name, text in texts.items()))
        identifiers = ["SPDXRef-DOCUMENT"]
        for package in document["packages"]:
            self.assertLessEqual(PACKAGE, set(package))
            self.assertIn(package["licenseDeclared"], LICENCES | set(texts), package["name"])
            self.assertFalse(package["filesAnalyzed"])
            if "supplier" in package:
                self.assertRegex(package["supplier"], r"^(Person|Organization): .")
            for reference in package.get("externalRefs", []):
                self.assertEqual((reference["referenceCategory"], reference["referenceType"]), ("PACKAGE-MANAGER", "purl"))
                self.assertRegex(reference["referenceLocator"], r"^pkg:deb/[a-z]+/[a-z0-9.%B-]+@[^:+~\s]+\?arch=[a-z0-9]+$")
            identifiers.append(package["SPDXID"])
        for file in document["files"]:
            self.assertTrue(file["fileName"].startswith("./"))
            sums = {each["algorithm"]: each["checksumValue"] for each in file["checksums"]}
            self.assertEqual({name: len(value) for name, value in sums.items()}, LENGTHS)
            with open(os.path.join(self.bundle, file["fileName"]), "rb") as content:
                self.assertEqual(sums["SHA256"], hashlib.sha256(content.read()).hexdigest())
            identifiers.append(file["SPDXID"])
        self.assertEqual(len(identifiers), len(set(identifiers)), "each identifier once")
        self.assertTrue(all(IDENTIFIER.fullmatch(each) for each in identifiers))
        for relation in document["relationships"]:
            self.assertIn(relation["relationshipType"], RELATIONS)
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, set(identifiers))

    def test_it_is_spdx_and_has_every_file(self):
        names = {self.add(r"libz\.so\.1"), self.add(r"libstdc\+\+\.so\.6"), self.add(r"libssl\.so\.3")}
        document = self.document("--also", "libc6")
        self.check(document)
        self.assertEqual({file["fileName"] for file in document["files"]}, {"./bin/tilewired"} | {"./lib/" + name for name in names})
        packages = {package["name"]: package for package in document["packages"]}
        self.assertLessEqual({"tilewire", "zlib1g", "libstdc++6", "libc6", "cuda-runtime"}, set(packages))
        self.assertEqual((packages["tilewire"]["versionInfo"], packages["cuda-runtime"]["versionInfo"]), ("1.2.3", "13.0"))
        for name in ("zlib1g", "libstdc++6", "libc6"):
            told = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], text=True, capture_output=True, check=True).stdout
            self.assertEqual(packages[name]["versionInfo"], told)
        self.assertEqual(packages["zlib1g"]["licenseDeclared"], "Zlib")

    def test_the_same_bundle_gives_the_same_file(self):
        self.add(r"libz\.so\.1")
        first = self.document()
        self.assertEqual(first, self.document())
        with open(os.path.join(self.bundle, "lib/libz.so.1"), "ab") as file:
            file.write(b"x")
        self.assertNotEqual(first["documentNamespace"], self.document()["documentNamespace"])

    def test_what_has_no_package_is_an_error(self):
        with open(os.path.join(self.bundle, "lib/libofnobody.so.1"), "w", encoding="utf-8"):
            pass
        done = self.write()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no package has libofnobody.so.1", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "tilewire.spdx.json")))
        os.remove(os.path.join(self.bundle, "bin/tilewired"))
        self.assertIn("sbom: error", self.write().stderr)


if __name__ == "__main__":
    if shutil.which("dpkg-query") is None:
        sys.exit(77)
    unittest.main()
