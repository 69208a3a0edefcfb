//! Objects as clusters have them: Pods, Deployments and Nodes of realistic size, the same for the
//! same seed.

use crate::cluster::mix;

mod deployment;
mod node;
mod pod;

/// `count` Pods with the default settings, as JSON; see [`Generator::pods`].
///
/// # Examples
/// ```
/// use informer_testkit::{Cluster, generate};
///
/// let cluster = Cluster::new();
/// cluster.load(generate::pods(200))?;
/// assert_eq!(cluster.count("pods"), 200);
/// # Ok::<(), informer_testkit::Status>(())
/// ```
pub fn pods(count: usize) -> impl Iterator<Item = String> {
    Generator::default().pods(count)
}

/// `count` Deployments with the default settings, as JSON; see [`Generator::deployments`].
pub fn deployments(count: usize) -> impl Iterator<Item = String> {
    Generator::default().deployments(count)
}

/// `count` Nodes with the default settings, as JSON; see [`Generator::nodes`].
pub fn nodes(count: usize) -> impl Iterator<Item = String> {
    Generator::default().nodes(count)
}

/// How generated objects belong together.
///
/// Pod *i* is a replica of application *i* / [`pods_per_app`](Self::pods_per_app), whose name is
/// the value of its `app` label and the name of its Deployment; the application decides the
/// namespace. The nodes take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator {
    /// Changes names, UIDs and addresses. Default: 0.
    pub seed: u64,
    /// How many namespaces there are, `ns-00` and so on. Default: 20.
    pub namespaces: usize,
    /// How many Pods have the same `app` label. Default: 100.
    pub pods_per_app: usize,
    /// How many Pods there are for each node. Default: 100.
    pub pods_per_node: usize,
}

impl Default for Generator {
    fn default() -> Self {
        Self { seed: 0, namespaces: 20, pods_per_app: 100, pods_per_node: 100 }
    }
}

impl Generator {
    /// `count` running Pods as JSON, one line each, 7 to 8.5 KB long: two containers with
    /// environment, probes, resources and mounts, volumes, tolerations, a full status, and the
    /// managed fields of two managers, which are about 42 % of the bytes.
    pub fn pods(&self, count: usize) -> impl Iterator<Item = String> + use<> {
        let generator = self.clone();
        let nodes = count.div_ceil(generator.pods_per_node.max(1)).max(1);
        (0..count).map(move |number| generator.pod(number, nodes))
    }

    /// Pod `number` of a cluster with so many nodes, as JSON.
    #[must_use]
    pub fn pod(&self, number: usize, nodes: usize) -> String {
        let app = number / self.pods_per_app.max(1);
        pod::write(&pod::Facts {
            number,
            name: self.pod_name(number),
            app: self.app_name(app),
            namespace: self.namespace(app),
            replica_set: format!("{}-{}", self.app_name(app), self.letters(app as u64, 10)),
            node: self.node_name(number % nodes.max(1)),
            uid: self.uid(Kind::Pod, number),
            owner_uid: self.uid(Kind::ReplicaSet, app),
            ip: format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255),
            digest: self.hex(Kind::Pod, number, 64),
        })
    }

    /// The Deployments of the first `count` applications as JSON, one line each.
    pub fn deployments(&self, count: usize) -> impl Iterator<Item = String> + use<> {
        let generator = self.clone();
        (0..count).map(move |app| {
            deployment::write(
                app,
                &generator.app_name(app),
                &generator.namespace(app),
                generator.pods_per_app,
                &generator.uid(Kind::Deployment, app),
            )
        })
    }

    /// `count` Nodes as JSON, one line each.
    pub fn nodes(&self, count: usize) -> impl Iterator<Item = String> + use<> {
        let generator = self.clone();
        (0..count).map(move |number| {
            node::write(number, &generator.node_name(number), &generator.uid(Kind::Node, number))
        })
    }

    /// The namespace of an application.
    #[must_use]
    pub fn namespace(&self, app: usize) -> String {
        format!("ns-{:02}", app % self.namespaces.max(1))
    }

    /// The name of an application: the `app` label of its Pods, the name of its Deployment.
    #[must_use]
    pub fn app_name(&self, app: usize) -> String {
        format!("app-{app:04}")
    }

    /// The name of a Pod.
    #[must_use]
    pub fn pod_name(&self, number: usize) -> String {
        let app = number / self.pods_per_app.max(1);
        let replica_set = self.letters(app as u64, 10);
        // The number keeps names apart where the letters do not.
        format!("{}-{replica_set}-{}{number:x}", self.app_name(app), self.letters(number as u64, 3))
    }

    /// The name of a node.
    #[must_use]
    pub fn node_name(&self, number: usize) -> String {
        format!("node-{number:04}")
    }

    fn letters(&self, number: u64, count: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.random(number, 0);
        (0..count)
            .map(|_| {
                let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
                random /= LETTERS.len() as u64;
                char::from(letter)
            })
            .collect()
    }

    fn uid(&self, kind: Kind, number: usize) -> String {
        let hex = self.hex(kind, number, 32);
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }

    fn hex(&self, kind: Kind, number: usize, digits: usize) -> String {
        let words = digits.div_ceil(16) as u64;
        let mut hex: String = (1..=words)
            .map(|word| format!("{:016x}", self.random(number as u64, kind as u64 * 16 + word)))
            .collect();
        hex.truncate(digits);
        hex
    }

    fn random(&self, number: u64, salt: u64) -> u64 {
        mix(mix(mix(self.seed) ^ salt) ^ number)
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Pod = 1,
    ReplicaSet,
    Deployment,
    Node,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;

    #[test]
    fn pods_are_as_large_as_real_ones() {
        let (mut total, mut managed) = (0, 0);
        for json in pods(500) {
            assert!((7_000..8_500).contains(&json.len()), "{} bytes", json.len());
            total += json.len();
            let pod: serde_json::Value = serde_json::from_str(&json).unwrap();
            managed += pod["metadata"]["managedFields"].to_string().len();
        }
        let share = managed * 100 / total;
        assert!((40..45).contains(&share), "managed fields are {share} %");
    }

    #[test]
    fn everything_generated_is_what_its_type_says() {
        let mut names = HashSet::new();
        let mut uids = HashSet::new();
        for json in pods(300) {
            let pod: Pod = serde_json::from_str(&json).unwrap();
            assert_eq!(pod.metadata.managed_fields.as_ref().map(Vec::len), Some(2));
            assert_eq!(pod.spec.as_ref().unwrap().containers.len(), 2);
            assert_eq!(pod.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
            assert!(names.insert(pod.metadata.name), "names are unique");
            assert!(uids.insert(pod.metadata.uid), "UIDs are unique");
        }
        for json in deployments(3) {
            let deployment: Deployment = serde_json::from_str(&json).unwrap();
            assert!(uids.insert(deployment.metadata.uid));
        }
        for json in nodes(3) {
            let node: Node = serde_json::from_str(&json).unwrap();
            assert!(uids.insert(node.metadata.uid));
        }
    }

    #[test]
    fn the_seed_decides() {
        let other = Generator { seed: 1, ..Generator::default() };
        assert!(pods(50).eq(pods(50)));
        assert!(!pods(50).eq(other.pods(50)));
    }

    #[test]
    fn a_hundred_pods_share_an_app_and_a_node() {
        let apps: HashSet<_> = (0..1000).map(|n| Generator::default().app_name(n / 100)).collect();
        assert_eq!(apps.len(), 10);
        let on_first =
            pods(1000).filter(|json| json.contains("\"nodeName\":\"node-0000\"")).count();
        assert_eq!(on_first, 100);
    }
}
