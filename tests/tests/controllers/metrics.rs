//! What a registry of `prometheus-client` says of work queues and controllers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use informer::SharedInformerFactory;
use informer::controller::{Action, Controller, ControllerCollector};
use informer::workqueue::{WorkQueue, WorkQueueCollector};
use informer_testkit::TestServer;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::time::{advance, sleep};

#[tokio::test(start_paused = true)]
async fn work_queues_are_exported_under_client_gos_names() -> anyhow::Result<()> {
    let (web, other) = (WorkQueue::new("web"), WorkQueue::<String>::new("other"));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(WorkQueueCollector::new().and(&web).and(&other)));

    web.add(1);
    advance(Duration::from_millis(20)).await;
    drop(web.next().await.context("an item")?);
    web.add(2);
    let _stuck = web.next().await.context("an item")?;
    web.add(3);
    web.add_after(4, Duration::from_secs(60));
    advance(Duration::from_secs(2)).await;

    let mut text = String::new();
    encode(&mut text, &registry)?;
    for line in [
        "# TYPE workqueue_depth gauge",
        "workqueue_depth{name=\"web\"} 1",
        "workqueue_depth{name=\"other\"} 0",
        "# TYPE workqueue_adds counter",
        "workqueue_adds_total{name=\"web\"} 3",
        "workqueue_retries_total{name=\"web\"} 1",
        "workqueue_unfinished_work_seconds{name=\"web\"} 2.0",
        "workqueue_longest_running_processor_seconds{name=\"web\"} 2.0",
        "# TYPE workqueue_queue_duration_seconds histogram",
        "workqueue_queue_duration_seconds_sum{name=\"web\"} 0.02",
        "workqueue_queue_duration_seconds_count{name=\"web\"} 2",
        "workqueue_queue_duration_seconds_bucket{le=\"0.01\",name=\"web\"} 1",
        "workqueue_queue_duration_seconds_bucket{le=\"0.1\",name=\"web\"} 2",
        "workqueue_queue_duration_seconds_bucket{le=\"+Inf\",name=\"web\"} 2",
        "workqueue_work_duration_seconds_count{name=\"web\"} 1",
        "workqueue_work_duration_seconds_count{name=\"other\"} 0",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line} is not in:\n{text}");
    }
    for family in ["workqueue_depth ", "workqueue_adds ", "workqueue_work_duration_seconds "] {
        assert_eq!(text.matches(&format!("# TYPE {family}")).count(), 1, "{text}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn controllers_are_exported_under_controller_runtimes_names() -> anyhow::Result<()> {
    let server = TestServer::start().await?;
    let client = Client::new(server.service(), "default");
    let factory = SharedInformerFactory::builder(client.clone()).build();
    let maps = factory.informer::<ConfigMap>()?;
    let controller = Controller::new(client.clone(), &maps)
        .name("web")
        .concurrency(2)
        .reconcile_timeout(Duration::from_secs(30));
    let idle = Controller::new(client, &maps).name("idle");
    let handle = controller.handle();
    let mut registry = Registry::default();
    let collector = ControllerCollector::new().and(&handle).and(&idle.handle());
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    assert!(!text.contains("web"), "it does not run yet: {text}");

    // Fails, panics, hangs, and asks for another after the 20 ms that it takes.
    let calls = AtomicUsize::new(0);
    let reconcile = move |_: Arc<ConfigMap>, ctx: informer::controller::Context<()>| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            match call {
                0 => bail!("it fails"),
                1 => panic!("it panics"),
                2 => sleep(Duration::from_secs(60)).await,
                3 => {
                    let mut map = ConfigMap::default();
                    map.metadata.name = Some(format!("of-{}", ctx.key().name()));
                    ctx.create(&map).await?;
                }
                _ => {}
            }
            sleep(Duration::from_millis(20)).await;
            Ok(Action::await_change())
        }
    };
    let running = tokio::spawn(controller.run(reconcile, ()));
    server.cluster().create(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": "default" } }))?;
    sleep(Duration::from_secs(60)).await;
    let mut text = String::new();
    encode(&mut text, &registry)?;
    for line in [
        "# TYPE controller_runtime_reconcile counter",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"success\"} 2",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"error\"} 3",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"requeue\"} 0",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"requeue_after\"} 0",
        "controller_runtime_reconcile_errors_total{controller=\"web\"} 3",
        "controller_runtime_reconcile_panics_total{controller=\"web\"} 1",
        "controller_runtime_reconcile_timeouts_total{controller=\"web\"} 1",
        "informer_controller_mapping_panics_total{controller=\"web\"} 0",
        "informer_controller_conflicts_total{controller=\"web\"} 0",
        "informer_controller_own_writes_timeouts_total{controller=\"web\"} 0",
        "informer_controller_own_writes_refreshes_total{controller=\"web\"} 0",
        "informer_controller_own_writes_reads_total{controller=\"web\"} 0",
        "informer_controller_own_writes_remembered{controller=\"web\"} 1",
        "controller_runtime_active_workers{controller=\"web\"} 0",
        "controller_runtime_max_concurrent_reconciles{controller=\"web\"} 2",
        "# TYPE controller_runtime_reconcile_time_seconds histogram",
        "controller_runtime_reconcile_time_seconds_count{controller=\"web\"} 5",
        "controller_runtime_reconcile_time_seconds_bucket{le=\"+Inf\",controller=\"web\"} 5",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line} is not in:\n{text}");
    }
    assert!(!text.contains("idle"), "{text}");
    let families = text.lines().filter(|line| line.starts_with("# TYPE"));
    assert_eq!(families.clone().count(), 14, "{text}");
    assert_eq!(families.collect::<std::collections::BTreeSet<_>>().len(), 14, "{text}");
    running.abort();
    factory.shutdown().await;
    Ok(())
}
