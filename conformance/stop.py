#!/usr/bin/env python3
"""SIGTERM and SIGINT end the server within 5 seconds and in order.

While writers write and watchers watch: the exit code is 0, every watch ends after a whole event
and a proper end of the body, and what was acknowledged is there after the next start.
"""

import http.client
import json
import os
import signal
import subprocess
import threading
import time

import harness
from harness import Failed

STOP_SECONDS_MAX = 5
PATH = "/api/v1/namespaces/default/configmaps"


class Watch(threading.Thread):
    """Reads a watch to its end and tells how it ended."""

    def __init__(self, server):
        super().__init__()
        self.client, self.text, self.ending = server.client(), b"", "not yet"
        self.response = self.client.send("GET", f"{PATH}?watch=1")

    def run(self):
        try:
            while chunk := self.response.read1(65536):
                self.text += chunk
            self.ending = "clean" if self.text.endswith(b"\n") or not self.text else "inside a line"
            for line in self.text.splitlines():
                json.loads(line)
        except (http.client.HTTPException, OSError, ValueError) as problem:
            self.ending = f"{type(problem).__name__}: {problem}"


class Writer(threading.Thread):
    """Creates objects until the server is gone; remembers which were acknowledged."""

    def __init__(self, number, server):
        super().__init__()
        self.client, self.number, self.acknowledged = server.client(), number, []

    def run(self):
        try:
            for turn in range(1_000_000):
                name = f"stop-{time.monotonic_ns()}-{self.number}-{turn}"
                self.client.must("POST", PATH, harness.config_map(name, {}))
                self.acknowledged.append(name)
        except (http.client.HTTPException, OSError, Failed):
            pass


def end_by(number, server, checks):
    name = signal.Signals(number).name
    watches = [Watch(server) for _ in range(4)]
    writers = [Writer(n, server) for n in range(4)]
    for thread in [*watches, *writers]:
        thread.start()
    harness.wait_for("some writes", lambda: min(len(w.acknowledged) for w in writers) > 5)
    began = time.monotonic()
    server.signal(number)
    try:
        code = server.process.wait(STOP_SECONDS_MAX * 3)
    except subprocess.TimeoutExpired:
        code = "still running"
        server.kill()
    seconds = time.monotonic() - began
    checks.that(f"{name}: ends with exit code 0", code == 0, code)
    checks.that(f"{name}: ends in {seconds:.2f} s", seconds <= STOP_SECONDS_MAX, seconds)
    for thread in [*watches, *writers]:
        thread.join(harness.REQUEST_SECONDS_MAX)
    endings = [watch.ending for watch in watches]
    checks.that(f"{name}: watches end after a whole event", endings == ["clean"] * 4, endings)
    server.start()
    client = server.client()
    kept = {item["metadata"]["name"] for item in client.must("GET", PATH)["items"]}
    client.close()
    lost = [name for writer in writers for name in writer.acknowledged if name not in kept]
    checks.that(f"{name}: nothing acknowledged is lost", not lost, lost[:5])


def main(arguments):
    checks = harness.Checks()
    server = harness.Server(arguments.windlass, os.path.join(arguments.scratch, "data")).start()
    try:
        end_by(signal.SIGTERM, server, checks)
        end_by(signal.SIGINT, server, checks)
    finally:
        server.kill()
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
