#!/usr/bin/env python3
"""How fast the server starts and how little it needs: the figures that need no load.

Prints one line per figure, the median of several starts. The time of a start ends with the first
200 from /readyz over a fresh TLS connection, so it includes what this client needs for that.

Environment: MEASURE_STARTS (7), MEASURE_OBJECTS (1000).
"""

import os
import shutil
import statistics
import time

import harness

IDLE_SECONDS = 2
PATH = "/api/v1/namespaces/default/configmaps"


def start_milliseconds(server):
    began = time.monotonic()
    server.start()
    while time.monotonic() - began < harness.START_SECONDS_MAX:
        client = server.client()
        response, _ = client.call("GET", "/readyz")
        client.close()
        if response.status == 200:
            return (time.monotonic() - began) * 1000
    raise harness.Failed(f"not ready after {harness.START_SECONDS_MAX} s")


def resident_megabytes(server):
    time.sleep(IDLE_SECONDS)
    with open(f"/proc/{server.process.pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1000
    raise harness.Failed("the kernel tells no VmRSS")


def show(name, figures, unit):
    spread = f"{min(figures):.0f} to {max(figures):.0f}"
    print(f"{name:<44}{statistics.median(figures):>8.1f} {unit}   ({spread})")


def main(arguments):
    starts = int(os.environ.get("MEASURE_STARTS", "7"))
    objects = int(os.environ.get("MEASURE_OBJECTS", "1000"))
    size = os.path.getsize(arguments.windlass) / 1e6
    print(f"{'size of the binary':<44}{size:>8.1f} MB")
    data = os.path.join(arguments.scratch, "data")
    fresh, idle = [], []
    for number in range(starts):
        shutil.rmtree(data, ignore_errors=True)
        server = harness.Server(arguments.windlass, data)
        fresh.append(start_milliseconds(server))
        if number < 3:
            idle.append(resident_megabytes(server))
        server.stop()
    show("start on a fresh directory until ready", fresh, "ms")
    show("resident memory, idle, fresh directory", idle, "MB")
    server = harness.Server(arguments.windlass, data).start()
    client = server.client()
    for number in range(objects):
        body = harness.config_map(f"object-{number}", {"payload": "x" * 900})
        client.must("POST", PATH, body)
    client.close()
    server.kill()
    again, idle = [], []
    for number in range(starts):
        again.append(start_milliseconds(server))
        if number < 3:
            idle.append(resident_megabytes(server))
        server.kill()
    show(f"start with {objects} objects, after a kill", again, "ms")
    show(f"resident memory, idle, {objects} objects", idle, "MB")


if __name__ == "__main__":
    harness.run(main)
