#!/usr/bin/env python3
"""A mistake of the user gets an error that says what is wrong and what to try; never a panic.

The form is `error: …` and `hint: …` on stderr; exit code 2 for a wrong command line, else 1.
"""

import os
import shutil
import socket
import stat
import subprocess

import harness

RUN_SECONDS_MAX = 20
PATH = "/api/v1/namespaces/default/configmaps"
NOBODY = 65534


class Run:
    """The server started with a mistake; it has to end by itself."""

    def __init__(self, binary, *arguments, **options):
        try:
            done = subprocess.run([binary, *arguments], capture_output=True, text=True,
                                  errors="replace", timeout=RUN_SECONDS_MAX, **options)
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as expired:
            self.code, self.out = "still running", str(expired.stdout)
            self.err = str(expired.stderr)

    def told(self, code, *words):
        """Whether it ended with the code, an error, and these words somewhere in it."""
        text = self.err.lower()
        return (self.code == code and "error:" in text and "panicked" not in text
                and all(word.lower() in text for word in words))

    def __str__(self):
        return f"exit code {self.code}, stdout {self.out!r}, stderr {self.err!r}"


def wrong_command_lines(binary, scratch, checks):
    data = ["--data", os.path.join(scratch, "never")]
    cases = [
        ("an unknown flag", ["serve", "--no-such-flag"], ["--no-such-flag"]),
        ("an unknown command", ["sevre"], ["sevre"]),
        ("an address that is none", ["serve", *data, "--listen", "nowhere"], ["nowhere"]),
        ("a port that is none", ["serve", *data, "--listen", "127.0.0.1:70000"], ["70000"]),
        ("a duration that is none", ["serve", *data, "--history", "soon"], ["soon"]),
        ("a size that is none", ["serve", *data, "--history-bytes", "-1"], ["-1"]),
        ("an unknown controller", ["serve", *data, "--controllers", "magic"], ["magic"]),
        ("an unknown admission plugin",
         ["serve", *data, "--disable-admission-plugins", "Magic"], ["Magic"]),
    ]
    for name, arguments, words in cases:
        run = Run(binary, *arguments)
        checks.that(f"{name} is wrong usage", run.told(2, *words), run)
    made = os.path.exists(os.path.join(scratch, "never"))
    checks.that("wrong usage makes no data directory", not made)
    run = Run(binary, "--help")
    checks.that("--help goes to stdout", run.code == 0 and "serve" in run.out and not run.err, run)


def wrong_surroundings(binary, scratch, checks):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        run = Run(binary, "serve", "--data", os.path.join(scratch, "a"), "--listen", address)
        checks.that("a port in use", run.told(1, address, "hint:", "--listen"), run)

    server = harness.Server(binary, os.path.join(scratch, "locked")).start()
    run = Run(binary, "serve", "--data", server.data, "--listen", "127.0.0.1:0")
    checks.that("a directory in use", run.told(1, server.data, "hint:", "--data"), run)
    server.kill()

    file = os.path.join(scratch, "file")
    with open(file, "w") as handle:
        handle.write("not a directory")
    run = Run(binary, "serve", "--data", file, "--listen", "127.0.0.1:0")
    checks.that("a file in place of the directory", run.told(1, file, "hint:"), run)

    # Permissions do not stop root, so root starts the server as somebody else.
    reachable = os.path.join(scratch, "windlass")
    shutil.copy(binary, reachable)
    os.chmod(reachable, 0o755)
    os.chmod(scratch, 0o755)
    closed = os.path.join(scratch, "closed")
    os.mkdir(closed, 0o555)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    where = os.path.join(closed, "data")
    run = Run(reachable, "serve", "--data", where, "--listen", "127.0.0.1:0", **user)
    checks.that("a directory that is not writable", run.told(1, closed, "hint:"), run)


def damaged_data(binary, scratch, checks):
    """Garbage in any file of the directory: refuse with a hint, or serve what was acknowledged."""
    sound = os.path.join(scratch, "sound")
    server = harness.Server(binary, sound).start()
    client = server.client()
    for number in range(50):
        wanted = harness.config_map(f"kept-{number}", {"padding": "x" * 2000})
        client.must("POST", PATH, wanted)
    client.close()
    server.stop()
    files = sorted(os.path.relpath(os.path.join(folder, name), sound)
                   for folder, _, names in os.walk(sound)
                   for name in set(names) - set(sockets(folder, names)))
    for file in files:
        for how, damage in (("garbage", garbage), ("half", half)):
            if os.path.getsize(os.path.join(sound, file)) == 0:
                continue
            copy = os.path.join(scratch, "damaged")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(sound, copy, ignore=sockets)
            damage(os.path.join(copy, file))
            copes(binary, copy, f"{file} turned to {how}", checks)


def sockets(folder, names):
    """A socket cannot be copied and holds nothing."""
    return [name for name in names if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode)]


def garbage(path):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.write(bytes((n * 37 + 11) % 251 for n in range(4096)) * (size // 4096 + 1))
        file.truncate(size)


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def copes(binary, data, name, checks):
    server = harness.Server(binary, data)
    server.log = data + ".log"
    if os.path.exists(server.log):
        os.remove(server.log)
    try:
        server.start()
    except harness.Failed:
        code, words = server.process.returncode, server.last_words().lower()
        good = code == 1 and "error:" in words and "hint:" in words and "panicked" not in words
        checks.that(f"{name}: refused with a hint", good, f"exit code {code}: {words}")
        return
    try:
        client = server.client()
        items = client.must("GET", PATH)["items"]
        kept = [item for item in items if item["metadata"]["name"].startswith("kept-")]
        whole = all(len(item["data"]["padding"]) == 2000 for item in kept)
        good = len(kept) == 50 and whole
        checks.that(f"{name}: served in full", good, f"{len(kept)} of 50 objects")
        client.close()
    except (harness.Failed, OSError) as problem:
        checks.that(f"{name}: served in full", False, f"{problem}: {server.last_words()}")
    finally:
        server.kill()


def main(arguments):
    checks = harness.Checks()
    binary = os.path.abspath(arguments.windlass)
    wrong_command_lines(binary, arguments.scratch, checks)
    wrong_surroundings(binary, arguments.scratch, checks)
    damaged_data(binary, arguments.scratch, checks)
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
