//! The process of the informers: every representation, and handlers of every temper.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use informer::{Event, InformerOptions, InformerState, Resource, SharedInformerFactory, Status};
use informer_tests::real::client_of;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::runtime::Handle;

use crate::HEAP;
use crate::collection::{Collection, Digest, LABEL, NAMESPACES, TIERS};
use crate::copies::{Given, Kept, Store, index_faults, of_metadata};
use crate::history::{Counts, Faults, History};
use crate::late::{self, Late};
use crate::objects::SlimPod;
use crate::protocol::{
    Contents, Figures, InformerFigures, Question, RegistrationFigures, View, Views,
};
use crate::told::Told;

/// How long the slow handler takes for each event.
const SLOWNESS: Duration = Duration::from_millis(3);

/// How many events are kept apart for it.
const SLOW_CAPACITY: usize = 64;

/// How often the whole store is shown again to the handler that wants that.
const RESYNC: Duration = Duration::from_secs(20);

/// Runs the informers and answers questions until it is told to stop, or stdin ends.
pub(crate) async fn run(kubeconfig: &Path) -> anyhow::Result<()> {
    let told = Told::start();
    let observed = Observed::start(kubeconfig, told).await?;
    let (mut questions, mut answers) = (BufReader::new(stdin()).lines(), stdout());
    while let Some(line) = questions.next_line().await? {
        let question: Question = serde_json::from_str(&line)?;
        let mut answer = match question {
            Question::Views => serde_json::to_vec(&observed.views())?,
            Question::Contents => serde_json::to_vec(&observed.contents())?,
            Question::Figures => serde_json::to_vec(&observed.figures())?,
            Question::Stop => {
                observed.factory.shutdown().await;
                serde_json::to_vec(&observed.figures())?
            }
        };
        answer.push(b'\n');
        answers.write_all(&answer).await?;
        answers.flush().await?;
        if matches!(question, Question::Stop) {
            break;
        }
    }
    Ok(())
}

/// The informers, and who listens to them.
struct Observed {
    factory: SharedInformerFactory,
    stores: Vec<Box<dyn Store>>,
    histories: Vec<(Collection, Arc<dyn Given>)>,
    late: Arc<Late>,
    index_check: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    faults: Arc<Faults>,
    told: Told,
}

impl Observed {
    async fn start(kubeconfig: &Path, told: Told) -> anyhow::Result<Self> {
        let client = client_of(kubeconfig, None).await?;
        let factory = SharedInformerFactory::builder(client).build();
        let faults = Arc::new(Faults::default());

        let pods = factory.informer::<Pod>()?;
        let by_tier = pods.add_label_index(LABEL).await?;
        let by_node = pods
            .add_index("node", |pod: &Pod, values| {
                values.extend(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()));
            })
            .await?;
        let history =
            |name| History::new(name, of_metadata::<Pod>, false, pods.unsynced_store(), &faults);
        let (prompt, slow) = (history("Pods, prompt"), history("Pods, slow"));
        let record = Arc::clone(&prompt);
        pods.add_handler(|h| h.name(prompt.name()).on_event(move |event| record.record(event)))?;
        let record = Arc::clone(&slow);
        let slowly = move |event: &Event<Pod>| {
            std::thread::sleep(SLOWNESS);
            record.record(event);
        };
        pods.add_handler(|h| h.name(slow.name()).capacity(SLOW_CAPACITY).on_event(slowly))?;

        let maps = factory.metadata::<ConfigMap>(InformerOptions::new())?;
        let resynced = History::new(
            "ConfigMaps' metadata, resynced",
            of_metadata::<PartialObjectMeta<ConfigMap>>,
            false,
            maps.unsynced_store(),
            &faults,
        );
        let record = Arc::clone(&resynced);
        let name = resynced.name();
        maps.add_handler(|h| {
            h.name(name).resync(RESYNC).on_event(move |event| record.record(event))
        })?;

        let selected = factory.informer_as::<SlimPod>(
            Resource::of::<Pod>(),
            InformerOptions::new()
                .namespace(NAMESPACES[1])
                .labels(format!("{LABEL}={}", TIERS[0]))?,
        )?;
        let slim = History::new(
            "selected Pods",
            SlimPod::identity,
            true,
            selected.unsynced_store(),
            &faults,
        );
        let record = Arc::clone(&slim);
        selected
            .add_handler(|h| h.name(slim.name()).on_event(move |event| record.record(event)))?;

        let widgets = factory.for_resource("example.com", "v1", "widgets").await?;
        let streamed = History::new(
            "Widgets, streamed",
            of_metadata::<DynamicObject>,
            false,
            widgets.unsynced_store(),
            &faults,
        );
        let (record, mut events) = (Arc::clone(&streamed), widgets.events()?);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                record.record(&event);
            }
        });

        factory.start();
        let late = Arc::new(Late::default());
        tokio::spawn(Arc::clone(&late).come_and_go(pods.clone(), Arc::clone(&faults)));
        let lister = pods.unsynced_store();
        Ok(Self {
            factory,
            index_check: Box::new(move || index_faults(&lister.snapshot(), &by_tier, &by_node)),
            stores: vec![
                Kept::boxed(Collection::Pods, pods, of_metadata::<Pod>),
                Kept::boxed(Collection::SelectedPods, selected, SlimPod::identity),
                Kept::boxed(
                    Collection::ConfigMaps,
                    maps,
                    of_metadata::<PartialObjectMeta<ConfigMap>>,
                ),
                Kept::boxed(Collection::Widgets, widgets, of_metadata::<DynamicObject>),
            ],
            histories: vec![
                (Collection::Pods, prompt as Arc<dyn Given>),
                (Collection::Pods, slow),
                (Collection::SelectedPods, slim),
                (Collection::ConfigMaps, resynced),
                (Collection::Widgets, streamed),
            ],
            late,
            faults,
            told,
        })
    }

    fn views(&self) -> Views {
        let stores = self.stores.iter().map(|store| {
            let digest = Digest::of(&store.objects(&self.faults));
            View { name: store.name(), collection: store.collection(), digest }
        });
        let handlers = self.all_histories().map(|(collection, history)| View {
            name: history.name().to_owned(),
            collection,
            digest: history.digest(),
        });
        let not_watching = self.stores.iter().filter_map(|store| {
            let status = store.status();
            let watches = matches!(status.state, InformerState::Watching { .. });
            (!watches).then(|| format!("{}: {}", store.name(), status.state))
        });
        Views {
            stores: stores.collect(),
            handlers: handlers.collect(),
            not_watching: not_watching.collect(),
            faults: self.faults.all(),
        }
    }

    fn contents(&self) -> Contents {
        let stores = self.stores.iter().map(|store| {
            (format!("store of {}", store.name()), store.collection(), store.objects(&self.faults))
        });
        let handlers = self.all_histories().map(|(collection, history)| {
            (history.name().to_owned(), collection, history.objects())
        });
        Contents(stores.chain(handlers).collect())
    }

    fn figures(&self) -> Figures {
        let statuses: Vec<(String, Status)> =
            self.stores.iter().map(|store| (store.name(), store.status())).collect();
        let informers = statuses.iter().map(|(name, status)| InformerFigures {
            name: name.clone(),
            objects: status.objects,
            lists: status.counters.lists,
            watches: status.counters.watches,
            events: status.counters.events,
            bookmarks: status.counters.bookmarks,
            bytes: status.counters.bytes,
            decoded: status.counters.decoded,
            unchanged: status.counters.unchanged,
            undecodable: status.counters.undecodable,
            errors: status.counters.errors,
        });
        let registrations = statuses.iter().flat_map(|(_, status)| &status.registrations);
        let registrations = registrations.map(|one| RegistrationFigures {
            name: one.name.clone(),
            depth: one.depth,
            merged: one.merged,
            panics: one.panics,
        });
        let mut counts: BTreeMap<String, Counts> = self
            .histories
            .iter()
            .map(|(_, history)| (history.name().to_owned(), history.counts()))
            .collect();
        counts.insert(late::NAME.to_owned(), self.late.counts());
        let registrations = registrations.collect();
        let informers = informers.collect();
        let heap_peak = HEAP.peak();
        HEAP.reset();
        Figures {
            heap: HEAP.live(),
            heap_peak,
            allocations: HEAP.calls(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            informers,
            registrations,
            counts,
            late_registrations: self.late.registrations(),
            told: self.told.counts(),
            index_faults: (self.index_check)(),
        }
    }

    fn all_histories(&self) -> impl Iterator<Item = (Collection, Arc<dyn Given>)> {
        let late = self.late.here().map(|late| (Collection::Pods, late as Arc<dyn Given>));
        self.histories
            .iter()
            .map(|(collection, history)| (*collection, Arc::clone(history)))
            .chain(late)
    }
}
