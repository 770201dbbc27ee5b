"""A cluster of one node, inside the namespaces of `isolation`: every program is started here and ends with them."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

from lab.cluster.isolation import ADDRESS, BRIDGE, PODS
from lab.cluster.programs import Programs
from lab.e2e.control_plane import ControlPlane, find_free_port
from lab.e2e.processes import Process
from tests.waiting import wait_for

NODE = "node-1"
SERVICES = "10.0.0.0/24"
API_SERVICE = "10.0.0.1"
PAUSE = "localhost/pause:1"
ADMISSION = Path(__file__).parents[2] / "deploy" / "static-manifests" / "admission-configuration.yaml"
ON_DISK = "/etc/kubernetes/lease-webhook"
"""Where docs/static-manifests.md has files; here they lie in `Node.static`."""
CONTAINERD = """version = 2
root = "{directory}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Without CAP_SYS_RESOURCE, as in many virtual machines, no process may be protected more than its parent is.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{directory}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""
FIREWALL = ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore")
"""Names that Debian's installation links to the variant of the administrator's choice."""
NETWORK: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": BRIDGE,
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


class Node:
    """etcd, API server, controllers, scheduler, kubelet, kube-proxy and containerd; a context manager."""

    def __init__(self, programs: Programs, directory: Path) -> None:
        """Set up the node; `directory` takes all state and all logs."""
        self._programs = programs
        self.directory = directory
        client = directory / "pki"
        self.static = directory / "static"
        """What the API server and the kubelet read from the disk: `webhooks`, `policies` and `pods`."""
        self.plane = ControlPlane(
            programs.plane,
            directory,
            hosts=["kubernetes.default", "kubernetes.default.svc", ADDRESS, API_SERVICE],
            flags=(
                "--bind-address=0.0.0.0",
                f"--advertise-address={ADDRESS}",
                "--endpoint-reconciler-type=lease",
                f"--service-cluster-ip-range={SERVICES}",
                f"--kubelet-client-certificate={client / 'api-server.crt'}",
                f"--kubelet-client-key={client / 'api-server.key'}",
                "--kubelet-preferred-address-types=InternalIP",
                "--allow-privileged=true",
                f"--admission-control-config-file={self.static / ADMISSION.name}",
            ),
        )
        self._group = os.environ["CLUSTER_CONTROL_GROUP"]
        self._socket = directory / "containerd.sock"
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        self.plane.authority.issue("api-server", organizations=["system:masters"])
        for folder in ("webhooks", "policies", "pods"):
            (self.static / folder).mkdir(parents=True)
        text = ADMISSION.read_text().replace(ON_DISK, str(self.static))
        (self.static / ADMISSION.name).write_text(text)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Containers and mounts end with the namespaces.
        for process in reversed(self._processes):
            process.kill()
        self._processes.clear()
        self.plane.__exit__()

    def start(self) -> None:
        """Start every program and wait until the node is ready."""
        self.plane.__enter__()
        try:
            self._start_controllers()
            self._set_up_firewall()
            self._start_containerd()
            self._start_kubelet()
            self._start_proxy()
            wait_for("the node is ready", self._is_ready, 120, 0.5)
        except BaseException:
            self.__exit__()
            raise

    def crash(self) -> None:
        """End every program and every container without a word, as a loss of power does."""
        self.__exit__()
        for pid in (path.name for path in Path("/proc").iterdir() if path.name.isdigit()):
            try:
                groups = Path("/proc", pid, "cgroup").read_text()
                if self._group in groups or "containerd-shim" in Path("/proc", pid, "cmdline").read_text():
                    os.kill(int(pid), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue

    def load(self, archive: Path) -> None:
        """Give the node an image from a docker archive."""
        command = ["ctr", "--address", str(self._socket), "--namespace", "k8s.io", "image", "import", str(archive)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _set_up_firewall(self) -> None:
        links = self.directory / "bin"
        links.mkdir(exist_ok=True)
        for name in FIREWALL:
            if not (links / name).is_symlink():
                (links / name).symlink_to("/usr/sbin/xtables-nft-multi")

    def _start_containerd(self) -> None:
        networks = self.directory / "cni"
        networks.mkdir(exist_ok=True)
        (networks / "10-pods.conflist").write_text(json.dumps(NETWORK))
        settings = self.directory / "containerd.toml"
        settings.write_text(CONTAINERD.format(directory=self.directory, socket=self._socket, pause=PAUSE))
        self._socket.unlink(missing_ok=True)
        self._run("containerd", "containerd", f"--config={settings}")
        wait_for("containerd", self._socket.exists, 30)

    def _start_controllers(self) -> None:
        pki = self.directory / "pki"
        self._run(
            "kube-controller-manager",
            self._programs.controller_manager,
            f"--kubeconfig={self.plane.write_kubeconfig('system:kube-controller-manager')}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki / 'service-account.key'}",
            f"--root-ca-file={self.plane.authority.file}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={pki}",
        )
        self._run(
            "kube-scheduler",
            self._programs.scheduler,
            f"--kubeconfig={self.plane.write_kubeconfig('system:kube-scheduler')}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={pki}",
        )

    def _start_kubelet(self) -> None:
        directory = self.directory / "kubelet"
        settings: dict[str, Any] = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS,
            "readOnlyPort": 0,
            "healthzPort": find_free_port(),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.plane.authority.file)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": ["none"],
            "evictionHard": {"imagefs.available": "1%", "nodefs.available": "1%", "memory.available": "50Mi"},
            # The state lies in memory, whose file system has no quotas that could be watched.
            "localStorageCapacityIsolation": False,
            "staticPodPath": str(self.static / "pods"),
            "fileCheckFrequency": "2s",
            "podLogsDir": str(self.directory / "pod-logs"),
            "volumePluginDir": str(directory / "plugins"),
            "clusterDNS": ["10.0.0.10"],
            "clusterDomain": "cluster.local",
        }
        file = self.directory / "kubelet.yaml"
        file.write_text(json.dumps(settings))
        self._run(
            "kubelet",
            self._programs.kubelet,
            f"--kubeconfig={self.plane.write_kubeconfig(f'system:node:{NODE}', 'system:nodes')}",
            f"--config={file}",
            f"--root-dir={directory}",
            f"--cert-dir={directory / 'pki'}",
            f"--hostname-override={NODE}",
            f"--node-ip={ADDRESS}",
        )

    def _start_proxy(self) -> None:
        self._run(
            "kube-proxy",
            self._programs.proxy,
            f"--kubeconfig={self.plane.write_kubeconfig('system:kube-proxy')}",
            f"--hostname-override={NODE}",
            "--proxy-mode=iptables",
            f"--cluster-cidr={PODS}",
            "--conntrack-max-per-core=0",
        )

    def _is_ready(self) -> bool:
        for process in self._processes:
            process.check_alive()
        answer = self.plane.create_client("admin", "system:masters").send("GET", f"/api/v1/nodes/{NODE}")
        if answer.status != 200:
            return False
        conditions = answer.body["status"].get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _run(self, name: str, program: str | Path, *flags: str) -> None:
        environment = {**os.environ, "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}"}
        self._processes.append(Process([str(program), *flags], self.directory / f"{name}.log", environment))
