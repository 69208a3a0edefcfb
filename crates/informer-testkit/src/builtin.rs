//! The resources that a Kubernetes 1.36 API server has without any CustomResourceDefinition, alpha
//! versions aside.

use k8s_serve::Resource;

/// All built-in resources, in the order of discovery.
pub(crate) fn resources() -> Vec<Resource> {
    let mut resources = Vec::new();
    for (group, table) in GROUPS {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            resources.push(parse(group, line));
        }
    }
    resources
}

/// Reads `version plural Kind scope status short,names categories`, where `-` stands for nothing.
fn parse(group: &str, line: &str) -> Resource {
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap_or("-");
    let (version, plural, kind) = (next(), next(), next());
    let mut resource = Resource::new(group, version, plural, kind);
    resource.namespaced = next() == "ns";
    resource.has_status = next() == "status";
    resource.short_names = names(next());
    resource.categories = names(next());
    if plural == "endpoints" {
        "endpoints".clone_into(&mut resource.singular);
    }
    resource
}

fn names(word: &str) -> Vec<String> {
    word.split(',').filter(|name| *name != "-").map(str::to_owned).collect()
}

const GROUPS: [(&str, &str); 20] = [
    (
        "",
        "v1 configmaps             ConfigMap             ns      -      cm     -
         v1 endpoints              Endpoints             ns      -      ep     -
         v1 events                 Event                 ns      -      ev     -
         v1 limitranges            LimitRange            ns      -      limits -
         v1 namespaces             Namespace             cluster status ns     -
         v1 nodes                  Node                  cluster status no     -
         v1 persistentvolumeclaims PersistentVolumeClaim ns      status pvc    -
         v1 persistentvolumes      PersistentVolume      cluster status pv     -
         v1 pods                   Pod                   ns      status po     all
         v1 podtemplates           PodTemplate           ns      -      -      -
         v1 replicationcontrollers ReplicationController ns      status rc     all
         v1 resourcequotas         ResourceQuota         ns      status quota  -
         v1 secrets                Secret                ns      -      -      -
         v1 serviceaccounts        ServiceAccount        ns      -      sa     -
         v1 services               Service               ns      status svc    all",
    ),
    ("apiregistration.k8s.io", "v1 apiservices APIService cluster status - api-extensions"),
    (
        "apps",
        "v1 controllerrevisions ControllerRevision ns -      -      -
         v1 daemonsets          DaemonSet          ns status ds     all
         v1 deployments         Deployment         ns status deploy all
         v1 replicasets         ReplicaSet         ns status rs     all
         v1 statefulsets        StatefulSet        ns status sts    all",
    ),
    ("events.k8s.io", "v1 events Event ns - ev -"),
    (
        "autoscaling",
        "v2 horizontalpodautoscalers HorizontalPodAutoscaler ns status hpa all
         v1 horizontalpodautoscalers HorizontalPodAutoscaler ns status hpa all",
    ),
    (
        "batch",
        "v1 cronjobs CronJob ns status cj all
         v1 jobs     Job     ns status -  all",
    ),
    (
        "certificates.k8s.io",
        "v1      certificatesigningrequests CertificateSigningRequest cluster status csr -
         v1beta1 clustertrustbundles        ClusterTrustBundle        cluster -      -   -
         v1beta1 podcertificaterequests     PodCertificateRequest     ns      status -   -",
    ),
    (
        "networking.k8s.io",
        "v1 ingressclasses  IngressClass  cluster -      -      -
         v1 ingresses       Ingress       ns      status ing    -
         v1 ipaddresses     IPAddress     cluster -      ip     -
         v1 networkpolicies NetworkPolicy ns      -      netpol -
         v1 servicecidrs    ServiceCIDR   cluster status -      -",
    ),
    ("policy", "v1 poddisruptionbudgets PodDisruptionBudget ns status pdb -"),
    (
        "rbac.authorization.k8s.io",
        "v1 clusterrolebindings ClusterRoleBinding cluster - - -
         v1 clusterroles        ClusterRole        cluster - - -
         v1 rolebindings        RoleBinding        ns      - - -
         v1 roles               Role               ns      - - -",
    ),
    (
        "storage.k8s.io",
        "v1 csidrivers              CSIDriver             cluster -      -   -
         v1 csinodes                CSINode               cluster -      -   -
         v1 csistoragecapacities    CSIStorageCapacity    ns      -      -   -
         v1 storageclasses          StorageClass          cluster -      sc  -
         v1 volumeattachments       VolumeAttachment      cluster status -   -
         v1 volumeattributesclasses VolumeAttributesClass cluster -      vac -",
    ),
    (
        "admissionregistration.k8s.io",
        "v1 mutatingadmissionpolicies         MutatingAdmissionPolicy          cluster -      - api-extensions
         v1 mutatingadmissionpolicybindings   MutatingAdmissionPolicyBinding   cluster -      - api-extensions
         v1 mutatingwebhookconfigurations     MutatingWebhookConfiguration     cluster -      - api-extensions
         v1 validatingadmissionpolicies       ValidatingAdmissionPolicy        cluster status - api-extensions
         v1 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding cluster -      - api-extensions
         v1 validatingwebhookconfigurations   ValidatingWebhookConfiguration   cluster -      - api-extensions",
    ),
    ("apiextensions.k8s.io", "v1 customresourcedefinitions CustomResourceDefinition cluster status crd,crds api-extensions"),
    ("scheduling.k8s.io", "v1 priorityclasses PriorityClass cluster - pc -"),
    (
        "coordination.k8s.io",
        "v1      leases          Lease          ns - - -
         v1beta1 leasecandidates LeaseCandidate ns - - -",
    ),
    ("node.k8s.io", "v1 runtimeclasses RuntimeClass cluster - - -"),
    ("discovery.k8s.io", "v1 endpointslices EndpointSlice ns - - -"),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1 flowschemas                 FlowSchema                 cluster status - -
         v1 prioritylevelconfigurations PriorityLevelConfiguration cluster status - -",
    ),
    (
        "resource.k8s.io",
        "v1      deviceclasses          DeviceClass           cluster -      - -
         v1      resourceclaims         ResourceClaim         ns      status - -
         v1      resourceclaimtemplates ResourceClaimTemplate ns      -      - -
         v1      resourceslices         ResourceSlice         cluster -      - -
         v1beta2 deviceclasses          DeviceClass           cluster -      - -
         v1beta2 devicetaintrules       DeviceTaintRule       cluster status - -
         v1beta2 resourceclaims         ResourceClaim         ns      status - -
         v1beta2 resourceclaimtemplates ResourceClaimTemplate ns      -      - -
         v1beta2 resourceslices         ResourceSlice         cluster -      - -",
    ),
    ("storagemigration.k8s.io", "v1beta1 storageversionmigrations StorageVersionMigration cluster status - -"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_it_is_meant() {
        let all = resources();
        let find = |name: &str| {
            all.iter().find(|r| r.is_called(name)).unwrap_or_else(|| panic!("no {name}"))
        };
        assert_eq!(find("deploy").kind, "Deployment");
        assert_eq!(find("deploy").categories, ["all"]);
        assert_eq!(find("crds").short_names, ["crd", "crds"]);
        assert!(find("po").namespaced && find("po").has_status);
        assert!(!find("no").namespaced);
        assert!(find("events").group.is_empty(), "the core group comes first");
        assert_eq!(find("ep").singular, "endpoints");
    }
}
