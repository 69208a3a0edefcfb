//! client-go's leader election through the endpoint: one leader at a time, whoever answers the
//! reads of its Lease.

use anyhow::{Context, ensure};
use http::Request;
use informer_tests::helpers::eventually_ok;
use informer_tests::real::RealCluster;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::SOON;
use crate::accounts::{Account, create, lease_rule, serve_as_reader};
use crate::client_go::program;
use crate::endpoint::Endpoint;
use crate::process::{Printed, Process};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test(flavor = "multi_thread")]
async fn client_gos_leader_election_has_one_leader_through_the_endpoint() -> anyhow::Result<()> {
    let Some(cluster) = RealCluster::start().await? else { return Ok(()) };
    let account =
        Account::create(&cluster, "elector", &["default"], &json!([lease_rule()])).await?;
    // A Lease is read from the API server, or from the cache where somebody has it filled.
    let passed_on = serve_as_reader(&cluster, &[]).await?;
    let cached = serve_as_reader(&cluster, &["--cache", "leases.coordination.k8s.io"]).await?;
    tokio::try_join!(
        has_one_leader(&cluster, &account, &passed_on, "passed-on"),
        has_one_leader(&cluster, &account, &cached, "cached"),
        no_other_rights(&cluster, &account, &passed_on),
    )?;
    passed_on.stop().await?;
    cached.stop().await
}

/// The leader releases the Lease, the next one is killed, and the last one leads.
async fn has_one_leader(
    cluster: &RealCluster,
    account: &Account,
    endpoint: &Endpoint,
    lease: &str,
) -> anyhow::Result<()> {
    let program = program().await?;
    let kubeconfig = account.kubeconfig(endpoint.url())?;
    let kubeconfig = kubeconfig.to_string_lossy();
    let start = |identity: &str| {
        let server = ["--kubeconfig", &kubeconfig, "--namespace", "default"];
        let who = ["--elect", lease, "--identity", identity];
        Process::start_reading(&program, server.iter().chain(&who))
    };
    let first = start("first")?;
    first.until(|lines| has(lines, "leads", "first")).await?;
    let (second, third) = (start("second")?, start("third")?);
    for candidate in [&second, &third] {
        candidate.until(|lines| has(lines, "leader", "first")).await?;
    }
    let first = first.end().await?;
    ensure!(first.success(), "{}", first.stderr);
    let (second_leads, third_leads) = (
        second.until(|lines| has(lines, "leads", "second")),
        third.until(|lines| has(lines, "leads", "third")),
    );
    let is_second = tokio::select! {
        leads = second_leads => leads.map(|_| true)?,
        leads = third_leads => leads.map(|_| false)?,
    };
    let (leader, other, name) =
        if is_second { (second, third, "third") } else { (third, second, "second") };
    let leader = leader.kill().await?;
    other.until(|lines| has(lines, "leads", name)).await.context("nobody takes over")?;
    let path = format!("{LEASES}/{lease}");
    let admin = cluster.client().await?;
    eventually_ok("the leader has renewed its Lease", SOON, async || {
        // A release that overtakes a renewal is refused.
        let lease = read(&admin, &path).await?;
        let spec = &lease["spec"];
        ensure!(spec["holderIdentity"] == name && spec["renewTime"] != spec["acquireTime"]);
        Ok(())
    })
    .await?;
    let last = other.end().await?;
    ensure!(last.success(), "{}", last.stderr);
    let terms = [term(&first)?, term(&leader)?, term(&last)?];
    // All clocks are one.
    ensure!(terms.is_sorted_by(|one, next| one.1 < next.0), "two led at a time: {terms:?}");

    let direct = read(&admin, &path).await?;
    let through = read(&account.client(endpoint.url()).await?, &path).await?;
    let spec = &direct["spec"];
    ensure!(
        spec["leaseTransitions"] == 2 && spec["holderIdentity"] == "",
        "{lease}: {spec}\n{}",
        last.stderr
    );
    ensure!(direct["metadata"]["resourceVersion"] == through["metadata"]["resourceVersion"]);
    ensure!(*spec == through["spec"], "{direct}\nis not\n{through}");
    Ok(())
}

/// The account may do no more through the endpoint than at the API server, in the same words.
async fn no_other_rights(
    cluster: &RealCluster,
    account: &Account,
    endpoint: &Endpoint,
) -> anyhow::Result<()> {
    let direct = account.client(cluster.url()).await?;
    let through = account.client(endpoint.url()).await?;
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "other" }, "spec": {} });
    for path in [&LEASES.replace("default", "kube-system"), "/api/v1/namespaces/default/configmaps"]
    {
        let [wanted, got] = [&direct, &through].map(|client| create(client, path, &lease));
        let (wanted, got) = tokio::join!(wanted, got);
        let [wanted, got] = [wanted, got].map(|it| it.map_err(|error| format!("{error:#}")));
        ensure!(wanted == got, "{wanted:?}\nbut through the endpoint\n{got:?}");
        let words = wanted.err().with_context(|| format!("{path} was allowed"))?;
        ensure!(words.contains("system:serviceaccount:default:elector"), "{words}");
    }
    for path in [LEASES, "/api/v1/namespaces/default/configmaps"] {
        let [wanted, got] = [&direct, &through].map(|client| read(client, path));
        let (wanted, got) = tokio::join!(wanted, got);
        let [wanted, got] = [wanted, got].map(|it| it.map_err(|error| format!("{error:#}")));
        ensure!(wanted.is_err() && wanted == got, "{wanted:?}\nbut through the endpoint\n{got:?}");
    }
    Ok(())
}

/// A line of the program.
#[derive(Debug, Deserialize)]
struct Line {
    line: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    at: i64,
}

/// When a candidate first and last said that it leads.
fn term(printed: &Printed) -> anyhow::Result<(i64, i64)> {
    // A killed one may have printed half a line.
    let lines = printed.stdout.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let times: Vec<_> = lines.filter(|it| it.line == "leads").map(|it| it.at).collect();
    let ends = times.iter().min().zip(times.iter().max());
    let (first, last) = ends.with_context(|| format!("it never led: {printed:?}"))?;
    Ok((*first, *last))
}

fn has(lines: &[String], what: &str, key: &str) -> bool {
    let lines = lines.iter().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.into_iter().any(|it| it.line == what && it.key == key)
}

async fn read(client: &Client, path: &str) -> anyhow::Result<Value> {
    Ok(client.request(Request::get(path).body(Vec::new())?).await?)
}
