//! The informers of one scenario, on a runtime of their own.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use informer::{
    Event, HandlerOptions, Handlers, InformerOptions, Registration, SharedInformer,
    SharedInformerFactory, SharedInformerFactoryBuilder,
};
use kube::Client;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::{Collection, DEADLINE, History, Identified, Kept, converges, watches};
use crate::harness::Arm;
use crate::helpers::eventually_ok;
use crate::real::client_of;
use crate::recorder::Recorder;
use crate::wire::{asked_for, came_as_asked_for, in_format};

/// The informers of one scenario with their client, on a runtime of their own: when all is over,
/// nothing may live on it ([`end`](Self::end)). What the test itself and its server need lives
/// elsewhere.
pub struct Scene<'a> {
    arm: &'a Arm,
    runtime: Handle,
    /// Its drop ends the runtime.
    _running: oneshot::Sender<()>,
    factory: SharedInformerFactory,
    recorder: Recorder,
}

/// A registration with its history, to which it dereferences.
#[derive(Debug)]
pub struct Observer<T> {
    history: Arc<History<T>>,
    registration: Registration,
}

impl<'a> Scene<'a> {
    /// A scene on a runtime of two threads, or of a single one where the test's own runtime is such
    /// a one, with a factory whose informers ask through the proxy.
    ///
    /// # Errors
    ///
    /// When the arm's kubeconfig does not fit.
    pub async fn new(arm: &'a Arm) -> anyhow::Result<Self> {
        Self::with(arm, |factory| factory).await
    }

    /// As [`new`](Self::new), with a factory of your own making.
    ///
    /// # Errors
    ///
    /// As `new`.
    pub async fn with(
        arm: &'a Arm,
        build: impl FnOnce(SharedInformerFactoryBuilder) -> SharedInformerFactoryBuilder,
    ) -> anyhow::Result<Self> {
        Self::on(arm, None, like_ours(), build).await
    }

    /// As [`new`](Self::new), with the recorder of what the informers ask, as this user if one is
    /// given.
    ///
    /// # Errors
    ///
    /// As `new`, and for a user that does not exist on this arm.
    pub async fn recorded(arm: &'a Arm, user: Option<&str>) -> anyhow::Result<(Self, Recorder)> {
        let scene = Self::on(arm, user, like_ours(), |factory| factory).await?;
        let recorder = scene.recorder.clone();
        Ok((scene, recorder))
    }

    /// As [`new`](Self::new), on a runtime of a single thread.
    ///
    /// # Errors
    ///
    /// As `new`.
    pub async fn on_current_thread(arm: &'a Arm) -> anyhow::Result<Self> {
        Self::on(arm, None, Builder::new_current_thread(), |factory| factory).await
    }

    async fn on(
        arm: &'a Arm,
        user: Option<&str>,
        mut runtime: Builder,
        build: impl FnOnce(SharedInformerFactoryBuilder) -> SharedInformerFactoryBuilder,
    ) -> anyhow::Result<Self> {
        let runtime = runtime.enable_all().thread_name("scene").build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        // A runtime of a single thread runs only while something is waited for on it.
        std::thread::spawn(move || {
            _ = runtime.block_on(ended);
            runtime.shutdown_background();
        });
        let (client, recorder) = Recorder::around(client_on(&handle, arm, user).await?);
        let builder = in_format(SharedInformerFactory::builder(client), asked_for()?);
        let factory = {
            let _entered = handle.enter();
            build(builder).build()
        };
        Ok(Self { arm, runtime: handle, _running: running, factory, recorder })
    }

    /// The factory. Informers of other than typed kinds are made by it, inside
    /// [`enter`](Self::enter) or not.
    #[must_use]
    pub fn factory(&self) -> &SharedInformerFactory {
        &self.factory
    }

    /// Another client whose tasks live on the scene's runtime.
    ///
    /// # Errors
    ///
    /// When the arm's kubeconfig does not fit.
    pub async fn client(&self) -> anyhow::Result<Client> {
        client_on(&self.runtime, self.arm, None).await
    }

    /// A factory of one's own, like the scene's.
    ///
    /// # Errors
    ///
    /// As [`client`](Self::client).
    pub async fn builder(&self) -> anyhow::Result<SharedInformerFactoryBuilder> {
        Ok(in_format(SharedInformerFactory::builder(self.client().await?), asked_for()?))
    }

    /// Runs `make` on the scene's runtime, for standalone informers and for tasks.
    pub fn enter<O>(&self, make: impl FnOnce() -> O) -> O {
        let _entered = self.runtime.enter();
        make()
    }

    /// The factory's informer of a kind, in the form that the options are for.
    ///
    /// # Errors
    ///
    /// As [`SharedInformerFactory::informer_with`].
    pub fn informer<T: Kept>(
        &self,
        options: InformerOptions<T>,
    ) -> anyhow::Result<SharedInformer<T>> {
        Ok(self.enter(|| T::informer(&self.factory, options))?)
    }

    /// Starts the factory's informers.
    pub fn start(&self) {
        self.enter(|| self.factory.start());
    }

    /// Registers a callback that keeps a history. `build` gives the registration its options.
    ///
    /// # Errors
    ///
    /// When the informer has stopped.
    pub fn observe<T>(
        &self,
        informer: &SharedInformer<T>,
        name: &str,
        build: impl FnOnce(Handlers<T>) -> Handlers<T>,
    ) -> anyhow::Result<Observer<T>>
    where
        T: Identified,
    {
        self.observe_with(informer, History::new(name), build, |_| ())
    }

    /// As [`observe`](Self::observe), into a given history; `first` is called before each event is
    /// recorded, and may block or panic.
    ///
    /// # Errors
    ///
    /// As `observe`.
    pub fn observe_with<T>(
        &self,
        informer: &SharedInformer<T>,
        history: Arc<History<T>>,
        build: impl FnOnce(Handlers<T>) -> Handlers<T>,
        mut first: impl FnMut(&Event<T>) + Send + 'static,
    ) -> anyhow::Result<Observer<T>>
    where
        T: Identified,
    {
        let history = history.reading(informer.unsynced_store());
        let record = Arc::clone(&history);
        let registration = informer.add_handler(|h| {
            build(h).on_event(move |event| {
                first(event);
                record.record(event);
            })
        })?;
        Ok(Observer { history, registration })
    }

    /// Opens a stream, whose reader on the scene's runtime keeps a history; `first` is waited for
    /// before each event is recorded.
    ///
    /// # Errors
    ///
    /// When the informer has stopped.
    pub fn read<T, F>(
        &self,
        informer: &SharedInformer<T>,
        history: Arc<History<T>>,
        options: &HandlerOptions,
        mut first: impl FnMut() -> F + Send + 'static,
    ) -> anyhow::Result<Observer<T>>
    where
        T: Identified,
        F: Future<Output = ()> + Send,
    {
        let history = history.reading(informer.unsynced_store());
        let mut events = informer.events_with(options)?;
        let registration = events.registration();
        let record = Arc::clone(&history);
        self.runtime.spawn(async move {
            while let Some(event) = events.next().await {
                first().await;
                record.record(&event);
            }
        });
        Ok(Observer { history, registration })
    }

    /// What scenarios end with, or have at a quiet point: the store holds what the server lists at
    /// `path` (G1), every observer was given that too, by legal histories, and the status is sane
    /// (G31).
    ///
    /// # Errors
    ///
    /// When any of that does not come true within [`DEADLINE`].
    pub async fn settles<T>(
        &self,
        informer: &SharedInformer<T>,
        path: &str,
        observers: &[&Observer<T>],
    ) -> anyhow::Result<Collection>
    where
        T: Identified,
    {
        let truth = converges(self.arm, informer, path).await?;
        for observer in observers {
            observer.reaches(&truth, DEADLINE).await?;
        }
        watches(informer).await?;
        Ok(truth)
    }

    /// Shuts the factory down and drops it: no task may live on the runtime then (G24). Standalone
    /// informers must have been stopped or dropped, clients of the scene dropped. What came, came
    /// in the format that was [asked for](crate::wire::asked_for).
    ///
    /// # Errors
    ///
    /// When tasks live on, or an answer was in another format.
    pub async fn end(self) -> anyhow::Result<()> {
        let Self { runtime, _running, factory, recorder, .. } = self;
        came_as_asked_for(&recorder)?;
        factory.shutdown_within(Duration::from_secs(10)).await;
        drop(factory);
        let none = async || {
            let alive = runtime.metrics().num_alive_tasks();
            ensure!(alive == 0, "G24: {alive} tasks live on");
            Ok(())
        };
        eventually_ok("the tasks of stopped informers end", Duration::from_secs(20), none).await
    }
}

impl<T> Observer<T> {
    /// The registration.
    #[must_use]
    pub fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Waits until the initial set was handled.
    ///
    /// # Errors
    ///
    /// When that does not come true within [`DEADLINE`].
    pub async fn synced(&self) -> anyhow::Result<()> {
        Ok(self.registration.synced_within(DEADLINE).await?)
    }
}

impl<T> Deref for Observer<T> {
    type Target = History<T>;

    fn deref(&self) -> &Self::Target {
        &self.history
    }
}

impl fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene")
            .field("arm", &self.arm)
            .field("factory", &self.factory)
            .finish_non_exhaustive()
    }
}

/// A runtime with a single thread or with two, as the one that this is called on has.
fn like_ours() -> Builder {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Builder::new_current_thread();
    }
    let mut threads = Builder::new_multi_thread();
    threads.worker_threads(2);
    threads
}

async fn client_on(runtime: &Handle, arm: &Arm, user: Option<&str>) -> anyhow::Result<Client> {
    let (kubeconfig, user) = (arm.kubeconfig(), user.map(ToOwned::to_owned));
    let client = runtime.spawn(async move { client_of(&kubeconfig, user.as_deref()).await });
    client.await.context("the client's task")?
}
