#!/usr/bin/env python3
"""The clients for Python and JavaScript do with typed objects what their users do with them.

Run by an interpreter that has the package `kubernetes`; `WINDLASS_NODE_MODULES` names the folder
in which `@kubernetes/client-node` is installed. The JavaScript part is `clients.mjs`: it prints a
line of JSON for each check, and its checks are counted with those made here.
"""

import json
import os
import subprocess

import kubernetes
from kubernetes import client, dynamic, watch

import harness
from harness import Failed

NAMESPACE = "typed"


def deployment(name, image):
    """A typed Deployment with most of what people write."""
    container = client.V1Container(
        name="web",
        image=image,
        ports=[client.V1ContainerPort(container_port=80, name="http")],
        env=[client.V1EnvVar(name="LEVEL", value="info")],
        resources=client.V1ResourceRequirements(limits={"cpu": "500m", "memory": "64Mi"}),
        readiness_probe=client.V1Probe(
            http_get=client.V1HTTPGetAction(path="/ready", port="http")
        ),
    )
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": name}),
        spec=client.V1PodSpec(containers=[container]),
    )
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name, labels={"app": name}),
        spec=client.V1DeploymentSpec(
            replicas=2,
            selector=client.V1LabelSelector(match_labels={"app": name}),
            template=template,
        ),
    )


def workloads(api, checks):
    apps = client.AppsV1Api(api)
    made = apps.create_namespaced_deployment(NAMESPACE, deployment("web", "example/web:1"))
    checks.that("python: a deployment is created", made.metadata.uid, made)
    strategy = made.spec.strategy.rolling_update
    checks.that("python: its defaults are typed", strategy.max_surge == "25%", strategy)
    found = apps.list_namespaced_deployment(NAMESPACE, label_selector="app=web").items
    checks.that("python: it is listed", [it.metadata.name for it in found] == ["web"], found)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
    patched = apps.patch_namespaced_deployment("web", NAMESPACE, patch)
    container = patched.spec.template.spec.containers[0]
    checks.that("python: a strategic patch merges", container.image == "web:2", container)
    checks.that("python: and keeps the rest", container.env[0].value == "info", container)
    scale = apps.read_namespaced_deployment_scale("web", NAMESPACE)
    scale.spec.replicas = 5
    scaled = apps.replace_namespaced_deployment_scale("web", NAMESPACE, scale)
    checks.that("python: it is scaled", scaled.spec.replicas == 5, scaled)
    stale = made
    stale.spec.replicas = 9
    try:
        apps.replace_namespaced_deployment("web", NAMESPACE, stale)
        checks.that("python: a stale update is refused", False, "it was taken")
    except client.ApiException as error:
        checks.that("python: a stale update is refused", error.status == 409, error)
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Foreground")


def core(api, checks):
    core_api = client.CoreV1Api(api)
    secret = client.V1Secret(
        metadata=client.V1ObjectMeta(name="key"), string_data={"password": "open"}
    )
    kept = core_api.create_namespaced_secret(NAMESPACE, secret)
    checks.that("python: a secret is kept encoded", kept.data == {"password": "b3Blbg=="}, kept)
    service = client.V1Service(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1ServiceSpec(selector={"app": "web"}, ports=[client.V1ServicePort(port=80)]),
    )
    address = core_api.create_namespaced_service(NAMESPACE, service).spec.cluster_ip
    checks.that("python: a service gets an address", address.startswith("10."), address)
    start = core_api.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    for turn in range(3):
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=f"map-{turn}"), data={"turn": str(turn)}
        )
        core_api.create_namespaced_config_map(NAMESPACE, body)
    seen = []
    stream = watch.Watch()
    for event in stream.stream(
        core_api.list_namespaced_config_map,
        NAMESPACE,
        resource_version=start,
        timeout_seconds=harness.REQUEST_SECONDS_MAX,
    ):
        seen.append((event["type"], event["object"].data["turn"]))
        if len(seen) == 3:
            stream.stop()
    wanted = [("ADDED", str(turn)) for turn in range(3)]
    checks.that("python: a watch tells of each", seen == wanted, seen)
    pages, token = [], None
    while True:
        page = core_api.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
        pages.append(len(page.items))
        token = page.metadata._continue
        if not token:
            break
    # The authority's certificates are in each namespace.
    checks.that("python: a list comes in pages", pages == [2, 2], pages)


def custom(api, checks):
    plural, group = "ships", "harbour.example"
    names = client.V1CustomResourceDefinitionNames(plural=plural, kind="Ship", singular="ship")
    schema = client.V1JSONSchemaProps(
        type="object",
        properties={
            "spec": client.V1JSONSchemaProps(
                type="object",
                required=["length"],
                properties={"length": client.V1JSONSchemaProps(type="integer", minimum=1)},
            )
        },
    )
    version = client.V1CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=client.V1CustomResourceValidation(open_apiv3_schema=schema),
    )
    definition = client.V1CustomResourceDefinition(
        metadata=client.V1ObjectMeta(name=f"{plural}.{group}"),
        spec=client.V1CustomResourceDefinitionSpec(
            group=group, scope="Namespaced", names=names, versions=[version]
        ),
    )
    client.ApiextensionsV1Api(api).create_custom_resource_definition(definition)
    ships = dynamic.DynamicClient(api).resources.get(api_version=f"{group}/v1", kind="Ship")
    ship = {"apiVersion": f"{group}/v1", "kind": "Ship", "metadata": {"name": "anna"}}
    intent = {**ship, "spec": {"length": 12}}
    applied = ships.server_side_apply(
        body=intent, name="anna", namespace=NAMESPACE, field_manager="yard"
    )
    manager = applied.metadata.managedFields[0]
    checks.that("python: a custom object is applied", applied.spec.length == 12, applied)
    checks.that("python: and owned", manager.manager == "yard", manager)
    try:
        ships.server_side_apply(
            body={**ship, "spec": {"length": 13}},
            name="anna",
            namespace=NAMESPACE,
            field_manager="pirates",
        )
        checks.that("python: another owner is refused", False, "it was taken")
    except dynamic.exceptions.ConflictError as error:
        cause = json.loads(error.body)["details"]["causes"][0]
        checks.that("python: another owner is refused", cause["field"] == ".spec.length", cause)


def javascript(kubeconfig, checks):
    modules = os.environ.get("WINDLASS_NODE_MODULES")
    if not modules:
        raise Failed("WINDLASS_NODE_MODULES does not say where @kubernetes/client-node is")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.mjs")
    command = ["node", script, kubeconfig, modules, NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    for line in lines:
        told = json.loads(line)
        checks.that("javascript: " + told["name"], told["holds"], told["detail"])
    checks.that("javascript: all of it ran", done.returncode == 0 and lines, done.stderr)


def main(arguments):
    checks = harness.Checks()
    server = harness.Server(arguments.windlass, os.path.join(arguments.scratch, "data")).start()
    try:
        print(f"the package kubernetes is {kubernetes.__version__}")
        kubeconfig = os.path.join(server.data, "admin.kubeconfig")
        api = kubernetes.config.new_client_from_config(kubeconfig)
        name = client.V1ObjectMeta(name=NAMESPACE)
        client.CoreV1Api(api).create_namespace(client.V1Namespace(metadata=name))
        certificates = lambda: server.client().call(
            "GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/kube-root-ca.crt"
        )[0]
        harness.wait_for("the namespace's certificates", lambda: certificates().status == 200)
        workloads(api, checks)
        core(api, checks)
        custom(api, checks)
        javascript(kubeconfig, checks)
    finally:
        server.kill()
    checks.finish()


if __name__ == "__main__":
    harness.run(main)
