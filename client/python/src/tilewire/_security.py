"""How a client connects: TLS, and who it is."""

from __future__ import annotations

import dataclasses
import os
from typing import TypeAlias

from . import _core
from ._errors import invalid, unsupported

Path: TypeAlias = "str | os.PathLike[str]"


@dataclasses.dataclass(frozen=True)
class Tls:
    """TLS, 1.2 or newer. Files are PEM, and read when a client connects, so that a pickled client reads them anew.

    ca: authorities that may vouch for the server; None: those of this machine.
    cert, key: what is shown to a server that asks for a certificate.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise invalid("tls", repr(self), "cert and key together")

    def _read(self) -> _core.TlsOptions:
        return _core.TlsOptions(
            _pem(self.ca, "tls.ca", "CERTIFICATE"),
            _pem(self.cert, "tls.cert", "CERTIFICATE"),
            _pem(self.key, "tls.key", "PRIVATE KEY"),
        )


@dataclasses.dataclass(frozen=True)
class Security:
    """What `connect` was told."""

    tls: Tls | None = None
    token: str | os.PathLike[str] | None = dataclasses.field(default=None, repr=False)
    insecure: bool = False

    @classmethod
    def of(cls, tls: bool | Path | Tls, token: str | os.PathLike[str] | None, insecure: bool) -> Security:
        return cls(_tls(tls), _token_or_path(token), bool(insecure))

    def read(self, dead_peer: float, metadata: dict[str, str]) -> _core.ConnectOptions:
        tls = None if self.tls is None else self.tls._read()
        return _core.ConnectOptions(dead_peer, list(metadata.items()), tls, _read_token(self.token), self.insecure)


def _tls(tls: bool | Path | Tls) -> Tls | None:
    if isinstance(tls, Tls):
        return tls
    if isinstance(tls, bool):
        return Tls() if tls else None
    if isinstance(tls, str | os.PathLike):
        return Tls(ca=tls)
    raise unsupported("tls", repr(tls), "True, False, the path of authorities in PEM, or tilewire.Tls")


def _token_or_path(token: object) -> str | os.PathLike[str] | None:
    if token is None or isinstance(token, str | os.PathLike):
        return token
    raise unsupported("token", type(token).__name__, "text (the token), a pathlib.Path (a file with it), or None")


def _text(path: Path, field: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(field, f"{os.fspath(path)} ({error})", "a readable file") from None
    if not text:
        raise invalid(field, f"{os.fspath(path)}, which is empty", "a file with something in it")
    return text


def _pem(path: Path | None, field: str, what: str) -> str:
    if path is None:
        return ""
    text = _text(path, field)
    if "-----BEGIN " not in text or what not in text:
        raise invalid(field, os.fspath(path), f"a file with a {what} in PEM")
    return text


def _read_token(token: str | os.PathLike[str] | None) -> str:
    """Never told of in an error."""
    if token is None:
        return ""
    text = token if isinstance(token, str) else (_text(token, "token").splitlines() or [""])[0]
    if "." not in text or not all("!" <= letter <= "~" for letter in text):
        where = "what was given" if isinstance(token, str) else os.fspath(token)
        raise invalid("token", where, "NAME.SECRET, of visible ASCII characters")
    return text
