//! The page for browsers whose request is refused.

use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use super::{HTML, with_policy};

/// The longest refusal that is read.
const MAX_BYTES: usize = 16 * 1024;

const UNKNOWN: &str = "Browsers do not send credentials of a cluster by themselves. Let <code>kubectl</code> do it: it adds yours to each request.</p><pre>kubectl --server https://THIS-ADDRESS --certificate-authority FILE proxy</pre><p>Then open <code>http://127.0.0.1:8001/</code>.";

const FORBIDDEN: &str = "Ask for the right to open the page:</p><pre>kubectl create clusterrole informer-status-page --verb=get --non-resource-url=/\nkubectl create clusterrolebinding informer-status-page --clusterrole=informer-status-page --user=YOU</pre><p>What it shows then is what you may list and watch.";

/// A refusal as a page that says what to do; any other answer as it is.
pub(crate) async fn explained(response: Response) -> Response {
    let code = response.status();
    if !(code.is_client_error() || code.is_server_error()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, MAX_BYTES).await.unwrap_or_default();
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default();
    let (title, advice) = match code {
        StatusCode::UNAUTHORIZED => ("Who are you?", UNKNOWN),
        StatusCode::FORBIDDEN if message.starts_with("forbidden: User") => {
            ("You may not open this page", FORBIDDEN)
        }
        StatusCode::SERVICE_UNAVAILABLE => ("Nobody can say who you are at the moment", ""),
        _ => ("This address does not answer", ""),
    };
    // A refusal for want of credentials says nothing more.
    let message = if code == StatusCode::UNAUTHORIZED { "" } else { message };
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n<h1>{title}</h1>\n<p>{}</p>\n<p>{advice}</p>\n</html>\n",
        escaped(message)
    );
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    with_policy(Response::from_parts(parts, Body::from(text)))
}

/// A text that stays one. Refusals of a right come escaped for those who guess at types.
fn escaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let mut escaped = String::with_capacity(plain.len());
    for letter in plain.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_text() {
        assert_eq!(escaped("<b>\"a\" & b"), "&lt;b&gt;&quot;a&quot; &amp; b");
        assert_eq!(escaped("User &lt;script&gt;"), "User &lt;script&gt;");
        assert_eq!(escaped("&amp;lt;"), "&amp;lt;");
    }
}
