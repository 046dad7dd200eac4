"""What every suite needs: a server as a process, a client that keeps its connection, checks.

Standard library only. A suite is a script with a `main(arguments)`; it ends with exit code 1 when
a check failed. Time limits are generous: they end a hang, they measure nothing.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

START_SECONDS_MAX = 20
REQUEST_SECONDS_MAX = 20


class Failed(Exception):
    """A suite cannot go on."""


class Checks:
    """Counts what held and remembers what did not."""

    def __init__(self):
        self.passed, self.failed = 0, []

    def that(self, name, holds, detail=""):
        """Records one check; `detail` is shown when it does not hold."""
        if holds:
            self.passed += 1
            print(f"  ok    {name}")
        else:
            self.failed.append(name)
            print(f"  FAIL  {name}\n        {str(detail).strip()[:2000]}")
        sys.stdout.flush()
        return bool(holds)

    def finish(self):
        print(f"{self.passed} checks passed, {len(self.failed)} failed")
        sys.exit(1 if self.failed else 0)


class Server:
    """One data directory and the process that serves it, which may be killed and started again."""

    def __init__(self, binary, data, flags=(), wrapper=()):
        self.binary, self.data = os.path.abspath(binary), data
        self.flags, self.wrapper = list(flags), list(wrapper)
        self.process = self.port = None
        self.log = data.rstrip("/") + ".log"

    def start(self):
        self.spawn()
        self.wait_until_it_listens()
        return self

    def spawn(self):
        """Starts the process without waiting for it."""
        command = [*self.wrapper, self.binary, "serve", "--data", self.data]
        command += ["--listen", "127.0.0.1:0", *self.flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)

    def wait_until_it_listens(self):
        alarm = threading.Timer(START_SECONDS_MAX, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                found = re.match(rb"listening on https://127\.0\.0\.1:(\d+)", line)
                if found:
                    self.port = int(found.group(1))
                    return
        finally:
            alarm.cancel()
        code = self.process.wait()
        raise Failed(f"the server ended with {code} before it listened:\n{self.last_words()}")

    def last_words(self):
        with open(self.log, "rb") as log:
            return log.read()[-3000:].decode("utf-8", "replace")

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self, seconds=10):
        """Asks the server to end; returns its exit code, or None when it did not end in time."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def signal(self, number):
        """Signals the server itself, also when it runs under a wrapper such as strace."""
        if self.process.poll() is not None:
            return
        pid = self.process.pid
        if self.wrapper:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                found = children.read().split()
            pid = int(found[0]) if found else pid
        os.kill(pid, number)

    def token(self):
        with open(os.path.join(self.data, "admin.token")) as file:
            return file.read().strip()

    def client(self):
        return Client(self.port, self.token(), os.path.join(self.data, "ca.crt"))


class Client:
    """One connection to a server, kept open between requests."""

    def __init__(self, port, token, ca, seconds=REQUEST_SECONDS_MAX):
        self.token = token
        context = ssl.create_default_context(cafile=ca)
        self.connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=seconds, context=context
        )

    def send(self, method, path, body=None, content_type="application/json", headers=None):
        """Sends a request; returns the response, of which nothing has been read yet."""
        all_headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            all_headers["Content-Type"] = content_type
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, body, {**all_headers, **(headers or {})})
        return self.connection.getresponse()

    def call(self, method, path, body=None, content_type="application/json", headers=None):
        """Sends a request; returns the response and its decoded body."""
        response = self.send(method, path, body, content_type, headers)
        text = response.read()
        try:
            return response, json.loads(text)
        except ValueError:
            return response, text.decode("utf-8", "replace")

    def must(self, method, path, body=None, content_type="application/json"):
        """Sends a request that has to succeed; returns its decoded body."""
        response, answer = self.call(method, path, body, content_type)
        if response.status >= 300:
            raise Failed(f"{method} {path} answered {response.status}: {answer}")
        return answer

    def close(self):
        self.connection.close()


def config_map(name, data, **metadata):
    """A small object for tests."""
    head = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": data}


def wait_for(what, condition, seconds=10):
    """Asks until the condition holds; fails with `what` when it does not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise Failed(f"{what}: not within {seconds} s")


def run(main):
    """Parses the command line, gives `main` a scratch directory, reports failures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--windlass", required=True, help="the server's binary")
    arguments = parser.parse_args()
    arguments.scratch = tempfile.mkdtemp(prefix="windlass-suite-")
    kept = False
    try:
        main(arguments)
    except Failed as failure:
        kept = True
        print(f"FAILED: {failure}\nkept for you: {arguments.scratch}")
        sys.exit(1)
    finally:
        if not kept:
            shutil.rmtree(arguments.scratch, ignore_errors=True)
