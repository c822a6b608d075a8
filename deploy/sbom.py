#!/usr/bin/env python3
"""Writes the bill of materials of a bundle: every file in it, and the package each library came from, with
version and licence, as SPDX 2.3 in JSON. Needs dpkg-query, and the machine that the bundle was made on."""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

# In the programs without a library of their own: headers, and the script of the load tester's page.
COMPILED_IN = ("libcli11-dev", "libexpected-dev", "libjs-chart.js", "nlohmann-json3-dev")
# Debian's names of licences that have another in SPDX's list. What is not here is told by its text.
LICENCES = {"Apache-2": "Apache-2.0", "Apache-2.0": "Apache-2.0", "BSD-2-Clause": "BSD-2-Clause", "BSD-2-clause": "BSD-2-Clause",
            "BSD-3-Clause": "BSD-3-Clause", "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause~Google": "BSD-3-Clause",
            "BSD-3-google": "BSD-3-Clause", "CC0-1.0": "CC0-1.0", "Expat": "MIT", "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later",
            "GPL-3+": "GPL-3.0-or-later", "ISC": "ISC", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later", "MIT": "MIT",
            "Zlib": "Zlib", "zlib": "Zlib"}
NOTHING = "NOASSERTION"


class Unusable(Exception):
    pass


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, check=False)


def owner_of(library):
    """The package that has a library of that name in a folder of the loader; None where none has."""
    for line in run("dpkg-query", "-S", f"*/{library}").stdout.splitlines():
        packages, _, path = line.rpartition(": ")
        if re.fullmatch(r"(/usr)?/lib(/[^/]+-linux-gnu[^/]*)?/[^/]+", path):
            return packages.split(",")[0].split(":")[0]
    return None


def copyright_of(package):
    path = f"/usr/share/doc/{package}/copyright"
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def licence_of(text):
    """Debian's short name for the paragraph `Files: *`; "" where the text has no such form."""
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"^Files: *\*\s*$", paragraph, re.M):
            found = re.search(r"^License: *(.+)$", paragraph, re.M)
            return found.group(1).strip() if found else ""
    return ""


class Document:
    def __init__(self, version, seconds):
        self.packages, self.files, self.relations, self.texts = [], [], [], []
        self.known = {}
        self.json = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"tilewire-{version}",
                     "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
                                      "creators": ["Tool: tilewire-sbom"]}}
        self.add_package("SPDXRef-tilewire", "tilewire", version, "Apache-2.0")
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-tilewire")

    def relate(self, one, how, other):
        self.relations.append({"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other})

    def add_package(self, identifier, name, version, licence, **more):
        self.packages.append({"SPDXID": identifier, "name": name, "versionInfo": version, "downloadLocation": NOTHING, "filesAnalyzed": False,
                              "licenseConcluded": NOTHING, "licenseDeclared": licence, "copyrightText": NOTHING, **more})

    def declare(self, package, text):
        short = licence_of(text)
        if short in LICENCES:
            return LICENCES[short]
        if not text:
            return NOTHING
        reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        self.texts.append({"licenseId": reference, "name": short or f"as in {package}", "extractedText": text})
        return reference

    def debian(self, package):
        """The package's identifier, added where it is new."""
        if package in self.known:
            return self.known[package]
        told = run("dpkg-query", "-W", "-f", "${Version}\t${source:Package}\t${Architecture}\t${Maintainer}", package)
        if told.returncode != 0:
            raise Unusable(f"dpkg-query does not know {package}")
        version, source, architecture, maintainer = told.stdout.split("\t")
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", package)
        quoted = version.replace(":", "%3A").replace("+", "%2B").replace("~", "%7E")
        place = f"pkg:deb/{distribution()}/{package.replace('+', '%2B')}@{quoted}?arch={architecture}"
        self.add_package(identifier, package, version, self.declare(package, copyright_of(package)), sourceInfo=f"source package {source}",
                         supplier=f"Organization: {maintainer}",
                         externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": place}])
        self.known[package] = identifier
        return identifier

    def add_file(self, bundle, path, package):
        with open(os.path.join(bundle, path), "rb") as file:
            content = file.read()
        identifier = "SPDXRef-file-" + re.sub(r"[^A-Za-z0-9.-]", "-", path)
        sums = [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), content).hexdigest()} for name in ("SHA1", "SHA256")]
        self.files.append({"SPDXID": identifier, "fileName": "./" + path, "checksums": sums, "licenseConcluded": NOTHING,
                           "copyrightText": NOTHING})
        self.relate(package, "CONTAINS", identifier)

    def text(self):
        body = {**self.json, "packages": self.packages, "files": self.files, "relationships": self.relations}
        if self.texts:
            body["hasExtractedLicensingInfos"] = self.texts
        # Of the content, so that the same bundle has the same name, and another one another.
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        body["documentNamespace"] = f"https://spdx.org/spdxdocs/{body['name']}-{digest[:32]}"
        return json.dumps(body, indent=1) + "\n"


def distribution():
    with open("/etc/os-release", encoding="utf-8") as file:
        found = re.search(r'^ID="?([a-z]+)"?$', file.read(), re.M)
    return found.group(1) if found else "debian"


def date_of_commit():
    """Of the newest one; 0 where there is no git, or nothing of it."""
    if shutil.which("git") is None:
        return 0
    return run("git", "-C", os.path.dirname(os.path.abspath(__file__)), "log", "-1", "--format=%ct").stdout.strip() or 0


def describe(bundle, version, seconds, also):
    document = Document(version, seconds)
    for folder in ("bin", "lib"):
        for name in sorted(os.listdir(os.path.join(bundle, folder))):
            package = owner_of(name) if folder == "lib" else None
            if folder == "lib" and package is None:
                raise Unusable(f"no package has {name}")
            identifier = document.debian(package) if package else "SPDXRef-tilewire"
            document.add_file(bundle, f"{folder}/{name}", identifier)
    for identifier in list(document.known.values()):
        document.relate("SPDXRef-tilewire", "DYNAMIC_LINK", identifier)
    for package in COMPILED_IN:
        if run("dpkg-query", "-W", package).returncode == 0:
            document.relate("SPDXRef-tilewire", "STATIC_LINK", document.debian(package))
    cuda = run(os.path.join(bundle, "bin/tilewired"), "--version").stdout
    found = re.search(r"^CUDA: ([\d.]+)", cuda, re.M)
    if found:
        document.add_package("SPDXRef-cuda-runtime", "cuda-runtime", found.group(1), NOTHING, supplier="Organization: NVIDIA")
        document.relate("SPDXRef-tilewire", "STATIC_LINK", "SPDXRef-cuda-runtime")
    for package in also:
        document.relate("SPDXRef-tilewire", "DEPENDS_ON", document.debian(package))
    return document.text()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", help="made by the target `bundle`")
    parser.add_argument("--output", help="the file (default: tilewire.spdx.json beside the bundle)")
    parser.add_argument("--also", action="append", default=[], metavar="PACKAGE", help="of the system, as an image has it; may be repeated")
    options = parser.parse_args()
    bundle = os.path.realpath(options.bundle)
    output = options.output or os.path.join(os.path.dirname(bundle), "tilewire.spdx.json")
    try:
        told = run(os.path.join(bundle, "bin/tilewired"), "--version").stdout
        version = re.search(r"^tilewired (\S+)", told, re.M)
        if not version:
            raise Unusable(f"{options.bundle} is no bundle that runs here")
        seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or date_of_commit())
        text = describe(bundle, version.group(1), seconds, options.also)
    except (OSError, ValueError, Unusable) as error:
        sys.exit(f"sbom: error: {error}")
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"sbom: {output}")


if __name__ == "__main__":
    main()
