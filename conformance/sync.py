#!/usr/bin/env python3
"""A write is synced to disk before it is acknowledged, and concurrent writes share a sync.

The server runs under strace, which logs each finished fsync and fdatasync at once. One write after
the other: the log has grown by the time of each answer. Many at a time: fewer syncs than writes.

Environment: SYNC_WRITES (100).
"""

import os
import re
import threading

import harness
from harness import Failed

WRITERS = 16
PATH = "/api/v1/namespaces/default/configmaps"
FINISHED = re.compile(rb"(?:fsync|fdatasync).*= 0$", re.MULTILINE)


class Log:
    """Counts the syncs in strace's log, reading only what is new."""

    def __init__(self, path):
        self.file, self.rest, self.count = open(path, "rb"), b"", 0

    def syncs(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        self.count += sum(1 for line in lines if FINISHED.search(line))
        return self.count


def one_after_the_other(server, log, writes, checks):
    client = server.client()
    client.must("POST", PATH, harness.config_map("warm-up", {}))
    early = []
    before = first = log.syncs()
    for number in range(writes):
        client.must("POST", PATH, harness.config_map(f"single-{number}", {"n": str(number)}))
        now = log.syncs()
        if now == before:
            early.append(number)
        before = now
    client.close()
    checks.that(f"{writes} writes in turn, {before - first} syncs, each before its answer",
                not early, f"answered before a sync: writes {early[:10]}")


def many_at_a_time(server, log, writes, checks):
    clients = [server.client() for _ in range(WRITERS)]
    barrier, problems = threading.Barrier(WRITERS), []

    def write(number, client):
        try:
            barrier.wait()
            for turn in range(writes):
                wanted = harness.config_map(f"group-{number}-{turn}", {"n": str(turn)})
                client.must("POST", PATH, wanted)
        except (Failed, OSError) as problem:
            problems.append(problem)

    before = log.syncs()
    threads = [threading.Thread(target=write, args=pair) for pair in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    syncs, all_writes = log.syncs() - before, writes * WRITERS
    checks.that("concurrent writes succeed", not problems, problems[:1])
    checks.that(f"{all_writes} writes by {WRITERS} at a time share {syncs} syncs",
                1 <= syncs < all_writes, f"{syncs} syncs")


def main(arguments):
    writes = int(os.environ.get("SYNC_WRITES", "100"))
    checks = harness.Checks()
    log = os.path.join(arguments.scratch, "strace.log")
    strace = ["strace", "--follow-forks", "--trace=fsync,fdatasync", "--quiet=all",
              f"--output={log}"]
    data = os.path.join(arguments.scratch, "data")
    server = harness.Server(arguments.windlass, data, wrapper=strace).start()
    try:
        counted = Log(log)
        one_after_the_other(server, counted, writes, checks)
        many_at_a_time(server, counted, max(1, writes // 4), checks)
    finally:
        server.stop()
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
