//! One candidate, request by request.

use super::record::whole_seconds;
use super::*;
use crate::{ResourceVersion, Uid};

const WALL: MicroTime = MicroTime(1_700_000_000_000_000);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config() -> ElectionConfig {
    ElectionConfig {
        identity: "me".to_owned(),
        lease_duration: secs(15),
        renew_deadline: secs(10),
        retry_period: secs(2),
        seed: 1,
    }
}

fn candidate() -> LeaderElection {
    LeaderElection::new(config()).unwrap()
}

fn record(holder: &str, renewed: i64) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder_identity: holder.to_owned(),
        lease_duration_seconds: Some(15),
        acquire_time: Some(MicroTime(1)),
        renew_time: Some(MicroTime(renewed)),
        lease_transitions: 3,
    }
}

fn lease(version: u64, record: LeaderElectionRecord) -> ObservedLease {
    ObservedLease {
        uid: Uid::from("uid".to_owned()),
        resource_version: ResourceVersion::from(version),
        record,
    }
}

#[track_caller]
fn sends(election: &mut LeaderElection, now: Duration) -> Request {
    match election.poll(now, WALL) {
        Some(Action::Send(request)) => request,
        other => panic!("a request was expected, not {other:?}"),
    }
}

#[track_caller]
fn updates(
    election: &mut LeaderElection,
    now: Duration,
) -> (ResourceVersion, LeaderElectionRecord) {
    match sends(election, now) {
        Request::Update { resource_version, record } => (resource_version, record),
        other => panic!("an update was expected, not {other:?}"),
    }
}

#[track_caller]
fn creates(election: &mut LeaderElection, now: Duration) -> LeaderElectionRecord {
    match sends(election, now) {
        Request::Create(record) => record,
        other => panic!("a creation was expected, not {other:?}"),
    }
}

#[track_caller]
fn gets(election: &mut LeaderElection, now: Duration) {
    assert_eq!(sends(election, now), Request::Get);
}

#[track_caller]
fn rests(election: &mut LeaderElection, now: Duration) {
    assert_eq!(election.poll(now, WALL), None);
}

/// A candidate that leads since `now` with version 1.
fn leader(now: Duration) -> LeaderElection {
    let mut election = candidate();
    gets(&mut election, now);
    election.handle(now, Input::NotFound);
    let record = creates(&mut election, now);
    election.handle(now, Input::Lease(lease(1, record)));
    rests(&mut election, now);
    assert!(election.is_leader(now));
    election
}

#[test]
fn a_lease_that_does_not_exist_is_created_with_all_that_client_go_writes() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(1), Input::NotFound);
    let record = creates(&mut election, secs(1));
    let expected = LeaderElectionRecord {
        holder_identity: "me".to_owned(),
        lease_duration_seconds: Some(15),
        acquire_time: Some(WALL),
        renew_time: Some(WALL),
        lease_transitions: 0,
    };
    assert_eq!(record, expected);
    assert!(!election.is_leader(secs(1)), "not before the answer");
    election.handle(secs(3), Input::Lease(lease(1, record)));
    assert_eq!(election.leads_until(), Some(secs(11)), "from when the creation was sent");
    assert!(election.is_leader(ms(10_999)) && !election.is_leader(secs(11)));
}

#[test]
fn a_leader_renews_every_retry_period_and_keeps_the_rest_of_the_record() {
    let mut election = leader(secs(0));
    assert_eq!(election.deadline(), secs(2));
    rests(&mut election, ms(1_999));
    let (version, renewed) = updates(&mut election, secs(2));
    assert_eq!((version, renewed.lease_transitions), (1.into(), 0));
    assert_eq!(renewed.acquire_time, Some(WALL));
    let next = MicroTime(WALL.0 + 1);
    assert_eq!(renewed.renew_time, Some(next), "each differs, though this wall clock stands still");
    election.handle(ms(2_100), Input::Lease(lease(2, renewed)));
    assert_eq!((election.leads_until(), election.deadline()), (Some(secs(12)), secs(4)));
}

#[test]
fn renewals_that_fail_end_leadership_at_the_renew_deadline() {
    let mut election = leader(secs(0));
    let mut now = secs(0);
    while election.is_leader(now) {
        now = election.deadline().max(now);
        match election.poll(now, WALL) {
            Some(Action::Send(_)) => election.handle(now, Input::Failed),
            Some(Action::Abandon) | None => {}
        }
    }
    assert_eq!((now, election.leads_until()), (secs(10), None));
    assert_eq!(election.loss(), Some(&Loss::RenewDeadline));
}

#[test]
fn a_hanging_server_ends_leadership_at_the_renew_deadline_after_a_second_request() {
    let mut election = leader(secs(0));
    updates(&mut election, secs(2));
    rests(&mut election, ms(6_999));
    assert_eq!(election.deadline(), secs(7));
    assert_eq!(election.poll(secs(7), WALL), Some(Action::Abandon));
    gets(&mut election, secs(7));
    assert_eq!(election.deadline(), secs(10), "the renew deadline comes before the request's");
    assert!(election.is_leader(ms(9_999)) && !election.is_leader(secs(10)));
    rests(&mut election, secs(10));
    assert_eq!(election.loss(), Some(&Loss::RenewDeadline));
}

#[test]
fn an_answer_that_comes_after_the_renew_deadline_begins_leadership_anew() {
    let mut election = leader(secs(0));
    updates(&mut election, secs(2));
    assert_eq!(election.poll(secs(7), WALL), Some(Action::Abandon));
    gets(&mut election, ms(7_500));
    election.handle(secs(8), Input::Lease(lease(1, record("me", 5))));
    let (_, renewed) = updates(&mut election, secs(8));
    election.handle(secs(11), Input::Lease(lease(2, renewed)));
    assert_eq!(election.loss(), Some(&Loss::RenewDeadline), "it ended at 10 s");
    assert_eq!(election.leads_until(), Some(secs(18)));
}

#[test]
fn the_answer_to_a_request_that_was_abandoned_is_ignored() {
    let mut election = leader(secs(0));
    let (_, renewed) = updates(&mut election, secs(2));
    assert_eq!(election.poll(secs(7), WALL), Some(Action::Abandon));
    election.handle(secs(7), Input::Lease(lease(2, renewed)));
    assert_eq!(election.leads_until(), Some(secs(10)));
}

#[test]
fn others_are_taken_over_when_no_change_was_observed_for_the_lease_duration() {
    let mut election = candidate();
    let mut now = secs(100);
    gets(&mut election, now);
    // Whatever time it says that it was renewed at.
    election.handle(now, Input::Lease(lease(7, record("other", i64::MAX))));
    rests(&mut election, now);
    loop {
        now = election.deadline();
        gets(&mut election, now);
        // Versions change when labels do.
        election.handle(now, Input::Lease(lease(now.as_secs(), record("other", i64::MAX))));
        if now >= secs(115) {
            break;
        }
        rests(&mut election, now);
    }
    assert_eq!(now, secs(115), "it looks at the Lease when it has run out");
    let (version, taken) = updates(&mut election, now);
    assert_eq!((version, taken.lease_transitions), (115.into(), 4));
    assert_eq!((taken.acquire_time, taken.holder_identity), (Some(WALL), "me".to_owned()));
}

#[test]
fn a_renewal_that_is_observed_begins_the_wait_anew_whatever_time_it_has() {
    let mut election = candidate();
    let mut now = secs(0);
    let mut version = 0;
    while now < secs(60) {
        gets(&mut election, now);
        // Renewed every 10 s, by a wall clock that goes backwards.
        version += 1;
        let renewed = -i64::try_from(now.as_secs() / 10).unwrap();
        election.handle(now, Input::Lease(lease(version, record("other", renewed))));
        rests(&mut election, now);
        now = election.deadline();
    }
    assert!(!election.is_leader(now));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::Lease(lease(7, record("", 5))));
    let (version, taken) = updates(&mut election, secs(0));
    assert_eq!((version, taken.lease_transitions), (7.into(), 4));
}

#[test]
fn the_lease_is_still_mine_after_a_restart_under_the_same_identity() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::Lease(lease(7, record("me", 5))));
    let (_, renewed) = updates(&mut election, secs(0));
    assert_eq!((renewed.lease_transitions, renewed.acquire_time), (3, Some(MicroTime(1))));
}

#[test]
fn the_loser_of_a_race_reads_the_lease_and_waits_for_the_winner() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::NotFound);
    creates(&mut election, secs(0));
    election.handle(secs(0), Input::Conflict);
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::Lease(lease(7, record("other", 5))));
    rests(&mut election, secs(0));
    assert!(!election.is_leader(secs(0)));
}

#[test]
fn conflicts_again_and_again_are_not_a_busy_loop() {
    let mut election = leader(secs(0));
    let (_, _) = updates(&mut election, secs(2));
    election.handle(secs(2), Input::Conflict);
    gets(&mut election, secs(2));
    election.handle(secs(2), Input::Lease(lease(3, record("me", 8))));
    updates(&mut election, secs(2));
    election.handle(secs(2), Input::Conflict);
    rests(&mut election, secs(2));
    assert!(election.deadline() >= ms(3_500));
}

#[test]
fn a_leader_that_sees_another_holder_leads_no_more() {
    let mut election = leader(secs(0));
    updates(&mut election, secs(2));
    election.handle(secs(2), Input::Conflict);
    assert!(election.is_leader(secs(2)), "the conflict may be with its own write");
    gets(&mut election, secs(2));
    election.handle(secs(2), Input::Lease(lease(9, record("other", 8))));
    assert!(!election.is_leader(secs(2)));
    assert_eq!(election.loss(), Some(&Loss::TakenOver { by: "other".to_owned() }));
    rests(&mut election, secs(2));
}

#[test]
fn a_leader_whose_lease_was_cleared_leads_no_more_until_it_has_it_again() {
    let mut election = leader(secs(0));
    updates(&mut election, secs(2));
    election.handle(secs(2), Input::Conflict);
    gets(&mut election, secs(2));
    election.handle(secs(2), Input::Lease(lease(9, record("", 8))));
    assert!(!election.is_leader(secs(2)));
    assert_eq!(election.loss(), Some(&Loss::Cleared));
    let (version, record) = updates(&mut election, secs(2));
    election.handle(secs(3), Input::Lease(lease(10, record)));
    assert_eq!((version, election.leads_until()), (9.into(), Some(secs(12))));
}

#[test]
fn the_holder_creates_a_deleted_lease_again_and_others_leave_it_the_time() {
    let mut holder = leader(secs(0));
    updates(&mut holder, secs(2));
    holder.handle(secs(2), Input::NotFound);
    assert!(holder.is_leader(secs(2)));
    let record = creates(&mut holder, secs(2));
    holder.handle(secs(2), Input::Lease(lease(9, record.clone())));
    assert_eq!(holder.leads_until(), Some(secs(12)));

    let mut other =
        LeaderElection::new(ElectionConfig { identity: "b".into(), ..config() }).unwrap();
    gets(&mut other, secs(0));
    other.handle(secs(0), Input::Lease(lease(1, record)));
    gets(&mut other, secs(2));
    other.handle(secs(2), Input::NotFound);
    let mut now = secs(2);
    while now < secs(17) {
        rests(&mut other, now);
        now = other.deadline();
        gets(&mut other, now);
        other.handle(now, Input::NotFound);
    }
    assert_eq!(now, secs(17), "the lease duration after it was seen to be gone");
    creates(&mut other, now);
}

#[test]
fn a_namespace_that_does_not_exist_is_no_busy_loop() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::NotFound);
    creates(&mut election, secs(0));
    election.handle(secs(0), Input::NotFound);
    rests(&mut election, secs(0));
    assert!(election.deadline() >= ms(1_500));
}

#[test]
fn a_release_ends_leadership_at_once_and_leaves_the_lease_to_the_next() {
    let mut election = leader(secs(0));
    election.release(secs(1));
    assert!(!election.is_leader(secs(1)));
    assert_eq!(election.loss(), Some(&Loss::Released));
    let (version, record) = updates(&mut election, secs(1));
    assert_eq!((version, &*record.holder_identity), (1.into(), ""));
    assert_eq!(record.lease_duration_seconds, Some(1));
    election.handle(secs(1), Input::Lease(lease(2, record)));
    assert!(election.is_finished());
    rests(&mut election, secs(1));
}

#[test]
fn a_release_during_a_renewal_reads_first_and_releases_what_is_still_its_own() {
    for (holder, releases) in [("me", true), ("other", false), ("", false)] {
        let mut election = leader(secs(0));
        updates(&mut election, secs(2));
        election.release(secs(2));
        assert_eq!(election.poll(secs(2), WALL), Some(Action::Abandon));
        gets(&mut election, secs(2));
        election.handle(secs(2), Input::Lease(lease(5, record(holder, 8))));
        assert_eq!(election.is_finished(), !releases, "{holder}");
        if releases {
            assert_eq!(updates(&mut election, secs(2)).0, 5.into());
            election.handle(secs(2), Input::Conflict);
            gets(&mut election, secs(2));
        }
    }
}

#[test]
fn a_release_that_hangs_is_given_up() {
    let mut election = leader(secs(0));
    election.release(secs(1));
    updates(&mut election, secs(1));
    assert_eq!(election.deadline(), secs(6));
    assert_eq!(election.poll(secs(6), WALL), Some(Action::Abandon));
    assert!(election.is_finished());
    rests(&mut election, secs(6));
}

#[test]
fn a_candidate_that_never_held_the_lease_has_nothing_to_release() {
    let mut election = candidate();
    election.release(secs(0));
    assert!(election.is_finished());

    let mut election = candidate();
    gets(&mut election, secs(0));
    election.handle(secs(0), Input::Lease(lease(1, record("other", 8))));
    election.release(secs(1));
    assert!(election.is_finished());
    rests(&mut election, secs(1));
}

#[test]
fn a_record_without_a_duration_holds_for_this_candidates_own() {
    let mut election = candidate();
    gets(&mut election, secs(0));
    let record = LeaderElectionRecord { lease_duration_seconds: None, ..record("other", 8) };
    election.handle(secs(0), Input::Lease(lease(1, record.clone())));
    let mut now = secs(0);
    while now < secs(15) {
        rests(&mut election, now);
        now = election.deadline();
        gets(&mut election, now);
        election.handle(now, Input::Lease(lease(1, record.clone())));
    }
    assert_eq!((now, updates(&mut election, now).0), (secs(15), 1.into()));
}

#[test]
fn durations_that_contradict_each_other_are_refused() {
    let check = |change: fn(&mut ElectionConfig)| {
        let mut config = config();
        change(&mut config);
        LeaderElection::new(config).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(check(|_| {}), Ok(()));
    let says = |result: Result<(), String>, words: &str| {
        assert!(result.as_ref().is_err_and(|text| text.contains(words)), "{result:?}");
    };
    says(check(|config| config.identity.clear()), "identity is empty");
    says(check(|config| config.renew_deadline = secs(15)), "longer than renew_deadline (15s)");
    says(check(|config| config.retry_period = secs(10)), "longer than retry_period (10s)");
    says(check(|config| config.retry_period = secs(0)), "must not be zero");
}

#[test]
fn a_lease_lasts_for_whole_seconds_rounded_up() {
    assert_eq!(whole_seconds(ms(14_001)), 15);
    assert_eq!(whole_seconds(secs(15)), 15);
    assert_eq!(whole_seconds(Duration::MAX), 2_147_483_647);
}
