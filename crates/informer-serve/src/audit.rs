//! The audit log: one line for each response that does not come from the API server, and for each
//! refused request.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::response::Response;
use http::header::USER_AGENT;
use http::{Request, Uri};
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::access::{Attributes, Caller};
use crate::metrics::Origin;

/// Maximum number of lines that wait to be written.
const MAX_WAITING: usize = 4096;
/// Maximum number of waiting lines before lines of unauthenticated callers are dropped, so that
/// they leave room for the lines of authenticated callers.
const MAX_WAITING_UNKNOWN: usize = MAX_WAITING / 2;
/// Maximum number of lines in one write.
const MAX_BATCH: usize = 256;
/// Maximum length of a URL or user agent in a line; longer ones are cut.
const MAX_TEXT: usize = 4096;

/// Writes lines in a separate task. If the writer is too slow, lines are dropped and counted, so
/// that no response waits for the log.
pub(crate) struct AuditLog {
    lines: mpsc::Sender<Vec<u8>>,
    dropped: Dropped,
}

type Dropped = Counter<u64, AtomicU64>;

/// The part of a line that is known before the response.
pub(crate) struct Audited {
    received: Timestamp,
    uri: Uri,
    attributes: Attributes,
    about: About,
    agent: Option<String>,
    address: Option<SocketAddr>,
}

/// The attributes of a request that does not have them in its path. The handler sets them, through
/// the extensions of the request. A line is written for each element.
#[derive(Clone, Default)]
pub(crate) struct About(Arc<OnceLock<Arc<[Attributes]>>>);

impl About {
    /// Sets the attributes. Later calls have no effect.
    pub(crate) fn set(&self, attributes: impl Into<Arc<[Attributes]>>) {
        self.0.get_or_init(|| attributes.into());
    }
}

/// The remote address of a request, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemoteAddress(pub(crate) SocketAddr);

impl AuditLog {
    /// Starts the task that writes the log. It ends after the log is dropped.
    pub(crate) fn start(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (lines, waiting) = mpsc::channel(MAX_WAITING);
        let dropped = Dropped::default();
        tokio::spawn(write(writer, waiting, dropped.clone()));
        Self { lines, dropped }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Lines of the audit log that were not written: the file was too slow, or failed";
        registry.register("serve_audit_lines_dropped", help, self.dropped.clone());
    }

    /// Writes a line for a response, unless it was forwarded from the API server, which audits the
    /// request itself. Discovery documents get a line: the API server only sees the endpoint's
    /// account read them.
    pub(crate) fn record(&self, asked: &Audited, caller: Option<&Caller>, response: &Response) {
        if response.extensions().get::<Origin>() == Some(&Origin::Upstream) {
            return;
        }
        let code = response.status().as_u16();
        let about = match asked.about.0.get() {
            Some(about) => &**about,
            None => std::slice::from_ref(&asked.attributes),
        };
        for attributes in about {
            self.write(&asked.event(attributes, caller, code), caller.is_some());
        }
    }

    /// Writes a line for attributes that an open response covers from now on.
    pub(crate) fn record_more(&self, asked: &Audited, caller: &Caller, attributes: &Attributes) {
        self.write(&asked.event(attributes, Some(caller), 200), true);
    }

    fn write(&self, event: &Value, is_known: bool) {
        let mut line = event.to_string().into_bytes();
        line.push(b'\n');
        let waiting = self.lines.max_capacity() - self.lines.capacity();
        let is_full = !is_known && waiting >= MAX_WAITING_UNKNOWN;
        if is_full || self.lines.try_send(line).is_err() {
            self.dropped.inc();
        }
    }
}

impl Audited {
    pub(crate) fn of(request: &mut Request<Body>) -> Self {
        let about = About::default();
        request.extensions_mut().insert(about.clone());
        Self::about(request, about)
    }

    /// The part of the lines for a request whose handler writes them itself.
    pub(crate) fn about(request: &Request<Body>, about: About) -> Self {
        let uri = request.uri();
        let query = uri.query().unwrap_or_default();
        let agent = request.headers().get(USER_AGENT);
        Self {
            received: Timestamp::now(),
            attributes: Attributes::of_request(request.method(), uri.path(), query),
            about,
            uri: uri.clone(),
            agent: agent.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()),
            address: request.extensions().get::<RemoteAddress>().map(|it| it.0),
        }
    }

    /// An `Event` of `audit.k8s.io/v1`, without fields that would be empty.
    fn event(&self, attributes: &Attributes, caller: Option<&Caller>, code: u16) -> Value {
        let path = self.uri.path_and_query().map_or("/", |it| it.as_str());
        let is_watch = matches!(attributes, Attributes::Resource(it) if it.verb == "watch");
        let stage = if is_watch && code < 300 { "ResponseStarted" } else { "ResponseComplete" };
        let decision = if matches!(code, 401 | 403) { "forbid" } else { "allow" };
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": format!("{:032x}", fastrand::u128(..)),
            "stage": stage,
            "requestURI": shortened(path),
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": text(self.received),
            "stageTimestamp": text(Timestamp::now()),
            "annotations": {"authorization.k8s.io/decision": decision},
        });
        match attributes {
            Attributes::Path { verb, .. } => event["verb"] = verb.as_str().into(),
            Attributes::Resource(it) => {
                event["verb"] = (*it.verb).into();
                let mut about = json!({"resource": it.resource, "apiVersion": it.version});
                for (name, value) in [
                    ("apiGroup", &it.group),
                    ("namespace", &it.namespace),
                    ("name", &it.name),
                    ("subresource", &it.subresource),
                ] {
                    if !value.is_empty() {
                        about[name] = value.as_str().into();
                    }
                }
                event["objectRef"] = about;
            }
        }
        // The extra is left out, because it may contain confidential values.
        if let Some(caller) = caller {
            event["user"] = json!({"username": caller.user, "groups": caller.groups});
        }
        if let Some(agent) = &self.agent {
            event["userAgent"] = shortened(agent).into();
        }
        if let Some(address) = self.address {
            event["sourceIPs"] = json!([address.ip().to_canonical().to_string()]);
        }
        event
    }
}

/// Writes the waiting lines until all senders are dropped.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    dropped: Dropped,
) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let written = async {
            writer.write_all(&batch.concat()).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            dropped.inc_by(batch.len() as u64);
            tracing::warn!("the audit log cannot be written: {error}");
        }
        batch.clear();
    }
}

/// The time with microseconds, as Kubernetes writes it.
fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    fn get(path: &str) -> Audited {
        let request = Request::get(path).header(USER_AGENT, "kubectl/v1");
        let request = request.header("authorization", "Bearer hunter2");
        let mut request = request.body(Body::empty()).unwrap();
        // A listener on both address families sees IPv4 addresses in this form.
        let address = RemoteAddress("[::ffff:10.0.0.7]:1234".parse().unwrap());
        request.extensions_mut().insert(address);
        Audited::of(&mut request)
    }

    #[tokio::test]
    async fn each_answer_of_the_cache_is_a_line_and_none_of_the_api_server_is() {
        let (writer, reader) = tokio::io::duplex(4096);
        let log = AuditLog::start(writer);
        let caller = Caller::own();
        let mut upstream = Response::new(Body::empty());
        upstream.extensions_mut().insert(Origin::Upstream);
        log.record(&get("/api/v1/pods"), Some(&caller), &upstream);
        let asked = get("/apis/apps/v1/namespaces/a/deployments/b/scale?x=y");
        log.record(&asked, Some(&caller), &Response::new(Body::empty()));
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = http::StatusCode::FORBIDDEN;
        log.record(&get("/metrics"), None, &refused);
        drop(log);

        let mut lines = BufReader::new(reader).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(!line.contains("hunter2"), "{line}");
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            event["objectRef"],
            json!({"resource": "deployments", "apiVersion": "v1", "apiGroup": "apps",
                "namespace": "a", "name": "b", "subresource": "scale"})
        );
        assert_eq!((&event["verb"], &event["sourceIPs"]), (&json!("get"), &json!(["10.0.0.7"])));
        assert_eq!(event["responseStatus"]["code"], 200);
        assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");
        assert_eq!(event["requestURI"], "/apis/apps/v1/namespaces/a/deployments/b/scale?x=y");

        let event: Value =
            serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");
        assert!(event.get("objectRef").is_none() && event.get("user").is_none());
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_writer_that_stalls_costs_lines_and_holds_nobody_up() {
        let (writer, _reader) = tokio::io::duplex(1);
        let log = AuditLog::start(writer);
        let asked = get("/api/v1/pods");
        for _ in 0..2 * MAX_WAITING {
            log.record(&asked, Some(&Caller::own()), &Response::new(Body::empty()));
        }
        assert!(log.dropped.get() >= MAX_WAITING as u64 - MAX_BATCH as u64);
    }

    #[tokio::test]
    async fn lines_of_the_unknown_push_out_none_of_the_known() {
        let (writer, _reader) = tokio::io::duplex(1);
        let log = AuditLog::start(writer);
        let asked = get("/api/v1/pods");
        for _ in 0..2 * MAX_WAITING {
            log.record(&asked, None, &Response::new(Body::empty()));
        }
        let dropped = log.dropped.get();
        for _ in 0..MAX_WAITING / 2 {
            log.record(&asked, Some(&Caller::own()), &Response::new(Body::empty()));
        }
        assert_eq!(log.dropped.get(), dropped);
    }
}
