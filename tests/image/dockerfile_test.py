#!/usr/bin/env python3
"""The Dockerfile, without a registry: built on a root made of Debian's packages (debootstrap), and the image runs.
Takes as long as a release build. Usage: dockerfile_test.py BUNDLE, which lends the client that asks the server."""
import os
import subprocess
import sys

import engine


def host_release():
    """Codename of this Debian and the mirror that apt has it from."""
    with open("/etc/os-release", encoding="utf-8") as file:
        release = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    codename = release.get("VERSION_CODENAME", "")
    sites = engine.run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main",
                        f"Codename: {codename}"]).split()
    return release.get("ID"), codename, sites[0] if sites else None


def make_base(scratch, codename, mirror):
    """An image with a minimal Debian and nothing else."""
    root = scratch.path("root")
    engine.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", codename, root, mirror])
    container = scratch.buildah("from", "scratch")
    scratch.buildah("copy", "--quiet", container, root, "/")
    scratch.buildah("commit", "--quiet", "--rm", container, "localhost/base")
    return "localhost/base"


def check(scratch, client):
    """The built image serves as deploy/image.sh's does, and this one carries its health check."""
    with scratch.server("localhost/tilewire", "--listen", "localhost:0") as server:
        subprocess.run([os.path.join(engine.ROOT, "deploy/check.sh"), server.address, client], check=True)
        assert server.execute("/opt/tilewire/bin/tilewired", "--version").startswith("tilewired ")
        config = server.inspect()["Config"]
        assert config["User"] == "65532:65532", config
        assert config["Healthcheck"]["Test"] == ["CMD", "/opt/tilewire/bin/tilewire", "--server", "localhost:50052", "--timeout", "3", "ping"], config
        for process in server.processes():
            assert set(process["Uid"].split()) == {"65532"}, process
        code = server.stop()
        assert code == 0, f"exit code {code}"


def main():
    engine.require("buildah", "podman", "runc", "debootstrap", "apt-get")
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    client = os.path.join(os.path.abspath(sys.argv[1]), "bin/tilewire")
    name, codename, mirror = host_release()
    if name != "debian" or mirror is None:
        print("skipped: dockerfile_test.py needs Debian and its mirror in apt's sources")
        sys.exit(engine.SKIPPED)
    with engine.Engine() as scratch:
        base = make_base(scratch, codename, mirror)
        # --format docker: OCI's has no health check.
        scratch.build("--format", "docker", "--build-arg", f"BUILD_BASE={base}", "--build-arg", f"RUNTIME_BASE={base}",
                      "--tag", "localhost/tilewire", engine.ROOT)
        check(scratch, client)
    print("dockerfile_test: passed")


if __name__ == "__main__":
    main()
