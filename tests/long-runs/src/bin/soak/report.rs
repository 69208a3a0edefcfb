//! The report, in Markdown.

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use crate::Arguments;
use crate::process::machine;
use crate::record::{Quiet, Record, megabytes, memory};

/// The rows of the table of memory are this far apart.
const ROW: Duration = Duration::from_secs(300);

/// Everything worth knowing of a run.
pub(crate) fn markdown(arguments: &Arguments, record: &Record) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    _ = write_all(&mut text, arguments, record);
    text
}

fn write_all(text: &mut String, arguments: &Arguments, record: &Record) -> std::fmt::Result {
    writeln!(text, "    {}\n", command())?;
    writeln!(text, "- Commit {}, seed {}", record.commit, arguments.seed)?;
    writeln!(text, "- Machine: {}", machine())?;
    if let Some(failure) = &record.failure {
        writeln!(text, "\n**Ended before its time**:\n\n```text\n{failure}\n```")?;
    }
    writeln!(text, "\n## Verdicts\n")?;
    for verdict in record.verdicts() {
        let word = if verdict.holds { "yes" } else { "**no**" };
        writeln!(text, "- {word}: {}", verdict.what)?;
    }
    if let Some(last) = record.quiet.last() {
        happened(text, record, last)?;
        trends(text, record)?;
        table(text, record)?;
        handlers(text, last)?;
        informers(text, last)?;
    }
    Ok(())
}

fn happened(text: &mut String, record: &Record, last: &Quiet) -> std::fmt::Result {
    let straight: u64 = record.bursts.iter().map(|burst| burst.writes).sum();
    let took: f64 = record.bursts.iter().map(|burst| burst.took.as_secs_f64()).sum();
    let rates: Vec<f64> =
        record.bursts.iter().map(|burst| burst.writes as f64 / burst.took.as_secs_f64()).collect();
    let (slowest, fastest) = (
        rates.iter().copied().fold(f64::INFINITY, f64::min),
        rates.iter().copied().fold(0.0, f64::max),
    );
    let written = record.written;
    let writing = record.writing.as_secs_f64();
    let sum = |figure: fn(&crate::protocol::InformerFigures) -> u64| -> u64 {
        last.figures.informers.iter().map(figure).sum()
    };
    let at_first = record
        .quiet
        .first()
        .map_or(0, |first| first.figures.informers.iter().map(|informer| informer.watches).sum());
    let longest = |figure: fn(&Quiet) -> Duration| {
        record.quiet.iter().map(figure).max().unwrap_or_default().as_secs_f64()
    };
    let mut stores: Vec<f64> =
        record.quiet.iter().map(|quiet| quiet.stores.as_secs_f64()).collect();
    stores.sort_by(f64::total_cmp);

    writeln!(text, "\n## What happened\n")?;
    writeln!(text, "| what | figure |\n|---|---|")?;
    let mut row = |what: &str, figure: String| writeln!(text, "| {what} | {figure} |");
    row("time", format!("{:.1} min", last.at.as_secs_f64() / 60.0))?;
    row("objects in the four stores", last.objects.to_string())?;
    row("writes in all", (written.done + straight + record.behind_its_back).to_string())?;
    row(
        "through the API",
        format!(
            "{}, {:.1} per second while writing; {} more were refused by conflicts, {} failed while the server was down",
            written.done,
            written.done as f64 / writing,
            written.moot,
            written.failed
        ),
    )?;
    if !record.bursts.is_empty() {
        row(
            "straight into etcd, in bursts",
            format!(
                "{straight} in {} bursts of {:.1} s: {:.0} per second ({slowest:.0} to {fastest:.0})",
                record.bursts.len(),
                took / record.bursts.len() as f64,
                straight as f64 / took
            ),
        )?;
    }
    row("straight into etcd, while the API server was down", record.behind_its_back.to_string())?;
    row("kills of the API server (`kill -9`, then started again)", record.restarts.to_string())?;
    row("compactions of etcd", record.compactions.to_string())?;
    row("watches reopened", (sum(|informer| informer.watches) - at_first).to_string())?;
    row("LIST requests (streaming lists are watches)", sum(|informer| informer.lists).to_string())?;
    for (kind, count) in &last.figures.told {
        row(&format!("told by informers: {kind}"), count.to_string())?;
    }
    row("events of watches", sum(|informer| informer.events).to_string())?;
    row("MB of objects received", format!("{:.0}", sum(|informer| informer.bytes) as f64 / 1e6))?;
    row("objects decoded", sum(|informer| informer.decoded).to_string())?;
    row(
        "objects of relists that were known and not decoded",
        sum(|informer| informer.unchanged).to_string(),
    )?;
    row("quiet points, all equal", record.quiet.len().to_string())?;
    row(
        "from the last write until all stores were equal",
        format!(
            "median {:.2} s, longest {:.2} s",
            stores[stores.len() / 2],
            longest(|quiet| quiet.stores)
        ),
    )?;
    row(
        "until all handlers had been told, the slow one too",
        format!("longest {:.2} s", longest(|quiet| quiet.handlers)),
    )
}

fn trends(text: &mut String, record: &Record) -> std::fmt::Result {
    let judged = record.judged();
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else { return Ok(()) };
    writeln!(
        text,
        "\n## Memory at the quiet points of the last {:.0} minutes\n",
        (last.at - first.at).as_secs_f64() / 60.0
    )?;
    writeln!(
        text,
        "Least squares; the standard error is Newey and West's, which allows for samples that resemble those"
    )?;
    writeln!(
        text,
        "before them. Within noise: the slope's 95 % interval reaches down to 0, or the growth over these minutes is"
    )?;
    writeln!(text, "below 2 % of the mean; and never 10 % or more.\n")?;
    writeln!(
        text,
        "| figure | samples | mean, MB | range, MB | slope, MB/hour | standard error | 95 % interval | growth | within noise |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
    for (name, figure) in memory() {
        let Some(trend) = record.trend(figure) else {
            writeln!(text, "| {name} | {} | too few to judge ||||||", judged.len())?;
            continue;
        };
        writeln!(
            text,
            "| {name} | {} | {:.2} | {:.2} to {:.2} | {:+.3} | {:.3} | {:+.3} to {:+.3} | {:+.2} MB, {:+.2} % | {} |",
            trend.samples,
            trend.mean,
            trend.least,
            trend.most,
            trend.slope,
            trend.error,
            trend.slope - trend.margin,
            trend.slope + trend.margin,
            trend.growth(),
            trend.growth() / trend.mean * 100.0,
            if trend.is_within_noise() { "yes" } else { "**no**" }
        )?;
    }
    Ok(())
}

/// Every row shows the last quiet point of its time, and the most and least that was resident in
/// it.
fn table(text: &mut String, record: &Record) -> std::fmt::Result {
    writeln!(text, "\n## Every five minutes\n")?;
    writeln!(
        text,
        "RSS, PSS, heap, tasks, threads and files are those of the last quiet point of the time; the range is that of samples every 5 s, and the\n\
         heap at most that between quiet points.\n"
    )?;
    writeln!(
        text,
        "| until, min | RSS, MB | RSS between, MB | PSS, MB | heap, MB | heap at most, MB | tasks | threads | files | objects |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|---|")?;
    let end = record.quiet.last().map_or(Duration::ZERO, |last| last.at);
    let mut from = Duration::ZERO;
    while from < end {
        let within = |at: Duration| at >= from && at < from + ROW;
        let samples = record.samples.iter().filter(|sample| within(sample.at));
        let resident: Vec<f64> = samples.map(|sample| megabytes(sample.resident)).collect();
        let least = resident.iter().copied().fold(f64::INFINITY, f64::min);
        let most = resident.iter().copied().fold(0.0, f64::max);
        if let Some(quiet) = record.quiet.iter().rfind(|quiet| within(quiet.at)) {
            let quiet_points = record.quiet.iter().filter(|quiet| within(quiet.at));
            let peak = quiet_points.map(|quiet| quiet.figures.heap_peak).max().unwrap_or_default();
            writeln!(
                text,
                "| {:.1} | {:.1} | {least:.1} to {most:.1} | {:.1} | {:.2} | {:.1} | {} | {} | {} | {} |",
                quiet.at.as_secs_f64() / 60.0,
                megabytes(quiet.process.resident),
                megabytes(quiet.process.proportional),
                megabytes(quiet.figures.heap),
                megabytes(peak),
                quiet.figures.tasks,
                quiet.process.threads,
                quiet.process.files,
                quiet.objects
            )?;
        }
        from += ROW;
    }
    Ok(())
}

fn handlers(text: &mut String, last: &Quiet) -> std::fmt::Result {
    let figures = &last.figures;
    writeln!(text, "\n## Events delivered\n")?;
    writeln!(
        text,
        "The late handler was registered and removed {} times.\n",
        figures.late_registrations
    )?;
    writeln!(
        text,
        "| handler | events | added | of these initial | updated | resynced | deleted | merged |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|")?;
    for (name, counts) in &figures.counts {
        let merged =
            figures.registrations.iter().filter(|one| one.name == *name).map(|one| one.merged);
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            counts.all(),
            counts.added,
            counts.initial,
            counts.updated,
            counts.resynced,
            counts.deleted,
            merged.sum::<u64>()
        )?;
    }
    Ok(())
}

fn informers(text: &mut String, last: &Quiet) -> std::fmt::Result {
    writeln!(text, "\n## Informers\n")?;
    writeln!(
        text,
        "| informer | objects | lists | watches | events | bookmarks | MB | decoded | known already | errors told |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|---|")?;
    for one in &last.figures.informers {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.1} | {} | {} | {} |",
            one.name,
            one.objects,
            one.lists,
            one.watches,
            one.events,
            one.bookmarks,
            one.bytes as f64 / 1e6,
            one.decoded,
            one.unchanged,
            one.errors
        )?;
    }
    Ok(())
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    let features = if cfg!(feature = "mimalloc") { " --features mimalloc" } else { "" };
    format!(
        "INFORMER_REAL_CLUSTER=1 cargo run{release} -p informer-long-runs --bin soak{features} -- {}",
        arguments.join(" ")
    )
}

/// What the sources are at; with a remark if they were changed since.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|text| !text.is_empty());
    if changed { format!("{commit} and uncommitted changes") } else { commit }
}
