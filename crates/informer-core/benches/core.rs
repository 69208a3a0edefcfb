//! The core, part by part: a comparison before and after a change.
//!
//! `cargo bench -p informer-core --bench core`, with a part of a name behind `--` for some of it.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Bencher, Criterion, Throughput, criterion_group};
use informer_core::selector::LabelSelector;
use informer_core::store::Index;
use informer_core::{Delta, Item, ObjectKey, Pipeline};

const OBJECTS: u64 = 10_000;

/// Updates and events at a time.
const BATCH: u64 = 64;

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}

/// Number `at`, in one of 20 namespaces.
fn item(at: u64, version: u64) -> Item<u64> {
    let key =
        ObjectKey::namespaced(&format!("namespace-{:02}", at % 20), &format!("object-{at:07}"));
    Item::new(key, format!("uid-{at}").as_str().into(), version.into(), at)
}

/// A batch of updates of objects that are far from each other.
fn batch(version: u64) -> Vec<Delta<u64>> {
    (0..BATCH).map(|at| Delta::Updated(item((at + version) * 7919 % OBJECTS, version))).collect()
}

fn filled() -> Pipeline<u64> {
    let mut pipeline = Pipeline::new();
    pipeline.apply(Duration::ZERO, (0..OBJECTS).map(|at| Delta::Added(item(at, 1))));
    pipeline
}

fn by_hundreds() -> Index<u64> {
    Index::new("hundred", |at: &u64, values| values.push((at / 100).to_string()))
}

fn store(c: &mut Criterion) {
    let mut group = c.benchmark_group("store");
    group.throughput(Throughput::Elements(1));
    let mut pipeline = filled();
    let mut version = 1;
    group.bench_function("an update", |b| {
        let one = |version: &mut u64| {
            *version += 1;
            Delta::Updated(item(*version * 7919 % OBJECTS, *version))
        };
        b.iter_batched(
            || one(&mut version),
            |delta| pipeline.apply(Duration::ZERO, [delta]),
            BatchSize::SmallInput,
        );
    });
    let reader = pipeline.reader();
    group.bench_function("snapshot", |b| b.iter(|| reader.snapshot()));
    let snapshot = reader.snapshot();
    group.bench_function("find", |b| {
        b.iter(|| snapshot.find(black_box("namespace-07"), black_box("object-0005007")).is_some());
    });
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("64 updates", |b| updates(b, &mut pipeline, &mut version));
    group.throughput(Throughput::Elements(OBJECTS));
    group.bench_function("iterate", |b| {
        b.iter(|| snapshot.iter().map(|entry| **entry.object()).sum::<u64>());
    });
}

/// Batches of updates, each published once.
fn updates(b: &mut Bencher<'_>, pipeline: &mut Pipeline<u64>, version: &mut u64) {
    b.iter_batched(
        || {
            *version += 1;
            batch(*version)
        },
        |deltas| pipeline.apply(Duration::ZERO, deltas),
        BatchSize::SmallInput,
    );
}

fn indexes(c: &mut Criterion) {
    let mut pipeline = filled();
    let index = by_hundreds();
    pipeline.build_index(&index, usize::MAX).expect("it is the only one");
    let mut group = c.benchmark_group("index");
    let snapshot = pipeline.reader().snapshot();
    group.throughput(Throughput::Elements(100));
    group.bench_function("a hundred objects of a value", |b| {
        b.iter(|| snapshot.by_index(&index, black_box("42")).expect("it is there").count());
    });
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("64 updates", |b| updates(b, &mut pipeline, &mut 1));
}

fn fan_out(c: &mut Criterion) {
    let mut group = c.benchmark_group("fan-out");
    let mut version = 1;
    for registrations in [1, 100] {
        let mut pipeline = filled();
        let queues: Vec<_> = (0..registrations)
            .map(|_| pipeline.register(Duration::ZERO, 1024, None, || {}).1)
            .collect();
        group.throughput(Throughput::Elements(BATCH * registrations));
        group.bench_function(format!("64 updates in and out of {registrations} queues"), |b| {
            b.iter_batched(
                || {
                    version += 1;
                    batch(version)
                },
                |deltas| {
                    pipeline.apply(Duration::ZERO, deltas);
                    for queue in &queues {
                        let taken = queue.lock().take(usize::MAX);
                        black_box(&taken);
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    // One queue that merges: its reader has not come for long.
    let mut pipeline = filled();
    let resync = Some(Duration::from_secs(1));
    let (_, queue) = pipeline.register(Duration::ZERO, 1, resync, || {});
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("64 updates merged into a queue", |b| {
        updates(b, &mut pipeline, &mut version)
    });
    assert!(queue.lock().depth() as u64 <= OBJECTS);
}

fn selectors(c: &mut Criterion) {
    let mut group = c.benchmark_group("selector");
    let text = "app=web,tier in (a,b),!canary";
    group.bench_function("parse", |b| b.iter(|| black_box(text).parse::<LabelSelector>()));
    let selector: LabelSelector = text.parse().expect("a selector");
    let labels = [("app", "web"), ("tier", "b")];
    group.bench_function("match", |b| {
        b.iter(|| {
            selector.matches(|key| {
                labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
            })
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = store, indexes, fan_out, selectors
}
