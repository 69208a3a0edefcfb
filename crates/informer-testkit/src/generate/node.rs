//! A node that is ready.

pub(super) fn write(number: usize, name: &str, uid: &str) -> String {
    let version = number + 1;
    let (high, low) = (number >> 8 & 255, number & 255);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","lastHeartbeatTime":"2026-11-02T09:00:00Z","lastTransitionTime":"2026-11-02T08:00:00Z","reason":"{reason}","message":"{message}"}}"#
        )
    };
    let conditions = [
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    .join(",");
    let images: Vec<String> = (0..10)
        .map(|image| {
            let size = 30_000_000 + image * 7_000_001;
            format!(
                r#"{{"names":["registry.example.com/base/image-{image}@sha256:{image:064x}","registry.example.com/base/image-{image}:1.{image}"],"sizeBytes":{size}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"2026-11-02T08:00:00Z","labels":{{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m5.2xlarge","topology.kubernetes.io/region":"eu-1","topology.kubernetes.io/zone":"eu-1{zone}"}},"annotations":{{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"}},"managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-02T09:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{"k:{{\"type\":\"Ready\"}}":{{"f:lastHeartbeatTime":{{}},"f:lastTransitionTime":{{}},"f:message":{{}},"f:reason":{{}},"f:status":{{}}}}}},"f:images":{{}}}}}},"subresource":"status"}}]}},"spec":{{"podCIDR":"10.{high}.{low}.0/24","podCIDRs":["10.{high}.{low}.0/24"],"providerID":"example:///eu-1/{name}"}},"status":{{"capacity":{{"cpu":"8","ephemeral-storage":"103079844Ki","hugepages-2Mi":"0","memory":"32386540Ki","pods":"110"}},"allocatable":{{"cpu":"7910m","ephemeral-storage":"94998384074","hugepages-2Mi":"0","memory":"31369708Ki","pods":"110"}},"conditions":[{conditions}],"addresses":[{{"type":"InternalIP","address":"192.168.{high}.{low}"}},{{"type":"Hostname","address":"{name}"}}],"daemonEndpoints":{{"kubeletEndpoint":{{"Port":10250}}}},"nodeInfo":{{"machineID":"{machine}","systemUUID":"{uid}","bootID":"{uid}","kernelVersion":"6.18.0","osImage":"Linux","containerRuntimeVersion":"containerd://2.2.0","kubeletVersion":"v1.36.3","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}},"images":[{images}]}}}}"#,
        zone = ["a", "b", "c"][number % 3],
        machine = uid.replace('-', ""),
        images = images.join(","),
    )
}
