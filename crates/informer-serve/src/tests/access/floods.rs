//! What many requests take from those of others.

use std::net::Ipv4Addr;

use tokio::time::Instant;

use super::watches::{WATCH, end, watch_pods};
use super::*;
use crate::audit::RemoteAddress;

const PODS: &str = "/api/v1/namespaces/shop/pods";

async fn get_from(router: &Router, address: Ipv4Addr, token: &str, path: &str) -> Answer {
    let mut asked = request(Method::GET, "endpoint.example", path);
    let bearer = format!("Bearer {token}").parse().unwrap();
    asked.headers_mut().insert("authorization", bearer);
    asked.extensions_mut().insert(RemoteAddress((address, 1234).into()));
    ask_router(router.clone(), asked).await
}

/// Asks with more unknown tokens than the endpoint looks up for one address, again and again.
async fn flood(router: &Router, address: Ipv4Addr) {
    let ask = async |asker| {
        for number in 0.. {
            let token = format!("flood-{address}-{asker}-{number}");
            let answer = get_from(router, address, &token, PODS).await;
            assert!(matches!(answer.code.as_u16(), 429 | 503), "{}", answer.text);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    futures_util::future::join_all((0..1100).map(ask)).await;
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

#[tokio::test(start_paused = true)]
async fn many_unknown_tokens_and_many_questions_have_nothing_of_others_forgotten() {
    let it = Controlled::start().await;
    let router = it.router();
    it.judge.allows("alice", list_pods("shop"));
    get_from(&router, HERE, "alice-token", PODS).await.items();
    let asked = |it: &Controlled| {
        let tokens = it.judge.tokens();
        let tokens = tokens.iter().filter(|it| it["token"] == "alice-token").count();
        let access = it.judge.accesses();
        (tokens, access.iter().filter(|it| it["user"] == "alice").count())
    };
    for number in 0..4200_u16 {
        let [high, low] = number.to_be_bytes();
        let token = format!("unknown-{number}");
        let address = Ipv4Addr::new(10, 1, high, low);
        get_from(&router, address, &token, PODS).await.refusal(401, "Unauthorized");
    }
    for number in 0..4200 {
        let path = format!("{PODS}/web-{number}");
        get_from(&router, HERE, "bob-token", &path).await.refusal(403, "Forbidden");
    }
    get_from(&router, HERE, "alice-token", PODS).await.items();
    assert_eq!(asked(&it), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn unknown_tokens_of_one_address_hold_up_no_other_and_no_known_caller() {
    let it = Controlled::start().await;
    let router = it.router();
    for user in ["alice", "bob", "carol"] {
        it.judge.allows(user, list_pods("shop"));
    }
    it.judge.knows("carol-token", "carol", &[]);
    get_from(&router, HERE, "alice-token", PODS).await.items();
    tokio::time::sleep(Duration::from_secs(20)).await;
    it.judge.holds_back("flood");
    let others = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let started = Instant::now();
        // Her answers are over, and are asked for again.
        get_from(&router, HERE, "alice-token", PODS).await.items();
        get_from(&router, ELSEWHERE, "bob-token", PODS).await.items();
        let refused = get_from(&router, HERE, "carol-token", PODS).await;
        refused.refusal(429, "TooManyRequests");
        assert_eq!(refused.headers["retry-after"], "1");
        assert_eq!(started.elapsed(), Duration::ZERO);
    };
    tokio::select! {
        () = flood(&router, HERE) => {}
        () = others => {}
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_tokens_neither_end_an_open_watch_nor_keep_it_open() {
    let it = Controlled::start().await;
    let router = it.router();
    it.judge.allows("alice", watch_pods());
    it.judge.allows("bob", watch_pods());
    it.judge.holds_back("flood");
    let alices = tokio::spawn(end(it.watch("alice-token", WATCH).await));
    let bobs = tokio::spawn(end(it.watch("bob-token", WATCH).await));
    it.judge.forbids("alice", &watch_pods());
    // Shortly before the reviews, which take no less than 40 s to come.
    tokio::time::sleep(Duration::from_secs(35)).await;
    // As many as are looked up of all addresses.
    let addresses = (1..=4).map(|it| Ipv4Addr::new(10, 0, 0, it));
    let floods = addresses.map(|it| flood(&router, it));
    tokio::select! {
        _ = futures_util::future::join_all(floods) => {}
        ended = alices => {
            let (after, last) = ended.unwrap();
            assert!(after <= Duration::from_secs(60), "{after:?}");
            assert_eq!(last["object"]["code"], 403);
        }
    }
    assert!(!bobs.is_finished());
    bobs.abort();
}
