//! Each watch is closed cleanly at once, again and again.

use std::time::{Duration, Instant};

use anyhow::Result;
use informer_tests::fixtures::pod;
use informer_tests::reverse_proxy::{Asked, ReverseProxy, WatchFault};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::page::Outcome;
use crate::stage::{Pair, Stage};

const NAMESPACE: &str = "clean-close";

/// How often a Pod changes, so that there is something to watch.
const CHANGE: Duration = Duration::from_millis(50);

/// Ours backs off from at least 0.4 s, doubling, and asks at most three things each time.
const PER_SECOND: f64 = 1.5;

pub(crate) async fn run(stage: &Stage, seconds: u64) -> Result<Outcome> {
    stage.namespace(NAMESPACE).await?;
    let pods = Api::<Pod>::namespaced(stage.direct.clone(), NAMESPACE);
    for name in ["one", "two", "three"] {
        pods.create(&PostParams::default(), &pod(NAMESPACE, name, &[])).await?;
    }
    let mut outcome = Outcome::new("A server that closes every watch cleanly");
    outcome.say(&format!(
        "A proxy answers each watch and ends it cleanly, before its first byte or after its first frame, \
         from the first watch on. A Pod changes 20 times a second. Requests in {seconds} s, by kind, and the \
         most that came within one second:",
    ));
    let mut rows = Vec::new();
    let cases = [
        (
            "streaming lists (as both come), closed before the first byte",
            WatchFault::CloseAtOnce,
            false,
        ),
        (
            "streaming lists (as both come), closed after the first frame",
            WatchFault::CloseAfterFirstFrame,
            false,
        ),
        ("lists, watches closed before the first byte", WatchFault::CloseAtOnce, true),
        ("lists, watches closed after the first frame", WatchFault::CloseAfterFirstFrame, true),
    ];
    let mut hot = Vec::new();
    for (name, fault, list) in cases {
        let asked = tokio::select! {
            asked = case(stage, fault, list, seconds) => asked?,
            error = change(&pods) => return Err(error),
        };
        rows.push((name.to_owned(), asked.as_ref().map(|asked| asked.to_string())));
        let bound = (PER_SECOND * seconds as f64) as usize;
        let promise = format!("at most {bound} requests in {seconds} s: {name}");
        outcome.promise(&promise, asked.informer.total() <= bound);
        hot.push(asked.client_go.total() > 5 * seconds as usize);
    }
    outcome.table("requests", &rows);
    outcome.expect(
        "no backoff where a watch brought a frame, backoff where it brought none",
        hot == [false, true, false, true],
    );
    outcome.say(
        "*For a controller's author:* with client-go a proxy or gateway that ends watches early becomes a \
         load on the API server which grows with the rate of changes and the number of controllers (a watch \
         that brought something is opened again at once). Here every early \
         end counts as a failure: it backs off exponentially, and the status says so, with the cause.",
    );
    Ok(outcome)
}

async fn case(
    stage: &Stage,
    fault: WatchFault,
    list: bool,
    seconds: u64,
) -> Result<Pair<Requests>> {
    let more: &[&str] = if list { &["--quiet", "--initial=list"] } else { &["--quiet"] };
    let (_peers, proxies) = stage.behind_reverse_proxies(NAMESPACE, fault, more).await?;
    sleep(Duration::from_secs(seconds)).await;
    Ok(proxies.as_ref().map(Requests::of))
}

/// Changes a Pod until something fails.
async fn change(pods: &Api<Pod>) -> anyhow::Error {
    let mut tick = interval(CHANGE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0_u64.. {
        tick.tick().await;
        let patch = json!({ "metadata": { "annotations": { "number": number.to_string() } } });
        if let Err(error) = pods.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await {
            return error.into();
        }
    }
    anyhow::anyhow!("numbers have an end")
}

#[derive(Debug)]
struct Requests {
    streaming_lists: usize,
    lists: usize,
    watches: usize,
    busiest: usize,
}

impl Requests {
    fn of(proxy: &ReverseProxy) -> Self {
        let requests = proxy.requests();
        let count = |kind| requests.iter().filter(|(_, asked)| *asked == kind).count();
        Self {
            streaming_lists: count(Asked::StreamingList),
            lists: count(Asked::List),
            watches: count(Asked::Watch),
            busiest: busiest_second(&requests.iter().map(|(at, _)| *at).collect::<Vec<_>>()),
        }
    }

    fn total(&self) -> usize {
        self.streaming_lists + self.lists + self.watches
    }
}

impl std::fmt::Display for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { streaming_lists, lists, watches, busiest } = self;
        let total = self.total();
        write!(
            f,
            "**{total}** (streaming lists {streaming_lists}, lists {lists}, watches {watches}; busiest \
             second {busiest})"
        )
    }
}

/// The most requests within one second, of times in order.
fn busiest_second(times: &[Instant]) -> usize {
    let within = |from: usize| {
        times[from..].iter().take_while(move |at| **at - times[from] < Duration::from_secs(1))
    };
    (0..times.len()).map(|from| within(from).count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_begins_anywhere() {
        let start = Instant::now();
        let times = [0, 900, 1100, 1800, 5000].map(|millis| start + Duration::from_millis(millis));
        assert_eq!((busiest_second(&times), busiest_second(&[])), (3, 0));
    }
}
