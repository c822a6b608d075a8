"""HAProxy before a server to attack, as deploy/haproxy.cfg sets it up: only its addresses are others."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "haproxy.cfg")
MAXCONN = 4096  # what the file allows


def program():
    """None where it is not installed."""
    return shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class Proxy:
    """On a loopback port of its own. Both of the file's servers are the one that is attacked."""

    def __init__(self, server):
        with open(SHIPPED, encoding="utf-8") as file:
            text = file.read()
        # It listens on a socket that is bound here, so that no port can be lost in between.
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
            self.address = f"127.0.0.1:{listener.getsockname()[1]}"
            for old, new in (("bind 127.0.0.1:50051 ", f"bind fd@{listener.fileno()} "),
                             ("server one 127.0.0.1:50061", f"server one {server}"),
                             ("server two 127.0.0.1:50062", f"server two {server}")):
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            self.folder = tempfile.TemporaryDirectory()
            path = os.path.join(self.folder.name, "haproxy.cfg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.process = subprocess.Popen([program(), "-db", "-f", path], pass_fds=[listener.fileno()],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.log = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        self.log.extend(self.process.stderr)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        self.folder.cleanup()
