"""A headless Chromium, spoken to over pipes with the DevTools protocol: no port, no driver, no further package."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

SECONDS = 120  # for one answer; only a browser that hangs needs it


def find():
    """Path of a Chromium, or None."""
    return next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


class Browser:
    """One tab. Collects what the page said on its console, exceptions, and every address it asked for."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="tilewire-browser-")
        child_reads, self.to_child = os.pipe()
        self.from_child, child_writes = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb", f"--user-data-dir={self.folder}",
                   "--remote-debugging-pipe", "about:blank"]
        # The browser reads at descriptor 3 and writes to 4, whatever ours are called.
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec 9<&{child_reads} 8>&{child_writes} 3<&9 4>&8 9<&- 8>&-; exec "$@"', "sh", program, *options],
            pass_fds=(child_reads, child_writes), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=self.folder), start_new_session=True)
        os.close(child_reads)
        os.close(child_writes)
        self.buffer, self.number, self.session = b"", 0, None
        self.console, self.requests, self.events = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (OSError, EOFError, TimeoutError, RuntimeError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, 9)  # its own session: nobody else's processes
            self.process.wait()
        os.close(self.to_child)
        os.close(self.from_child)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **params):
        """The result of a command; RuntimeError where the browser refuses it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_child, data):]
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self.buffer:
            if not select.select([self.from_child], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.from_child, 1 << 20)
            if not piece:
                raise EOFError("the browser is gone")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, params):
        if method == "Runtime.consoleAPICalled":
            self.console.append(f"{params['type']}: {[a.get('value', a.get('description')) for a in params['args']]}")
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded":
            self.console.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method:
            self.events.append(method)

    def look(self, width=1200, height=900, dark=False, media="screen"):
        """The window's size in pixels, the colour scheme, and paper or screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        """Opens a file and waits until its scripts have run."""
        self.console, self.requests, self.events = [], [], []
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self._read()

    def run(self, script):
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def settle(self):
        """Waits until a change of the layout has been drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]))
