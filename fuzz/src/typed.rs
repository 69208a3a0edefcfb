//! Objects that are read into k8s-openapi's types without serde.

use std::fmt::Debug;

use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_protobuf::{Kind, from_message};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What is read directly is what serde reads.
pub fn typed(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    match choice % 5 {
        0 => compare::<Pod>(input),
        1 => compare::<StatefulSet>(input),
        2 => compare::<CronJob>(input),
        3 => compare::<Node>(input),
        _ => compare::<EndpointSlice>(input),
    }
}

/// Has no other way than serde's.
#[derive(Deserialize)]
struct BySerde<T>(T);

fn compare<T: Resource + DeserializeOwned + PartialEq + Debug + 'static>(input: &[u8]) {
    let kind = Kind::of(T::API_VERSION, T::KIND).expect("it is built in");
    let by_serde = from_message::<BySerde<T>>(kind, input).map(|object| object.0);
    assert_eq!(from_message::<T>(kind, input), by_serde);
}
