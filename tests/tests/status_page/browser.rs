//! A page in headless Chromium, driven by the DevTools protocol.
//!
//! Nothing waits for time: a condition is looked at in the page, with each frame, until it holds.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use base64::Engine;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Names the browser. If it is set, tests fail where there is none; else they say so and pass.
const CHROMIUM: &str = "INFORMER_CHROMIUM";
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const FLAGS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
];
/// Makes what the modules of the page export global, for the conditions and expressions of tests.
const EXPOSE: &str = "
    Promise.all(['text', 'state', 'connection', 'collections', 'list', 'changes', 'detail']
        .map((it) => import(new URL(`ui/page/${it}.js`, location.href))))
        .then((all) => { Object.assign(window, ...all); return true; })";
const SOON: Duration = Duration::from_secs(60);
const MAX_MESSAGE: usize = 64 << 20;

/// One page of a browser, which ends with it.
pub(crate) struct Page {
    socket: WebSocketStream<TcpStream>,
    session: String,
    last_id: u64,
    /// What the page and the browser have said on the console.
    console: Vec<String>,
    _browser: Child,
    _profile: TempDir,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) theme: &'static str,
}

impl Look {
    pub(crate) const DESK: Self = Self { width: 1280, height: 800, theme: "light" };
    pub(crate) const PHONE: Self = Self { width: 360, height: 740, theme: "light" };

    pub(crate) fn dark(self) -> Self {
        Self { theme: "dark", ..self }
    }
}

impl Page {
    /// An empty page; `None` if there is no browser, and none has to be.
    ///
    /// # Errors
    ///
    /// When the browser does not start.
    pub(crate) async fn start() -> anyhow::Result<Option<Self>> {
        let Some(program) = program() else {
            eprintln!(
                "skipped: there is no Chromium (Debian: apt-get install chromium); {CHROMIUM} names one"
            );
            return Ok(None);
        };
        let profile = tempfile::tempdir()?;
        let mut command = Command::new(&program);
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg("about:blank").stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut browser =
            command.spawn().with_context(|| format!("{} does not run", program.display()))?;
        let said = browser.stderr.take().context("stderr is piped")?;
        let mut lines = BufReader::new(said).lines();
        let address = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("DevTools listening on ") {
                    return Ok(address.to_owned());
                }
            }
            bail!("{} ended at once", program.display())
        };
        let address = timeout(SOON, address).await.context("the browser does not start")??;
        // Who does not read stops the browser.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let host = address.strip_prefix("ws://").and_then(|it| it.split('/').next());
        let stream = TcpStream::connect(host.context("no address")?).await?;
        let config = WebSocketConfig::default();
        let config = config.max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(&address, stream, Some(config)).await?;
        let mut page = Self {
            socket,
            session: String::new(),
            last_id: 0,
            console: Vec::new(),
            _browser: browser,
            _profile: profile,
        };
        page.new_tab().await?;
        Ok(Some(page))
    }

    /// Goes to an empty tab of the same browser, which hides the one before. Returns its session.
    pub(crate) async fn new_tab(&mut self) -> anyhow::Result<String> {
        self.session.clear();
        let target = self.call("Target.createTarget", json!({"url": "about:blank"})).await?;
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", target).await?;
        attached["sessionId"].as_str().context("no session")?.clone_into(&mut self.session);
        for domain in ["Runtime", "Log", "Page"] {
            self.call(&format!("{domain}.enable"), json!({})).await?;
        }
        self.look(Look::DESK).await?;
        Ok(self.session.clone())
    }

    /// Goes back to a tab.
    pub(crate) async fn switch_to(&mut self, session: &str) -> anyhow::Result<()> {
        session.clone_into(&mut self.session);
        self.call("Page.bringToFront", json!({})).await.map(drop)
    }

    pub(crate) async fn look(&mut self, look: Look) -> anyhow::Result<()> {
        let Look { width, height, theme } = look;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size).await?;
        let theme = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", theme).await?;
        Ok(())
    }

    pub(crate) async fn open(&mut self, url: &str) -> anyhow::Result<()> {
        // Another part of the same address would load nothing.
        self.call("Page.navigate", json!({"url": "about:blank"})).await?;
        let answer = timeout(SOON, self.call("Page.navigate", json!({"url": url}))).await;
        let answer = answer.with_context(|| format!("{url} does not load"))??;
        ensure!(answer.get("errorText").is_none(), "{url}: {answer}");
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'").await?;
        self.eval(EXPOSE).await.map(drop)
    }

    /// The value of an expression.
    ///
    /// # Errors
    ///
    /// When it throws.
    pub(crate) async fn eval(&mut self, expression: &str) -> anyhow::Result<Value> {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked).await?;
        if let Some(thrown) = answer.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    ///
    /// When it does not within a minute: with what the page shows.
    pub(crate) async fn until(&mut self, condition: &str) -> anyhow::Result<()> {
        let look = format!(
            "new Promise((done) => {{ const look = () => {{ if ({condition}) done(true); else setTimeout(look, 15); }}; look(); }})"
        );
        match timeout(SOON, self.eval(&look)).await {
            Ok(held) => held.map(drop),
            Err(_) => {
                let shown = self.eval("document.body.innerText").await?;
                bail!("never: {condition}\non the console: {:?}\nshown: {shown}", self.console)
            }
        }
    }

    /// Fills in a field, as somebody who types and leaves it.
    pub(crate) async fn fill(&mut self, id: &str, text: &str) -> anyhow::Result<()> {
        let field = format!("document.querySelector('#{id}')");
        let text = json!(text);
        let fill = format!("{field}.value = {text}; {field}.dispatchEvent(new Event('change'))");
        self.eval(&fill).await.map(drop)
    }

    /// Presses a key: a letter, or a name such as `Enter`.
    pub(crate) async fn press(&mut self, key: &str) -> anyhow::Result<()> {
        let text = match key {
            "Enter" => "\r",
            letter if letter.chars().count() == 1 => letter,
            _ => "",
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            _ => 0,
        };
        for kind in [down, "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// A picture, as PNG.
    pub(crate) async fn picture(&mut self) -> anyhow::Result<Vec<u8>> {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"})).await?;
        let text = answer["data"].as_str().context("no picture")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(text)?)
    }

    /// Memory of the page's objects in MB, without what is garbage.
    pub(crate) async fn heap(&mut self) -> anyhow::Result<f64> {
        self.call("HeapProfiler.collectGarbage", json!({})).await?;
        let usage = self.call("Runtime.getHeapUsage", json!({})).await?;
        Ok((usage["usedSize"].as_f64().context("no size")? / 1e5).round() / 10.0)
    }

    /// What was said on the console so far: errors, warnings, violations of the policy, and logs.
    pub(crate) fn console(&self) -> &[String] {
        &self.console
    }

    async fn call(&mut self, method: &str, parameters: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.socket.send(Message::text(message.to_string())).await?;
        while let Some(message) = self.socket.next().await {
            let Message::Text(text) = message? else { continue };
            let message: Value = serde_json::from_str(&text)?;
            if message["id"] == id {
                ensure!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return Ok(message["result"].clone());
            }
            let said = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
            if said.iter().any(|it| message["method"] == *it) {
                self.console.push(message["params"].to_string());
            }
        }
        bail!("{method}: the browser has ended")
    }
}

fn program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os(CHROMIUM) {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path);
    folders.flat_map(|it| NAMES.map(|name| it.join(name))).find(|it| Path::is_file(it))
}
