//! The status page of `serve` in headless Chromium. Without one these tests pass with a word;
//! `INFORMER_CHROMIUM` names one that must be there.

mod access;
mod browser;
mod pictures;
mod rate;
mod refused;
mod served;
mod tabs;

use std::time::Duration;

use anyhow::{Context, ensure};
use informer_testkit::TestServer;
use serde_json::{Value, json};

use browser::{Look, Page};
use served::Served;

/// How soon a change is on the page.
const SOON: f64 = 1000.0;

/// What the page's own policy forbids; what comes of it is in `window.refused`.
const FORBIDDEN: &str = "
    window.refused = '';
    const attempts = [
        () => {
            const it = document.createElement('script');
            it.src = 'data:text/javascript,window.hacked=1';
            document.head.append(it);
        },
        () => { document.body.innerHTML = '<b>x</b>'; },
        () => { document.body.setAttribute('style', 'color: red'); },
        () => { new Image().src = 'http://127.0.0.1:1/'; },
    ];
    for (const attempt of attempts) {
        try { attempt(); } catch (error) { window.refused += error; }
    }";

/// Scrolls for 120 frames: their times, the most rows that there were at once, and how far.
const SCROLL: &str = "
    new Promise((done) => {
        const list = document.querySelector('#list');
        const times = [];
        let [most, last] = [0, performance.now()];
        const step = (now) => {
            times.push(now - last);
            last = now;
            most = Math.max(most, document.querySelectorAll('#list .row').length);
            list.scrollTop += 4000;
            if (times.length < 120) { requestAnimationFrame(step); return; }
            times.sort((one, other) => one - other);
            done([times[60], times[114], times[119], most, list.scrollTop]);
        };
        requestAnimationFrame(step);
    })";

fn pod(namespace: &str, name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "web:1.0"}]},
        "status": {"phase": "Pending"}})
}

/// The condition that a text is on the page.
fn shows(text: &str) -> String {
    format!("document.body.innerText.includes({})", json!(text))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_loads_without_a_word_on_the_console_and_shows_changes_within_a_second()
-> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    server.cluster().create(&pod("shop", "web-0", &json!({"app": "web"})))?;
    let served = Served::start(server.client()?, 0).await?;
    page.open(&served.url()).await?;
    page.until(&shows("watching")).await?;
    page.until("document.querySelector('#connection').dataset.state === 'live'").await?;
    page.until("document.querySelector('#empty').innerText.includes('Quiet')").await?;

    // Of several, as the machine may have other things to do.
    let mut fastest = f64::MAX;
    for version in 1..=5 {
        let image = format!("web:1.{version}");
        let written = page.eval("Date.now()").await?.as_f64().context("no time")?;
        let patch = json!({"spec": {"containers": [{"name": "main", "image": image}]}});
        server.cluster().patch("pods", "shop", "web-0", &patch)?;
        page.until(&format!("document.querySelector('#list .new')?.textContent === '{image}'"))
            .await?;
        let seen = page.eval("Date.now()").await?.as_f64().context("no time")?;
        fastest = fastest.min(seen - written);
    }
    eprintln!("a change is on the page {fastest} ms after it was written");
    ensure!(fastest < SOON, "the fastest change took {fastest} ms");
    let row = page.eval("document.querySelector('#list .entry').innerText").await?;
    let row = row.as_str().unwrap_or_default();
    for part in
        ["updated", "Pod", "shop/", "web-0", "spec.containers[main].image", "web:1.4", "web:1.5"]
    {
        ensure!(row.contains(part), "{part} is missing: {row}");
    }

    // Everything that the page does is allowed by its own policy.
    page.press("j").await?;
    page.press("Enter").await?;
    page.until("document.querySelectorAll('#history .change').length >= 5").await?;
    page.press("y").await?;
    page.until(&shows("image: \"web:1.5\"")).await?;
    page.press("Escape").await?;
    page.press("o").await?;
    page.press("?").await?;
    page.until("document.querySelector('#help').open").await?;
    page.press("Escape").await?;
    ensure!(page.console().is_empty(), "on the console: {:#?}", page.console());

    // The policy is one: what it forbids is refused, and said.
    page.eval(FORBIDDEN).await?;
    page.until(
        "window.refused.includes('TrustedHTML') && window.refused.includes('TrustedScriptURL')",
    )
    .await?;
    ensure!(page.eval("window.hacked").await? == Value::Null, "a foreign script was run");
    page.until(&shows("watching")).await?;
    ensure!(!page.console().is_empty(), "violations are not seen by this test");
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_texts() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    let script = "<script>window.hacked=1</script>";
    let image = "<img src=x onerror=window.hacked=1>\"'`&amp;";
    let bidi = "safe\u{202e}txt.exe\u{0007}\u{200b}";
    let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "hostile", "namespace": "shop", "annotations": {"a": "1"}},
        "data": {"a": "1", "list": "# no\n: yaml\n"}});
    server.cluster().create(&config)?;
    let served = Served::start(server.client()?, 0).await?;
    page.open(&format!("{}#kind=configmaps", served.url())).await?;
    page.until("document.querySelector('#rows .chosen')").await?;
    config["metadata"]["annotations"] = json!({"a": script, script: image, bidi: bidi});
    config["data"] = json!({"a": image, script: bidi, "list": "# no\n: yaml\n"});
    server.cluster().apply(&config)?;
    page.until(&shows(script)).await?;
    page.until(&shows(r"safe\u202etxt.exe\u0007\u200b")).await?;
    page.press("j").await?;
    page.press("Enter").await?;
    page.until("document.querySelector('#history .change')").await?;
    page.press("y").await?;
    page.until("document.querySelector('#yaml .key')").await?;
    let yaml = page.eval("document.querySelector('#yaml').textContent").await?;
    let yaml = yaml.as_str().unwrap_or_default();
    ensure!(yaml.contains(r#""safe\u202etxt.exe\u0007\u200b""#), "{yaml}");
    ensure!(yaml.contains("list: |\n    # no\n    : yaml\n"), "{yaml}");
    page.press("o").await?;
    page.until("document.querySelector('#list .object')").await?;
    for text in [script, image] {
        // A kind and a selector of the user's own, in words that come back from the server.
        page.fill("kind", text).await?;
        page.until("!document.querySelector('#notice').hidden").await?;
    }
    let made = page
        .eval("[window.hacked ?? 0, document.querySelectorAll('main script, main img, #notice *').length]")
        .await?;
    ensure!(made == json!([0, 0]), "{made}");
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_after_a_restart_of_the_endpoint() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    server.cluster().create(&pod("shop", "web-0", &json!({})))?;
    let served = Served::start(server.client()?, 0).await?;
    let port = served.port();
    page.open(&served.url()).await?;
    page.until(&shows("watching")).await?;
    served.stop().await?;
    page.until("document.querySelector('#connection').dataset.state === 'lost'").await?;
    page.until(&shows("kubectl informer serve")).await?;
    // What happens meanwhile is not known to the next endpoint.
    server.cluster().patch("pods", "shop", "web-0", &json!({"status": {"phase": "Running"}}))?;
    let served = Served::start(server.client()?, port).await?;
    page.until("document.querySelector('#connection').dataset.state === 'live'").await?;
    page.until("document.querySelector('#notice').hidden").await?;
    page.until("document.querySelector('#list .verb.gap')").await?;
    server.cluster().patch("pods", "shop", "web-0", &json!({"status": {"phase": "Failed"}}))?;
    page.until(
        "[...document.querySelectorAll('#list .new')].some((it) => it.textContent === 'Failed')",
    )
    .await?;
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_is_done_by_keys() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    for name in ["api-0", "web-0", "web-1"] {
        server.cluster().create(&pod("shop", name, &json!({"app": &name[..3]})))?;
    }
    let served = Served::start(server.client()?, 0).await?;
    page.open(&served.url()).await?;
    page.until(&shows("watching")).await?;
    page.until("changes.versions.size > 0").await?;
    for name in ["api-0", "web-0", "web-1"] {
        let phase = json!({"status": {"phase": "Running"}});
        server.cluster().patch("pods", "shop", name, &phase)?;
    }
    let entries =
        |count: u32| format!("document.querySelectorAll('#list .entry').length === {count}");
    page.until(&entries(3)).await?;
    page.press("/").await?;
    page.until("document.activeElement.id === 'text'").await?;
    for letter in ["a", "p", "i"] {
        page.press(letter).await?;
    }
    page.until(&entries(1)).await?;
    page.press("Escape").await?;
    page.until(&entries(3)).await?;
    // Newest first.
    let picked = |name: &str| {
        format!(
            "document.querySelector('.entry.picked bdi')?.textContent === '{name}' && document.querySelector('#list').getAttribute('aria-activedescendant') === document.querySelector('.entry.picked').id"
        )
    };
    for (key, name) in
        [("j", "web-1"), ("j", "web-0"), ("G", "api-0"), ("k", "web-0"), ("g", "web-1")]
    {
        page.press(key).await?;
        page.until(&picked(name)).await?;
    }
    page.press("Enter").await?;
    page.until("document.activeElement.id === 'detail-name' && document.querySelector('#detail-name').textContent === 'shop/web-1'").await?;
    page.press("j").await?;
    page.until("document.querySelector('#detail-name').textContent === 'shop/web-0'").await?;
    page.press("Escape").await?;
    page.until("document.querySelector('#detail').hidden && document.activeElement.id === 'list'")
        .await?;

    page.press("p").await?;
    page.until("document.querySelector('#pause').getAttribute('aria-pressed') === 'true'").await?;
    server.cluster().delete("pods", "shop", "api-0")?;
    page.until(&shows("1 more since the pause")).await?;
    page.until(&entries(3)).await?;
    page.press("p").await?;
    page.until(&entries(4)).await?;
    // Noise alone is folded until it is asked for.
    let noise = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
    server.cluster().patch("pods", "shop", "web-1", &noise)?;
    page.until("changes.all.length === 5").await?;
    page.until(&entries(4)).await?;
    page.press("n").await?;
    page.until(&entries(5)).await?;
    page.press("o").await?;
    page.until(&shows("Which objects?")).await?;
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_selects_by_kind_namespace_and_labels() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    for (namespace, name, app) in
        [("shop", "web-0", "web"), ("shop", "api-0", "api"), ("test", "web-9", "web")]
    {
        server.cluster().create(&pod(namespace, name, &json!({"app": app})))?;
    }
    let served = Served::start(server.client()?, 0).await?;
    page.open(&format!("{}#kind=pods&namespace=shop&labels=app%3Dweb", served.url())).await?;
    page.until("changes.versions.size > 0").await?;
    for (namespace, name) in [("test", "web-9"), ("shop", "api-0"), ("shop", "web-0")] {
        server.cluster().patch(
            "pods",
            namespace,
            name,
            &json!({"status": {"phase": "Running"}}),
        )?;
    }
    page.until("changes.all.length > 0").await?;
    let names = page.eval("changes.all.map((it) => it.name)").await?;
    ensure!(names == json!(["web-0"]), "{names}");
    page.press("o").await?;
    page.until("document.querySelector('#count').textContent === '1 object'").await?;
    // What leaves the selection leaves the list.
    server.cluster().patch(
        "pods",
        "shop",
        "web-0",
        &json!({"metadata": {"labels": {"app": "x"}}}),
    )?;
    page.until("document.querySelector('#count').textContent === '0 objects'").await?;
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_objects_are_a_few_rows() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    let all = (0..20_000)
        .map(|at| pod("shop", &format!("web-{at:05}"), &json!({"app": "web"})).to_string());
    server.cluster().load(all)?;
    let served = Served::start(server.client()?, 0).await?;
    page.open(&format!("{}#view=objects&kind=pods", served.url())).await?;
    page.until("document.querySelector('#count').textContent === '20,000 objects'").await?;
    // A second of scrolling, while objects change.
    let changing = {
        let cluster = server.cluster().clone();
        tokio::spawn(async move {
            let mut each = tokio::time::interval(Duration::from_millis(10));
            for at in 0..20_000_u32 {
                each.tick().await;
                let restart =
                    json!({"status": {"phase": if at % 2 == 0 { "Running" } else { "Failed" }}});
                drop(cluster.patch("pods", "shop", &format!("web-{at:05}"), &restart));
            }
        })
    };
    let frames = page.eval(SCROLL).await?;
    changing.abort();
    eprintln!("frames of 20,000 objects: median, 95 %, longest in ms, rows, scrolled: {frames}");
    ensure!(frames[3].as_u64().is_some_and(|rows| rows < 120), "{frames}");
    ensure!(frames[4].as_u64().is_some_and(|to| to > 400_000), "{frames}");
    page.press("G").await?;
    page.until(&shows("web-19999")).await?;
    for letter in ["/", "1", "9", "9", "9", "8"] {
        page.press(letter).await?;
    }
    page.until("document.querySelector('#count').textContent === '1 object'").await?;
    served.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_shows_all_of_it_without_scrolling_aside() -> anyhow::Result<()> {
    let Some(mut page) = Page::start().await? else { return Ok(()) };
    let server = TestServer::start().await?;
    let long = format!("web-{}", "0".repeat(180));
    server.cluster().create(&pod("shop", &long, &json!({})))?;
    let served = Served::start(server.client()?, 0).await?;
    page.look(Look::PHONE).await?;
    page.open(&format!("{}#kind=pods", served.url())).await?;
    page.until("changes.versions.size > 0").await?;
    server.cluster().patch("pods", "shop", &long, &json!({"status": {"phase": "Running"}}))?;
    page.until("document.querySelector('#list .entry')").await?;
    for view in ["collections", "objects", "changes"] {
        page.eval(&format!("document.querySelector('#views [data-view={view}]').click()")).await?;
        page.until("document.querySelector('#views [aria-pressed=true]')").await?;
        let widths = "[document.documentElement, document.querySelector('#collections'), document.querySelector('#list')].map((it) => it.scrollWidth - it.clientWidth)";
        page.until(&format!("{widths}.every((it) => it <= 0)")).await?;
    }
    page.eval("document.querySelector('#list .entry').click()").await?;
    page.until("document.querySelector('#detail').getBoundingClientRect().width === 360").await?;
    page.until("document.querySelector('#history .change')").await?;
    page.until("document.documentElement.scrollWidth === 360").await?;
    // Keys do not reach what the panel covers.
    page.until("document.activeElement.id === 'detail-name'").await?;
    for _ in 0..8 {
        page.press("Tab").await?;
        let covered = "document.activeElement.closest('#stream, #collections, #views, header')?.parentElement.tagName";
        let covered = page.eval(&format!("{covered} === 'BODY' || {covered} === 'MAIN'")).await?;
        ensure!(covered == json!(false), "what is covered has the focus");
    }
    page.press("Escape").await?;
    page.until("document.activeElement.id === 'list'").await?;
    // In landscape there is room for rows.
    page.look(Look { width: 740, height: 360, theme: "light" }).await?;
    page.until("document.querySelector('#list').clientHeight > 180").await?;
    page.until("document.documentElement.scrollWidth === 740").await?;
    served.stop().await
}
