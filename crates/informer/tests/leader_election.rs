//! Leader election: candidates on the test kit, under a paused clock.

#[macro_use]
mod common;

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use informer::leader_election::{
    ElectionConfigError, LeaderElectionConfig, LeaderElectionStatus, LeaderElector, Leadership,
    Loss, NotLeaderCause,
};
use informer_testkit::{Fault, TestServer, Verb};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep, timeout};
use tower::retry::Retry;
use tower::{BoxError, ServiceExt};

use common::LONG;

run_tests! {
    on_a_paused_clock:
        a_candidate_creates_the_lease_as_client_go_writes_it,
        a_leader_renews_every_retry_period_and_keeps_what_is_not_the_elections,
        the_lease_of_another_client_holds_for_its_duration_from_when_it_was_seen,
        another_takes_over_when_the_holder_is_gone,
        a_release_lets_another_take_over_at_once,
        a_released_lease_has_an_empty_holder,
        a_hanging_server_ends_leadership_at_the_renew_deadline,
        failing_renewals_end_leadership_at_the_renew_deadline,
        lost_answers_do_not_extend_leadership_and_do_not_lose_the_lease,
        a_leader_whose_lease_another_has_taken_leads_no_more,
        a_deleted_lease_is_created_again_by_its_leader,
        a_refusal_names_the_rule_that_is_needed,
        a_missing_namespace_is_an_error_of_the_status,
        a_process_that_was_stopped_does_not_lead_when_it_continues,
        a_term_that_ended_unseen_stays_ended_when_another_begins,
        dropping_the_elector_ends_leadership_at_once,
        a_shutdown_does_not_wait_for_a_hanging_server_for_long,
        of_two_candidates_one_leads,
        durations_that_contradict_each_other_are_refused;
}

const NAME: &str = "my-controller";

/// What happens to a candidate's requests.
#[derive(Clone, Copy, PartialEq)]
enum Network {
    Good,
    /// They are not answered.
    Hangs,
    /// The server does what it is asked, and the answers to writes are lost.
    LosesAnswers,
}

/// A candidate that runs as a task.
struct Candidate {
    leadership: Leadership,
    network: Arc<Mutex<Network>>,
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Candidate {
    fn start(server: &TestServer, identity: &str) -> Self {
        let (elector, network) = elector(server, identity);
        let leadership = elector.leadership();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(elector.run(async { _ = stopped.await }));
        Self { leadership, network, task, stop }
    }

    fn set(&self, network: Network) {
        *self.network.lock().unwrap() = network;
    }

    fn status(&self) -> LeaderElectionStatus {
        self.leadership.status()
    }

    async fn shut_down(self) {
        _ = self.stop.send(());
        within(LONG, self.task).await.unwrap();
    }
}

fn elector(server: &TestServer, identity: &str) -> (LeaderElector, Arc<Mutex<Network>>) {
    let (client, network) = client(server);
    let config = LeaderElectionConfig::new("default", NAME, identity);
    (LeaderElector::new(client, config).unwrap(), network)
}

fn client(server: &TestServer) -> (Client, Arc<Mutex<Network>>) {
    let network = Arc::new(Mutex::new(Network::Good));
    let (service, now) = (server.service(), Arc::clone(&network));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (service, now) = (service.clone(), Arc::clone(&now));
        async move {
            let is_write = request.method() != Method::GET;
            if *now.lock().unwrap() == Network::Hangs {
                pending::<()>().await;
            }
            let answer = service.oneshot(request).await.map_err(BoxError::from)?;
            let now = *now.lock().unwrap();
            match now {
                Network::LosesAnswers if is_write => Err::<_, BoxError>("connection reset".into()),
                Network::Good | Network::Hangs | Network::LosesAnswers => Ok(answer),
            }
        }
    });
    // As `kube::Client::try_default` makes it.
    let service = Retry::new(RetryPolicy::server_retry(), service);
    (Client::new(service, "default"), network)
}

/// Fails instead of hanging.
async fn within<O>(limit: Duration, what: impl Future<Output = O>) -> O {
    timeout(limit, what).await.expect("it should have happened long ago")
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lease(server: &TestServer) -> Value {
    let lease = server.cluster().get("leases", "default", NAME).expect("a Lease");
    serde_json::from_slice(lease.json()).unwrap()
}

fn lease_spec(server: &TestServer) -> LeaseSpec {
    serde_json::from_value::<Lease>(lease(server)).unwrap().spec.unwrap()
}

/// As client-go writes it.
fn held_by(holder: &str, seconds: u64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": NAME, "namespace": "default", "labels": { "team": "a" } },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 7,
            "acquireTime": "2026-11-24T01:02:03.000004Z", "renewTime": "2026-11-24T01:02:05.123456Z",
            "strategy": "OldestEmulationVersion",
        },
    })
}

async fn a_candidate_creates_the_lease_as_client_go_writes_it() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "pod-0_1b9d");
    assert!(!candidate.leadership.is_leader());
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    assert_eq!((term.check(), candidate.leadership.is_leader()), (Ok(()), true));

    let spec = lease(&server)["spec"].clone();
    let times = ["acquireTime", "renewTime"].map(|field| spec[field].as_str().unwrap().to_owned());
    let expected = json!({
        "holderIdentity": "pod-0_1b9d", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": times[0], "renewTime": times[1],
    });
    assert_eq!(spec, expected);
    for time in &times {
        // RFC 3339 with exactly six digits, as Go's `MicroTime`.
        let shape: String =
            time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000000Z");
    }
    let status = serde_json::to_value(candidate.status()).unwrap();
    assert_eq!((&status["leader"], &status["isLeader"]), (&"pod-0_1b9d".into(), &true.into()));
    assert_eq!((&status["transitions"], &status["lastError"]), (&0.into(), &Value::Null));
    assert!(times[0].starts_with(&status["since"].as_str().unwrap()[..19]), "{status}");
    candidate.shut_down().await;
}

async fn a_leader_renews_every_retry_period_and_keeps_what_is_not_the_elections() {
    let server = TestServer::start().await.unwrap();
    server.cluster().create(&held_by("", 1)).unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    let acquired = lease_spec(&server);
    assert_eq!(acquired.lease_transitions, Some(8));
    server.clear_requests();
    sleep(secs(21)).await;
    assert_eq!(server.requests().verb(Verb::Update).len(), 10);
    assert_eq!(server.requests().len(), 10, "renewals need no reads");
    let renewed = lease_spec(&server);
    assert_eq!(renewed.acquire_time, acquired.acquire_time);
    assert!(renewed.renew_time > acquired.renew_time);
    assert_eq!(renewed.strategy.as_deref(), Some("OldestEmulationVersion"));
    assert_eq!(lease(&server)["metadata"]["labels"], json!({ "team": "a" }));
    assert_eq!((term.check(), candidate.status().terms), (Ok(()), 1));
    candidate.shut_down().await;
}

async fn the_lease_of_another_client_holds_for_its_duration_from_when_it_was_seen() {
    // Whatever the other's clock says.
    for renewed in ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let server = TestServer::start().await.unwrap();
        let mut held = held_by("host_1b9d", 20);
        held["spec"]["renewTime"] = renewed.into();
        server.cluster().create(&held).unwrap();
        let begun = Instant::now();
        let candidate = Candidate::start(&server, "a");
        sleep(secs(1)).await;
        let why = candidate.leadership.check().unwrap_err();
        let leader = Some("host_1b9d".to_owned());
        assert_eq!(why.cause, NotLeaderCause::NotElected { leader });
        let text = "not the leader by Lease default/my-controller: host_1b9d is";
        assert_eq!(why.to_string(), text);
        within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 20);
        assert_eq!(lease_spec(&server).lease_transitions, Some(8));
        candidate.shut_down().await;
    }
}

async fn another_takes_over_when_the_holder_is_gone() {
    let server = TestServer::start().await.unwrap();
    let first = Candidate::start(&server, "first");
    within(LONG, first.leadership.wait_until_leading()).await.unwrap();
    let second = Candidate::start(&server, "second");
    sleep(secs(5)).await;
    // Without a release, as a process that was killed.
    first.task.abort();
    let gone = Instant::now();
    within(LONG, second.leadership.wait_until_leading()).await.unwrap();
    let after = gone.elapsed();
    assert!(after >= secs(14) && after <= secs(17), "{after:?}");
    assert_eq!(lease_spec(&server).lease_transitions, Some(1));
    second.shut_down().await;
}

async fn a_release_lets_another_take_over_at_once() {
    let server = TestServer::start().await.unwrap();
    let first = Candidate::start(&server, "first");
    let term = within(LONG, first.leadership.wait_until_leading()).await.unwrap();
    let second = Candidate::start(&server, "second");
    sleep(secs(5)).await;
    first.shut_down().await;
    assert_eq!(term.lost().await.cause, NotLeaderCause::Over);
    let released = Instant::now();
    within(LONG, second.leadership.wait_until_leading()).await.unwrap();
    assert!(released.elapsed() <= secs(3), "{:?}", released.elapsed());
    second.shut_down().await;
}

async fn a_released_lease_has_an_empty_holder() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    let leadership = candidate.leadership.clone();
    candidate.shut_down().await;
    let spec = lease_spec(&server);
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(""), Some(1)));
    assert_eq!(leadership.check().unwrap_err().cause, NotLeaderCause::Over);
    assert!(leadership.wait_until_leading().await.is_err(), "never again");
}

async fn a_hanging_server_ends_leadership_at_the_renew_deadline() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    let renewed = Instant::now();
    candidate.set(Network::Hangs);
    let why = within(LONG, term.lost()).await;
    // The Lease holds for 15 s.
    assert_eq!(renewed.elapsed().as_secs(), 10);
    assert_eq!(why.cause, NotLeaderCause::Lost(Loss::RenewDeadline));
    assert_eq!((term.gate())(), Err(why));
    let error = candidate.status().last_error.unwrap().message;
    assert_eq!(error, "update Lease default/my-controller: no answer within 5s");
    // And it leads again when the server answers again.
    candidate.set(Network::Good);
    let next = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    assert!(next.check().is_ok() && term.check().is_err());
    assert_eq!(candidate.status().terms, 2);
    candidate.shut_down().await;
}

async fn failing_renewals_end_leadership_at_the_renew_deadline() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    let renewed = Instant::now();
    server.faults().inject(Fault::unavailable().resource("leases"));
    within(LONG, candidate.leadership.lost()).await;
    assert_eq!((renewed.elapsed().as_secs(), term.check().is_err()), (10, true));
    let tries = server.requests().resource("leases").len();
    assert!((4..=12).contains(&tries), "{tries} requests in 10 s: kube's own retries are kept out");
    candidate.shut_down().await;
}

async fn lost_answers_do_not_extend_leadership_and_do_not_lose_the_lease() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    candidate.set(Network::LosesAnswers);
    sleep(secs(7)).await;
    assert!(term.check().is_ok());
    candidate.set(Network::Good);
    sleep(secs(60)).await;
    assert_eq!((term.check(), candidate.status().transitions), (Ok(()), 0));

    candidate.set(Network::LosesAnswers);
    let lost_from = Instant::now();
    within(LONG, term.lost()).await;
    assert!(lost_from.elapsed() < secs(11), "the server has renewals that were never confirmed");
    candidate.set(Network::Good);
    within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    assert_eq!(lease_spec(&server).lease_transitions, Some(0), "nobody else held it");
    candidate.shut_down().await;
}

async fn a_leader_whose_lease_another_has_taken_leads_no_more() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    server.cluster().apply(&held_by("other", 15)).unwrap();
    let taken = Instant::now();
    let why = within(LONG, term.lost()).await;
    assert!(taken.elapsed() <= secs(3), "with its next renewal: {:?}", taken.elapsed());
    let by = "other".to_owned();
    assert_eq!(why.cause, NotLeaderCause::Lost(Loss::TakenOver { by }));
    assert_eq!(
        lease_spec(&server).holder_identity.as_deref(),
        Some("other"),
        "it is not taken back"
    );
    assert_eq!(candidate.status().leader.as_deref(), Some("other"));
    candidate.shut_down().await;
    assert_eq!(lease_spec(&server).holder_identity.as_deref(), Some("other"), "nor released");
}

async fn a_deleted_lease_is_created_again_by_its_leader() {
    let server = TestServer::start().await.unwrap();
    let first = Candidate::start(&server, "first");
    let term = within(LONG, first.leadership.wait_until_leading()).await.unwrap();
    let second = Candidate::start(&server, "second");
    sleep(secs(3)).await;
    server.cluster().delete("leases", "default", NAME).unwrap();
    sleep(secs(3)).await;
    assert_eq!(lease_spec(&server).holder_identity.as_deref(), Some("first"));
    sleep(secs(60)).await;
    assert!(term.check().is_ok() && !second.leadership.is_leader());
    first.shut_down().await;
    second.shut_down().await;
}

async fn a_refusal_names_the_rule_that_is_needed() {
    let server = TestServer::start().await.unwrap();
    server.auth().deny("system:anonymous", Verb::Create, "leases");
    let mut candidate = Candidate::start(&server, "a");
    let refused = async {
        while candidate.status().last_error.is_none() {
            assert!(candidate.leadership.status_changed().await);
        }
    };
    within(LONG, refused).await;
    let error = candidate.status().last_error.unwrap().message;
    assert!(error.starts_with("create Lease default/my-controller: "), "{error}");
    let rule = "a Role in namespace \"default\" with the rule {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}";
    assert!(error.ends_with(rule), "{error}");
    // What was missing is granted.
    server.auth().allow("system:anonymous");
    within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    candidate.shut_down().await;
}

async fn a_missing_namespace_is_an_error_of_the_status() {
    let server = TestServer::start().await.unwrap();
    server.faults().inject(Fault::not_found().on(Verb::Create).resource("leases"));
    let mut candidate = Candidate::start(&server, "a");
    let refused = async {
        while candidate.status().last_error.is_none() {
            assert!(candidate.leadership.status_changed().await);
        }
    };
    within(LONG, refused).await;
    let before = server.requests().verb(Verb::Create).len();
    sleep(secs(20)).await;
    let tries = server.requests().verb(Verb::Create).len() - before;
    assert!((9..=15).contains(&tries), "{tries} tries in 20 s");
    candidate.shut_down().await;
}

async fn a_process_that_was_stopped_does_not_lead_when_it_continues() {
    let server = TestServer::start().await.unwrap();
    let (elector, _) = elector(&server, "stopped");
    let leadership = elector.leadership();
    let mut running = pin!(elector.run(pending()));
    let term = tokio::select! {
        () = &mut running => panic!("it runs until it is dropped"),
        term = leadership.wait_until_leading() => term.unwrap(),
    };
    // SIGSTOP: nothing polls `running`.
    let other = Candidate::start(&server, "other");
    within(LONG, other.leadership.wait_until_leading()).await.unwrap();
    // SIGCONT: whatever runs first asks first.
    assert!(!leadership.is_leader());
    let why = term.check().unwrap_err();
    assert_eq!(why.cause, NotLeaderCause::Lost(Loss::RenewDeadline));
    let mut status = leadership.clone();
    let notices = async {
        while leadership.status().leader.as_deref() != Some("other") {
            assert!(status.status_changed().await);
        }
    };
    tokio::select! {
        () = &mut running => panic!("it runs until it is dropped"),
        () = within(LONG, notices) => {}
    }
    assert!(other.leadership.is_leader() && !leadership.is_leader());
    other.shut_down().await;
}

async fn a_term_that_ended_unseen_stays_ended_when_another_begins() {
    let server = TestServer::start().await.unwrap();
    let (elector, _) = elector(&server, "stopped");
    let leadership = elector.leadership();
    let mut running = pin!(elector.run(pending()));
    let term = tokio::select! {
        () = &mut running => panic!("it runs until it is dropped"),
        term = leadership.wait_until_leading() => term.unwrap(),
    };
    advance(secs(12)).await;
    // It runs on before anything has asked, and the Lease is still its own.
    let mut status = leadership.clone();
    let next = tokio::select! {
        biased;
        () = &mut running => panic!("it runs until it is dropped"),
        term = async {
            while leadership.status().terms < 2 {
                status.status_changed().await;
            }
            leadership.term()
        } => term.unwrap(),
    };
    assert!(leadership.is_leader() && next.check().is_ok());
    assert_eq!(term.lost().await.cause, NotLeaderCause::Lost(Loss::RenewDeadline));
}

async fn dropping_the_elector_ends_leadership_at_once() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    let lost = tokio::spawn(async move { term.lost().await });
    candidate.task.abort();
    let dropped = Instant::now();
    let why = within(LONG, lost).await.unwrap();
    assert_eq!((why.cause, dropped.elapsed()), (NotLeaderCause::Over, Duration::ZERO));
    assert!(!candidate.leadership.is_leader());
    assert_eq!(lease_spec(&server).holder_identity.as_deref(), Some("a"), "it runs out");
}

async fn a_shutdown_does_not_wait_for_a_hanging_server_for_long() {
    let server = TestServer::start().await.unwrap();
    let candidate = Candidate::start(&server, "a");
    let term = within(LONG, candidate.leadership.wait_until_leading()).await.unwrap();
    candidate.set(Network::Hangs);
    sleep(secs(3)).await;
    let asked = Instant::now();
    let lost = tokio::spawn(async move { (term.lost().await, Instant::now()) });
    candidate.shut_down().await;
    assert_eq!(asked.elapsed().as_secs(), 5);
    let (why, at) = lost.await.unwrap();
    assert_eq!((why.cause, at - asked), (NotLeaderCause::Lost(Loss::Released), Duration::ZERO));
}

async fn of_two_candidates_one_leads() {
    let server = TestServer::start().await.unwrap();
    let candidates = ["a", "b"].map(|identity| Candidate::start(&server, identity));
    let mut led = [false; 2];
    for round in 0..1_200 {
        sleep(Duration::from_millis(100)).await;
        let leads = [0, 1].map(|at| candidates[at].leadership.is_leader());
        assert_ne!(leads, [true, true], "in round {round}");
        for (candidate, (led, leads)) in candidates.iter().zip(led.iter_mut().zip(leads)) {
            *led |= leads;
            match round % 300 {
                // The leader loses its network for 25 s.
                250 if leads => candidate.set(Network::Hangs),
                200 => candidate.set(Network::Good),
                _ => {}
            }
        }
    }
    assert_eq!(led, [true, true]);
    for candidate in candidates {
        candidate.set(Network::Good);
        candidate.shut_down().await;
    }
}

async fn durations_that_contradict_each_other_are_refused() {
    let server = TestServer::start().await.unwrap();
    let config = LeaderElectionConfig::new("default", NAME, "a").renew_deadline(secs(15));
    let refused = LeaderElector::new(client(&server).0, config).unwrap_err();
    assert!(matches!(refused, ElectionConfigError::LeaseTooShort { .. }), "{refused}");
}
