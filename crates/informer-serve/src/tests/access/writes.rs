//! What the next read waits for after writes whose answers say too little, or what is not so.

use super::forwarding::forwarding;
use super::*;

#[tokio::test]
async fn deletions_of_a_collection_are_seen_by_the_next_read() {
    let it = forwarding(Options::default()).await;
    let (pods, selected) = ("/api/v1/namespaces/shop/pods", "?labelSelector=app%3Dweb");
    assert_eq!(it.names(pods).await, ["cart-0", "web-0", "web-1"]);
    it.stall("pods");
    let deleted = it.write(Method::DELETE, &format!("{pods}{selected}"), &json!({})).await;
    assert_eq!(deleted.items(), ["web-0", "web-1"], "{}", deleted.text);
    let listed = &deleted.json()["metadata"]["resourceVersion"];
    assert!(listed.is_string(), "it names the version of the list before the deletions");
    assert_eq!(it.names(pods).await, ["cart-0"]);
}
