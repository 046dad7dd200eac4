#!/usr/bin/env python3
"""A real kubectl does its daily work against a fresh server.

Whatever kubectl is on the PATH is used; its version is printed. Where an old one has no command
for a thing, the same HTTP requests are sent instead, so that nothing is skipped.
"""

import json
import os
import stat
import subprocess
import tempfile
import threading

import harness
from harness import Failed

COMMAND_SECONDS_MAX = 60


class Kubectl:
    """kubectl with the administrator's configuration and a cache of its own."""

    def __init__(self, server, scratch):
        self.server, self.scratch, self.client = server, scratch, server.client()
        config = os.path.join(server.data, "admin.kubeconfig")
        self.environment = {**os.environ, "KUBECONFIG": config, "HOME": scratch}
        self.environment.pop("KUBE_EDITOR", None)
        version = json.loads(self("version", "--client", "--output=json").out)["clientVersion"]
        self.minor = int(version["minor"].rstrip("+"))
        print(f"kubectl {version['gitVersion']}")

    def __call__(self, *arguments, stdin=None, **environment):
        command = ["kubectl", *arguments]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, text=True,
                                  timeout=COMMAND_SECONDS_MAX,
                                  env={**self.environment, **environment})
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(command)}: no end after {COMMAND_SECONDS_MAX} s") from None
        return Output(command, done)

    def watch(self, *arguments):
        return Watch(["kubectl", "get", *arguments, "--watch"], self.environment)

    def object(self, path):
        """An object as the server has it, managed fields and all."""
        return self.client.must("GET", path)

    def owners(self, path, *field):
        """Which managers own a field, such as ("f:spec", "f:replicas")."""
        found = []
        for entry in self.object(path)["metadata"].get("managedFields", []):
            node = entry["fieldsV1"]
            for key in field:
                node = node.get(key) if isinstance(node, dict) else None
            if node is not None:
                found.append(entry["manager"])
        return sorted(found)


class Output:
    """What one command printed and how it ended."""

    def __init__(self, command, done):
        self.command, self.code = command, done.returncode
        self.out, self.err = done.stdout, done.stderr

    def says(self, *words):
        return self.code == 0 and all(word in self.out for word in words)

    def fails(self, *words):
        return self.code != 0 and all(word in self.err for word in words)

    def __str__(self):
        return (f"{' '.join(self.command)}\n        exit code {self.code}\n        "
                f"stdout {self.out!r}\n        stderr {self.err!r}")


class Watch:
    """A kubectl that watches; its lines are collected in the background."""

    def __init__(self, command, environment):
        self.lines = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=environment)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def shows(self, text):
        try:
            return harness.wait_for(text, lambda: any(text in line for line in self.lines))
        except Failed:
            return False

    def end(self):
        self.process.kill()
        self.process.wait()


def yaml(kind, name, api="v1", **body):
    """A manifest as text; JSON is YAML."""
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **body})


def documents(manifests):
    """Several manifests in one text; without the first line kubectl would take it for JSON."""
    return "".join(f"---\n{manifest}\n" for manifest in manifests)


def deployment(name, replicas=None, image="nginx:1"):
    labels = {"app": name}
    spec = {"selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}]}}}
    if replicas is not None:
        spec["replicas"] = replicas
    return yaml("Deployment", name, "apps/v1", spec=spec)


def about_the_server(kubectl, check):
    out = kubectl("version", "--output=json")
    server = json.loads(out.out).get("serverVersion", {}) if out.code == 0 else {}
    check("version: the server says 1.36", server.get("minor", "").startswith("36"), out)
    out = kubectl("cluster-info")
    check("cluster-info", out.says("is running at", f"127.0.0.1:{kubectl.server.port}"), out)
    out = kubectl("api-versions")
    check("api-versions", {"v1", "apps/v1"} <= set(out.out.split()), out)
    out = kubectl("api-resources")
    check("api-resources", out.says("configmaps", "deployments", "namespaces"), out)
    out = kubectl("api-resources", "--api-group=apps", "--namespaced=true", "--output=name")
    check("api-resources of a group", out.says("deployments.apps", "statefulsets.apps"), out)
    out = kubectl("get", "--raw", "/readyz")
    check("readyz", out.says("ok"), out)
    out = kubectl("get", "namespaces")
    check("get namespaces", out.says("NAME", "STATUS", "AGE", "default", "kube-system"), out)


def create_read_delete(kubectl, check):
    out = kubectl("create", "configmap", "one", "--from-literal=colour=blue")
    check("create", out.says("configmap/one created"), out)
    out = kubectl("create", "configmap", "one", "--from-literal=colour=red")
    check("create again is refused", out.fails('configmaps "one" already exists'), out)
    out = kubectl("get", "configmap", "one")
    check("get prints a table", out.says("NAME", "DATA", "AGE", "one"), out)
    out = kubectl("get", "configmap", "one", "--output=jsonpath={.data.colour}")
    check("get as jsonpath", out.says("blue"), out)
    out = kubectl("get", "configmap", "one", "--output=yaml")
    check("get as yaml", out.says("colour: blue", "kind: ConfigMap"), out)
    out = kubectl("get", "cm", "one", "--output=name")
    check("get by short name", out.says("configmap/one"), out)
    out = kubectl("get", "configmap", "one", "-o", "custom-columns=C:.data.colour")
    check("get with custom columns", out.says("blue"), out)
    out = kubectl("describe", "configmap", "one")
    check("describe", out.says("Name:", "one", "colour:", "blue"), out)
    out = kubectl("get", "configmap", "none")
    check("get what is not there", out.fails("NotFound", 'configmaps "none" not found'), out)
    out = kubectl("get", "nosuchkind")
    check("get of an unknown kind", out.fails("nosuchkind"), out)
    two = documents([yaml("ConfigMap", "two", data={"a": "1"}), yaml("Secret", "three")])
    out = kubectl("create", "--filename=-", stdin=two)
    check("create from two documents", out.says("configmap/two", "secret/three"), out)
    out = kubectl("get", "configmaps,secrets", "--all-namespaces")
    check("get of several kinds everywhere", out.says("configmap/two", "secret/three"), out)
    out = kubectl("replace", "--filename=-", stdin=yaml("ConfigMap", "two", data={"b": "2"}))
    check("replace", out.says("configmap/two replaced"), out)
    out = kubectl("get", "configmap", "two", "--output=jsonpath={.data}")
    check("replace leaves only the new data", out.says('"b":"2"') and '"a"' not in out.out, out)
    out = kubectl("delete", "configmap", "two")
    check("delete", out.says('configmap "two" deleted'), out)
    out = kubectl("delete", "configmap", "two", "--ignore-not-found")
    check("delete again with --ignore-not-found", out.code == 0, out)
    bad = yaml("ConfigMap", "Not_A_Name")
    out = kubectl("create", "--filename=-", stdin=bad)
    check("an invalid name is refused", out.fails("Not_A_Name", "RFC 1123"), out)


def select_and_page(kubectl, check):
    many = documents(
        yaml("ConfigMap", f"page-{number}", data={"n": str(number)}) for number in range(12))
    out = kubectl("create", "--filename=-", stdin=many)
    check("create twelve", out.out.count("created") == 12, out)
    out = kubectl("label", "configmap", "page-1", "page-2", "tier=front")
    check("label", out.says("configmap/page-1 labeled", "configmap/page-2 labeled"), out)
    out = kubectl("get", "configmaps", "--selector=tier=front", "--output=name")
    check("get by label", out.out.split() == ["configmap/page-1", "configmap/page-2"], out)
    out = kubectl("get", "configmaps", "--selector=tier notin (front)", "--output=name")
    check("get by set", out.says("page-3") and "page-1\n" not in out.out, out)
    out = kubectl("get", "configmaps", "--field-selector=metadata.name=page-7", "-o", "name")
    check("get by field", out.out.split() == ["configmap/page-7"], out)
    out = kubectl("get", "configmaps", "--chunk-size=5", "--output=name")
    check("get in pages", out.out.count("page-") == 12, out)
    out = kubectl("get", "configmaps", "--show-labels", "--selector=tier")
    check("get with labels", out.says("tier=front"), out)
    out = kubectl("label", "configmap", "page-1", "tier=back")
    check("a label is not overwritten unasked", out.fails("--overwrite is false"), out)
    out = kubectl("label", "configmap", "page-1", "tier=back", "--overwrite")
    check("a label is overwritten when asked", out.says("labeled"), out)
    out = kubectl("label", "configmap", "page-1", "tier-")
    check("a label is removed", out.code == 0, out)
    out = kubectl("annotate", "configmap", "page-3", "note=a b")
    # kubectl 1.27 says "annotate", later ones "annotated".
    check("annotate", out.says("configmap/page-3 annotate"), out)
    out = kubectl("get", "configmap", "page-3", "-o", "jsonpath={.metadata.annotations.note}")
    check("the annotation is there", out.out == "a b", out)
    out = kubectl("delete", "configmaps", "--selector=tier=front")
    check("delete by label", out.says('"page-2" deleted') and "page-1" not in out.out, out)
    out = kubectl("delete", "configmaps", *[f"page-{n}" for n in range(12) if n != 2])
    check("delete many", out.out.count("deleted") == 11, out)


def edit_and_patch(kubectl, check):
    editor = os.path.join(kubectl.scratch, "editor")
    with open(editor, "w") as file:
        file.write("#!/bin/sh\nsed -i 's/colour: blue/colour: green/' \"$1\"\n")
    os.chmod(editor, stat.S_IRWXU)
    out = kubectl("edit", "configmap", "one", EDITOR=editor)
    check("edit", out.says("configmap/one edited"), out)
    colour = ("get", "configmap", "one", "--output=jsonpath={.data.colour}")
    out = kubectl(*colour)
    check("the edit is there", out.out == "green", out)
    out = kubectl("edit", "configmap", "one", EDITOR="true")
    check("an edit without a change", "no changes made" in out.out + out.err, out)
    patches = [
        ("merge", '{"data":{"colour":"white"}}', "white"),
        ("json", '[{"op":"replace","path":"/data/colour","value":"black"}]', "black"),
        ("strategic", '{"data":{"colour":"grey"}}', "grey"),
    ]
    for kind, patch, colour_after in patches:
        out = kubectl("patch", "configmap", "one", f"--type={kind}", f"--patch={patch}")
        check(f"patch {kind}", out.says("configmap/one patched"), out)
        out = kubectl(*colour)
        check(f"patch {kind} is there", out.out == colour_after, out)


def watch(kubectl, check):
    following = kubectl.watch("configmaps", "--output=name")
    try:
        check("watch: what is there", following.shows("configmap/one"), following.lines)
        kubectl("create", "configmap", "seen", "--from-literal=a=1")
        check("watch: a creation", following.shows("configmap/seen"), following.lines)
    finally:
        following.end()
    following = kubectl.watch("configmaps", "--output-watch-events")
    try:
        check("watch: an addition", following.shows("ADDED"), following.lines)
        kubectl("patch", "configmap", "seen", "--patch", '{"data":{"a":"2"}}')
        check("watch: a change", following.shows("MODIFIED"), following.lines)
        kubectl("delete", "configmap", "seen")
        check("watch: a deletion", following.shows("DELETED"), following.lines)
    finally:
        following.end()


def apply_client_side(kubectl, check):
    first = yaml("ConfigMap", "applied", data={"a": "1", "b": "2"})
    second = yaml("ConfigMap", "applied", data={"a": "1", "c": "3"})
    out = kubectl("apply", "--filename=-", stdin=first)
    check("apply creates", out.says("configmap/applied created"), out)
    out = kubectl("apply", "--filename=-", stdin=first)
    check("apply of the same", out.says("configmap/applied unchanged"), out)
    out = kubectl("diff", "--filename=-", stdin=first)
    check("diff of the same", out.code == 0 and not out.out, out)
    out = kubectl("diff", "--filename=-", stdin=second)
    check("diff shows both sides", out.code == 1 and '-  b: "2"' in out.out
          and '+  c: "3"' in out.out, out)
    out = kubectl("apply", "--filename=-", "--dry-run=server", stdin=second)
    check("apply as a dry run", out.says("configmap/applied configured (server dry run)"), out)
    data = kubectl.object("/api/v1/namespaces/default/configmaps/applied")["data"]
    check("a dry run changes nothing", data == {"a": "1", "b": "2"}, data)
    out = kubectl("apply", "--filename=-", stdin=second)
    check("apply of a change", out.says("configmap/applied configured"), out)
    data = kubectl.object("/api/v1/namespaces/default/configmaps/applied")["data"]
    check("apply removes what was left out", data == {"a": "1", "c": "3"}, data)
    out = kubectl("apply", "view-last-applied", "configmap", "applied")
    check("view-last-applied", out.says('c: "3"'), out)


def apply_server_side(kubectl, check):
    path = "/api/v1/namespaces/default/configmaps/owned"
    blue = yaml("ConfigMap", "owned", data={"colour": "blue"})
    red = yaml("ConfigMap", "owned", data={"colour": "red"})
    apply = ("apply", "--server-side", "--filename=-")
    out = kubectl(*apply, "--field-manager=team-a", stdin=blue)
    check("server-side apply creates", out.says("configmap/owned serverside-applied"), out)
    before = kubectl.object(path)["metadata"]["resourceVersion"]
    kubectl(*apply, "--field-manager=team-a", stdin=blue)
    after = kubectl.object(path)["metadata"]["resourceVersion"]
    check("the same again takes no revision", before == after, f"{before}, {after}")
    out = kubectl(*apply, "--field-manager=team-b", stdin=red)
    check("a conflict names field and owner",
          out.fails("conflict", '"team-a"', ".data.colour"), out)
    check("a conflict changes nothing", kubectl.object(path)["data"]["colour"] == "blue")
    out = kubectl(*apply, "--field-manager=team-b", stdin=blue)
    check("agreeing is no conflict", out.says("serverside-applied"), out)
    owners = kubectl.owners(path, "f:data", "f:colour")
    check("both own the field", owners == ["team-a", "team-b"], owners)
    out = kubectl(*apply, "--field-manager=team-b", "--force-conflicts", "--dry-run=server",
                  stdin=red)
    check("a forced dry run", out.says("serverside-applied (server dry run)"), out)
    check("it changes nothing", kubectl.object(path)["data"]["colour"] == "blue")
    out = kubectl(*apply, "--field-manager=team-b", "--force-conflicts", stdin=red)
    check("force takes the field over", out.says("serverside-applied"), out)
    owners = kubectl.owners(path, "f:data", "f:colour")
    check("now only one owns it", owners == ["team-b"], owners)
    out = kubectl("diff", "--server-side", "--field-manager=team-b", "--filename=-",
                  stdin=yaml("ConfigMap", "owned", data={"colour": "red", "size": "big"}))
    check("diff --server-side", out.code == 1 and "+  size: big" in out.out, out)
    out = kubectl(*apply, "--field-manager=team-b", stdin=yaml("ConfigMap", "owned"))
    check("leaving a field out gives it up", out.says("serverside-applied"), out)
    data = kubectl.object(path).get("data")
    check("a field that nobody owns is gone", not data, data)


def workloads(kubectl, check):
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    out = kubectl("create", "deployment", "web", "--image=nginx:1")
    check("create deployment", out.says("deployment.apps/web created"), out)
    out = kubectl("get", "deployment", "web")
    check("get deployment", out.says("READY", "UP-TO-DATE", "AVAILABLE", "0/1"), out)
    spec = kubectl.object(path)["spec"]
    check("defaults are filled in", spec["strategy"]["type"] == "RollingUpdate"
          and spec["template"]["spec"]["restartPolicy"] == "Always", spec)
    out = kubectl("scale", "deployment", "web", "--replicas=4")
    check("scale", out.says("deployment.apps/web scaled"), out)
    check("the scale is there", kubectl.object(path)["spec"]["replicas"] == 4)
    out = kubectl("scale", "deployment", "web", "--replicas=5", "--current-replicas=9")
    check("scale with a wrong expectation is refused", out.fails("xpected replicas"), out)
    out = kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    check("set image", out.says("deployment.apps/web image updated"), out)
    image = kubectl.object(path)["spec"]["template"]["spec"]["containers"][0]["image"]
    check("the image is there", image == "nginx:2", image)
    out = kubectl("set", "env", "deployment/web", "MODE=fast")
    check("set env", out.says("env updated"), out)
    out = kubectl("rollout", "restart", "deployment/web")
    check("rollout restart", out.says("restarted"), out)
    out = kubectl("autoscale", "deployment", "web", "--min=2", "--max=6", "--cpu-percent=70")
    check("autoscale", out.says("web autoscaled"), out)
    out = kubectl("get", "hpa", "web", "-o", "jsonpath={.spec.minReplicas} {.spec.maxReplicas}")
    check("the autoscaler is there", out.out == "2 6", out)
    out = kubectl("run", "single", "--image=busybox", "--restart=Never", "--", "sleep", "9")
    check("run", out.says("pod/single created"), out)
    out = kubectl("get", "pod", "single")
    check("get pod", out.says("READY", "STATUS", "RESTARTS", "0/1", "Pending"), out)
    out = kubectl("delete", "pod", "single", "--now")
    check("delete pod", out.says('pod "single" deleted'), out)


def handover_of_replicas(kubectl, check):
    """The documented way to give `replicas` from a user to an autoscaler without a gap."""
    path = "/apis/apps/v1/namespaces/default/deployments/shop"
    field = ("f:spec", "f:replicas")
    apply = ("apply", "--server-side", "--filename=-")
    out = kubectl(*apply, stdin=deployment("shop", 3))
    check("handover: the user sets replicas", out.says("serverside-applied"), out)
    check("handover: and owns them", kubectl.owners(path, *field) == ["kubectl"])
    only = yaml("Deployment", "shop", "apps/v1", spec={"replicas": 3})
    out = kubectl(*apply, "--field-manager=handover-to-hpa", "--validate=false", stdin=only)
    check("handover: a second manager holds replicas", out.says("serverside-applied"), out)
    owners = kubectl.owners(path, *field)
    check("handover: both own them", owners == ["handover-to-hpa", "kubectl"], owners)
    out = kubectl(*apply, stdin=deployment("shop"))
    check("handover: the user lets go", out.says("serverside-applied"), out)
    check("handover: replicas stay", kubectl.object(path)["spec"]["replicas"] == 3)
    owners = kubectl.owners(path, *field)
    check("handover: one owner is left", owners == ["handover-to-hpa"], owners)
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale",
             "metadata": {"name": "shop", "namespace": "default"}, "spec": {"replicas": 7}}
    where = f"{path}/scale?fieldManager=autoscaler"
    answer = kubectl.client.must("PUT", where, scale)
    check("handover: the autoscaler scales", answer["spec"]["replicas"] == 7, answer)
    owners = kubectl.owners(path, *field)
    check("handover: the autoscaler owns replicas", owners == ["autoscaler"], owners)
    out = kubectl(*apply, stdin=deployment("shop", image="nginx:2"))
    check("handover: the user applies on", out.says("serverside-applied"), out)
    check("handover: and keeps its hands off", kubectl.object(path)["spec"]["replicas"] == 7)


def namespaces(kubectl, check):
    out = kubectl("create", "namespace", "team")
    check("create namespace", out.says("namespace/team created"), out)
    out = kubectl("create", "configmap", "inside", "--namespace=team")
    check("create in it", out.says("configmap/inside created"), out)
    out = kubectl("get", "configmaps", "--namespace=default", "--output=name")
    check("it is not in another", out.code == 0 and "inside" not in out.out, out)
    out = kubectl("create", "configmap", "lost", "--namespace=nowhere")
    check("a namespace that is not there", out.fails('namespaces "nowhere" not found'), out)
    out = kubectl("delete", "namespace", "default")
    check("default cannot be deleted", out.fails("forbidden"), out)
    out = kubectl("delete", "namespace", "team", "--timeout=30s")
    check("delete namespace", out.says('namespace "team" deleted'), out)
    out = kubectl("get", "configmap", "inside", "--namespace=team")
    check("what was in it is gone", out.fails("not found"), out)


SUITE = [
    about_the_server,
    create_read_delete,
    select_and_page,
    edit_and_patch,
    watch,
    apply_client_side,
    apply_server_side,
    workloads,
    handover_of_replicas,
    namespaces,
]


def main(arguments):
    checks = harness.Checks()
    server = harness.Server(arguments.windlass, os.path.join(arguments.scratch, "data")).start()
    try:
        home = tempfile.mkdtemp(dir=arguments.scratch)
        kubectl = Kubectl(server, home)
        for part in SUITE:
            print(part.__name__.replace("_", " "))
            try:
                part(kubectl, checks.that)
            except Failed as failure:
                checks.that(part.__name__, False, failure)
    finally:
        server.kill()
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
