//! Every kind of k8s-openapi.

use k8s_openapi::List;
use k8s_openapi::{ListableResource, Resource};
use serde::de::DeserializeOwned;

use super::Kinds;

/// Of each module the kinds that have lists, which are added with these, and after the semicolon
/// those that have none.
macro_rules! kinds {
    ($($($module:ident)::+ { $($listed:ident)*; $($single:ident)* })*) => {
        pub(crate) fn all() -> Kinds {
            let mut kinds = Kinds::default();
            $({
                #[allow(unused_imports, clippy::allow_attributes, reason = "some have one sort of kinds only")]
                use k8s_openapi::$($module)::+ as module;
                $(listed::<module::$listed>(&mut kinds);)*
                $(kinds.add::<module::$single>(module::$single::API_VERSION, module::$single::KIND);)*
            })*
            kinds
        }
    };
}

fn listed<K>(kinds: &mut Kinds)
where
    K: ListableResource + DeserializeOwned + PartialEq + std::fmt::Debug + 'static,
{
    kinds.add::<K>(K::API_VERSION, K::KIND);
    kinds.add::<List<K>>(K::API_VERSION, K::LIST_KIND);
}

kinds! {
    api::admissionregistration::v1 {
        MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
        ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration;
    }
    api::admissionregistration::v1alpha1 { MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;  }
    api::admissionregistration::v1beta1 { MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;  }
    api::apiserverinternal::v1alpha1 { StorageVersion;  }
    api::apps::v1 { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;  }
    api::authentication::v1 { ; SelfSubjectReview TokenRequest TokenReview }
    api::authorization::v1 {
        ; LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
    }
    api::autoscaling::v1 { HorizontalPodAutoscaler; Scale }
    api::autoscaling::v2 { HorizontalPodAutoscaler;  }
    api::batch::v1 { CronJob Job;  }
    api::certificates::v1 { CertificateSigningRequest;  }
    api::certificates::v1alpha1 { ClusterTrustBundle;  }
    api::certificates::v1beta1 { ClusterTrustBundle PodCertificateRequest;  }
    api::coordination::v1 { Lease;  }
    api::coordination::v1alpha2 { LeaseCandidate;  }
    api::coordination::v1beta1 { LeaseCandidate;  }
    api::core::v1 {
        ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
        PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
        ServiceAccount; Binding
    }
    api::discovery::v1 { EndpointSlice;  }
    api::events::v1 { Event;  }
    api::flowcontrol::v1 { FlowSchema PriorityLevelConfiguration;  }
    api::networking::v1 { Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR;  }
    api::networking::v1beta1 { IPAddress ServiceCIDR;  }
    api::node::v1 { RuntimeClass;  }
    api::policy::v1 { PodDisruptionBudget; Eviction }
    api::rbac::v1 { ClusterRole ClusterRoleBinding Role RoleBinding;  }
    api::resource::v1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;  }
    api::resource::v1alpha3 { DeviceTaintRule ResourcePoolStatusRequest;  }
    api::resource::v1beta1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;  }
    api::resource::v1beta2 {
        DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice;
    }
    api::scheduling::v1 { PriorityClass;  }
    api::scheduling::v1alpha2 { PodGroup Workload;  }
    api::storage::v1 {
        CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass;
    }
    api::storage::v1beta1 { VolumeAttributesClass;  }
    api::storagemigration::v1beta1 { StorageVersionMigration;  }
    apiextensions_apiserver::pkg::apis::apiextensions::v1 { CustomResourceDefinition;  }
    apimachinery::pkg::apis::meta::v1 { ; APIGroup APIGroupList APIResourceList APIVersions Status }
    kube_aggregator::pkg::apis::apiregistration::v1 { APIService;  }
}
