//! Bodies that are not what they should be, in protobuf.

use super::*;

#[tokio::test]
async fn lists_are_truncated_malformed_oversized_or_something_else() {
    let (server, service) = with_pods().await;
    let whole = get_in(&service, PODS, PB).await;
    let faults = server.faults();
    let items = |answer: &Answer| answer.items();
    let kind = Kind::of("v1", "Pod").unwrap();
    let decodes = |item: &Bytes| k8s_protobuf::from_message::<Pod>(kind, item).is_ok();

    faults.inject(Fault::truncated().object("b").times(1));
    let cut = get_in(&service, PODS, PB).await;
    assert!(cut.ended && whole.body.starts_with(&cut.body) && cut.body.len() < whole.body.len());
    let text = String::from_utf8_lossy(&cut.body);
    assert!(text.contains("\x01b\x12") && !text.contains("\x01c\x12"), "{text:?}");

    faults.inject(Fault::malformed().object("b").times(1));
    let corrupt = get_in(&service, PODS, PB).await;
    assert_eq!(corrupt.body.len(), whole.body.len());
    assert_eq!(items(&corrupt).iter().map(decodes).collect::<Vec<_>>(), [true, false, true]);
    assert!(Metadata::of(&items(&corrupt)[1]).is_err());

    faults.inject(Fault::oversized(10_000).times(1));
    let big = get_in(&service, PODS, PB).await;
    assert_eq!(
        items(&big).iter().map(|item| item.len() >= 10_000).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert!(items(&big).iter().all(decodes), "nobody knows that field");

    faults.inject(Fault::instead("<html>").times(1));
    assert_eq!(get_in(&service, PODS, PB).await.body, "<html>");
    faults.inject(Fault::duplicates().times(1));
    let twice = get_in(&service, PODS, PB).await;
    assert_eq!(items(&twice), [items(&whole), items(&whole)].concat());
    assert_eq!(get_in(&service, PODS, PB).await.body, whole.body, "each of them once");
}

#[tokio::test]
async fn one_event_is_truncated_malformed_oversized_or_something_else() {
    let (server, service) = with_pods().await;
    let faults = server.faults();
    let touch = |name: &str, round: usize| {
        let patch = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        server.cluster().patch("pods", "default", name, &patch).unwrap();
    };
    let now = || format!("{PODS}?watch=1&resourceVersion={}", server.cluster().version());
    let mut open = Frames::open(&service, &now(), PB).await;
    for (round, fault) in [Fault::malformed(), Fault::oversized(10_000)].into_iter().enumerate() {
        let fault = faults.inject(fault.object("b").times(1));
        ["a", "b", "b"].into_iter().for_each(|name| touch(name, round));
        touch("b", 10 + round);
        let mut frames = Vec::new();
        for _ in 0..3 {
            frames.push(open.frame().await.unwrap().unwrap());
        }
        match round {
            0 => assert_eq!(frames[1][0] & 7, 7, "no wire type"),
            _ => assert!(frames[1].len() > 10_000 && fields(&frames[1]).len() == 2),
        }
        assert!(frames[2].len() < 2000 && frames[2][0] == 0x0a, "only one");
        assert_eq!(fault.hits(), 1);
    }
    let mut open = Frames::open(&service, &now(), PB).await;
    faults.inject(Fault::instead("<html>").times(1));
    touch("a", 50);
    touch("a", 51);
    assert_eq!(&open.body.frame().await.unwrap().unwrap().into_data().unwrap()[..6], b"<html>");

    let mut open = Frames::open(&service, &now(), PB).await;
    faults.inject(Fault::truncated().times(1));
    touch("a", 100);
    assert_eq!(open.frame().await, Ok(None), "a clean end");
    assert!(open.buffer[4..].starts_with(b"\x0a\x08MODIFIED") && open.buffer.len() > 20);
}

#[tokio::test]
async fn watches_are_cut_cleanly_within_a_frame_or_by_an_error() {
    let (server, service) = with_pods().await;
    let open = || Frames::open(&service, "/api/v1/pods?watch=1&resourceVersion=99", PB);
    let mut closed = open().await;
    server.faults().cut_watches(Cut::Close, None);
    assert_eq!(closed.frame().await, Ok(None));
    let mut reset = open().await;
    server.faults().cut_watches(Cut::Reset, None);
    assert!(reset.frame().await.is_err());
    assert!(reset.buffer[4..].starts_with(b"\x0a\x08MODIFIED"), "half an event was sent");
    let mut expired = open().await;
    server.faults().cut_watches(Cut::Expired, None);
    let (kind, status) = expired.event().await.unwrap();
    assert_eq!(kind, "ERROR");
    assert_eq!(k8s_protobuf::from_slice::<ApiStatus>(&status).unwrap().code, Some(410));
    assert_eq!(expired.frame().await, Ok(None));
}

#[tokio::test]
async fn an_object_cannot_be_decoded_wherever_it_comes() {
    let (server, service) = with_pods().await;
    let kind = Kind::of("v1", "Pod").unwrap();
    let undecodable = |message: &[u8]| {
        assert!(!Metadata::of(message).unwrap().uid.is_empty());
        k8s_protobuf::from_message::<Pod>(kind, message).is_err()
    };
    server.faults().inject(Fault::undecodable("b").resource("pods"));
    let list = get_in(&service, PODS, PB).await;
    assert_eq!(
        list.items().iter().map(|item| undecodable(item)).collect::<Vec<_>>(),
        [false, true, false]
    );
    let path = format!("{PODS}?watch=1&resourceVersion={}", server.cluster().version());
    let mut open = Frames::open(&service, &path, PB).await;
    let patch = json!({ "metadata": { "labels": { "changed": "yes" } } });
    server.cluster().patch("pods", "default", "b", &patch).unwrap();
    server.cluster().delete("pods", "default", "b").unwrap();
    for expected in ["MODIFIED", "DELETED"] {
        let (kind, object) = open.event().await.unwrap();
        assert_eq!(kind, expected);
        assert!(undecodable(Envelope::parse(&object).unwrap().raw));
    }
    // Also where there is nothing but metadata.
    server.faults().inject(Fault::undecodable("bare"));
    let bare = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "bare" } });
    server.cluster().create(&bare).unwrap();
    let item = &get_in(&service, "/api/v1/configmaps", PB).await.items()[0];
    assert_eq!(Metadata::of(item).unwrap().name, "bare");
    assert!(
        k8s_protobuf::from_message::<ConfigMap>(Kind::of("v1", "ConfigMap").unwrap(), item)
            .is_err()
    );
    let item = &get_in(&service, "/api/v1/configmaps", METADATA_LIST).await.items()[0];
    assert_eq!(Metadata::of(item).unwrap().name, "bare");
    let partial = Kind::of("meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
    assert!(k8s_protobuf::from_message::<ConfigMap>(partial, item).is_err());
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_do_not_tell_their_end() {
    let (server, service) = with_pods().await;
    let fault = server.faults().inject(Fault::without_end_bookmark());
    let mut open = Frames::open(&service, &streaming(PODS), PB).await;
    for name in ["a", "b", "c"] {
        assert!(open.short().await.unwrap().starts_with(&format!("ADDED {name}@")));
    }
    let (kind, bookmark) = open.event().await.unwrap();
    assert_eq!(kind, "BOOKMARK");
    let metadata =
        Metadata::of(Envelope::parse(&bookmark).unwrap().raw).unwrap().annotations().count();
    assert_eq!((metadata, fault.hits()), (0, 1), "not the one that ends the list");
}
