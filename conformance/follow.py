"""Keeps a cache of the config maps of a namespace with the Python client, as its users do.

Part of the informer soak (`cargo xtask soak`), which names the interpreter that has the package
`kubernetes`: list, watch from there, and begin anew whenever the watch breaks or its version has
expired. Ends when the object `last` has the version that standard input tells, and prints the
cache as JSON: name to version and content.

usage: follow.py URL CA_FILE TOKEN
"""

import json
import sys
import threading

from kubernetes import client, watch
from urllib3.exceptions import HTTPError

LAST = "last"


def main():
    url, authority, token = sys.argv[1:4]
    configuration = client.Configuration(host=url)
    configuration.ssl_ca_cert = authority
    configuration.tls_server_name = "localhost"
    configuration.api_key = {"authorization": "Bearer " + token}
    configuration.retries = False
    maps = client.CoreV1Api(client.ApiClient(configuration))
    end = []
    threading.Thread(target=lambda: end.append(int(sys.stdin.readline())), daemon=True).start()
    objects, version, relists = {}, None, 0

    def is_over():
        return bool(end) and objects.get(LAST, (0,))[0] >= end[0]

    while not is_over():
        try:
            if version is None:
                found = maps.list_namespaced_config_map("default", _request_timeout=10)
                objects = {item.metadata.name: seen(item) for item in found.items}
                version = found.metadata.resource_version
                relists += 1
            # Short, so that the end is noticed also when nothing else happens.
            stream = watch.Watch().stream(
                maps.list_namespaced_config_map,
                "default",
                resource_version=version,
                timeout_seconds=2,
                allow_watch_bookmarks=True,
                _request_timeout=10,
            )
            for event in stream:
                item = event["object"]
                if event["type"] == "BOOKMARK":
                    version = event["raw_object"]["metadata"]["resourceVersion"]
                    continue
                version = item.metadata.resource_version
                if event["type"] == "DELETED":
                    objects.pop(item.metadata.name, None)
                else:
                    objects[item.metadata.name] = seen(item)
                if is_over():
                    break
        except client.ApiException as error:
            if error.status == 410:
                version = None
        except (HTTPError, OSError, ValueError):
            pass  # The connection was cut, perhaps in the middle of a line; go on from there.
    print(json.dumps({"objects": objects, "relists": relists}))


def seen(item):
    return (int(item.metadata.resource_version), (item.data or {}).get("n", ""))


if __name__ == "__main__":
    main()
