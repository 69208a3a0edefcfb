// Made by `go run . openapi` in crates/k8s-protobuf/generator from k8s.io/api v0.36.3, k8s.io/apiextensions-apiserver v0.36.3, k8s.io/apimachinery v0.36.3, k8s.io/client-go v0.36.3, k8s.io/kube-aggregator v0.36.3, k8s.io/metrics v0.36.3; do not edit.
use std::any::{Any, TypeId};

use super::{Message, Object, Read, Value, fill, protobuf};

objects! {
    api::core::v1::ConfigMap
    api::core::v1::Endpoints
    api::core::v1::Event
    api::core::v1::Namespace
    api::core::v1::Node
    api::core::v1::PersistentVolume
    api::core::v1::PersistentVolumeClaim
    api::core::v1::Pod
    api::core::v1::Secret
    api::core::v1::Service
    api::core::v1::ServiceAccount
    api::apps::v1::ControllerRevision
    api::apps::v1::DaemonSet
    api::apps::v1::Deployment
    api::apps::v1::ReplicaSet
    api::apps::v1::StatefulSet
    api::autoscaling::v2::HorizontalPodAutoscaler
    api::batch::v1::CronJob
    api::batch::v1::Job
    api::coordination::v1::Lease
    api::discovery::v1::EndpointSlice
    api::events::v1::Event
    api::networking::v1::Ingress
    api::networking::v1::NetworkPolicy
    api::policy::v1::PodDisruptionBudget
    api::rbac::v1::ClusterRole
    api::rbac::v1::ClusterRoleBinding
    api::rbac::v1::Role
    api::rbac::v1::RoleBinding
    api::storage::v1::VolumeAttachment
}
message!("k8s.io/api/apps/v1.ControllerRevision", api::apps::v1::ControllerRevision { 0x1 metadata, 0x2 data, 0x3 revision });
message!("k8s.io/api/apps/v1.DaemonSet", api::apps::v1::DaemonSet { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/apps/v1.DaemonSetCondition", api::apps::v1::DaemonSetCondition { 0x1 type_, 0x2 status, 0x3 last_transition_time, 0x4 reason, 0x5 message });
message!("k8s.io/api/apps/v1.DaemonSetSpec", api::apps::v1::DaemonSetSpec { 0x1 selector, 0x2 template, 0x3 update_strategy, 0x4 min_ready_seconds, 0x6 revision_history_limit });
message!("k8s.io/api/apps/v1.DaemonSetStatus", api::apps::v1::DaemonSetStatus { 0x1 current_number_scheduled, 0x2 number_misscheduled, 0x3 desired_number_scheduled, 0x4 number_ready, 0x5 observed_generation, 0x6 updated_number_scheduled, 0x7 number_available, 0x8 number_unavailable, 0x9 collision_count, 0xa conditions });
message!("k8s.io/api/apps/v1.DaemonSetUpdateStrategy", api::apps::v1::DaemonSetUpdateStrategy { 0x1 type_, 0x2 rolling_update });
message!("k8s.io/api/apps/v1.Deployment", api::apps::v1::Deployment { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/apps/v1.DeploymentCondition", api::apps::v1::DeploymentCondition { 0x1 type_, 0x2 status, 0x4 reason, 0x5 message, 0x6 last_update_time, 0x7 last_transition_time });
message!("k8s.io/api/apps/v1.DeploymentSpec", api::apps::v1::DeploymentSpec { 0x1 replicas, 0x2 selector, 0x3 template, 0x4 strategy, 0x5 min_ready_seconds, 0x6 revision_history_limit, 0x7 paused, 0x9 progress_deadline_seconds });
message!("k8s.io/api/apps/v1.DeploymentStatus", api::apps::v1::DeploymentStatus { 0x1 observed_generation, 0x2 replicas, 0x3 updated_replicas, 0x4 available_replicas, 0x5 unavailable_replicas, 0x6 conditions, 0x7 ready_replicas, 0x8 collision_count, 0x9 terminating_replicas });
message!("k8s.io/api/apps/v1.DeploymentStrategy", api::apps::v1::DeploymentStrategy { 0x1 type_, 0x2 rolling_update });
message!("k8s.io/api/apps/v1.ReplicaSet", api::apps::v1::ReplicaSet { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/apps/v1.ReplicaSetCondition", api::apps::v1::ReplicaSetCondition { 0x1 type_, 0x2 status, 0x3 last_transition_time, 0x4 reason, 0x5 message });
message!("k8s.io/api/apps/v1.ReplicaSetSpec", api::apps::v1::ReplicaSetSpec { 0x1 replicas, 0x2 selector, 0x3 template, 0x4 min_ready_seconds });
message!("k8s.io/api/apps/v1.ReplicaSetStatus", api::apps::v1::ReplicaSetStatus { 0x1 replicas, 0x2 fully_labeled_replicas, 0x3 observed_generation, 0x4 ready_replicas, 0x5 available_replicas, 0x6 conditions, 0x7 terminating_replicas });
message!("k8s.io/api/apps/v1.RollingUpdateDaemonSet", api::apps::v1::RollingUpdateDaemonSet { 0x1 max_unavailable, 0x2 max_surge });
message!("k8s.io/api/apps/v1.RollingUpdateDeployment", api::apps::v1::RollingUpdateDeployment { 0x1 max_unavailable, 0x2 max_surge });
message!("k8s.io/api/apps/v1.RollingUpdateStatefulSetStrategy", api::apps::v1::RollingUpdateStatefulSetStrategy { 0x1 partition, 0x2 max_unavailable });
message!("k8s.io/api/apps/v1.StatefulSet", api::apps::v1::StatefulSet { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/apps/v1.StatefulSetCondition", api::apps::v1::StatefulSetCondition { 0x1 type_, 0x2 status, 0x3 last_transition_time, 0x4 reason, 0x5 message });
message!("k8s.io/api/apps/v1.StatefulSetOrdinals", api::apps::v1::StatefulSetOrdinals { 0x1 start });
message!("k8s.io/api/apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy", api::apps::v1::StatefulSetPersistentVolumeClaimRetentionPolicy { 0x1 when_deleted, 0x2 when_scaled });
message!("k8s.io/api/apps/v1.StatefulSetSpec", api::apps::v1::StatefulSetSpec { 0x1 replicas, 0x2 selector, 0x3 template, 0x4 volume_claim_templates, 0x5 service_name, 0x6 pod_management_policy, 0x7 update_strategy, 0x8 revision_history_limit, 0x9 min_ready_seconds, 0xa persistent_volume_claim_retention_policy, 0xb ordinals });
message!("k8s.io/api/apps/v1.StatefulSetStatus", api::apps::v1::StatefulSetStatus { 0x1 observed_generation, 0x2 replicas, 0x3 ready_replicas, 0x4 current_replicas, 0x5 updated_replicas, 0x6 current_revision, 0x7 update_revision, 0x9 collision_count, 0xa conditions, 0xb available_replicas });
message!("k8s.io/api/apps/v1.StatefulSetUpdateStrategy", api::apps::v1::StatefulSetUpdateStrategy { 0x1 type_, 0x2 rolling_update });
message!("k8s.io/api/autoscaling/v2.ContainerResourceMetricSource", api::autoscaling::v2::ContainerResourceMetricSource { 0x1 name, 0x2 target, 0x3 container });
message!("k8s.io/api/autoscaling/v2.ContainerResourceMetricStatus", api::autoscaling::v2::ContainerResourceMetricStatus { 0x1 name, 0x2 current, 0x3 container });
message!("k8s.io/api/autoscaling/v2.CrossVersionObjectReference", api::autoscaling::v2::CrossVersionObjectReference { 0x1 kind, 0x2 name, 0x3 api_version });
message!("k8s.io/api/autoscaling/v2.ExternalMetricSource", api::autoscaling::v2::ExternalMetricSource { 0x1 metric, 0x2 target });
message!("k8s.io/api/autoscaling/v2.ExternalMetricStatus", api::autoscaling::v2::ExternalMetricStatus { 0x1 metric, 0x2 current });
message!("k8s.io/api/autoscaling/v2.HPAScalingPolicy", api::autoscaling::v2::HPAScalingPolicy { 0x1 type_, 0x2 value, 0x3 period_seconds });
message!("k8s.io/api/autoscaling/v2.HPAScalingRules", api::autoscaling::v2::HPAScalingRules { 0x1 select_policy, 0x2 policies, 0x3 stabilization_window_seconds, 0x4 tolerance });
message!("k8s.io/api/autoscaling/v2.HorizontalPodAutoscaler", api::autoscaling::v2::HorizontalPodAutoscaler { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerBehavior", api::autoscaling::v2::HorizontalPodAutoscalerBehavior { 0x1 scale_up, 0x2 scale_down });
message!("k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerCondition", api::autoscaling::v2::HorizontalPodAutoscalerCondition { 0x1 type_, 0x2 status, 0x3 last_transition_time, 0x4 reason, 0x5 message });
message!("k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerSpec", api::autoscaling::v2::HorizontalPodAutoscalerSpec { 0x1 scale_target_ref, 0x2 min_replicas, 0x3 max_replicas, 0x4 metrics, 0x5 behavior });
message!("k8s.io/api/autoscaling/v2.HorizontalPodAutoscalerStatus", api::autoscaling::v2::HorizontalPodAutoscalerStatus { 0x1 observed_generation, 0x2 last_scale_time, 0x3 current_replicas, 0x4 desired_replicas, 0x5 current_metrics, 0x6 conditions });
message!("k8s.io/api/autoscaling/v2.MetricIdentifier", api::autoscaling::v2::MetricIdentifier { 0x1 name, 0x2 selector });
message!("k8s.io/api/autoscaling/v2.MetricSpec", api::autoscaling::v2::MetricSpec { 0x1 type_, 0x2 object, 0x3 pods, 0x4 resource, 0x5 external, 0x7 container_resource });
message!("k8s.io/api/autoscaling/v2.MetricStatus", api::autoscaling::v2::MetricStatus { 0x1 type_, 0x2 object, 0x3 pods, 0x4 resource, 0x5 external, 0x7 container_resource });
message!("k8s.io/api/autoscaling/v2.MetricTarget", api::autoscaling::v2::MetricTarget { 0x1 type_, 0x2 value, 0x3 average_value, 0x4 average_utilization });
message!("k8s.io/api/autoscaling/v2.MetricValueStatus", api::autoscaling::v2::MetricValueStatus { 0x1 value, 0x2 average_value, 0x3 average_utilization });
message!("k8s.io/api/autoscaling/v2.ObjectMetricSource", api::autoscaling::v2::ObjectMetricSource { 0x1 described_object, 0x2 target, 0x3 metric });
message!("k8s.io/api/autoscaling/v2.ObjectMetricStatus", api::autoscaling::v2::ObjectMetricStatus { 0x1 metric, 0x2 current, 0x3 described_object });
message!("k8s.io/api/autoscaling/v2.PodsMetricSource", api::autoscaling::v2::PodsMetricSource { 0x1 metric, 0x2 target });
message!("k8s.io/api/autoscaling/v2.PodsMetricStatus", api::autoscaling::v2::PodsMetricStatus { 0x1 metric, 0x2 current });
message!("k8s.io/api/autoscaling/v2.ResourceMetricSource", api::autoscaling::v2::ResourceMetricSource { 0x1 name, 0x2 target });
message!("k8s.io/api/autoscaling/v2.ResourceMetricStatus", api::autoscaling::v2::ResourceMetricStatus { 0x1 name, 0x2 current });
message!("k8s.io/api/batch/v1.CronJob", api::batch::v1::CronJob { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/batch/v1.CronJobSpec", api::batch::v1::CronJobSpec { 0x1 schedule, 0x2 starting_deadline_seconds, 0x3 concurrency_policy, 0x4 suspend, 0x5 job_template, 0x6 successful_jobs_history_limit, 0x7 failed_jobs_history_limit, 0x8 time_zone });
message!("k8s.io/api/batch/v1.CronJobStatus", api::batch::v1::CronJobStatus { 0x1 active, 0x4 last_schedule_time, 0x5 last_successful_time });
message!("k8s.io/api/batch/v1.Job", api::batch::v1::Job { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/batch/v1.JobCondition", api::batch::v1::JobCondition { 0x1 type_, 0x2 status, 0x3 last_probe_time, 0x4 last_transition_time, 0x5 reason, 0x6 message });
message!("k8s.io/api/batch/v1.JobSpec", api::batch::v1::JobSpec { 0x1 parallelism, 0x2 completions, 0x3 active_deadline_seconds, 0x4 selector, 0x5 manual_selector, 0x6 template, 0x7 backoff_limit, 0x8 ttl_seconds_after_finished, 0x9 completion_mode, 0xa suspend, 0xb pod_failure_policy, 0xc backoff_limit_per_index, 0xd max_failed_indexes, 0xe pod_replacement_policy, 0xf managed_by, 0x10 success_policy });
message!("k8s.io/api/batch/v1.JobStatus", api::batch::v1::JobStatus { 0x1 conditions, 0x2 start_time, 0x3 completion_time, 0x4 active, 0x5 succeeded, 0x6 failed, 0x7 completed_indexes, 0x8 uncounted_terminated_pods, 0x9 ready, 0xa failed_indexes, 0xb terminating });
message!("k8s.io/api/batch/v1.JobTemplateSpec", api::batch::v1::JobTemplateSpec { 0x1 metadata, 0x2 spec });
message!("k8s.io/api/batch/v1.PodFailurePolicy", api::batch::v1::PodFailurePolicy { 0x1 rules });
message!("k8s.io/api/batch/v1.PodFailurePolicyOnExitCodesRequirement", api::batch::v1::PodFailurePolicyOnExitCodesRequirement { 0x1 container_name, 0x2 operator, 0x3 values });
message!("k8s.io/api/batch/v1.PodFailurePolicyOnPodConditionsPattern", api::batch::v1::PodFailurePolicyOnPodConditionsPattern { 0x1 type_, 0x2 status });
message!("k8s.io/api/batch/v1.PodFailurePolicyRule", api::batch::v1::PodFailurePolicyRule { 0x1 action, 0x2 on_exit_codes, 0x3 on_pod_conditions });
message!("k8s.io/api/batch/v1.SuccessPolicy", api::batch::v1::SuccessPolicy { 0x1 rules });
message!("k8s.io/api/batch/v1.SuccessPolicyRule", api::batch::v1::SuccessPolicyRule { 0x1 succeeded_indexes, 0x2 succeeded_count });
message!("k8s.io/api/batch/v1.UncountedTerminatedPods", api::batch::v1::UncountedTerminatedPods { 0x1 succeeded, 0x2 failed });
message!("k8s.io/api/coordination/v1.Lease", api::coordination::v1::Lease { 0x1 metadata, 0x2 spec });
message!("k8s.io/api/coordination/v1.LeaseSpec", api::coordination::v1::LeaseSpec { 0x1 holder_identity, 0x2 lease_duration_seconds, 0x3 acquire_time, 0x4 renew_time, 0x5 lease_transitions, 0x6 strategy, 0x7 preferred_holder });
message!("k8s.io/api/core/v1.AWSElasticBlockStoreVolumeSource", api::core::v1::AWSElasticBlockStoreVolumeSource { 0x1 volume_id, 0x2 fs_type, 0x3 partition, 0x4 read_only });
message!("k8s.io/api/core/v1.Affinity", api::core::v1::Affinity { 0x1 node_affinity, 0x2 pod_affinity, 0x3 pod_anti_affinity });
message!("k8s.io/api/core/v1.AppArmorProfile", api::core::v1::AppArmorProfile { 0x1 type_, 0x2 localhost_profile });
message!("k8s.io/api/core/v1.AttachedVolume", api::core::v1::AttachedVolume { 0x1 name, 0x2 device_path });
message!("k8s.io/api/core/v1.AzureDiskVolumeSource", api::core::v1::AzureDiskVolumeSource { 0x1 disk_name, 0x2 disk_uri, 0x3 caching_mode, 0x4 fs_type, 0x5 read_only, 0x6 kind });
message!("k8s.io/api/core/v1.AzureFilePersistentVolumeSource", api::core::v1::AzureFilePersistentVolumeSource { 0x1 secret_name, 0x2 share_name, 0x3 read_only, 0x4 secret_namespace });
message!("k8s.io/api/core/v1.AzureFileVolumeSource", api::core::v1::AzureFileVolumeSource { 0x1 secret_name, 0x2 share_name, 0x3 read_only });
message!("k8s.io/api/core/v1.CSIPersistentVolumeSource", api::core::v1::CSIPersistentVolumeSource { 0x1 driver, 0x2 volume_handle, 0x3 read_only, 0x4 fs_type, 0x5 volume_attributes, 0x6 controller_publish_secret_ref, 0x7 node_stage_secret_ref, 0x8 node_publish_secret_ref, 0x9 controller_expand_secret_ref, 0xa node_expand_secret_ref });
message!("k8s.io/api/core/v1.CSIVolumeSource", api::core::v1::CSIVolumeSource { 0x1 driver, 0x2 read_only, 0x3 fs_type, 0x4 volume_attributes, 0x5 node_publish_secret_ref });
message!("k8s.io/api/core/v1.Capabilities", api::core::v1::Capabilities { 0x1 add, 0x2 drop });
message!("k8s.io/api/core/v1.CephFSPersistentVolumeSource", api::core::v1::CephFSPersistentVolumeSource { 0x1 monitors, 0x2 path, 0x3 user, 0x4 secret_file, 0x5 secret_ref, 0x6 read_only });
message!("k8s.io/api/core/v1.CephFSVolumeSource", api::core::v1::CephFSVolumeSource { 0x1 monitors, 0x2 path, 0x3 user, 0x4 secret_file, 0x5 secret_ref, 0x6 read_only });
message!("k8s.io/api/core/v1.CinderPersistentVolumeSource", api::core::v1::CinderPersistentVolumeSource { 0x1 volume_id, 0x2 fs_type, 0x3 read_only, 0x4 secret_ref });
message!("k8s.io/api/core/v1.CinderVolumeSource", api::core::v1::CinderVolumeSource { 0x1 volume_id, 0x2 fs_type, 0x3 read_only, 0x4 secret_ref });
message!("k8s.io/api/core/v1.ClientIPConfig", api::core::v1::ClientIPConfig { 0x1 timeout_seconds });
message!("k8s.io/api/core/v1.ClusterTrustBundleProjection", api::core::v1::ClusterTrustBundleProjection { 0x1 name, 0x2 signer_name, 0x3 label_selector, 0x4 path, 0x5 optional });
message!("k8s.io/api/core/v1.ConfigMap", api::core::v1::ConfigMap { 0x1 metadata, 0x2 data, 0x3 binary_data, 0x4 immutable });
message!("k8s.io/api/core/v1.ConfigMapEnvSource", api::core::v1::ConfigMapEnvSource { 0x101 name, 0x2 optional });
message!("k8s.io/api/core/v1.ConfigMapKeySelector", api::core::v1::ConfigMapKeySelector { 0x101 name, 0x2 key, 0x3 optional });
message!("k8s.io/api/core/v1.ConfigMapNodeConfigSource", api::core::v1::ConfigMapNodeConfigSource { 0x1 namespace, 0x2 name, 0x3 uid, 0x4 resource_version, 0x5 kubelet_config_key });
message!("k8s.io/api/core/v1.ConfigMapProjection", api::core::v1::ConfigMapProjection { 0x101 name, 0x2 items, 0x4 optional });
message!("k8s.io/api/core/v1.ConfigMapVolumeSource", api::core::v1::ConfigMapVolumeSource { 0x101 name, 0x2 items, 0x3 default_mode, 0x4 optional });
message!("k8s.io/api/core/v1.Container", api::core::v1::Container { 0x1 name, 0x2 image, 0x3 command, 0x4 args, 0x5 working_dir, 0x6 ports, 0x7 env, 0x8 resources, 0x9 volume_mounts, 0xa liveness_probe, 0xb readiness_probe, 0xc lifecycle, 0xd termination_message_path, 0xe image_pull_policy, 0xf security_context, 0x10 stdin, 0x11 stdin_once, 0x12 tty, 0x13 env_from, 0x14 termination_message_policy, 0x15 volume_devices, 0x16 startup_probe, 0x17 resize_policy, 0x18 restart_policy } k8s_if_ge_1_34 { 0x19 restart_policy_rules });
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.ContainerExtendedResourceRequest", api::core::v1::ContainerExtendedResourceRequest { 0x1 container_name, 0x2 resource_name, 0x3 request_name }); }
message!("k8s.io/api/core/v1.ContainerImage", api::core::v1::ContainerImage { 0x1 names, 0x2 size_bytes });
message!("k8s.io/api/core/v1.ContainerPort", api::core::v1::ContainerPort { 0x1 name, 0x2 host_port, 0x3 container_port, 0x4 protocol, 0x5 host_ip });
message!("k8s.io/api/core/v1.ContainerResizePolicy", api::core::v1::ContainerResizePolicy { 0x1 resource_name, 0x2 restart_policy });
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.ContainerRestartRule", api::core::v1::ContainerRestartRule { 0x1 action, 0x2 exit_codes }); }
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.ContainerRestartRuleOnExitCodes", api::core::v1::ContainerRestartRuleOnExitCodes { 0x1 operator, 0x2 values }); }
message!("k8s.io/api/core/v1.ContainerState", api::core::v1::ContainerState { 0x1 waiting, 0x2 running, 0x3 terminated });
message!("k8s.io/api/core/v1.ContainerStateRunning", api::core::v1::ContainerStateRunning { 0x1 started_at });
message!("k8s.io/api/core/v1.ContainerStateTerminated", api::core::v1::ContainerStateTerminated { 0x1 exit_code, 0x2 signal, 0x3 reason, 0x4 message, 0x5 started_at, 0x6 finished_at, 0x7 container_id });
message!("k8s.io/api/core/v1.ContainerStateWaiting", api::core::v1::ContainerStateWaiting { 0x1 reason, 0x2 message });
message!("k8s.io/api/core/v1.ContainerStatus", api::core::v1::ContainerStatus { 0x1 name, 0x2 state, 0x3 last_state, 0x4 ready, 0x5 restart_count, 0x6 image, 0x7 image_id, 0x8 container_id, 0x9 started, 0xa allocated_resources, 0xb resources, 0xc volume_mounts, 0xd user, 0xe allocated_resources_status, 0xf stop_signal });
message!("k8s.io/api/core/v1.ContainerUser", api::core::v1::ContainerUser { 0x1 linux });
message!("k8s.io/api/core/v1.DaemonEndpoint", api::core::v1::DaemonEndpoint { 0x1 port });
message!("k8s.io/api/core/v1.DownwardAPIProjection", api::core::v1::DownwardAPIProjection { 0x1 items });
message!("k8s.io/api/core/v1.DownwardAPIVolumeFile", api::core::v1::DownwardAPIVolumeFile { 0x1 path, 0x2 field_ref, 0x3 resource_field_ref, 0x4 mode });
message!("k8s.io/api/core/v1.DownwardAPIVolumeSource", api::core::v1::DownwardAPIVolumeSource { 0x1 items, 0x2 default_mode });
message!("k8s.io/api/core/v1.EmptyDirVolumeSource", api::core::v1::EmptyDirVolumeSource { 0x1 medium, 0x2 size_limit });
message!("k8s.io/api/core/v1.EndpointAddress", api::core::v1::EndpointAddress { 0x1 ip, 0x2 target_ref, 0x3 hostname, 0x4 node_name });
message!("k8s.io/api/core/v1.EndpointPort", api::core::v1::EndpointPort { 0x1 name, 0x2 port, 0x3 protocol, 0x4 app_protocol });
message!("k8s.io/api/core/v1.EndpointSubset", api::core::v1::EndpointSubset { 0x1 addresses, 0x2 not_ready_addresses, 0x3 ports });
message!("k8s.io/api/core/v1.Endpoints", api::core::v1::Endpoints { 0x1 metadata, 0x2 subsets });
message!("k8s.io/api/core/v1.EnvFromSource", api::core::v1::EnvFromSource { 0x1 prefix, 0x2 config_map_ref, 0x3 secret_ref });
message!("k8s.io/api/core/v1.EnvVar", api::core::v1::EnvVar { 0x1 name, 0x2 value, 0x3 value_from });
message!("k8s.io/api/core/v1.EnvVarSource", api::core::v1::EnvVarSource { 0x1 field_ref, 0x2 resource_field_ref, 0x3 config_map_key_ref, 0x4 secret_key_ref } k8s_if_ge_1_34 { 0x5 file_key_ref });
message!("k8s.io/api/core/v1.EphemeralContainer", api::core::v1::EphemeralContainer { 0x101 name, 0x102 image, 0x103 command, 0x104 args, 0x105 working_dir, 0x106 ports, 0x107 env, 0x108 resources, 0x109 volume_mounts, 0x10a liveness_probe, 0x10b readiness_probe, 0x10c lifecycle, 0x10d termination_message_path, 0x10e image_pull_policy, 0x10f security_context, 0x110 stdin, 0x111 stdin_once, 0x112 tty, 0x113 env_from, 0x114 termination_message_policy, 0x115 volume_devices, 0x116 startup_probe, 0x117 resize_policy, 0x118 restart_policy, 0x2 target_container_name } k8s_if_ge_1_34 { 0x119 restart_policy_rules });
message!("k8s.io/api/core/v1.EphemeralVolumeSource", api::core::v1::EphemeralVolumeSource { 0x1 volume_claim_template });
message!("k8s.io/api/core/v1.Event", api::core::v1::Event { 0x1 metadata, 0x2 involved_object, 0x3 reason, 0x4 message, 0x5 source, 0x6 first_timestamp, 0x7 last_timestamp, 0x8 count, 0x9 type_, 0xa event_time, 0xb series, 0xc action, 0xd related, 0xe reporting_component, 0xf reporting_instance });
message!("k8s.io/api/core/v1.EventSeries", api::core::v1::EventSeries { 0x1 count, 0x2 last_observed_time });
message!("k8s.io/api/core/v1.EventSource", api::core::v1::EventSource { 0x1 component, 0x2 host });
message!("k8s.io/api/core/v1.ExecAction", api::core::v1::ExecAction { 0x1 command });
message!("k8s.io/api/core/v1.FCVolumeSource", api::core::v1::FCVolumeSource { 0x1 target_wwns, 0x2 lun, 0x3 fs_type, 0x4 read_only, 0x5 wwids });
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.FileKeySelector", api::core::v1::FileKeySelector { 0x1 volume_name, 0x2 path, 0x3 key, 0x4 optional }); }
message!("k8s.io/api/core/v1.FlexPersistentVolumeSource", api::core::v1::FlexPersistentVolumeSource { 0x1 driver, 0x2 fs_type, 0x3 secret_ref, 0x4 read_only, 0x5 options });
message!("k8s.io/api/core/v1.FlexVolumeSource", api::core::v1::FlexVolumeSource { 0x1 driver, 0x2 fs_type, 0x3 secret_ref, 0x4 read_only, 0x5 options });
message!("k8s.io/api/core/v1.FlockerVolumeSource", api::core::v1::FlockerVolumeSource { 0x1 dataset_name, 0x2 dataset_uuid });
message!("k8s.io/api/core/v1.GCEPersistentDiskVolumeSource", api::core::v1::GCEPersistentDiskVolumeSource { 0x1 pd_name, 0x2 fs_type, 0x3 partition, 0x4 read_only });
message!("k8s.io/api/core/v1.GRPCAction", api::core::v1::GRPCAction { 0x1 port, 0x2 service });
message!("k8s.io/api/core/v1.GitRepoVolumeSource", api::core::v1::GitRepoVolumeSource { 0x1 repository, 0x2 revision, 0x3 directory });
message!("k8s.io/api/core/v1.GlusterfsPersistentVolumeSource", api::core::v1::GlusterfsPersistentVolumeSource { 0x1 endpoints, 0x2 path, 0x3 read_only, 0x4 endpoints_namespace });
message!("k8s.io/api/core/v1.GlusterfsVolumeSource", api::core::v1::GlusterfsVolumeSource { 0x1 endpoints, 0x2 path, 0x3 read_only });
message!("k8s.io/api/core/v1.HTTPGetAction", api::core::v1::HTTPGetAction { 0x1 path, 0x2 port, 0x3 host, 0x4 scheme, 0x5 http_headers });
message!("k8s.io/api/core/v1.HTTPHeader", api::core::v1::HTTPHeader { 0x1 name, 0x2 value });
message!("k8s.io/api/core/v1.HostAlias", api::core::v1::HostAlias { 0x1 ip, 0x2 hostnames });
message!("k8s.io/api/core/v1.HostIP", api::core::v1::HostIP { 0x1 ip });
message!("k8s.io/api/core/v1.HostPathVolumeSource", api::core::v1::HostPathVolumeSource { 0x1 path, 0x2 type_ });
message!("k8s.io/api/core/v1.ISCSIPersistentVolumeSource", api::core::v1::ISCSIPersistentVolumeSource { 0x1 target_portal, 0x2 iqn, 0x3 lun, 0x4 iscsi_interface, 0x5 fs_type, 0x6 read_only, 0x7 portals, 0x8 chap_auth_discovery, 0xa secret_ref, 0xb chap_auth_session, 0xc initiator_name });
message!("k8s.io/api/core/v1.ISCSIVolumeSource", api::core::v1::ISCSIVolumeSource { 0x1 target_portal, 0x2 iqn, 0x3 lun, 0x4 iscsi_interface, 0x5 fs_type, 0x6 read_only, 0x7 portals, 0x8 chap_auth_discovery, 0xa secret_ref, 0xb chap_auth_session, 0xc initiator_name });
message!("k8s.io/api/core/v1.ImageVolumeSource", api::core::v1::ImageVolumeSource { 0x1 reference, 0x2 pull_policy });
k8s_openapi::k8s_if_ge_1_36! { message!("k8s.io/api/core/v1.ImageVolumeStatus", api::core::v1::ImageVolumeStatus { 0x1 image_ref }); }
message!("k8s.io/api/core/v1.KeyToPath", api::core::v1::KeyToPath { 0x1 key, 0x2 path, 0x3 mode });
message!("k8s.io/api/core/v1.Lifecycle", api::core::v1::Lifecycle { 0x1 post_start, 0x2 pre_stop, 0x3 stop_signal });
message!("k8s.io/api/core/v1.LifecycleHandler", api::core::v1::LifecycleHandler { 0x1 exec, 0x2 http_get, 0x3 tcp_socket, 0x4 sleep });
message!("k8s.io/api/core/v1.LinuxContainerUser", api::core::v1::LinuxContainerUser { 0x1 uid, 0x2 gid, 0x3 supplemental_groups });
message!("k8s.io/api/core/v1.LoadBalancerIngress", api::core::v1::LoadBalancerIngress { 0x1 ip, 0x2 hostname, 0x3 ip_mode, 0x4 ports });
message!("k8s.io/api/core/v1.LoadBalancerStatus", api::core::v1::LoadBalancerStatus { 0x1 ingress });
message!("k8s.io/api/core/v1.LocalObjectReference", api::core::v1::LocalObjectReference { 0x1 name });
message!("k8s.io/api/core/v1.LocalVolumeSource", api::core::v1::LocalVolumeSource { 0x1 path, 0x2 fs_type });
message!("k8s.io/api/core/v1.ModifyVolumeStatus", api::core::v1::ModifyVolumeStatus { 0x1 target_volume_attributes_class_name, 0x2 status });
message!("k8s.io/api/core/v1.NFSVolumeSource", api::core::v1::NFSVolumeSource { 0x1 server, 0x2 path, 0x3 read_only });
message!("k8s.io/api/core/v1.Namespace", api::core::v1::Namespace { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.NamespaceCondition", api::core::v1::NamespaceCondition { 0x1 type_, 0x2 status, 0x4 last_transition_time, 0x5 reason, 0x6 message });
message!("k8s.io/api/core/v1.NamespaceSpec", api::core::v1::NamespaceSpec { 0x1 finalizers });
message!("k8s.io/api/core/v1.NamespaceStatus", api::core::v1::NamespaceStatus { 0x1 phase, 0x2 conditions });
message!("k8s.io/api/core/v1.Node", api::core::v1::Node { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.NodeAddress", api::core::v1::NodeAddress { 0x1 type_, 0x2 address });
message!("k8s.io/api/core/v1.NodeAffinity", api::core::v1::NodeAffinity { 0x1 required_during_scheduling_ignored_during_execution, 0x2 preferred_during_scheduling_ignored_during_execution });
message!("k8s.io/api/core/v1.NodeCondition", api::core::v1::NodeCondition { 0x1 type_, 0x2 status, 0x3 last_heartbeat_time, 0x4 last_transition_time, 0x5 reason, 0x6 message });
message!("k8s.io/api/core/v1.NodeConfigSource", api::core::v1::NodeConfigSource { 0x2 config_map });
message!("k8s.io/api/core/v1.NodeConfigStatus", api::core::v1::NodeConfigStatus { 0x1 assigned, 0x2 active, 0x3 last_known_good, 0x4 error });
message!("k8s.io/api/core/v1.NodeDaemonEndpoints", api::core::v1::NodeDaemonEndpoints { 0x1 kubelet_endpoint });
message!("k8s.io/api/core/v1.NodeFeatures", api::core::v1::NodeFeatures { 0x1 supplemental_groups_policy });
message!("k8s.io/api/core/v1.NodeRuntimeHandler", api::core::v1::NodeRuntimeHandler { 0x1 name, 0x2 features });
message!("k8s.io/api/core/v1.NodeRuntimeHandlerFeatures", api::core::v1::NodeRuntimeHandlerFeatures { 0x1 recursive_read_only_mounts, 0x2 user_namespaces });
message!("k8s.io/api/core/v1.NodeSelector", api::core::v1::NodeSelector { 0x1 node_selector_terms });
message!("k8s.io/api/core/v1.NodeSelectorRequirement", api::core::v1::NodeSelectorRequirement { 0x1 key, 0x2 operator, 0x3 values });
message!("k8s.io/api/core/v1.NodeSelectorTerm", api::core::v1::NodeSelectorTerm { 0x1 match_expressions, 0x2 match_fields });
message!("k8s.io/api/core/v1.NodeSpec", api::core::v1::NodeSpec { 0x1 pod_cidr, 0x2 external_id, 0x3 provider_id, 0x4 unschedulable, 0x5 taints, 0x6 config_source, 0x7 pod_cidrs });
message!("k8s.io/api/core/v1.NodeStatus", api::core::v1::NodeStatus { 0x1 capacity, 0x2 allocatable, 0x3 phase, 0x4 conditions, 0x5 addresses, 0x6 daemon_endpoints, 0x7 node_info, 0x8 images, 0x9 volumes_in_use, 0xa volumes_attached, 0xb config, 0xc runtime_handlers, 0xd features } k8s_if_ge_1_35 { 0xe declared_features });
message!("k8s.io/api/core/v1.NodeSwapStatus", api::core::v1::NodeSwapStatus { 0x1 capacity });
message!("k8s.io/api/core/v1.NodeSystemInfo", api::core::v1::NodeSystemInfo { 0x1 machine_id, 0x2 system_uuid, 0x3 boot_id, 0x4 kernel_version, 0x5 os_image, 0x6 container_runtime_version, 0x7 kubelet_version, 0x8 kube_proxy_version, 0x9 operating_system, 0xa architecture, 0xb swap });
message!("k8s.io/api/core/v1.ObjectFieldSelector", api::core::v1::ObjectFieldSelector { 0x1 api_version, 0x2 field_path });
message!("k8s.io/api/core/v1.ObjectReference", api::core::v1::ObjectReference { 0x1 kind, 0x2 namespace, 0x3 name, 0x4 uid, 0x5 api_version, 0x6 resource_version, 0x7 field_path });
message!("k8s.io/api/core/v1.PersistentVolume", api::core::v1::PersistentVolume { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.PersistentVolumeClaim", api::core::v1::PersistentVolumeClaim { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.PersistentVolumeClaimCondition", api::core::v1::PersistentVolumeClaimCondition { 0x1 type_, 0x2 status, 0x3 last_probe_time, 0x4 last_transition_time, 0x5 reason, 0x6 message });
message!("k8s.io/api/core/v1.PersistentVolumeClaimSpec", api::core::v1::PersistentVolumeClaimSpec { 0x1 access_modes, 0x2 resources, 0x3 volume_name, 0x4 selector, 0x5 storage_class_name, 0x6 volume_mode, 0x7 data_source, 0x8 data_source_ref, 0x9 volume_attributes_class_name });
message!("k8s.io/api/core/v1.PersistentVolumeClaimStatus", api::core::v1::PersistentVolumeClaimStatus { 0x1 phase, 0x2 access_modes, 0x3 capacity, 0x4 conditions, 0x5 allocated_resources, 0x7 allocated_resource_statuses, 0x8 current_volume_attributes_class_name, 0x9 modify_volume_status });
message!("k8s.io/api/core/v1.PersistentVolumeClaimTemplate", api::core::v1::PersistentVolumeClaimTemplate { 0x1 metadata, 0x2 spec });
message!("k8s.io/api/core/v1.PersistentVolumeClaimVolumeSource", api::core::v1::PersistentVolumeClaimVolumeSource { 0x1 claim_name, 0x2 read_only });
message!("k8s.io/api/core/v1.PersistentVolumeSpec", api::core::v1::PersistentVolumeSpec { 0x1 capacity, 0x201 gce_persistent_disk, 0x202 aws_elastic_block_store, 0x203 host_path, 0x204 glusterfs, 0x205 nfs, 0x206 rbd, 0x207 iscsi, 0x208 cinder, 0x209 cephfs, 0x20a fc, 0x20b flocker, 0x20c flex_volume, 0x20d azure_file, 0x20e vsphere_volume, 0x20f quobyte, 0x210 azure_disk, 0x211 photon_persistent_disk, 0x212 portworx_volume, 0x213 scale_io, 0x214 local, 0x215 storageos, 0x216 csi, 0x3 access_modes, 0x4 claim_ref, 0x5 persistent_volume_reclaim_policy, 0x6 storage_class_name, 0x7 mount_options, 0x8 volume_mode, 0x9 node_affinity, 0xa volume_attributes_class_name });
message!("k8s.io/api/core/v1.PersistentVolumeStatus", api::core::v1::PersistentVolumeStatus { 0x1 phase, 0x2 message, 0x3 reason, 0x4 last_phase_transition_time });
message!("k8s.io/api/core/v1.PhotonPersistentDiskVolumeSource", api::core::v1::PhotonPersistentDiskVolumeSource { 0x1 pd_id, 0x2 fs_type });
message!("k8s.io/api/core/v1.Pod", api::core::v1::Pod { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.PodAffinity", api::core::v1::PodAffinity { 0x1 required_during_scheduling_ignored_during_execution, 0x2 preferred_during_scheduling_ignored_during_execution });
message!("k8s.io/api/core/v1.PodAffinityTerm", api::core::v1::PodAffinityTerm { 0x1 label_selector, 0x2 namespaces, 0x3 topology_key, 0x4 namespace_selector, 0x5 match_label_keys, 0x6 mismatch_label_keys });
message!("k8s.io/api/core/v1.PodAntiAffinity", api::core::v1::PodAntiAffinity { 0x1 required_during_scheduling_ignored_during_execution, 0x2 preferred_during_scheduling_ignored_during_execution });
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.PodCertificateProjection", api::core::v1::PodCertificateProjection { 0x1 signer_name, 0x2 key_type, 0x3 max_expiration_seconds, 0x4 credential_bundle_path, 0x5 key_path, 0x6 certificate_chain_path } k8s_if_ge_1_35 { 0x7 user_annotations }); }
message!("k8s.io/api/core/v1.PodCondition", api::core::v1::PodCondition { 0x1 type_, 0x2 status, 0x3 last_probe_time, 0x4 last_transition_time, 0x5 reason, 0x6 message, 0x7 observed_generation });
message!("k8s.io/api/core/v1.PodDNSConfig", api::core::v1::PodDNSConfig { 0x1 nameservers, 0x2 searches, 0x3 options });
message!("k8s.io/api/core/v1.PodDNSConfigOption", api::core::v1::PodDNSConfigOption { 0x1 name, 0x2 value });
k8s_openapi::k8s_if_ge_1_34! { message!("k8s.io/api/core/v1.PodExtendedResourceClaimStatus", api::core::v1::PodExtendedResourceClaimStatus { 0x1 request_mappings, 0x2 resource_claim_name }); }
message!("k8s.io/api/core/v1.PodIP", api::core::v1::PodIP { 0x1 ip });
message!("k8s.io/api/core/v1.PodOS", api::core::v1::PodOS { 0x1 name });
message!("k8s.io/api/core/v1.PodReadinessGate", api::core::v1::PodReadinessGate { 0x1 condition_type });
message!("k8s.io/api/core/v1.PodResourceClaim", api::core::v1::PodResourceClaim { 0x1 name, 0x3 resource_claim_name, 0x4 resource_claim_template_name });
message!("k8s.io/api/core/v1.PodResourceClaimStatus", api::core::v1::PodResourceClaimStatus { 0x1 name, 0x2 resource_claim_name });
message!("k8s.io/api/core/v1.PodSchedulingGate", api::core::v1::PodSchedulingGate { 0x1 name });
k8s_openapi::k8s_if_ge_1_36! { message!("k8s.io/api/core/v1.PodSchedulingGroup", api::core::v1::PodSchedulingGroup { 0x1 pod_group_name }); }
message!("k8s.io/api/core/v1.PodSecurityContext", api::core::v1::PodSecurityContext { 0x1 se_linux_options, 0x2 run_as_user, 0x3 run_as_non_root, 0x4 supplemental_groups, 0x5 fs_group, 0x6 run_as_group, 0x7 sysctls, 0x8 windows_options, 0x9 fs_group_change_policy, 0xa seccomp_profile, 0xb app_armor_profile, 0xc supplemental_groups_policy, 0xd se_linux_change_policy });
message!("k8s.io/api/core/v1.PodSpec", api::core::v1::PodSpec { 0x1 volumes, 0x2 containers, 0x3 restart_policy, 0x4 termination_grace_period_seconds, 0x5 active_deadline_seconds, 0x6 dns_policy, 0x7 node_selector, 0x8 service_account_name, 0x9 service_account, 0xa node_name, 0xb host_network, 0xc host_pid, 0xd host_ipc, 0xe security_context, 0xf image_pull_secrets, 0x10 hostname, 0x11 subdomain, 0x12 affinity, 0x13 scheduler_name, 0x14 init_containers, 0x15 automount_service_account_token, 0x16 tolerations, 0x17 host_aliases, 0x18 priority_class_name, 0x19 priority, 0x1a dns_config, 0x1b share_process_namespace, 0x1c readiness_gates, 0x1d runtime_class_name, 0x1e enable_service_links, 0x1f preemption_policy, 0x20 overhead, 0x21 topology_spread_constraints, 0x22 ephemeral_containers, 0x23 set_hostname_as_fqdn, 0x24 os, 0x25 host_users, 0x26 scheduling_gates, 0x27 resource_claims, 0x28 resources } k8s_if_ge_1_34 { 0x29 hostname_override } k8s_if_ge_1_36 { 0x2b scheduling_group });
message!("k8s.io/api/core/v1.PodStatus", api::core::v1::PodStatus { 0x1 phase, 0x2 conditions, 0x3 message, 0x4 reason, 0x5 host_ip, 0x6 pod_ip, 0x7 start_time, 0x8 container_statuses, 0x9 qos_class, 0xa init_container_statuses, 0xb nominated_node_name, 0xc pod_ips, 0xd ephemeral_container_statuses, 0xe resize, 0xf resource_claim_statuses, 0x10 host_ips, 0x11 observed_generation } k8s_if_ge_1_34 { 0x12 extended_resource_claim_status } k8s_if_ge_1_35 { 0x13 allocated_resources, 0x14 resources });
message!("k8s.io/api/core/v1.PodTemplateSpec", api::core::v1::PodTemplateSpec { 0x1 metadata, 0x2 spec });
message!("k8s.io/api/core/v1.PortStatus", api::core::v1::PortStatus { 0x1 port, 0x2 protocol, 0x3 error });
message!("k8s.io/api/core/v1.PortworxVolumeSource", api::core::v1::PortworxVolumeSource { 0x1 volume_id, 0x2 fs_type, 0x3 read_only });
message!("k8s.io/api/core/v1.PreferredSchedulingTerm", api::core::v1::PreferredSchedulingTerm { 0x1 weight, 0x2 preference });
message!("k8s.io/api/core/v1.Probe", api::core::v1::Probe { 0x101 exec, 0x102 http_get, 0x103 tcp_socket, 0x104 grpc, 0x2 initial_delay_seconds, 0x3 timeout_seconds, 0x4 period_seconds, 0x5 success_threshold, 0x6 failure_threshold, 0x7 termination_grace_period_seconds });
message!("k8s.io/api/core/v1.ProjectedVolumeSource", api::core::v1::ProjectedVolumeSource { 0x1 sources, 0x2 default_mode });
message!("k8s.io/api/core/v1.QuobyteVolumeSource", api::core::v1::QuobyteVolumeSource { 0x1 registry, 0x2 volume, 0x3 read_only, 0x4 user, 0x5 group, 0x6 tenant });
message!("k8s.io/api/core/v1.RBDPersistentVolumeSource", api::core::v1::RBDPersistentVolumeSource { 0x1 monitors, 0x2 image, 0x3 fs_type, 0x4 pool, 0x5 user, 0x6 keyring, 0x7 secret_ref, 0x8 read_only });
message!("k8s.io/api/core/v1.RBDVolumeSource", api::core::v1::RBDVolumeSource { 0x1 monitors, 0x2 image, 0x3 fs_type, 0x4 pool, 0x5 user, 0x6 keyring, 0x7 secret_ref, 0x8 read_only });
message!("k8s.io/api/core/v1.ResourceClaim", api::core::v1::ResourceClaim { 0x1 name, 0x2 request });
message!("k8s.io/api/core/v1.ResourceFieldSelector", api::core::v1::ResourceFieldSelector { 0x1 container_name, 0x2 resource, 0x3 divisor });
message!("k8s.io/api/core/v1.ResourceHealth", api::core::v1::ResourceHealth { 0x1 resource_id, 0x2 health } k8s_if_ge_1_36 { 0x6 message });
message!("k8s.io/api/core/v1.ResourceRequirements", api::core::v1::ResourceRequirements { 0x1 limits, 0x2 requests, 0x3 claims });
message!("k8s.io/api/core/v1.ResourceStatus", api::core::v1::ResourceStatus { 0x1 name, 0x2 resources });
message!("k8s.io/api/core/v1.SELinuxOptions", api::core::v1::SELinuxOptions { 0x1 user, 0x2 role, 0x3 type_, 0x4 level });
message!("k8s.io/api/core/v1.ScaleIOPersistentVolumeSource", api::core::v1::ScaleIOPersistentVolumeSource { 0x1 gateway, 0x2 system, 0x3 secret_ref, 0x4 ssl_enabled, 0x5 protection_domain, 0x6 storage_pool, 0x7 storage_mode, 0x8 volume_name, 0x9 fs_type, 0xa read_only });
message!("k8s.io/api/core/v1.ScaleIOVolumeSource", api::core::v1::ScaleIOVolumeSource { 0x1 gateway, 0x2 system, 0x3 secret_ref, 0x4 ssl_enabled, 0x5 protection_domain, 0x6 storage_pool, 0x7 storage_mode, 0x8 volume_name, 0x9 fs_type, 0xa read_only });
message!("k8s.io/api/core/v1.SeccompProfile", api::core::v1::SeccompProfile { 0x1 type_, 0x2 localhost_profile });
message!("k8s.io/api/core/v1.Secret", api::core::v1::Secret { 0x1 metadata, 0x2 data, 0x3 type_, 0x4 string_data, 0x5 immutable });
message!("k8s.io/api/core/v1.SecretEnvSource", api::core::v1::SecretEnvSource { 0x101 name, 0x2 optional });
message!("k8s.io/api/core/v1.SecretKeySelector", api::core::v1::SecretKeySelector { 0x101 name, 0x2 key, 0x3 optional });
message!("k8s.io/api/core/v1.SecretProjection", api::core::v1::SecretProjection { 0x101 name, 0x2 items, 0x4 optional });
message!("k8s.io/api/core/v1.SecretReference", api::core::v1::SecretReference { 0x1 name, 0x2 namespace });
message!("k8s.io/api/core/v1.SecretVolumeSource", api::core::v1::SecretVolumeSource { 0x1 secret_name, 0x2 items, 0x3 default_mode, 0x4 optional });
message!("k8s.io/api/core/v1.SecurityContext", api::core::v1::SecurityContext { 0x1 capabilities, 0x2 privileged, 0x3 se_linux_options, 0x4 run_as_user, 0x5 run_as_non_root, 0x6 read_only_root_filesystem, 0x7 allow_privilege_escalation, 0x8 run_as_group, 0x9 proc_mount, 0xa windows_options, 0xb seccomp_profile, 0xc app_armor_profile });
message!("k8s.io/api/core/v1.Service", api::core::v1::Service { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/core/v1.ServiceAccount", api::core::v1::ServiceAccount { 0x1 metadata, 0x2 secrets, 0x3 image_pull_secrets, 0x4 automount_service_account_token });
message!("k8s.io/api/core/v1.ServiceAccountTokenProjection", api::core::v1::ServiceAccountTokenProjection { 0x1 audience, 0x2 expiration_seconds, 0x3 path });
message!("k8s.io/api/core/v1.ServicePort", api::core::v1::ServicePort { 0x1 name, 0x2 protocol, 0x3 port, 0x4 target_port, 0x5 node_port, 0x6 app_protocol });
message!("k8s.io/api/core/v1.ServiceSpec", api::core::v1::ServiceSpec { 0x1 ports, 0x2 selector, 0x3 cluster_ip, 0x4 type_, 0x5 external_ips, 0x7 session_affinity, 0x8 load_balancer_ip, 0x9 load_balancer_source_ranges, 0xa external_name, 0xb external_traffic_policy, 0xc health_check_node_port, 0xd publish_not_ready_addresses, 0xe session_affinity_config, 0x11 ip_family_policy, 0x12 cluster_ips, 0x13 ip_families, 0x14 allocate_load_balancer_node_ports, 0x15 load_balancer_class, 0x16 internal_traffic_policy, 0x17 traffic_distribution });
message!("k8s.io/api/core/v1.ServiceStatus", api::core::v1::ServiceStatus { 0x1 load_balancer, 0x2 conditions });
message!("k8s.io/api/core/v1.SessionAffinityConfig", api::core::v1::SessionAffinityConfig { 0x1 client_ip });
message!("k8s.io/api/core/v1.SleepAction", api::core::v1::SleepAction { 0x1 seconds });
message!("k8s.io/api/core/v1.StorageOSPersistentVolumeSource", api::core::v1::StorageOSPersistentVolumeSource { 0x1 volume_name, 0x2 volume_namespace, 0x3 fs_type, 0x4 read_only, 0x5 secret_ref });
message!("k8s.io/api/core/v1.StorageOSVolumeSource", api::core::v1::StorageOSVolumeSource { 0x1 volume_name, 0x2 volume_namespace, 0x3 fs_type, 0x4 read_only, 0x5 secret_ref });
message!("k8s.io/api/core/v1.Sysctl", api::core::v1::Sysctl { 0x1 name, 0x2 value });
message!("k8s.io/api/core/v1.TCPSocketAction", api::core::v1::TCPSocketAction { 0x1 port, 0x2 host });
message!("k8s.io/api/core/v1.Taint", api::core::v1::Taint { 0x1 key, 0x2 value, 0x3 effect, 0x4 time_added });
message!("k8s.io/api/core/v1.Toleration", api::core::v1::Toleration { 0x1 key, 0x2 operator, 0x3 value, 0x4 effect, 0x5 toleration_seconds });
message!("k8s.io/api/core/v1.TopologySpreadConstraint", api::core::v1::TopologySpreadConstraint { 0x1 max_skew, 0x2 topology_key, 0x3 when_unsatisfiable, 0x4 label_selector, 0x5 min_domains, 0x6 node_affinity_policy, 0x7 node_taints_policy, 0x8 match_label_keys });
message!("k8s.io/api/core/v1.TypedLocalObjectReference", api::core::v1::TypedLocalObjectReference { 0x1 api_group, 0x2 kind, 0x3 name });
message!("k8s.io/api/core/v1.TypedObjectReference", api::core::v1::TypedObjectReference { 0x1 api_group, 0x2 kind, 0x3 name, 0x4 namespace });
message!("k8s.io/api/core/v1.Volume", api::core::v1::Volume { 0x1 name, 0x201 host_path, 0x202 empty_dir, 0x203 gce_persistent_disk, 0x204 aws_elastic_block_store, 0x205 git_repo, 0x206 secret, 0x207 nfs, 0x208 iscsi, 0x209 glusterfs, 0x20a persistent_volume_claim, 0x20b rbd, 0x20c flex_volume, 0x20d cinder, 0x20e cephfs, 0x20f flocker, 0x210 downward_api, 0x211 fc, 0x212 azure_file, 0x213 config_map, 0x214 vsphere_volume, 0x215 quobyte, 0x216 azure_disk, 0x217 photon_persistent_disk, 0x218 portworx_volume, 0x219 scale_io, 0x21a projected, 0x21b storageos, 0x21c csi, 0x21d ephemeral, 0x21e image });
message!("k8s.io/api/core/v1.VolumeDevice", api::core::v1::VolumeDevice { 0x1 name, 0x2 device_path });
message!("k8s.io/api/core/v1.VolumeMount", api::core::v1::VolumeMount { 0x1 name, 0x2 read_only, 0x3 mount_path, 0x4 sub_path, 0x5 mount_propagation, 0x6 sub_path_expr, 0x7 recursive_read_only });
message!("k8s.io/api/core/v1.VolumeMountStatus", api::core::v1::VolumeMountStatus { 0x1 name, 0x2 mount_path, 0x3 read_only, 0x4 recursive_read_only } k8s_if_ge_1_36 { 0x5 volume_status });
message!("k8s.io/api/core/v1.VolumeNodeAffinity", api::core::v1::VolumeNodeAffinity { 0x1 required });
message!("k8s.io/api/core/v1.VolumeProjection", api::core::v1::VolumeProjection { 0x1 secret, 0x2 downward_api, 0x3 config_map, 0x4 service_account_token, 0x5 cluster_trust_bundle } k8s_if_ge_1_34 { 0x6 pod_certificate });
message!("k8s.io/api/core/v1.VolumeResourceRequirements", api::core::v1::VolumeResourceRequirements { 0x1 limits, 0x2 requests });
k8s_openapi::k8s_if_ge_1_36! { message!("k8s.io/api/core/v1.VolumeStatus", api::core::v1::VolumeStatus { 0x1 image }); }
message!("k8s.io/api/core/v1.VsphereVirtualDiskVolumeSource", api::core::v1::VsphereVirtualDiskVolumeSource { 0x1 volume_path, 0x2 fs_type, 0x3 storage_policy_name, 0x4 storage_policy_id });
message!("k8s.io/api/core/v1.WeightedPodAffinityTerm", api::core::v1::WeightedPodAffinityTerm { 0x1 weight, 0x2 pod_affinity_term });
message!("k8s.io/api/core/v1.WindowsSecurityContextOptions", api::core::v1::WindowsSecurityContextOptions { 0x1 gmsa_credential_spec_name, 0x2 gmsa_credential_spec, 0x3 run_as_user_name, 0x4 host_process });
message!("k8s.io/api/discovery/v1.Endpoint", api::discovery::v1::Endpoint { 0x1 addresses, 0x2 conditions, 0x3 hostname, 0x4 target_ref, 0x5 deprecated_topology, 0x6 node_name, 0x7 zone, 0x8 hints });
message!("k8s.io/api/discovery/v1.EndpointConditions", api::discovery::v1::EndpointConditions { 0x1 ready, 0x2 serving, 0x3 terminating });
message!("k8s.io/api/discovery/v1.EndpointHints", api::discovery::v1::EndpointHints { 0x1 for_zones, 0x2 for_nodes });
message!("k8s.io/api/discovery/v1.EndpointPort", api::discovery::v1::EndpointPort { 0x1 name, 0x2 protocol, 0x3 port, 0x4 app_protocol });
message!("k8s.io/api/discovery/v1.EndpointSlice", api::discovery::v1::EndpointSlice { 0x1 metadata, 0x2 endpoints, 0x3 ports, 0x4 address_type });
message!("k8s.io/api/discovery/v1.ForNode", api::discovery::v1::ForNode { 0x1 name });
message!("k8s.io/api/discovery/v1.ForZone", api::discovery::v1::ForZone { 0x1 name });
message!("k8s.io/api/events/v1.Event", api::events::v1::Event { 0x1 metadata, 0x2 event_time, 0x3 series, 0x4 reporting_controller, 0x5 reporting_instance, 0x6 action, 0x7 reason, 0x8 regarding, 0x9 related, 0xa note, 0xb type_, 0xc deprecated_source, 0xd deprecated_first_timestamp, 0xe deprecated_last_timestamp, 0xf deprecated_count });
message!("k8s.io/api/networking/v1.HTTPIngressPath", api::networking::v1::HTTPIngressPath { 0x1 path, 0x2 backend, 0x3 path_type });
message!("k8s.io/api/networking/v1.HTTPIngressRuleValue", api::networking::v1::HTTPIngressRuleValue { 0x1 paths });
message!("k8s.io/api/networking/v1.IPBlock", api::networking::v1::IPBlock { 0x1 cidr, 0x2 except });
message!("k8s.io/api/networking/v1.Ingress", api::networking::v1::Ingress { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/networking/v1.IngressBackend", api::networking::v1::IngressBackend { 0x3 resource, 0x4 service });
message!("k8s.io/api/networking/v1.IngressLoadBalancerIngress", api::networking::v1::IngressLoadBalancerIngress { 0x1 ip, 0x2 hostname, 0x4 ports });
message!("k8s.io/api/networking/v1.IngressLoadBalancerStatus", api::networking::v1::IngressLoadBalancerStatus { 0x1 ingress });
message!("k8s.io/api/networking/v1.IngressPortStatus", api::networking::v1::IngressPortStatus { 0x1 port, 0x2 protocol, 0x3 error });
message!("k8s.io/api/networking/v1.IngressRule", api::networking::v1::IngressRule { 0x1 host, 0x201 http });
message!("k8s.io/api/networking/v1.IngressServiceBackend", api::networking::v1::IngressServiceBackend { 0x1 name, 0x2 port });
message!("k8s.io/api/networking/v1.IngressSpec", api::networking::v1::IngressSpec { 0x1 default_backend, 0x2 tls, 0x3 rules, 0x4 ingress_class_name });
message!("k8s.io/api/networking/v1.IngressStatus", api::networking::v1::IngressStatus { 0x1 load_balancer });
message!("k8s.io/api/networking/v1.IngressTLS", api::networking::v1::IngressTLS { 0x1 hosts, 0x2 secret_name });
message!("k8s.io/api/networking/v1.NetworkPolicy", api::networking::v1::NetworkPolicy { 0x1 metadata, 0x2 spec });
message!("k8s.io/api/networking/v1.NetworkPolicyEgressRule", api::networking::v1::NetworkPolicyEgressRule { 0x1 ports, 0x2 to });
message!("k8s.io/api/networking/v1.NetworkPolicyIngressRule", api::networking::v1::NetworkPolicyIngressRule { 0x1 ports, 0x2 from });
message!("k8s.io/api/networking/v1.NetworkPolicyPeer", api::networking::v1::NetworkPolicyPeer { 0x1 pod_selector, 0x2 namespace_selector, 0x3 ip_block });
message!("k8s.io/api/networking/v1.NetworkPolicyPort", api::networking::v1::NetworkPolicyPort { 0x1 protocol, 0x2 port, 0x3 end_port });
message!("k8s.io/api/networking/v1.NetworkPolicySpec", api::networking::v1::NetworkPolicySpec { 0x1 pod_selector, 0x2 ingress, 0x3 egress, 0x4 policy_types });
message!("k8s.io/api/networking/v1.ServiceBackendPort", api::networking::v1::ServiceBackendPort { 0x1 name, 0x2 number });
message!("k8s.io/api/policy/v1.PodDisruptionBudget", api::policy::v1::PodDisruptionBudget { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/policy/v1.PodDisruptionBudgetSpec", api::policy::v1::PodDisruptionBudgetSpec { 0x1 min_available, 0x2 selector, 0x3 max_unavailable, 0x4 unhealthy_pod_eviction_policy });
message!("k8s.io/api/policy/v1.PodDisruptionBudgetStatus", api::policy::v1::PodDisruptionBudgetStatus { 0x1 observed_generation, 0x2 disrupted_pods, 0x3 disruptions_allowed, 0x4 current_healthy, 0x5 desired_healthy, 0x6 expected_pods, 0x7 conditions });
message!("k8s.io/api/rbac/v1.AggregationRule", api::rbac::v1::AggregationRule { 0x1 cluster_role_selectors });
message!("k8s.io/api/rbac/v1.ClusterRole", api::rbac::v1::ClusterRole { 0x1 metadata, 0x2 rules, 0x3 aggregation_rule });
message!("k8s.io/api/rbac/v1.ClusterRoleBinding", api::rbac::v1::ClusterRoleBinding { 0x1 metadata, 0x2 subjects, 0x3 role_ref });
message!("k8s.io/api/rbac/v1.PolicyRule", api::rbac::v1::PolicyRule { 0x1 verbs, 0x2 api_groups, 0x3 resources, 0x4 resource_names, 0x5 non_resource_urls });
message!("k8s.io/api/rbac/v1.Role", api::rbac::v1::Role { 0x1 metadata, 0x2 rules });
message!("k8s.io/api/rbac/v1.RoleBinding", api::rbac::v1::RoleBinding { 0x1 metadata, 0x2 subjects, 0x3 role_ref });
message!("k8s.io/api/rbac/v1.RoleRef", api::rbac::v1::RoleRef { 0x1 api_group, 0x2 kind, 0x3 name });
message!("k8s.io/api/rbac/v1.Subject", api::rbac::v1::Subject { 0x1 kind, 0x2 api_group, 0x3 name, 0x4 namespace });
message!("k8s.io/api/storage/v1.VolumeAttachment", api::storage::v1::VolumeAttachment { 0x1 metadata, 0x2 spec, 0x3 status });
message!("k8s.io/api/storage/v1.VolumeAttachmentSource", api::storage::v1::VolumeAttachmentSource { 0x1 persistent_volume_name, 0x2 inline_volume_spec });
message!("k8s.io/api/storage/v1.VolumeAttachmentSpec", api::storage::v1::VolumeAttachmentSpec { 0x1 attacher, 0x2 source, 0x3 node_name });
message!("k8s.io/api/storage/v1.VolumeAttachmentStatus", api::storage::v1::VolumeAttachmentStatus { 0x1 attached, 0x2 attachment_metadata, 0x3 attach_error, 0x4 detach_error });
message!("k8s.io/api/storage/v1.VolumeError", api::storage::v1::VolumeError { 0x1 time, 0x2 message, 0x3 error_code });
message!("k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelector", apimachinery::pkg::apis::meta::v1::LabelSelector { 0x1 match_labels, 0x2 match_expressions });
message!("k8s.io/apimachinery/pkg/apis/meta/v1.LabelSelectorRequirement", apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement { 0x1 key, 0x2 operator, 0x3 values });
message!("k8s.io/apimachinery/pkg/apis/meta/v1.ManagedFieldsEntry", apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry { 0x1 manager, 0x2 operation, 0x3 api_version, 0x4 time, 0x6 fields_type, 0x7 fields_v1, 0x8 subresource });
message!("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta", apimachinery::pkg::apis::meta::v1::ObjectMeta { 0x1 name, 0x2 generate_name, 0x3 namespace, 0x4 self_link, 0x5 uid, 0x6 resource_version, 0x7 generation, 0x8 creation_timestamp, 0x9 deletion_timestamp, 0xa deletion_grace_period_seconds, 0xb labels, 0xc annotations, 0xd owner_references, 0xe finalizers, 0x11 managed_fields });
message!("k8s.io/apimachinery/pkg/apis/meta/v1.OwnerReference", apimachinery::pkg::apis::meta::v1::OwnerReference { 0x1 kind, 0x3 name, 0x4 uid, 0x5 api_version, 0x6 controller, 0x7 block_owner_deletion });
