"""A Ray of three nodes on this machine: its address on stdout; each line on stdin takes a node away."""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"

from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
print(cluster.address, flush=True)
for _ in sys.stdin:
    cluster.remove_node(workers.pop(), allow_graceful=False)
    print("gone", flush=True)
cluster.shutdown()
