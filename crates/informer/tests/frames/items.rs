//! Lists with items that cannot be read.

use informer::{ObjectKey, Status};

use super::*;
use crate::form::raw;

const EXPIRED: fn() -> Value =
    || json!({ "kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired" });

/// A list of `a`, the item, and `c`.
fn list(form: Form, version: u64, item: &[u8]) -> Vec<u8> {
    let [a, c] = ["a", "c"].map(|name| raw(form, &object(name, 1, "1")));
    form.list_of(&json!({ "resourceVersion": version.to_string() }), &[a, item.to_vec(), c])
}

async fn answer(server: &mut Server, body: Vec<u8>) {
    let (asked, answer) = server.answer(&[]).await;
    assert!(!asked.contains("watch=true"), "a list was expected: {asked}");
    answer.bytes(body);
}

fn names(informer: &SharedInformer<ConfigMap>) -> Vec<String> {
    informer.unsynced_store().snapshot().iter().map(|entry| entry.key.name().to_owned()).collect()
}

fn watches(status: &Status, version: u64) -> bool {
    status.version == version.into() && matches!(status.state, InformerState::Watching { .. })
}

pub(crate) async fn g30_one_item_that_cannot_be_read_hides_no_collection() {
    for form in Form::BOTH {
        for (item, words, says_who) in form.unreadable_items() {
            let (informer, mut server) = informer(form, options());
            for _ in 0..3 {
                answer(&mut server, list(form, 10, &item)).await;
            }
            let watch = server.watch(10).await;
            soon(informer.synced()).await.unwrap();
            let status = status_where(&informer, |status| watches(status, 10)).await;
            assert_eq!(names(&informer), ["a", "c"], "{form:?}: {words}");
            assert_eq!(
                (status.undecodable, status.unreadable),
                (1, usize::from(!says_who)),
                "{form:?}: {words}"
            );
            let stale: Vec<&ObjectKey> = status.stale.iter().map(|stale| &stale.key).collect();
            assert_eq!(stale.len(), usize::from(says_who));
            assert!(stale.iter().all(|key| key.to_string() == "default/b"));
            assert_eq!(status.to_string().contains("incomplete"), !says_who, "{status}");
            assert_eq!(status.counters.undecodable, 1);
            assert_eq!(status.counters.errors, 3, "{:?}", status.recent_errors);
            assert!(
                status.recent_errors[0].message.contains(words),
                "{:?}",
                status.recent_errors[0]
            );
            assert!(!format!("{status:?}").contains("hunter2"), "G34: {status:?}");

            // A relist of which it says the same; and then one that is whole.
            watch.frame("ADDED", &object("b", 11, "1"));
            status_where(&informer, |status| watches(status, 11)).await;
            watch.frame("ERROR", &EXPIRED());
            for _ in 0..3 {
                answer(&mut server, list(form, 20, &item)).await;
            }
            let watch = server.watch(20).await;
            let status = status_where(&informer, |status| watches(status, 20)).await;
            let expected = if says_who { vec!["a", "b", "c"] } else { vec!["a", "c"] };
            assert_eq!(
                names(&informer),
                expected,
                "what a list does not have is gone: {form:?}: {words}"
            );
            assert_eq!((status.undecodable, status.unreadable), (1, usize::from(!says_who)));
            watch.frame("ERROR", &EXPIRED());
            answer(&mut server, list(form, 30, &raw(form, &object("b", 21, "2")))).await;
            let _watch = server.watch(30).await;
            let status = status_where(&informer, |status| watches(status, 30)).await;
            assert_eq!((names(&informer).len(), status.undecodable, status.unreadable), (3, 0, 0));
            assert!(!status.to_string().contains("incomplete"));
        }
    }
}

pub(crate) async fn g30_a_list_of_which_nothing_can_be_read_is_none() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        let (item, words, _) = form.unreadable_items().remove(0);
        for _ in 0..3 {
            answer(
                &mut server,
                form.list_of(&json!({ "resourceVersion": "10" }), &[item.clone(), item.clone()]),
            )
            .await;
        }
        let error = soon(informer.synced()).await.unwrap_err().to_string();
        assert!(error.contains("none of 2 objects") || error.contains(words), "{error}");
        assert!(
            !informer.has_synced()
                && matches!(informer.status().state, InformerState::Degraded { .. })
        );
    }
}

pub(crate) async fn g30_strict_leaves_nothing_out_of_a_list() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options().strict());
        let (item, words, _) = form.unreadable_items().remove(0);
        for errors in 1..=4 {
            answer(&mut server, list(form, 10, &item)).await;
            let status = status_where(&informer, |status| status.counters.errors == errors).await;
            assert!(matches!(status.state, InformerState::Degraded { .. }), "{status}");
            assert!(status.state.to_string().contains(words), "{status}");
            assert!(!status.has_synced && status.objects == 0);
        }
    }
}

pub(crate) async fn g30_a_count_of_what_remains_never_makes_a_list_fail() {
    for form in Form::BOTH {
        let (informer, mut server) = informer(form, options());
        let metadata = json!({ "resourceVersion": "10", "remainingItemCount": -1 });
        answer(&mut server, form.list_of(&metadata, &[raw(form, &object("a", 1, "1"))])).await;
        let _watch = server.watch(10).await;
        soon(informer.synced()).await.unwrap();
        assert_eq!(informer.status().counters.errors, 0);
    }
}
