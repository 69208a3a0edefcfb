//! A server that has too much to do for one user (429).

use std::convert::Infallible;
use std::time::Duration;

use anyhow::bail;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::StreamBody;
use informer_testkit::{Fault, FaultHandle, Verb};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::Arm;
use crate::helpers::eventually_ok;
use crate::real::{RealCluster, config_of};

/// How long the API server may take until it has read what it is to reject.
const SOON: Duration = Duration::from_secs(30);

/// A user's requests are answered with 429 until [`lift`](Self::lift).
#[derive(Debug)]
pub struct Throttled(How);

#[derive(Debug)]
enum How {
    /// Hits every user of the test server.
    Faults(Vec<FaultHandle>),
    Configuration {
        name: String,
        /// Has the only seat until it is aborted.
        holder: JoinHandle<anyhow::Result<()>>,
    },
}

impl Throttled {
    pub(crate) async fn begin(arm: &Arm, user: &str) -> anyhow::Result<Self> {
        if let Some(server) = arm.test_server() {
            let busy =
                |verb| server.faults().inject(Fault::too_many_requests().retry_after(1).on(verb));
            return Ok(Self(How::Faults([Verb::List, Verb::Watch].map(busy).into())));
        }
        let name = format!("reject-{user}");
        let (levels, schemas) = configuration(arm.direct());
        // No seats, and none to borrow or to lend; but a single request at a time is served
        // nevertheless.
        let level = json!({
            "metadata": { "name": name },
            "spec": { "type": "Limited", "limited": {
                "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
                "limitResponse": { "type": "Reject" },
            } },
        });
        let schema = json!({
            "metadata": { "name": name },
            "spec": {
                "priorityLevelConfiguration": { "name": name },
                "matchingPrecedence": 50,
                "rules": [{
                    "subjects": [{ "kind": "User", "user": { "name": user } }],
                    "resourceRules": [{
                        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
                    }],
                }],
            },
        });
        levels.create(&PostParams::default(), &serde_json::from_value(level)?).await?;
        schemas.create(&PostParams::default(), &serde_json::from_value(schema)?).await?;
        let client = impatient_client(arm, user).await?;
        let hold = async || {
            let holder = tokio::spawn(hold_seat(client.clone()));
            // Whether the seat is taken shows only in what happens to others.
            let rejected = async || is_answered_with(&client, 429).await;
            let outcome =
                eventually_ok("the seat is taken", Duration::from_secs(2), rejected).await;
            if outcome.is_err() {
                holder.abort();
            }
            outcome.map(|()| holder)
        };
        let holder = eventually_ok("the user is rejected", SOON, hold).await?;
        Ok(Self(How::Configuration { name, holder }))
    }

    /// Ends it; returns once the user is served again.
    ///
    /// # Errors
    ///
    /// When the server refuses, or goes on to reject the user for half a minute.
    pub async fn lift(self, arm: &Arm, user: &str) -> anyhow::Result<()> {
        match self.0 {
            How::Faults(faults) => faults.iter().for_each(FaultHandle::lift),
            How::Configuration { name, holder } => {
                holder.abort();
                let (levels, schemas) = configuration(arm.direct());
                schemas.delete(&name, &DeleteParams::default()).await?;
                levels.delete(&name, &DeleteParams::default()).await?;
            }
        }
        let client = impatient_client(arm, user).await?;
        eventually_ok("the user is served", SOON, async || is_answered_with(&client, 200).await)
            .await
    }
}

/// A client that takes the first answer, and whose connections live on when those through the proxy
/// are cut.
async fn impatient_client(arm: &Arm, user: &str) -> anyhow::Result<Client> {
    let kubeconfig =
        arm.real_cluster().map_or_else(|| arm.kubeconfig(), RealCluster::kubeconfig_path);
    let mut config = config_of(&kubeconfig, Some(user)).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Asks for something that every user may ask for, and never says what: the server waits for a
/// minute.
async fn hold_seat(client: Client) -> anyhow::Result<()> {
    loop {
        let never = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new(StreamBody::new(stream::pending::<
                Result<_, Infallible>,
            >())))
        });
        let endless =
            Client::new(never, "default").send(Request::new(Body::empty())).await?.into_body();
        let request = Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .header("content-type", "application/json")
            .body(endless)?;
        client.send(request).await?;
    }
}

fn configuration(client: &Client) -> (Api<PriorityLevelConfiguration>, Api<FlowSchema>) {
    (Api::all(client.clone()), Api::all(client.clone()))
}

async fn is_answered_with(client: &Client, code: u16) -> anyhow::Result<()> {
    let request = Request::get("/api/v1/namespaces/default/pods?limit=1").body(Body::empty())?;
    let status = client.send(request).await?.status();
    if status == code { Ok(()) } else { bail!("the answer is {status}") }
}
