//! Whatever faults came before, the store becomes equal to the collection (G1), in order (G4), and
//! what was handed out never changes (G13).

#[macro_use]
mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::{config_map, really, soon, value_of};
use informer::{Event, Lister, SharedInformerFactory};
use informer_testkit::{Cut, Fault, TestServer, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;

run_tests! {
    on_a_paused_clock:
        g01_after_every_fault_the_store_becomes_equal_to_the_collection,
        g04_events_of_a_key_come_in_order_and_across_keys_in_the_servers,
        g13_what_was_handed_out_never_changes;
}

/// In the process, so that the clock can be paused.
fn factory(server: &TestServer) -> SharedInformerFactory {
    SharedInformerFactory::builder(kube::Client::new(server.service(), "default")).build()
}

/// Name to UID and version.
type Content = BTreeMap<String, (String, String)>;

fn truth(server: &TestServer) -> Content {
    let objects = server.cluster().list("configmaps");
    let entry = |json: &[u8]| {
        let object: ConfigMap = serde_json::from_slice(json).unwrap();
        let meta = object.metadata;
        (meta.name.unwrap(), (meta.uid.unwrap(), meta.resource_version.unwrap()))
    };
    objects.iter().map(|object| entry(object.json())).collect()
}

fn held(lister: &Lister<ConfigMap>) -> Content {
    let snapshot = lister.snapshot();
    let entry = |entry: informer::store::Entry<'_, ConfigMap>| {
        (
            entry.key.name().to_owned(),
            (entry.record.uid.to_string(), entry.record.version.to_string()),
        )
    };
    snapshot.iter().map(entry).collect()
}

/// Creates, changes, deletes and recreates, nothing of which anybody watches just then.
fn change(server: &TestServer, round: usize) {
    let cluster = server.cluster();
    for name in ["a", "b", "c", "d"] {
        cluster.apply(&config_map(name, &round.to_string())).unwrap();
    }
    cluster.delete("configmaps", "default", "b").unwrap();
    cluster.delete("configmaps", "default", "c").unwrap();
    cluster.apply(&config_map("c", "recreated")).unwrap();
    cluster.apply(&config_map(&format!("only-{round}"), "new")).unwrap();
}

async fn g01_after_every_fault_the_store_becomes_equal_to_the_collection() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let unavailable =
        || informer_testkit::Status::new(503, "ServiceUnavailable", "down for a while");
    let faults: [(&str, &dyn Fn()); 9] = [
        ("nothing", &|| {}),
        ("410 on the next watch", &|| {
            drop(server.faults().inject(Fault::expired().on(Verb::Watch).times(1)))
        }),
        ("410 on watches and lists", &|| drop(server.faults().inject(Fault::expired().times(3)))),
        ("429", &|| drop(server.faults().inject(Fault::too_many_requests().times(3)))),
        ("429 with an advice", &|| {
            drop(server.faults().inject(Fault::too_many_requests().retry_after(7).times(2)));
        }),
        ("503", &|| drop(server.faults().inject(Fault::answer(unavailable()).times(4)))),
        ("connections hung up", &|| drop(server.faults().inject(Fault::hang_up().times(3)))),
        ("a stall in the middle", &|| {
            drop(server.faults().inject(Fault::stall_after(50).times(1)))
        }),
        ("compaction", &|| server.cluster().compact()),
    ];
    for (round, (fault, inject)) in faults.iter().enumerate() {
        for cut in [Cut::Close, Cut::Reset] {
            server.faults().cut_watches(cut, None);
            change(&server, round);
            inject();
            let version = server.cluster().version().to_string();
            let reached =
                tokio::time::timeout(Duration::from_secs(600), informer.wait_for(version.as_str()));
            reached
                .await
                .unwrap_or_else(|_| panic!("after {fault}: {}", informer.status()))
                .unwrap();
            assert_eq!(held(&lister), truth(&server), "after {fault}");
            server.faults().lift_all();
        }
    }
    factory.shutdown().await;
}

async fn g04_events_of_a_key_come_in_order_and_across_keys_in_the_servers() {
    let server = TestServer::start().await.unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    let (sender, mut versions) = mpsc::unbounded_channel();
    let told = move |event: &Event<ConfigMap>| {
        let version = event.object().metadata.resource_version.as_ref().unwrap();
        _ = sender.send(version.parse::<u64>().unwrap());
    };
    informer.add_handler(|h| h.on_event(told)).unwrap();
    factory.start();
    soon(factory.wait_for_handlers()).await.unwrap();
    let mut written = Vec::new();
    for round in 0..40 {
        let name = ["a", "b", "c"][round % 3];
        server.cluster().apply(&config_map(name, &round.to_string())).unwrap();
        written.push(server.cluster().version());
    }
    // The server gathers changes for some milliseconds: that needs the clock, and is over then.
    soon(informer.wait_for(server.cluster().version())).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < written.len() {
        seen.push(really(versions.recv()).await.unwrap());
    }
    assert_eq!(seen, written);
    factory.shutdown().await;
}

async fn g13_what_was_handed_out_never_changes() {
    let server = TestServer::start().await.unwrap();
    server.cluster().apply(&config_map("a", "first")).unwrap();
    let factory = factory(&server);
    let informer = factory.informer::<ConfigMap>().unwrap();
    factory.start();
    let lister = soon(informer.synced()).await.unwrap();
    let (snapshot, mut mine) = (lister.snapshot(), lister.find("default", "a").unwrap());
    // A reader's change is made to a copy of its own.
    Arc::make_mut(&mut mine).data.as_mut().unwrap().clear();
    assert_eq!(value_of(&lister.find("default", "a").unwrap()), "first");

    server.cluster().apply(&config_map("a", "second")).unwrap();
    soon(informer.wait_for(server.cluster().version())).await.unwrap();
    assert_eq!(value_of(&lister.find("default", "a").unwrap()), "second");
    assert_eq!(value_of(snapshot.find("default", "a").unwrap().object()), "first");
    factory.shutdown().await;
}
