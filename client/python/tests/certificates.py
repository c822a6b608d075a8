"""Authorities and certificates that a test makes for itself, as it runs, with the openssl of the machine."""

from __future__ import annotations

import pathlib
import subprocess


def _openssl(*words: str | pathlib.Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Authority:
    """Somebody who signs certificates; files in `folder`."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.pem, self._key, self._folder = folder / f"{name}.pem", folder / f"{name}.key", folder
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                 "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.pem)  # fmt: skip

    def issue(self, name: str, alternative: str, days: int = 1) -> tuple[pathlib.Path, pathlib.Path]:
        """Certificate and key of somebody; `alternative` as openssl writes it: ``"DNS:localhost"``. With days < 0: expired."""
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative}\n")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                 "-keyout", key, "-out", request)  # fmt: skip
        _openssl("x509", "-req", "-in", request, "-CA", self.pem, "-CAkey", self._key, "-CAcreateserial",
                 "-extfile", extensions, "-days", str(days), "-out", cert)  # fmt: skip
        return cert, key
