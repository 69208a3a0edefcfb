//! Writes that are refused, here or by the server.

use kube::api::{Api, PostParams};
use tokio::task::JoinHandle;

use super::*;
use crate::InformerOptions;
use crate::controller::error::WriteError;
use crate::leader_election::{LeaderElectionConfig, LeaderElector, Term};

/// A term of this process, which ends when the task is aborted.
async fn term(bed: &Bed) -> (Term, JoinHandle<()>) {
    let config = LeaderElectionConfig::new("default", "lease", "me");
    let client = Client::new(bed.server.service(), "default");
    let elector = LeaderElector::new(client, config).unwrap();
    let leadership = elector.leadership();
    let electing = tokio::spawn(elector.run(std::future::pending()));
    (leadership.wait_until_leading().await.unwrap(), electing)
}

#[tokio::test(start_paused = true)]
async fn who_is_not_the_leader_writes_nothing() {
    let bed = Bed::new().await;
    let (term, electing) = term(&bed).await;
    let writer = bed.own.writer(owner(), Gate::new(Some(term)));
    writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    electing.abort();
    _ = electing.await;
    let error = writer.create(&map("b", "1")).await.unwrap_err();
    assert!(matches!(error, WriteError::NotLeader(_)), "{error}");
    let maps: Api<ConfigMap> = Api::namespaced(writer.client(), "default");
    let error = maps.create(&PostParams::default(), &map("b", "1")).await.unwrap_err();
    assert!(matches!(WriteError::of_client(&error), Some(WriteError::NotLeader(_))), "{error}");
    assert!(maps.get_opt("b").await.unwrap().is_none(), "reads go through");
    assert_eq!((bed.requests(Verb::Create), bed.own.metrics().remembered), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_for_a_connection_ends_with_the_term() {
    let server = TestServer::start().await.unwrap();
    let client = delayed(&server, Duration::from_secs(5));
    let bed = Bed::over(server, client).await;
    let (term, electing) = term(&bed).await;
    let writer = bed.own.writer(owner(), Gate::new(Some(term)));
    // Not in a reconcile, which would be cancelled.
    let writing = tokio::spawn(async move { writer.create(&map("a", "1")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    electing.abort();
    let error = writing.await.unwrap().unwrap_err();
    assert!(matches!(error, WriteError::Unknown { .. }), "{error}");
    assert!(
        error.to_string().contains("given up") && error.to_string().contains("lease"),
        "{error}"
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bed.server.cluster().count("configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_or_never_got_is_not_remembered() {
    let bed = Bed::new().await;
    let error = bed.writer.create(&map("a/b", "1")).await.unwrap_err();
    assert_eq!(error.status().map(|status| status.code), Some(422), "{error}");
    bed.server.faults().inject(Fault::too_many_requests().times(1));
    let error = bed.writer.create(&map("a", "1")).await.unwrap_err();
    assert_eq!(error.status().map(|status| status.code), Some(429), "{error}");
    bed.server.faults().refuse_connections();
    let error = bed.writer.create(&map("a", "1")).await.unwrap_err();
    assert!(matches!(error, WriteError::NotSent { .. }), "{error}");
    assert_eq!(bed.own.metrics().remembered, 0);
    assert!(bed.own.take_conflict(&owner()).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_already_is_waited_for_where_the_store_holds_it() {
    let bed = Bed::new().await;
    let created = bed.writer.create(&map("a", "1")).await.unwrap();
    bed.caught_up().await.unwrap();
    let held = bed.hold_watches();
    bed.server.cluster().delete("configmaps", "default", "a").unwrap();
    assert!(bed.writer.delete(&created).await.unwrap_err().is_not_found());
    bed.is_waited_for(held).await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_settled_once_the_store_shows_what_is_there() {
    let bed = Bed::new().await;
    let held = bed.hold_watches();
    bed.server
        .cluster()
        .create(&serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
        }))
        .unwrap();
    assert!(bed.writer.create(&map("a", "1")).await.unwrap_err().is_already_exists());
    bed.caught_up().await.unwrap();
    let (conflict, in_a_row) = bed.own.take_conflict(&owner()).unwrap();
    assert_eq!(in_a_row, 1);
    assert!(bed.own.take_conflict(&owner()).is_none());
    let key = owner();
    let mut settle = pin!(bed.own.settle(&key, conflict, DEADLINE));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut settle).await.is_err());
    held.lift();
    settle.await.unwrap();
    assert!(bed.value("a").is_some());

    // The next write is none.
    assert!(bed.writer.create(&map("a", "1")).await.unwrap_err().is_already_exists());
    bed.writer.create(&map("b", "1")).await.unwrap();
    assert!(bed.own.take_conflict(&owner()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_conflict_with_what_no_informer_will_show_is_an_error() {
    let bed = Bed::new().await;
    let web = InformerOptions::new().labels("app=web").unwrap();
    let web = bed.factory.informer_with::<ConfigMap>(web).unwrap();
    let own = OwnWrites::new(Client::new(bed.server.service(), "default"));
    own.follow(&web);
    bed.factory.start();
    web.synced().await.unwrap();
    let writer = own.writer(owner(), Gate::new(None));
    writer.create(&map("a", "1")).await.unwrap();
    writer.create(&labelled(map("a", "1"), "web")).await.unwrap_err();
    let (conflict, _) = own.take_conflict(&owner()).unwrap();
    let error = own.settle(&owner(), conflict, DEADLINE).await.unwrap_err();
    assert!(error.to_string().contains("configmaps default/a exists already"), "{error}");
    assert!(error.to_string().contains("labels app=web"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_free_again_needs_no_list() {
    let bed = Bed::new().await;
    let taken =
        informer_testkit::Status::new(409, "AlreadyExists", "configmaps \"a\" already exists");
    bed.server.faults().inject(Fault::answer(taken).on(Verb::Create).times(1));
    assert!(bed.writer.create(&map("a", "1")).await.unwrap_err().is_already_exists());
    let (conflict, _) = bed.own.take_conflict(&owner()).unwrap();
    bed.own.settle(&owner(), conflict, DEADLINE).await.unwrap();
    let metrics = bed.own.metrics();
    assert_eq!((metrics.reads, metrics.refreshes, metrics.remembered), (1, 0, 0));
    bed.writer.create(&map("a", "1")).await.unwrap();
}
