#!/usr/bin/env python3
"""Whatever bytes arrive end in an answer: never a panic, a 5xx, unbounded time or memory.

Three kinds of garbage: connections that are no HTTPS, requests that are no HTTP, and bodies, paths
and queries that are nothing in particular. Bodies are sound ones with bytes changed by a seeded
generator, so that they get far into the decoders.

Environment: GARBAGE_BODIES (3000), GARBAGE_SEED (random; printed).
"""

import http.client
import json
import os
import random
import socket
import ssl
import time

import harness

ANSWER_SECONDS_MAX = 10
RESIDENT_MEGABYTES_MAX = 400
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def sound(name):
    """A Deployment with most shapes of values in it."""
    labels = {"app": name}
    container = {"name": "main", "image": "nginx", "ports": [{"containerPort": 80}],
                 "env": [{"name": "A", "value": "1"}],
                 "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                 "readinessProbe": {"httpGet": {"path": "/", "port": 80}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": labels, "annotations": {"a": "ü"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [container]}}}}


def envelope(body):
    """Bytes that start like a protobuf object."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data) % 128]) + data
    kind = field(1, b"v1") + field(2, b"ConfigMap")
    return b"k8s\0" + field(1, kind) + field(2, body[:100])


def mutate(data, picker):
    """A few random changes: flips, cuts, repeats, insertions of what parsers trip over."""
    data = bytearray(data)
    treats = [b"\0", b"\xff\xfe", b'"', b"{", b"]", b"null", b"1e999", b"-0", b"9" * 30, b"\\ud800",
              b"\n---\n", b"&a [*a]", b"!!binary", b"<<: *a", b"\xc3\x28", b"\t", b"2147483648"]
    for _ in range(picker.randint(1, 6)):
        at = picker.randrange(len(data) + 1)
        choice = picker.random()
        if choice < 0.3 and at < len(data):
            data[at] = picker.randrange(256)
        elif choice < 0.5:
            del data[at:at + picker.randint(1, 40)]
        elif choice < 0.65:
            data[at:at] = data[at:at + picker.randint(1, 60)]
        else:
            data[at:at] = picker.choice(treats)
    return bytes(data)


BODIES = [
    ("POST", DEPLOYMENTS, "application/json", json.dumps(sound("body")).encode()),
    ("POST", DEPLOYMENTS, "application/yaml", json.dumps(sound("body"), indent=1).encode()),
    ("POST", CONFIG_MAPS, "application/vnd.kubernetes.protobuf", envelope(b"\x0a\x03\x0a\x01a")),
    ("PUT", f"{DEPLOYMENTS}/base", "application/json", json.dumps(sound("base")).encode()),
    ("PATCH", f"{DEPLOYMENTS}/base", "application/merge-patch+json", b'{"spec":{"replicas":3}}'),
    ("PATCH", f"{DEPLOYMENTS}/base", "application/strategic-merge-patch+json",
     json.dumps({"spec": sound("base")["spec"]}).encode()),
    ("PATCH", f"{DEPLOYMENTS}/base", "application/json-patch+json",
     b'[{"op":"replace","path":"/spec/replicas","value":4},{"op":"test","path":"/kind",'
     b'"value":"Deployment"},{"op":"copy","from":"/metadata/labels","path":"/spec/x"}]'),
    ("PATCH", f"{DEPLOYMENTS}/base?fieldManager=g&force=true", "application/apply-patch+yaml",
     json.dumps(sound("base"), indent=1).encode()),
    ("DELETE", f"{CONFIG_MAPS}/none", "application/json",
     b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5,"preconditions":{}}'),
]

BIG = [
    ("100,000 open brackets", "application/json", b"[" * 100_000),
    ("100,000 open objects", "application/json", b'{"a":' * 100_000),
    ("100,000 levels, closed", "application/json",
     b'{"apiVersion":"v1","kind":"ConfigMap","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("100,000 levels of flow YAML", "application/yaml", b"a: " + b"[" * 100_000),
    ("1,500 levels of block YAML", "application/yaml",
     b"".join(b" " * n + b"a:\n" for n in range(1500))),
    ("a YAML alias bomb", "application/yaml",
     b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
         b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9))
         for n in range(20))),
    ("a long number", "application/json", b'{"apiVersion":"v1","x":' + b"9" * 1_000_000 + b"}"),
    ("4 MiB", "application/json", b'{"apiVersion":"' + b"x" * (4 << 20) + b'"}'),
    ("100,000 equal keys", "application/json",
     b"{" + b",".join([b'"a":1'] * 100_000) + b"}"),
]

PATHS = [
    "/api/v1/namespaces/%00/configmaps", "/api/v1/namespaces/../configmaps", "//api//v1",
    "/api/v1/namespaces/default/configmaps/" + "x" * 5000, "/%zz", "/api/v1/namespaces/a%2Fb",
    "/apis/apps/v1/namespaces/default/deployments/x/nosuch", "/api/v9/pods", "/apis///",
    CONFIG_MAPS + "?limit=-1", CONFIG_MAPS + "?limit=99999999999999999999",
    CONFIG_MAPS + "?continue=garbage", CONFIG_MAPS + "?continue=" + "A" * 4000,
    CONFIG_MAPS + "?labelSelector=%3D%3D%3D", CONFIG_MAPS + "?labelSelector=a+in+(",
    CONFIG_MAPS + "?fieldSelector=nosuch%3D1", CONFIG_MAPS + "?resourceVersion=abc",
    CONFIG_MAPS + "?resourceVersion=-1", CONFIG_MAPS + "?resourceVersionMatch=Sometimes",
    CONFIG_MAPS + "?watch=1&resourceVersion=abc", CONFIG_MAPS + "?watch=1&timeoutSeconds=x",
    CONFIG_MAPS + "?limit=1&limit=2&watch=perhaps", CONFIG_MAPS + "?%ff=%fe",
    CONFIG_MAPS + "?pretty=%00&dryRun=Some", CONFIG_MAPS + "?" + "a=b&" * 2000,
]

RAW = [
    ("no request at all", b"\r\n\r\n"),
    ("one long line", b"A" * 200_000),
    ("no version", b"GET /\r\n\r\n"),
    ("a header without end", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 2_000_000),
    ("100,000 headers", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 100_000 + b"\r\n"),
    ("a negative length", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
    ("two lengths", b"POST / HTTP/1.1\r\nHost: x\r\n" + b"Content-Length: 3\r\n"
     b"Content-Length: 4\r\n\r\n"),
    ("a bad chunk", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    ("an HTTP/2 preface and noise", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000),
    ("bytes of every kind", bytes(range(256)) * 100),
]


def connections(server, checks):
    """What is not HTTPS, or not HTTP inside it, is closed and does not disturb others."""
    context = ssl.create_default_context(cafile=os.path.join(server.data, "ca.crt"))
    address = ("127.0.0.1", server.port)
    for name, data in RAW:
        for how in ("plain", "inside TLS"):
            try:
                with socket.create_connection(address, ANSWER_SECONDS_MAX) as plain:
                    wire = plain
                    if how != "plain":
                        wire = context.wrap_socket(plain, server_hostname="127.0.0.1")
                    wire.sendall(data)
                    wire.shutdown(socket.SHUT_WR) if how == "plain" else None
                    wire.settimeout(1)
                    wire.recv(1000)
            except OSError:
                pass  # closed on us, which is an answer too
        checks.that(f"{name} leaves the server up", up(server), server.last_words())
    idle = [socket.create_connection(address, ANSWER_SECONDS_MAX) for _ in range(300)]
    checks.that("300 connections that say nothing leave the server up", up(server))
    for one in idle:
        one.close()


def up(server):
    client = server.client()
    try:
        return client.call("GET", "/readyz")[0].status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def answered(server, method, path, body, content_type):
    """Sends one request; returns its status, 0 when the connection was closed, and seconds."""
    client = server.client()
    began = time.monotonic()
    try:
        response, _ = client.call(method, path, body, content_type)
        return response.status, time.monotonic() - began
    except (OSError, http.client.HTTPException):
        return 0, time.monotonic() - began
    finally:
        client.close()


def bodies(server, checks, picker, count):
    client = server.client()
    client.must("POST", DEPLOYMENTS, sound("base"))
    statuses = {}
    for number in range(count):
        method, path, content_type, body = picker.choice(BODIES)
        body = mutate(body, picker)
        try:
            response, answer = client.call(method, path, body, content_type)
        except (OSError, http.client.HTTPException) as problem:
            checks.that(f"body {number}: an answer", False, f"{problem!r} to {body!r}")
            return
        if response.status >= 400 and answer["kind"] != "Status":
            checks.that(f"body {number}: a Status", False, f"{response.status} {answer}")
        if response.status >= 500:
            checks.that(f"body {number}: no 5xx", False,
                        f"{response.status} {answer} to {method} {path} {content_type} {body!r}")
        statuses[response.status] = statuses.get(response.status, 0) + 1
    client.close()
    checks.that(f"{count} bodies with random changes: {statuses}", up(server))
    checks.that("some were refused", any(status >= 400 for status in statuses), statuses)


def big(server, checks):
    for name, content_type, body in BIG:
        for method, path, kind in (
                ("POST", CONFIG_MAPS, content_type),
                ("PATCH", f"{CONFIG_MAPS}/x?fieldManager=g", "application/apply-patch+yaml"),
                ("PATCH", f"{DEPLOYMENTS}/base", "application/merge-patch+json")):
            status, seconds = answered(server, method, path, body, kind)
            # A body over the limit may be refused by closing before it is read.
            good = 200 <= status < 500 or status == 0 and len(body) > 3 << 20
            checks.that(f"{name}, {kind}: {status} in {seconds:.1f} s",
                        good and seconds < ANSWER_SECONDS_MAX and up(server), status)
    many = json.dumps([{"op": "test", "path": "/kind", "value": "x"}] * 20_000).encode()
    kind = "application/json-patch+json"
    status, _ = answered(server, "PATCH", f"{DEPLOYMENTS}/base", many, kind)
    checks.that("20,000 operations in a JSON patch are refused", 400 <= status < 500, status)


def paths(server, checks):
    for path in PATHS:
        for method in ("GET", "DELETE" if "?" not in path else "GET", "BREW"):
            status, _ = answered(server, method, path, None, None)
            if not checks.that(f"{method} {path[:60]}: {status}", status < 500, status):
                break


def resident_megabytes(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        peak = [line for line in status if line.startswith("VmHWM:")]
    return int(peak[0].split()[1]) / 1000


def main(arguments):
    count = int(os.environ.get("GARBAGE_BODIES", "3000"))
    seed = int(os.environ.get("GARBAGE_SEED", random.SystemRandom().randrange(2**32)))
    print(f"GARBAGE_SEED={seed} GARBAGE_BODIES={count}")
    checks = harness.Checks()
    server = harness.Server(arguments.windlass, os.path.join(arguments.scratch, "data")).start()
    try:
        bodies(server, checks, random.Random(seed), count)
        paths(server, checks)
        big(server, checks)
        connections(server, checks)
        checks.that("nothing panicked", "panicked" not in server.last_words(), server.last_words())
        peak = resident_megabytes(server)
        checks.that(f"memory peaked at {peak:.0f} MB", peak < RESIDENT_MEGABYTES_MAX)
    finally:
        server.kill()
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
