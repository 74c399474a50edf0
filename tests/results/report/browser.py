"""A headless Chromium, spoken to over pipes: no library, no port.

    with Browser("chromium") as browser:
        page = browser.open("file:///…/index.html", width=390, height=844, dark=True)
        page.evaluate("document.title")
        page.screenshot("page.png")
        print(page.complaints)          # what the console said: errors, warnings, what was not loaded
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds for one answer


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="mtil-browser-")
        self.downloads = os.path.join(self.folder, "downloads")
        os.mkdir(self.downloads)
        inward, self.out = os.pipe()
        self.back, outward = os.pipe()
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(self.folder, "profile"), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=lambda: self._take_pipes(inward, outward))
        os.close(inward)
        os.close(outward)
        self.buffer = b""
        self.number = 0
        self.sessions = {}

    @staticmethod
    def _take_pipes(inward, outward):
        """Chromium reads from 3 and writes to 4."""
        inward, outward = os.dup(inward), os.dup(outward)
        a, b = os.dup2(inward, 30), os.dup2(outward, 31)
        os.dup2(a, 3)
        os.dup2(b, 4)
        os.closerange(5, 64)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.back, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("Chromium ended" if ready else "Chromium does not answer")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _hear(self, message):
        page = self.sessions.get(message.get("sessionId"))
        if page is not None:
            page.hear(message["method"], message.get("params", {}))

    def call(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._receive(deadline)
            if message.get("id") == self.number:
                break
            if "method" in message:
                self._hear(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def open(self, address, width, height, dark=False, scripts=True):
        page = Page(self, width, height, dark)
        page.call("Emulation.setScriptExecutionDisabled", value=not scripts)  # evaluate runs all the same
        page.go(address)
        return page


class Page:
    def __init__(self, browser, width, height, dark):
        self.browser = browser
        self.complaints = []
        self.loaded = False
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]  # remembers nothing of others
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.sessions[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=browser.downloads,
                     browserContextId=self.context)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def hear(self, method, parameters):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append("exception: " + parameters["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append("console: " + json.dumps(parameters["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("dialog: " + parameters["message"])
            self.call("Page.handleJavaScriptDialog", accept=False)
        elif method == "Log.entryAdded":
            self.complaints.append("log: " + parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(("file:", "data:", "blob:")):
            self.complaints.append("request: " + parameters["request"]["url"])

    def go(self, address):
        self.loaded = False
        self.call("Page.navigate", url=address)
        self.until(lambda: self.loaded, "the page to load")

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError("waited in vain for " + what)
            self.evaluate("0")  # hears what has happened
            time.sleep(0.02)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      text="\r" if key == "Enter" and kind == "keyDown" else "")

    def screenshot(self, path, clip=None):
        parameters = {"format": "png", "captureBeyondViewport": True}
        if clip is not None:
            parameters["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **parameters)["data"]))

    def close(self):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)
        del self.browser.sessions[self.session]
