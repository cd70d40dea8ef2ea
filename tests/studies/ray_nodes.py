"""A Ray of a head and some nodes on this machine: `ray_nodes.py COUNT` writes its address to stdout.

Each line on stdin is an order, answered by a line: `node` kills one and puts another in its place,
`head` kills the head, `end` ends all.
"""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"
# Ray's tasks run at priority 15, where other tests leave them little time. A silent node is asked five times,
# three seconds apart, before it counts as lost.
os.environ |= {"RAY_worker_niceness": "0", "RAY_health_check_period_ms": "500"}

from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(int(sys.argv[1]))]
print(cluster.address, flush=True)
for line in sys.stdin:
    match line.strip():
        case "head":
            cluster.remove_node(cluster.head_node, allow_graceful=False)
        case "node":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=1))
        case "end":
            break
    print("done", flush=True)
cluster.shutdown()
print("done", flush=True)
