//! Several tabs of one browser, which has six connections to an address for all of them.

use std::time::Duration;

use anyhow::ensure;
use informer_testkit::TestServer;
use serde_json::json;
use tokio::sync::oneshot::error::TryRecvError;

use crate::browser::Page;
use crate::pod;
use crate::served::Served;

/// Keeps the streams that are open in `window.streams`: the page aborts each of them in the end.
const COUNT_STREAMS: &str = "
    window.streams = new Set();
    const before = window.fetch;
    window.fetch = (path, options) => {
        const isChanges = path.startsWith('ui/changes?') && !path.includes('follow=false');
        if (isChanges || path.includes('watch=1')) {
            streams.add(path);
            options.signal.addEventListener('abort', () => streams.delete(path));
        }
        return before(path, options);
    };
    window.streamsOf = () => [...streams].map((it) => it.split('?')[0]).join();
    true";

/// More than there are connections.
const TABS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_many_tabs_shows_changes_and_the_first_goes_on() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    server.cluster().create(&pod("shop", "web-0", &json!({"app": "web"})))?;
    let served = Served::start(server.client()?, 0).await?;
    let mut tabs = Vec::new();
    for _ in 0..TABS {
        tabs.push(page.new_tab().await?);
        page.open(&served.url()).await?;
        page.until("changes.versions.size > 0").await?;
    }
    let phase = |phase: &str| {
        server.cluster().patch("pods", "shop", "web-0", &json!({"status": {"phase": phase}}))
    };
    let shows =
        |phase: &str| format!("document.querySelector('#list .new')?.textContent === '{phase}'");
    phase("Running")?;
    page.until(&shows("Running")).await?;
    // The first one was closed by itself, and resumes from where it was.
    page.switch_to(&tabs[0]).await?;
    ensure!(page.eval("document.hidden").await? == json!(false), "the tab is not seen");
    page.until(&shows("Running")).await?;
    phase("Failed")?;
    page.until(&shows("Failed")).await?;
    let seen = page.eval("changes.all.map((it) => it.type)").await?;
    ensure!(seen == json!(["change", "change"]), "{seen}");
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_has_one_stream_of_what_it_shows_and_the_open_object_follows_it() -> anyhow::Result<()>
{
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    server.cluster().create(&pod("shop", "web-0", &json!({"app": "web"})))?;
    let served = Served::start(server.client()?, 0).await?;
    page.open(&served.url()).await?;
    page.until("changes.versions.size > 0").await?;
    page.eval(COUNT_STREAMS).await?;
    page.fill("kind", "pods").await?;
    page.until("changes.versions.size > 0").await?;
    page.press("o").await?;
    page.until("document.querySelector('#list .object')").await?;
    page.press("j").await?;
    page.press("Enter").await?;
    page.press("y").await?;
    page.until("document.querySelector('#yaml .key')").await?;
    page.until("streamsOf() === 'api/v1/pods'").await?;

    // It changes faster than it is read.
    let cluster = server.cluster().clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let changing = tokio::spawn(async move {
        let mut each = tokio::time::interval(Duration::from_millis(50));
        let mut last = 0_u32;
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            each.tick().await;
            last += 1;
            let image = format!("web:2.{last}");
            let spec = json!({"spec": {"containers": [{"name": "main", "image": image}]}});
            cluster.patch("pods", "shop", "web-0", &spec)?;
        }
        anyhow::Ok(last)
    });
    page.until("document.querySelectorAll('#history .change').length > 20").await?;
    page.until("document.querySelector('#yaml').textContent.includes('web:2.')").await?;
    stop.send(()).ok();
    let last = changing.await??;
    page.until(&format!("document.querySelector('#history .new').textContent === 'web:2.{last}'"))
        .await?;
    page.until(&format!("document.querySelector('#yaml').textContent.includes('web:2.{last}\"')"))
        .await?;

    // The changes are resumed: what happened meanwhile is among them.
    page.press("o").await?;
    page.until(&format!("changes.all.length === {last}")).await?;
    page.until("streamsOf() === 'ui/changes'").await?;
    let seen = page.eval("changes.all.every((it) => it.type === 'change')").await?;
    ensure!(seen == json!(true), "a gap");
    // The open object follows this stream now.
    server.cluster().patch("pods", "shop", "web-0", &json!({"status": {"phase": "Failed"}}))?;
    page.until("document.querySelector('#history .new').textContent === 'Failed'").await?;
    served.stop().await
}
