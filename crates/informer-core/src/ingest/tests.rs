//! One batch of frames, of which an earlier one ends the connection.

use super::*;
use crate::wire::Wire;

struct Unit;

impl Decoder for Unit {
    type Object = ();

    fn decode(&mut self, _: Wire<'_>, _: &ObjectHead<'_>) -> Result<(), Undecodable> {
        Ok(())
    }
}

#[derive(Default)]
struct Recorded(Vec<String>);

impl Sink<()> for Recorded {
    fn deliver(&mut self, _: Duration, deltas: &mut DeltaQueue<()>) {
        self.0.extend(deltas.pop_batch(usize::MAX).map(|delta| format!("{delta:?}")));
    }
}

fn frame(kind: WatchEventType, object: &'static str) -> WatchFrame {
    WatchFrame { kind, object: bytes::Bytes::from_static(object.as_bytes()).into() }
}

#[test]
fn g09_frames_after_the_one_that_ends_a_streaming_list_are_not_in_the_next_list() {
    let now = Duration::ZERO;
    let mut ingest = Ingest::new(ReflectorConfig::default(), Unit, Recorded::default());
    let Some(Request::Watch(watch)) = ingest.poll(now) else { panic!("a streaming list is first") };
    assert!(watch.send_initial_events);
    ingest.arrived(now, Arrival::Opened);
    ingest.arrived(
        now,
        Arrival::Watch(vec![
            frame(WatchEventType::Added, r#"{"metadata":{"name":"before"}}"#),
            // Without the annotation that ends the initial events: the list is refused.
            frame(WatchEventType::Bookmark, r#"{"metadata":{"resourceVersion":"7"}}"#),
            frame(WatchEventType::Added, r#"{"metadata":{"name":"after"}}"#),
        ]),
    );
    let requests: Vec<Request> = std::iter::from_fn(|| ingest.poll(now)).collect();
    assert!(matches!(requests[..], [Request::Close, Request::List(_)]), "{requests:?}");
    ingest.deliver(now);
    let deltas: Vec<&str> = ingest.sink.0.iter().map(|it| it.split('(').next().unwrap()).collect();
    assert_eq!(deltas, ["ReplaceStarted", "Listed", "ReplaceAbandoned", "ReplaceStarted"]);
}
