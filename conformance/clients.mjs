// The JavaScript part of `clients.py`: typed objects with @kubernetes/client-node.
//
// usage: node clients.mjs KUBECONFIG NODE_MODULES NAMESPACE
//
// Prints {"name", "holds", "detail"} for each check.

import { pathToFileURL } from "node:url";

const [kubeconfig, modules, namespace] = process.argv.slice(2);
const entry = `${modules}/@kubernetes/client-node/dist/index.js`;
const k8s = await import(pathToFileURL(entry));

function check(name, holds, detail) {
  console.log(JSON.stringify({ name, holds: Boolean(holds), detail: JSON.stringify(detail) ?? "" }));
}

const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const batch = config.makeApiClient(k8s.BatchV1Api);

const container = { name: "work", image: "example/work:1" };
const made = await apps.createNamespacedDeployment({
  namespace,
  body: {
    metadata: { name: "work" },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "work" } },
      template: { metadata: { labels: { app: "work" } }, spec: { containers: [container] } },
    },
  },
});
check("a deployment is created", made.spec.replicas === 3, made);
check("its times are dates", made.metadata.creationTimestamp instanceof Date, made.metadata);

const job = await batch.createNamespacedJob({
  namespace,
  body: {
    metadata: { generateName: "once-" },
    spec: { template: { spec: { restartPolicy: "Never", containers: [container] } } },
  },
});
check("a job gets a name", job.metadata.name.startsWith("once-"), job.metadata);
check("and a selector", job.spec.selector.matchLabels, job.spec);

const list = await apps.listNamespacedDeployment({ namespace, fieldSelector: "metadata.name=work" });
check("it is listed", list.items.map((item) => item.metadata.name).join() === "work", list.items);

const scale = await apps.readNamespacedDeploymentScale({ namespace, name: "work" });
scale.spec.replicas = 4;
const scaled = await apps.replaceNamespacedDeploymentScale({ namespace, name: "work", body: scale });
check("it is scaled", scaled.spec.replicas === 4, scaled);

const patched = await apps.patchNamespacedDeployment({
  namespace,
  name: "work",
  body: [{ op: "replace", path: "/spec/replicas", value: 6 }],
});
check("a JSON patch is taken", patched.spec.replicas === 6, patched.spec);

const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const intent = (replicas) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "work", namespace },
  spec: { replicas },
});
const apply = (manager, replicas, force) =>
  objects.patch(intent(replicas), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
let refused;
try {
  await apply("scaler", 7, false);
} catch (error) {
  refused = error;
}
check("an apply that conflicts is refused", refused?.code === 409, refused?.body);
const forced = await apply("scaler", 7, true);
check("a forced one is taken", forced.spec.replicas === 7, forced.spec);
const owners = forced.metadata.managedFields.filter((entry) => entry.operation === "Apply");
check("and owned", owners.map((entry) => entry.manager).join() === "scaler", owners);

const informer = k8s.makeInformer(
  config,
  `/api/v1/namespaces/${namespace}/secrets`,
  () => core.listNamespacedSecret({ namespace }),
);
const seen = new Promise((resolve, reject) => {
  informer.on("add", (secret) => secret.metadata.name === "watched" && resolve(secret));
  informer.on("error", reject);
  setTimeout(() => reject(new Error("the informer saw nothing for 20 s")), 20_000).unref();
});
await informer.start();
await core.createNamespacedSecret({
  namespace,
  body: { metadata: { name: "watched" }, stringData: { a: "b" } },
});
check("an informer sees a new object", (await seen).data.a === "Yg==", "");
await informer.stop();

let missing;
try {
  await core.readNamespacedSecret({ namespace, name: "nowhere" });
} catch (error) {
  missing = error;
}
check("what is not there is a 404", missing?.code === 404, missing?.body);
