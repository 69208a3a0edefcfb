//! Pictures of the page, in both themes and at a phone's width. `INFORMER_WRITE_PICTURES=1` writes
//! those of the documentation.

use std::path::Path;

use anyhow::ensure;
use informer_testkit::{Life, TestServer};

use crate::browser::{Look, Page};
use crate::served::Served;

const WRITE: &str = "INFORMER_WRITE_PICTURES";
const MAX_BYTES: usize = 150_000;
/// Small enough to be read in a document.
const DESK: Look = Look { width: 1120, height: 640, theme: "light" };

/// Puts what differs from run to run in its place: times, rates, and watchers, as each part of
/// the page has streams of its own. The policy allows no inline
/// style, but what a test does.
const STILL: &str = "
    window.order = selected().reverse().map((it) => it.version);
    window.still = (at) => `12:00:${String(59 - (at % 60)).padStart(2, '0')}`;
    document.querySelectorAll('#list time').forEach((it, at) => { it.textContent = still(at); });
    document.querySelectorAll('#history .change').forEach((it) => { it.querySelector('time').textContent = still(order.indexOf(it.querySelector('.aside').textContent.slice(8))); });
    window.rates = { 'pods.v1': 3.2, 'deployments.v1.apps': 1.6, 'configmaps.v1': 0 };
    document.querySelectorAll('#rows tr.held').forEach((it, row) => { const rate = rates[it.dataset.of]; it.querySelector('.rate span').textContent = rate.toFixed(1); const samples = Array.from({ length: 60 }, (_, at) => 2 + 1.6 * Math.sin((at + row * 9) / 3.1) * Math.cos(at / 7) + (at % 7 === 3 ? 1.5 : 0)); sparkline(it.querySelector('.spark'), samples.map((it) => (it * rate) / samples[59])); });
    document.querySelectorAll('#rows td:nth-child(6)').forEach((it) => { it.textContent = 'now'; });
    document.querySelector('#total-events').textContent = '4.8';
    document.querySelectorAll('#rows td:nth-child(7)').forEach((it) => { it.textContent = '1'; });
    document.querySelector('#total-watchers').textContent = '3';
    document.querySelectorAll('#rows td:nth-child(8)').forEach((it) => { it.textContent = '12'; });
    document.querySelector('#total-hits').textContent = '36';
    [...document.querySelectorAll('#yaml span')].filter((it) => /^\"[0-9a-f-]{36}\"$/.test(it.textContent)).forEach((it) => { it.textContent = '\"5f0b…\"'; });
    [...document.querySelectorAll('#yaml span')].filter((it) => /^\"20..-..-..T/.test(it.textContent)).forEach((it) => { it.textContent = '\"2026-01-01T12:00:00Z\"'; });
    true";

#[tokio::test(flavor = "multi_thread")]
async fn it_looks_as_it_should_in_both_themes_and_on_a_phone() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    let mut life = Life::new(server.cluster(), 7);
    for _ in 0..60 {
        life.step()?;
    }
    let served = Served::start(server.client()?, 0).await?;
    page.look(DESK).await?;
    page.open(&served.url()).await?;
    page.until("changes.versions.size === 3").await?;
    for _ in 0..40 {
        life.step()?;
    }
    page.until("changes.all.length >= 40").await?;
    // Figures are polled.
    let pods = server.cluster().count("pods");
    page.until(&format!("held.get('pods.v1').figures.objects === {pods}")).await?;
    // Streams of several kinds come in any order.
    page.eval("changes.all.sort((one, other) => one.version - other.version); redraw(true); true")
        .await?;
    page.eval("new Promise((done) => requestAnimationFrame(() => done(true)))").await?;

    take(&mut page, "status-page-light").await?;
    page.look(DESK.dark()).await?;
    page.eval("state.picked = null; const it = selected().reverse().find((it) => it.kind === 'Deployment' && it.verb === 'updated'); open(it); true").await?;
    page.until("document.querySelector('#history .change')").await?;
    take(&mut page, "status-page-dark").await?;
    page.press("Escape").await?;
    page.eval("document.activeElement.blur()").await?;
    page.look(Look::PHONE).await?;
    page.until("document.querySelector('#list .part')").await?;
    take(&mut page, "status-page-phone").await?;
    page.look(DESK).await?;
    page.open(&format!("{}#view=objects&kind=pods", served.url())).await?;
    page.until("document.querySelector('#list .object')").await?;
    page.press("j").await?;
    page.press("Enter").await?;
    page.press("y").await?;
    page.until("document.querySelector('#yaml .key')").await?;
    take(&mut page, "status-page-objects").await?;
    served.stop().await
}

async fn take(page: &mut Page, name: &str) -> anyhow::Result<()> {
    page.eval(STILL).await?;
    let picture = page.picture().await?;
    ensure!(picture.starts_with(b"\x89PNG"), "{name}: no picture");
    ensure!((5_000..MAX_BYTES).contains(&picture.len()), "{name}: {} bytes", picture.len());
    if std::env::var_os(WRITE).is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{name}.png")), picture)?;
    }
    Ok(())
}
