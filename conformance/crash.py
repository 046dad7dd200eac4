#!/usr/bin/env python3
"""SIGKILL at any moment loses nothing that was acknowledged.

Each round starts the server on the directory that the last one left, lets writers run at full
speed over connections that stay open, kills the server at a random moment, starts it again and
compares it with a model:

* every acknowledged write is there; one that was not acknowledged is there as a whole or not at all
* no revision is given twice, and none goes back
* a watch resumed from a revision seen before the crash shows every change since, in order

A kill keeps what the kernel has buffered, so this suite says nothing about power cuts: that each
write is synced first is the question of `sync.py`.

Environment: CRASH_ROUNDS (200), CRASH_SEED (random; printed).
"""

import http.client
import json
import os
import random
import sys
import threading
import time

import harness
from harness import Failed

WRITERS = 4
KEYS_PER_WRITER = 8
RUN_SECONDS_MAX = 0.35
NAMESPACE = "crash"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MINE = "labelSelector=suite%3Dcrash"  # controllers put objects of their own into a namespace
GONE = None
BROKEN = (http.client.HTTPException, OSError)


class Model:
    """What the server must hold, from the answers that it gave."""

    def __init__(self):
        self.lock = threading.Lock()
        self.states = {}  # key -> (value, revision) as acknowledged, or GONE
        self.pending = {}  # key -> value of the write that nobody answered, or GONE
        self.revisions = {}  # revision -> (key, value): what was ever seen under it
        self.newest = 0
        self.counter = 0

    def next_value(self):
        with self.lock:
            self.counter += 1
            return str(self.counter)

    def saw(self, revision, key, value):
        """A revision names one change for ever."""
        with self.lock:
            known = self.revisions.setdefault(revision, (key, value))
            if known != (key, value):
                raise Failed(f"revision {revision} was {known}, now it is {(key, value)}")
            self.newest = max(self.newest, revision)


def body(key, value):
    # The value stands in three places, so that a half-written object could not hide.
    data = {"value": value, "copy": value, "padding": value * (1 + int(value) % 200)}
    return harness.config_map(key, data, labels={"suite": "crash", "value": value})


def whole_value(item):
    """The value of an object, which has to be the same everywhere in it."""
    data, labels = item.get("data") or {}, item["metadata"].get("labels") or {}
    value = data.get("value")
    name = item["metadata"]["name"]
    expected = body(name, value or "0")
    if data != expected["data"] or labels != expected["metadata"]["labels"]:
        raise Failed(f"half a write is visible: {json.dumps(item)}")
    return value


class Writer(threading.Thread):
    """Writes to its own keys until the server dies."""

    def __init__(self, number, server, model, seed):
        super().__init__()
        self.model, self.random = model, random.Random(seed)
        self.client = server.client()
        self.keys = [f"w{number}-{key}" for key in range(KEYS_PER_WRITER)]
        self.writes, self.problem = 0, None

    def run(self):
        try:
            while True:
                self.write(self.random.choice(self.keys))
                self.writes += 1
        except BROKEN:
            pass
        except Failed as failure:
            self.problem = failure
        finally:
            self.client.close()

    def write(self, key):
        exists = self.model.states.get(key) is not GONE
        choice = self.random.random()
        value = self.model.next_value()
        if exists and choice < 0.15:
            self.model.pending[key] = GONE
            self.expect(self.client.call("DELETE", f"{PATH}/{key}"), 200)
            self.model.states[key] = GONE
            del self.model.pending[key]
            return
        self.model.pending[key] = value
        wanted = body(key, value)
        if not exists and choice < 0.5:
            answer = self.expect(self.client.call("POST", PATH, wanted), 201)
        elif not exists or choice < 0.4:
            where = f"{PATH}/{key}?fieldManager=crash&force=true"
            call = self.client.call("PATCH", where, wanted, "application/apply-patch+yaml")
            answer = self.expect(call, 200 if exists else 201)
        elif choice < 0.7:
            answer = self.expect(self.client.call("PUT", f"{PATH}/{key}", wanted), 200)
        else:
            merge = "application/merge-patch+json"
            answer = self.expect(self.client.call("PATCH", f"{PATH}/{key}", wanted, merge), 200)
        if whole_value(answer) != value:
            raise Failed(f"wrote {value} to {key}, the answer has {answer}")
        revision = int(answer["metadata"]["resourceVersion"])
        self.model.saw(revision, key, value)
        self.model.states[key] = (value, revision)
        del self.model.pending[key]

    def expect(self, call, status):
        response, answer = call
        if response.status != status:
            raise Failed(f"a write answered {response.status}, expected {status}: {answer}")
        return answer


class Watcher(threading.Thread):
    """Follows the collection from a revision; stops at a sentinel or when the server dies."""

    def __init__(self, server, model, revision, sentinel=None):
        super().__init__()
        self.client, self.model, self.sentinel = server.client(), model, sentinel
        self.path = f"{PATH}?watch=1&resourceVersion={revision}&{MINE}"
        self.last, self.events, self.problem = revision, [], None

    def run(self):
        try:
            response = self.client.send("GET", self.path)
            if response.status != 200:
                raise Failed(f"a watch from {self.last} answered {response.status}: "
                             f"{response.read()[:500]}")
            for line in response:
                if not line.endswith(b"\n") or self.take(json.loads(line)):
                    return  # the server died inside a line, or the sentinel came
        except BROKEN:
            pass
        except Failed as failure:
            self.problem = failure
        finally:
            self.client.close()

    def take(self, event):
        kind, item = event["type"], event["object"]
        if kind == "BOOKMARK":
            return False
        if kind == "ERROR":
            raise Failed(f"a watch from {self.last} ended with {item}")
        revision, key = int(item["metadata"]["resourceVersion"]), item["metadata"]["name"]
        if revision <= self.last:
            raise Failed(f"a watch showed revision {revision} after {self.last}")
        value = GONE if kind == "DELETED" else whole_value(item)
        self.model.saw(revision, key, value)
        self.last = revision
        self.events.append((revision, key, value))
        return self.sentinel is not None and (key, value) == ("sentinel", self.sentinel)


def round_of(server, model, picker):
    """One life of the server; returns how many writes it acknowledged."""
    client = server.client()
    start = listing(client)
    client.close()
    watcher = Watcher(server, model, start.revision)
    writers = [Writer(n, server, model, picker.random()) for n in range(WRITERS)]
    for thread in [watcher, *writers]:
        thread.start()
    time.sleep(picker.random() * RUN_SECONDS_MAX)
    server.kill()
    for thread in [watcher, *writers]:
        thread.join(harness.REQUEST_SECONDS_MAX)
        if thread.problem:
            raise thread.problem
    if picker.random() < 0.2:  # a crash during recovery, too
        server.spawn()
        time.sleep(picker.random() * 0.03)
        server.kill()
    server.start()
    compare(server, model, start, watcher)
    return sum(writer.writes for writer in writers)


class Listing:
    def __init__(self, answer):
        self.revision = int(answer["metadata"]["resourceVersion"])
        self.items = {}
        for item in answer["items"]:
            revision = int(item["metadata"]["resourceVersion"])
            self.items[item["metadata"]["name"]] = (whole_value(item), revision)


def listing(client):
    return Listing(client.must("GET", f"{PATH}?{MINE}"))


def compare(server, model, start, watcher):
    """Holds the restarted server against the model, then makes the model certain again."""
    client = server.client()
    now = listing(client)
    if now.revision < model.newest:
        raise Failed(f"revision went back from {model.newest} to {now.revision}")
    for key in sorted({*model.states, *model.pending, *now.items}):
        if key == "sentinel":
            continue
        found, known = now.items.get(key, GONE), model.states.get(key, GONE)
        if found == known:
            continue
        if key not in model.pending:
            raise Failed(f"{key}: acknowledged {known}, after the restart {found}")
        value = found[0] if found else GONE
        if value != model.pending[key]:
            raise Failed(f"{key}: {known} or value {model.pending[key]}, not {found}")
        if found and known and found[1] <= known[1]:
            raise Failed(f"{key}: revision went from {known[1]} to {found[1]}")
        model.states[key] = found
    model.pending.clear()
    for revision, key, value in watcher.events:
        if revision > now.revision:
            raise Failed(f"a watcher saw {revision} ({key} = {value}), the server forgot it")
    resume(server, client, model, start, now)
    client.close()


def resume(server, client, model, start, now):
    """Replays the crashed life from its first revision: it must lead to what is there now."""
    sentinel = model.next_value()
    mark = client.must("PATCH", f"{PATH}/sentinel?fieldManager=crash&force=true",
                       body("sentinel", sentinel), "application/apply-patch+yaml")
    model.saw(int(mark["metadata"]["resourceVersion"]), "sentinel", sentinel)
    again = Watcher(server, model, start.revision, sentinel)
    again.run()
    if again.problem:
        raise again.problem
    if not again.events or again.events[-1][1:] != ("sentinel", sentinel):
        raise Failed(f"a watch from {start.revision} ended before the sentinel")
    replayed = dict(start.items)
    for revision, key, value in again.events:
        if value is GONE:
            replayed.pop(key, None)
        else:
            replayed[key] = (value, revision)
    replayed.pop("sentinel", None)
    now.items.pop("sentinel", None)
    if replayed != now.items:
        wrong = {k for k in {*replayed, *now.items} if replayed.get(k) != now.items.get(k)}
        raise Failed(f"a watch resumed from {start.revision} leaves out changes of {sorted(wrong)}")
    shown = {revision for revision, _, _ in again.events}
    missing = [r for r in model.revisions if start.revision < r <= now.revision and r not in shown]
    if missing:
        raise Failed(f"a watch resumed from {start.revision} leaves out revisions {missing[:10]}")


def main(arguments):
    rounds = int(os.environ.get("CRASH_ROUNDS", "200"))
    seed = int(os.environ.get("CRASH_SEED", random.SystemRandom().randrange(2**32)))
    print(f"CRASH_SEED={seed} CRASH_ROUNDS={rounds}")
    picker, model = random.Random(seed), Model()
    server = harness.Server(arguments.windlass, os.path.join(arguments.scratch, "data"))
    server.start()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    client = server.client()
    client.must("POST", "/api/v1/namespaces", namespace)
    client.close()
    began, writes = time.monotonic(), 0
    try:
        for number in range(1, rounds + 1):
            try:
                writes += round_of(server, model, picker)
            except Failed as failure:
                raise Failed(f"round {number}: {failure}") from None
            if number % 20 == 0 or number == rounds:
                seconds = time.monotonic() - began
                print(f"  {number} rounds, {writes} writes acknowledged, {seconds:.0f} s")
                sys.stdout.flush()
    finally:
        server.kill()
    print(f"{rounds} crashes, {writes} acknowledged writes, none lost")


if __name__ == "__main__":
    harness.run(main)
