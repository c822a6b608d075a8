"""Certificates, tokens and a policy in a folder, and how they change while a server looks at them."""
import hashlib
import json
import os
import secrets
import subprocess

NAMES = ("ann", "bob")
GOOD_POLICY = [{"who": ["*"], "methods": ["*"], "operations": ["*"]}]
NARROW_POLICY = [{"who": ["token:bob"], "methods": ["*"], "operations": ["rmse", "transpose", "compare", "put", "get"]}, *GOOD_POLICY]


def openssl(*arguments, text=""):
    return subprocess.run(["openssl", *arguments], input=text, capture_output=True, text=True, check=True).stdout


class Credentials:
    def __init__(self, folder):
        self.folder = folder
        self.secrets = {name: secrets.token_hex(32) for name in NAMES}
        self.salt = 0
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9", "-subj", "/CN=authority",
                "-keyout", self.path("ca.key"), "-out", self.path("ca.pem"))
        self.replace("names", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for name, secret in self.secrets.items():
            self.replace(f"{name}.token", f"{name}.{secret}\n")
        self.certificate()
        self.tokens()
        self.policy(GOOD_POLICY)

    def path(self, name):
        return os.path.join(self.folder, name)

    def replace(self, name, text):
        """All at once, as mounts of secrets do."""
        file = os.open(self.path(name + ".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "w") as out:
            out.write(text)
        os.rename(self.path(name + ".new"), self.path(name))

    def flags(self):
        return ["--tls-cert", self.path("cert.pem"), "--tls-key", self.path("key.pem"), "--tokens", self.path("tokens"),
                "--policy", self.path("policy"), "--anonymous", "deny"]

    def certificate(self):
        """A new one, with its key, of the same authority."""
        key = openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout")
        request = openssl("req", "-new", "-key", "/dev/stdin", "-subj", "/CN=server", text=key)
        made = openssl("x509", "-req", "-in", "/dev/stdin", "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"), "-days", "2",
                       "-extfile", self.path("names"), "-set_serial", str(secrets.randbits(60) + 1), text=request)
        self.replace("key.pem", key)
        self.replace("cert.pem", made)

    def broken_certificate(self, rng):
        """Half a file, none at all, or the key of another."""
        how = rng.choice(["half", "gone", "foreign"])
        with open(self.path("cert.pem"), encoding="ascii") as file:
            text = file.read()
        if how == "half":
            self.replace("cert.pem", text[:len(text) // 2])
        elif how == "gone":
            os.unlink(self.path("cert.pem"))
        else:
            self.replace("key.pem", openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout"))
        return how

    def tokens(self, broken=False, expiring=None):
        """The same secrets with new salts; `expiring`: another name, and when."""
        self.salt += 1
        salt = f"{self.salt:032x}"
        lines = [self.line(name, salt) for name in NAMES]
        if expiring:
            self.secrets.setdefault(expiring[0], secrets.token_hex(32))
            lines.append(f"{self.line(expiring[0], salt)} {expiring[1]}")
        self.replace("tokens", "\n".join(lines + (["what is this"] if broken else [])) + "\n")

    def line(self, name, salt):
        return f"{name} {salt} {hashlib.sha256((salt + self.secrets[name]).encode()).hexdigest()}"

    def policy(self, rules):
        """`rules` may be text, which is then no policy. Never the same bytes twice, so that each is told."""
        self.salt += 1
        text = rules if isinstance(rules, str) else json.dumps({"groups": {f"g{self.salt}": ["token:ann"]}, "rules": rules})
        self.replace("policy", text)
