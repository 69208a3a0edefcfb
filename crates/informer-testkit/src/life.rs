//! A small life: Deployments and Pods that come, change and go.

use std::fmt;
use std::time::Duration;

use k8s_serve::Status;
use serde_json::{Value, json};

use crate::cluster::{Cluster, mix};

/// A life of Deployments and their Pods on a [`Cluster`], for demonstrations: applications appear,
/// their Pods start, restart, are replaced and scaled, and applications disappear again.
///
/// The same seed leads the same life, as long as nobody else writes the same objects. Where
/// somebody does, the life goes on with what is left. `kube-system` has a Deployment `coredns`,
/// labelled `k8s-app=kube-dns`, that stays.
///
/// # Examples
/// ```
/// use informer_testkit::{Cluster, Life};
///
/// let cluster = Cluster::new();
/// let mut life = Life::new(&cluster, 7);
/// for _ in 0..100 {
///     println!("{}", life.step()?);
/// }
/// assert!(cluster.count("deployments") > 1);
/// # Ok::<(), informer_testkit::Status>(())
/// ```
#[derive(Debug)]
pub struct Life {
    cluster: Cluster,
    pace: Duration,
    most_apps: usize,
    random: u64,
    born: u64,
    apps: Vec<App>,
}

#[derive(Debug)]
struct App {
    namespace: &'static str,
    name: String,
    replicas: usize,
    pods: Vec<Pod>,
    ending: bool,
}

#[derive(Debug)]
struct Pod {
    name: String,
    running: bool,
    restarts: u64,
}

/// What happened in one [`Life::step`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// What was done.
    pub what: What,
    /// `pods` or `deployments.apps`.
    pub resource: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// It was created.
    Created,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
}

const PODS: &str = "pods";
const DEPLOYMENTS: &str = "deployments.apps";
const NAMES: [&str; 12] = [
    "web", "api", "cart", "search", "mail", "auth", "billing", "stock", "images", "orders", "ads",
    "queue",
];

impl Life {
    /// A life that has not begun.
    #[must_use]
    pub fn new(cluster: &Cluster, seed: u64) -> Self {
        Self {
            cluster: cluster.clone(),
            pace: Duration::from_millis(500),
            most_apps: 5,
            random: mix(seed),
            born: 0,
            apps: Vec::new(),
        }
    }

    /// How much time passes between two steps. Default: half a second.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// How many applications there are at the most, `coredns` aside. Default: 5.
    #[must_use]
    pub fn most_apps(mut self, most: usize) -> Self {
        self.most_apps = most;
        self
    }

    /// Lives on until the future is dropped.
    ///
    /// # Errors
    /// If a write fails for another reason than that somebody else was faster.
    ///
    /// # Cancel safety
    /// Each step is done or not done when the future is dropped.
    pub async fn run(mut self) -> Result<(), Status> {
        loop {
            self.step()?;
            tokio::time::sleep(self.pace).await;
        }
    }

    /// Does the next thing.
    ///
    /// # Errors
    /// If a write fails for another reason than that somebody else was faster.
    pub fn step(&mut self) -> Result<Happening, Status> {
        if self.born == 0 {
            self.born = 1;
            let coredns = deployment("kube-system", "coredns", 2, &json!({"k8s-app": "kube-dns"}));
            self.cluster.apply(&coredns)?;
            return Ok(happened(What::Created, DEPLOYMENTS, "kube-system", "coredns"));
        }
        // First what has been begun, then something new.
        for at in 0..self.apps.len() {
            let app = &self.apps[at];
            if app.ending {
                return self.end(at);
            }
            if app.pods.len() < app.replicas {
                return self.create_pod(at);
            }
            if let Some(pod) = app.pods.iter().position(|pod| !pod.running) {
                return self.start_pod(at, pod);
            }
            if app.pods.len() > app.replicas {
                let last = app.pods.len() - 1;
                return self.delete_pod(at, last);
            }
        }
        let chance = self.roll(100);
        if self.apps.len() < 2 || (self.apps.len() < self.most_apps && chance < 20) {
            return self.create_app();
        }
        let at = self.roll(self.apps.len());
        let pod = self.roll(self.apps[at].pods.len().max(1));
        match chance {
            0..60 if !self.apps[at].pods.is_empty() => self.restart_pod(at, pod),
            60..80 if !self.apps[at].pods.is_empty() => self.delete_pod(at, pod),
            80..95 => self.scale(at),
            _ => {
                self.apps[at].ending = true;
                self.end(at)
            }
        }
    }

    fn create_app(&mut self) -> Result<Happening, Status> {
        let number = self.born;
        self.born += 1;
        let word = NAMES[usize::try_from(number).unwrap_or(0) % NAMES.len()];
        let app = App {
            namespace: ["default", "default", "shop"][self.roll(3)],
            name: format!("{word}-{number}"),
            replicas: 1 + self.roll(3),
            pods: Vec::new(),
            ending: false,
        };
        self.cluster.apply(&deployment(
            app.namespace,
            &app.name,
            app.replicas,
            &json!({"app": app.name}),
        ))?;
        let happening = happened(What::Created, DEPLOYMENTS, app.namespace, &app.name);
        self.apps.push(app);
        Ok(happening)
    }

    fn create_pod(&mut self, at: usize) -> Result<Happening, Status> {
        let suffix = self.roll(0xf_ffff);
        let node = self.roll(3);
        let app = &mut self.apps[at];
        let name = format!("{}-{suffix:05x}", app.name);
        self.cluster.apply(&json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": app.namespace, "labels": {"app": app.name}},
            "spec": {
                "nodeName": format!("node-{node}"),
                "containers": [{"name": "main", "image": format!("registry.example.com/{}:1.0", app.name)}],
            },
            "status": {"phase": "Pending"},
        }))?;
        let happening = happened(What::Created, PODS, app.namespace, &name);
        app.pods.push(Pod { name, running: false, restarts: 0 });
        Ok(happening)
    }

    fn start_pod(&mut self, at: usize, pod: usize) -> Result<Happening, Status> {
        self.apps[at].pods[pod].running = true;
        self.report_pod(at, pod)
    }

    fn restart_pod(&mut self, at: usize, pod: usize) -> Result<Happening, Status> {
        self.apps[at].pods[pod].restarts += 1;
        self.report_pod(at, pod)
    }

    /// Writes the status of a Pod, and of its Deployment.
    fn report_pod(&mut self, at: usize, pod: usize) -> Result<Happening, Status> {
        let app = &self.apps[at];
        let Pod { name, restarts, .. } = &app.pods[pod];
        let status = json!({"status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{
                "name": "main", "ready": true, "restartCount": restarts, "image": "", "imageID": "",
                "state": {"running": {}},
            }],
        }});
        let happening = happened(What::Changed, PODS, app.namespace, name);
        if tolerate(self.cluster.patch(PODS, app.namespace, name, &status))? {
            self.report_app(at)?;
        } else {
            self.apps[at].pods.remove(pod);
        }
        Ok(happening)
    }

    fn delete_pod(&mut self, at: usize, pod: usize) -> Result<Happening, Status> {
        let Pod { name, .. } = self.apps[at].pods.remove(pod);
        let namespace = self.apps[at].namespace;
        tolerate(self.cluster.delete(PODS, namespace, &name))?;
        self.report_app(at)?;
        Ok(happened(What::Deleted, PODS, namespace, &name))
    }

    fn scale(&mut self, at: usize) -> Result<Happening, Status> {
        // Another number than before, from 1 to 4.
        let replicas = 1 + (self.apps[at].replicas + self.roll(3)) % 4;
        let app = &mut self.apps[at];
        app.replicas = replicas;
        let spec = json!({"spec": {"replicas": replicas}});
        tolerate(self.cluster.patch(DEPLOYMENTS, app.namespace, &app.name, &spec))?;
        Ok(happened(What::Changed, DEPLOYMENTS, app.namespace, &app.name))
    }

    /// Deletes the next object of an application, the Deployment first.
    fn end(&mut self, at: usize) -> Result<Happening, Status> {
        let App { namespace, name, .. } = &self.apps[at];
        let happening = happened(What::Deleted, DEPLOYMENTS, namespace, name);
        if tolerate(self.cluster.delete(DEPLOYMENTS, namespace, name))? {
            return Ok(happening);
        }
        match self.apps[at].pods.len() {
            0 => {
                self.apps.remove(at);
                self.step()
            }
            pods => self.delete_pod(at, pods - 1),
        }
    }

    fn report_app(&self, at: usize) -> Result<(), Status> {
        let app = &self.apps[at];
        let ready = app.pods.iter().filter(|pod| pod.running).count();
        let status = json!({"status": {"replicas": app.pods.len(), "readyReplicas": ready}});
        tolerate(self.cluster.patch(DEPLOYMENTS, app.namespace, &app.name, &status)).map(drop)
    }

    /// A number below `limit`.
    fn roll(&mut self, limit: usize) -> usize {
        self.random = mix(self.random);
        usize::try_from(self.random % limit.max(1) as u64).unwrap_or(0)
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::Created => "create",
            What::Changed => "change",
            What::Deleted => "delete",
        };
        write!(f, "{what} {} {}/{}", self.resource, self.namespace, self.name)
    }
}

fn happened(what: What, resource: &'static str, namespace: &str, name: &str) -> Happening {
    Happening { what, resource, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Whether the object was still there; that somebody else deleted it is no error.
fn tolerate<T>(result: Result<T, Status>) -> Result<bool, Status> {
    match result {
        Ok(_) => Ok(true),
        Err(status) if status.code == 404 => Ok(false),
        Err(status) => Err(status),
    }
}

fn deployment(namespace: &str, name: &str, replicas: usize, labels: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": format!("registry.example.com/{name}:1.0")}]},
            },
        },
        "status": {"replicas": 0, "readyReplicas": 0},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    #[test]
    fn the_same_seed_leads_the_same_life() {
        let live = |seed| {
            let mut life = Life::new(&Cluster::new(), seed);
            (0..200).map(|_| life.step().unwrap().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(live(1), live(1));
        assert_ne!(live(1), live(2));
    }

    #[test]
    fn everything_happens_to_both_kinds() {
        let cluster = Cluster::new();
        let mut life = Life::new(&cluster, 3);
        let happened: Vec<Happening> = (0..400).map(|_| life.step().unwrap()).collect();
        for resource in [PODS, DEPLOYMENTS] {
            for what in [What::Created, What::Changed, What::Deleted] {
                assert!(
                    happened.iter().any(|h| h.resource == resource && h.what == what),
                    "{what:?} {resource}"
                );
            }
        }
        assert!(cluster.get("deploy", "kube-system", "coredns").is_some());
        assert!(cluster.count("pods") <= 5 * 4, "it does not grow without bound");
    }

    #[test]
    fn pods_that_are_ready_run() {
        let cluster = Cluster::new();
        let mut life = Life::new(&cluster, 3);
        (0..100).for_each(|_| drop(life.step().unwrap()));
        let pods = cluster.list("pods");
        let read = |it: &Object| serde_json::from_slice::<Value>(it.json()).unwrap();
        let pods = pods.iter().map(read).collect::<Vec<_>>();
        let of = |path: &str| pods.iter().filter(|it| it.pointer(path).is_some()).count();
        let ready = of("/status/containerStatuses/0/ready");
        assert_ne!(ready, 0);
        assert_eq!(ready, of("/status/containerStatuses/0/state/running"));
    }

    #[test]
    fn it_goes_on_when_somebody_else_deletes_its_objects() {
        let cluster = Cluster::new();
        let mut life = Life::new(&cluster, 5);
        for round in 0..300 {
            life.step().unwrap();
            if round % 7 == 0 {
                for object in cluster.list("pods").iter().chain(&cluster.list("deployments")) {
                    let resource = if object.field("spec.nodeName").is_empty() {
                        "deployments"
                    } else {
                        "pods"
                    };
                    cluster
                        .delete(resource, object.key().namespace(), object.key().name())
                        .unwrap();
                }
            }
        }
        assert!(cluster.version() > 300);
    }
}
