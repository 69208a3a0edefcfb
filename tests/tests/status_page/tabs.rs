//! Several tabs of one browser, which has six connections to an address for all of them.

use anyhow::ensure;
use informer_testkit::TestServer;
use serde_json::json;

use crate::browser::Page;
use crate::pod;
use crate::served::Served;

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
