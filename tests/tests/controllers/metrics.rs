//! What a registry of `prometheus-client` says of work queues.

use std::time::Duration;

use anyhow::Context;
use informer::workqueue::{WorkQueue, WorkQueueCollector};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::advance;

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
