//! In which format informers ask for objects, and were answered.

use anyhow::{bail, ensure};
use informer::SharedInformerFactoryBuilder;
use informer::source::WireFormat;

use crate::recorder::{Recorder, Sent};

/// The environment's variable that says in which format the informers of a
/// [`Scene`](crate::observe::Scene) ask: `json` or `protobuf`. Without it they do as they do
/// without being told.
pub const VARIABLE: &str = "INFORMER_WIRE_FORMAT";

/// What [`VARIABLE`] asks for.
///
/// # Errors
///
/// When that is no format.
pub fn asked_for() -> anyhow::Result<WireFormat> {
    Ok(match std::env::var(VARIABLE).unwrap_or_default().as_str() {
        "" | "auto" => WireFormat::Auto,
        "json" => WireFormat::Json,
        "protobuf" => WireFormat::Protobuf,
        other => bail!("{VARIABLE} is {other:?}: write json or protobuf"),
    })
}

/// The same for custom resources, which have no protobuf.
///
/// # Errors
///
/// As [`asked_for`].
pub fn asked_for_custom_resources() -> anyhow::Result<WireFormat> {
    Ok(match asked_for()? {
        WireFormat::Protobuf => WireFormat::Auto,
        other => other,
    })
}

/// Has the factory's informers ask in this format.
#[must_use]
pub fn in_format(
    builder: SharedInformerFactoryBuilder,
    format: WireFormat,
) -> SharedInformerFactoryBuilder {
    builder.wire_format(format)
}

/// Checks that objects came as [`asked_for`]: in protobuf, but for those of custom resources, or
/// all in JSON.
///
/// # Errors
///
/// When any came otherwise.
pub fn came_as_asked_for(recorder: &Recorder) -> anyhow::Result<()> {
    let format = asked_for()?;
    let answered =
        recorder.all().into_iter().filter(|sent| sent.status == Some(200) && is_of_objects(sent));
    for sent in answered {
        let content_type = sent.content_type.clone().unwrap_or_default();
        let wanted = match format {
            WireFormat::Json => "application/json",
            _ if is_custom(&sent.path) => "application/json",
            _ => "application/vnd.kubernetes.protobuf",
        };
        ensure!(
            content_type.starts_with(wanted),
            "{format:?} was asked for, and came {content_type:?}: {sent:#?}"
        );
    }
    Ok(())
}

/// Lists and watches, but no discovery.
fn is_of_objects(sent: &Sent) -> bool {
    sent.is_watch()
        || !sent.parameter("resourceVersion").is_empty()
        || !sent.parameter("limit").is_empty()
}

/// The tests' own groups.
fn is_custom(path: &str) -> bool {
    path.split('/').nth(2).is_some_and(|group| group.ends_with("example.com"))
}
