#!/usr/bin/env python3
"""A full disk refuses writes, serves reads, and recovers by itself when there is space again.

The data directory lies on a small file system of its own. Making one needs the right to mount; if
this process has none, it starts itself again in a user namespace where it does.
"""

import os
import subprocess
import sys

import harness
from harness import Failed

SIZE_MEBIBYTES = 10
PATH = "/api/v1/namespaces/default/configmaps"
AGAIN = "FULL_DISK_IN_NAMESPACE"


def mount(folder):
    os.makedirs(folder)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MEBIBYTES}m", "windlass", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    if os.environ.get(AGAIN):
        raise Failed(f"cannot mount a small file system, here or in a namespace: {done.stderr}")
    os.environ[AGAIN] = "1"
    unshare = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, *sys.argv]
    os.execvp(unshare[0], unshare)


def fill(folder):
    """Takes every free block of the file system."""
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return ballast


def refused(client, number):
    """The first answer that is not a success, and how many writes went before it."""
    for turn in range(20_000):
        wanted = harness.config_map(f"full-{number}-{turn}", {"padding": "x" * 50_000})
        response, answer = client.call("POST", PATH, wanted)
        if response.status != 201:
            return turn, response, answer
    raise Failed("20,000 writes of 50 kB went onto a full disk")


def main(arguments):
    checks = harness.Checks()
    disk = os.path.join(arguments.scratch, "disk")
    mount(disk)
    server = harness.Server(arguments.windlass, os.path.join(disk, "data"))
    server.log = os.path.join(arguments.scratch, "server.log")
    try:
        server.start()
        client = server.client()
        for number in range(20):
            client.must("POST", PATH, harness.config_map(f"early-{number}", {"n": str(number)}))
        for number in (1, 2):
            fill_and_recover(server, client, disk, number, checks)
        client.close()
        checks.that("the server stops in order", server.stop() == 0, server.last_words())
        server.start()
        client = server.client()
        found = {item["metadata"]["name"] for item in client.must("GET", PATH)["items"]}
        wanted = {f"early-{n}" for n in range(20)} | {"after-1", "after-2"}
        checks.that("everything acknowledged is there after a restart", wanted <= found, found)
        client.close()
    finally:
        if server.process:
            server.kill()
        subprocess.run(["umount", disk], check=False)
    checks.finish()


def fill_and_recover(server, client, disk, number, checks):
    ballast = fill(disk)
    written, response, answer = refused(client, number)
    status, later = response.status, response.headers.get("Retry-After")
    checks.that(f"{number}: a write on a full disk answers 507, or 503 with Retry-After",
                status == 507 or status == 503 and later, f"{status}, {later}, {answer}")
    checks.that(f"{number}: the answer is a Status that says why",
                isinstance(answer, dict) and answer.get("kind") == "Status"
                and answer.get("message"), answer)
    response, answer = client.call("GET", f"{PATH}/early-7")
    checks.that(f"{number}: a get works on a full disk", response.status == 200, answer)
    response, answer = client.call("GET", PATH)
    names = [item["metadata"]["name"] for item in answer.get("items", [])]
    checks.that(f"{number}: a list works on a full disk", "early-7" in names, answer)
    half = [n for n in names if n == f"full-{number}-{written}"]
    checks.that(f"{number}: the refused write is not visible", not half, half)
    os.remove(ballast)
    after = harness.config_map(f"after-{number}", {})
    harness.wait_for("writes after space came back",
                     lambda: client.call("POST", PATH, after)[0].status in (201, 409))
    response, answer = client.call("GET", f"{PATH}/after-{number}")
    checks.that(f"{number}: writes go on when there is space", response.status == 200, answer)
    for turn in range(written):  # leave the disk as we found it
        client.must("DELETE", f"{PATH}/full-{number}-{turn}")


if __name__ == "__main__":
    harness.run(main)
