"""TLS, certificates and tokens: who gets in, and what those are told who do not."""

from __future__ import annotations

import asyncio
import pathlib
import pickle
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from certificates import Authority

import tilewire as tw
from tilewire import _programs, aio

A = np.ones((50, 60), "f4")


class Secured:
    """A server with TLS, client certificates and tokens, and the files of its callers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.ours, self.others = Authority(folder, "ours"), Authority(folder, "others")
        cert, key = self.ours.issue("server", "DNS:localhost")
        self.client = self.ours.issue("client", "URI:spiffe://test/client")
        made = subprocess.run([_programs.path("tilewired"), "--make-token", "ann"], check=True, capture_output=True, text=True)
        (folder / "tokens").write_text(made.stdout)
        self.token = made.stderr.strip().split()[-1]
        (folder / "token").write_text(self.token + "\n")
        flags = ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-client-ca", str(self.ours.pem),
                 "--tokens", str(folder / "tokens"), "--anonymous", "deny"]  # fmt: skip
        self.server = tw.local("cpu", flags=flags)

    def connect(self, **how: Any) -> tw.Client:
        return tw.connect(self.server.address, timeout=30, **how)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    secured = Secured(tmp_path_factory.mktemp("security"))
    yield secured
    secured.server.close()


def test_a_token_lets_in(secured: Secured) -> None:
    for token in (secured.token, secured.folder / "token"):
        with secured.connect(tls=secured.ours.pem, token=token) as c:
            assert c.rmse(A, A) == 0
            assert pickle.loads(pickle.dumps(c)).rmse(A, A) == 0
            big = np.ones(1 << 22, "f4")
            assert c.rmse(big, big, connections=3) == 0


def test_a_certificate_lets_in(secured: Secured) -> None:
    cert, key = secured.client
    with secured.connect(tls=tw.Tls(ca=secured.ours.pem, cert=cert, key=key)) as c:
        assert c.rmse(A, A) == 0


def test_awaited_calls_too(secured: Secured) -> None:
    async def call() -> float:
        async with aio.connect(secured.server.address, tls=str(secured.ours.pem), token=secured.token) as c:
            return await c.rmse(A, A)

    assert asyncio.run(call()) == 0


def test_nobody_and_a_wrong_token_are_told_so(secured: Secured) -> None:
    for how in ({}, {"token": "ann.wrong"}):
        with secured.connect(tls=secured.ours.pem, **how) as c, pytest.raises(tw.Unauthenticated) as told:
            c.rmse(A, A)
        assert isinstance(told.value, PermissionError)


@pytest.mark.parametrize("call", ["rmse", "describe"])
def test_what_is_wrong_with_a_connection_is_said(secured: Secured, call: str) -> None:
    def complaint(**how: Any) -> str:
        with secured.connect(**how) as c, pytest.raises(tw.Unavailable) as told:
            c.rmse(A, A, max_attempts=1) if call == "rmse" else c.describe()
        assert told.value.reason == "TLS" and isinstance(told.value, ConnectionError)
        return str(told.value)

    assert "TLS" in complaint()
    stranger = complaint(tls=secured.others.pem, token=secured.token)
    assert "certificate" in stranger


def test_a_token_stays_on_this_host_in_clear() -> None:
    with tw.connect("192.0.2.1:1", token="ann.secret", timeout=5) as c, pytest.raises(tw.InvalidArgument) as told:
        c.rmse(A, A)
    assert "secret" not in str(told.value) and "secret" not in repr(c)


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"tls": 3}, "tls"),
        ({"tls": "/none/ca.pem"}, "tls.ca"),
        ({"token": 3}, "token"),
        ({"token": "no-secret"}, "token"),
        ({"token": pathlib.Path("/none/token")}, "token"),
    ],
)
def test_wrong_words_are_named(how: dict[str, Any], field: str) -> None:
    with pytest.raises(tw.Error) as told, tw.connect("localhost:1", timeout=1, **how) as c:
        c.rmse(A, A)
    assert told.value.field == field and isinstance(told.value, ValueError | TypeError)
    with pytest.raises(tw.InvalidArgument, match="together"):
        tw.Tls(cert="c.pem")


def test_files_are_read_anew_by_a_pickled_client(secured: Secured, tmp_path: pathlib.Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(secured.ours.pem.read_bytes())
    with secured.connect(tls=ca, token=secured.token) as c:
        frozen = pickle.dumps(c)
    assert b"BEGIN CERTIFICATE" not in frozen
    ca.write_text("")
    with pytest.raises(tw.InvalidArgument, match="empty"):
        pickle.loads(frozen).rmse(A, A)


def test_workers_connect_as_the_client_does(secured: Secured, rng: np.random.Generator) -> None:
    da = pytest.importorskip("dask.array")
    tilewire_dask = pytest.importorskip("tilewire.dask")
    a, b = rng.standard_normal((2, 100_000))
    with secured.connect(tls=secured.ours.pem, token=secured.token) as c:
        value = tilewire_dask.rmse(da.from_array(a, 20_000), da.from_array(b, 20_000), servers=[c])
        for scheduler in ("threads", "processes"):
            assert value.compute(scheduler=scheduler) == c.rmse(a, b)
    with pytest.raises(tw.Error):
        tilewire_dask.rmse(a, da.from_array(b), servers=[secured.server.address]).compute()
