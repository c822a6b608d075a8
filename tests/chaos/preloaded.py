"""Libraries of ours that processes are started with."""
import os
import shutil
import subprocess


def build(source, folder):
    """Of a file beside this one: the library's path, or None where there is no compiler."""
    compiler = shutil.which("c++")
    if compiler is None:
        return None
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), source)
    library = os.path.join(folder, os.path.basename(source)[:-len("cc")] + "so")
    subprocess.run([compiler, "-std=c++20", "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    return library


def together(*environments):
    """All that they say; each may name libraries."""
    libraries = [each["LD_PRELOAD"] for each in environments if "LD_PRELOAD" in each]
    merged = {name: value for each in environments for name, value in each.items()}
    return dict(merged, LD_PRELOAD=":".join(libraries)) if libraries else merged
