//! What the page does with refusals, filters and keys that go against what is going on.

use anyhow::ensure;
use informer_testkit::TestServer;
use serde_json::json;

use crate::browser::Page;
use crate::served::Served;
use crate::{pod, shows};

/// Watches of the API are refused as the API server does it; lists and polls are counted.
const REFUSE_WATCHES: &str = "
    window.asked = { lists: 0, watches: 0, polls: 0 };
    const before = window.fetch;
    window.fetch = (path, options) => {
        const isApi = path.startsWith('api/');
        if (path.startsWith('ui/collections')) asked.polls += 1;
        if (isApi && path.includes('limit=')) asked.lists += 1;
        if (!isApi || !path.includes('watch=1')) return before(path, options);
        asked.watches += 1;
        const status = { kind: 'Status', code: 403, message: 'pods is forbidden: User \"u\" cannot watch resource' };
        return Promise.resolve(new Response(JSON.stringify(status), { status: 403 }));
    };
    true";

/// Watches say, after they were opened, that their version is too old: the first three of them.
const EXPIRE_WATCHES: &str = "
    window.asked = { times: [] };
    const before = window.fetch;
    window.fetch = (path, options) => {
        if (path.startsWith('api/') && path.includes('limit=')) asked.times.push(performance.now());
        if (!path.includes('watch=1') || asked.times.length > 3) return before(path, options);
        const status = { kind: 'Status', code: 410, message: 'too old' };
        return Promise.resolve(new Response(JSON.stringify({ type: 'ERROR', object: status }) + '\\n'));
    };
    true";

/// Collections are not known, nor told any more.
const NO_POLLS: &str = "
    const before = window.fetch;
    window.fetch = (path, options) => {
        return path.startsWith('ui/collections') ? new Promise(() => {}) : before(path, options);
    };
    held.clear();
    kinds.clear();
    true";

#[tokio::test(flavor = "multi_thread")]
async fn who_may_list_but_not_watch_keeps_the_rows_of_one_list() -> anyhow::Result<()> {
    let Some(Opened { mut page, server: _server, served }) = Opened::start().await? else {
        return Ok(());
    };
    page.eval(REFUSE_WATCHES).await?;
    page.fill("kind", "pods").await?;
    page.press("o").await?;
    page.until("document.querySelector('#notice').innerText.includes('cannot watch')").await?;
    // Two polls later there is time enough for more requests.
    page.until("asked.polls >= 3").await?;
    let asked = page.eval("[asked.lists, asked.watches]").await?;
    ensure!(asked == json!([1, 1]), "lists and watches: {asked}");
    page.until("document.querySelector('#count').textContent === '1 object'").await?;
    page.until("document.querySelector('#list .object').innerText.includes('web-0')").await?;
    ensure!(page.eval("document.querySelector('#notice').hidden").await? == json!(false));
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_is_listed_again_after_a_pause() -> anyhow::Result<()> {
    let Some(Opened { mut page, server, served }) = Opened::start().await? else { return Ok(()) };
    page.eval(EXPIRE_WATCHES).await?;
    page.fill("kind", "pods").await?;
    page.press("o").await?;
    page.until("asked.times.length === 4").await?;
    let pauses = page.eval("asked.times.slice(1).every((it, at) => it - asked.times[at] > 900)");
    ensure!(pauses.await? == json!(true), "lists follow each other at once");
    // From then on it goes on as ever.
    server.cluster().create(&pod("shop", "web-1", &json!({})))?;
    page.until("document.querySelector('#count').textContent === '2 objects'").await?;
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_filters_end_a_pause_and_keys_touch_only_what_is_seen() -> anyhow::Result<()> {
    let Some(Opened { mut page, server, served }) = Opened::start().await? else { return Ok(()) };
    page.until("changes.versions.size > 0").await?;
    server.cluster().patch("pods", "shop", "web-0", &json!({"status": {"phase": "Running"}}))?;
    page.until("document.querySelector('#list .entry')").await?;
    page.press("p").await?;
    page.until("changes.isPaused").await?;
    // Kinds are known from the stream, without the polled collections.
    page.eval(NO_POLLS).await?;
    page.fill("kind", "pods").await?;
    page.until("document.querySelector('#list .entry .kind')?.textContent === 'Pod'").await?;
    ensure!(page.eval("changes.isPaused").await? == json!(false), "still paused");

    page.press("o").await?;
    page.until("document.querySelector('#list .object')").await?;
    page.press("p").await?;
    ensure!(
        page.eval("changes.isPaused").await? == json!(false),
        "a list that is hidden is paused"
    );

    let address = page.eval("location.href").await?;
    page.eval("document.querySelector('.skip').focus(); true").await?;
    page.press("Enter").await?;
    page.until("document.activeElement.id === 'list'").await?;
    ensure!(page.eval("location.href").await? == address, "the link changes what is shown");
    served.stop().await
}

/// The page of an endpoint that holds one Pod.
struct Opened {
    page: Page,
    server: TestServer,
    served: Served,
}

impl Opened {
    async fn start() -> anyhow::Result<Option<Self>> {
        let Some(mut page) = Page::start().await? else { return Ok(None) };
        let server = TestServer::start().await?;
        server.cluster().create(&pod("shop", "web-0", &json!({"app": "web"})))?;
        let served = Served::start(server.client()?, 0).await?;
        page.open(&served.url()).await?;
        page.until(&shows("watching")).await?;
        Ok(Some(Self { page, server, served }))
    }
}
