//! What was measured with what.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tokio::process::Command;

use crate::Arguments;
use crate::cluster::Cluster;
use crate::programs::{Programs, profile};

/// The beginning of the report on clients.
pub(crate) async fn describe(arguments: &Arguments, programs: &Programs) -> Result<String> {
    let client_go = said(Command::new(&programs.client_go).arg("version")).await;
    let allocator = match cfg!(feature = "mimalloc") {
        true => "mimalloc",
        false => "the system's allocator",
    };
    let crates = ["kube", "kube-runtime", "k8s-openapi"];
    let Arguments { objects, rounds, .. } = arguments;
    Ok(format!("{}; {client_go}", describe_ours(*objects, *rounds, &crates, allocator).await?))
}

/// The beginning of any report.
pub(crate) async fn describe_ours(
    objects: usize,
    rounds: usize,
    crates: &[&str],
    allocator: &str,
) -> Result<String> {
    let rustc = said(Command::new("rustc").arg("--version")).await;
    let date = said(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])).await;
    let commit = said(Command::new("git").args(["describe", "--always", "--dirty"])).await;
    let lock = std::fs::read_to_string(repository().join("Cargo.lock"))?;
    let version = |name: &&str| match locked(&lock, name) {
        Some(version) => format!("{name} {version}"),
        None => (*name).to_owned(),
    };
    let versions: Vec<String> = crates.iter().chain([&allocator]).map(version).collect();
    let (machine, profile) = (machine(), profile(&std::env::current_exe()?));
    Ok(format!(
        "{date}, commit {commit}, profile {profile}: {objects} Pods, {rounds} rounds, on {machine}. {rustc}, {}",
        versions.join(", ")
    ))
}

/// What the report says of the server.
pub(crate) async fn of_server(cluster: &Cluster) -> Result<String> {
    let server = cluster.target().client().await?.apiserver_version().await?.git_version;
    let etcd = std::fs::read_to_string(repository().join("tests/real-cluster/go.mod"))?;
    let etcd = etcd.lines().find_map(|line| line.trim().strip_prefix("go.etcd.io/etcd/server/v3 "));
    let etcd = etcd.map_or("?", |version| version.trim_end_matches(" // indirect"));
    Ok(format!("; kube-apiserver {server}, etcd {etcd}"))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let gibibytes =
        memory.trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / f64::from(1 << 20);
    format!(
        "{} cores ({}), {gibibytes:.0} GiB, Linux {}, load average {} before",
        std::thread::available_parallelism().map_or(0, usize::from),
        field(&read("/proc/cpuinfo"), "model name"),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default(),
    )
}

/// What a program prints, or a question mark.
async fn said(command: &mut Command) -> String {
    let text = command.output().await.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "?".to_owned())
}

/// The version of a crate.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, entry) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    entry.split_once('"').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_crate_with_that_name() {
        let lock = "[[package]]\nname = \"kube-core\"\nversion = \"1.0\"\n\n[[package]]\nname = \"kube\"\nversion = \"2.0\"\n";
        assert_eq!(locked(lock, "kube"), Some("2.0"));
        assert_eq!(locked(lock, "hyper"), None);
    }
}
