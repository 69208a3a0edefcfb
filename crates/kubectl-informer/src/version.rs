//! What `--version` says.

/// The version of this program.
pub(crate) const SHORT: &str = env!("CARGO_PKG_VERSION");

/// The same with the commit and the build, as the build script found them.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("INFORMER_BUILD_COMMIT"),
    "\nbuild:  ",
    env!("INFORMER_BUILD_COMPILER"),
    ", ",
    env!("INFORMER_BUILD_TARGET"),
);
