//! Manual pages, one for the program and one for each command.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::CommandFactory;

use crate::args::Args;
use crate::version;

/// What packagers call this with, before the folder. Completion scripts list hidden commands of
/// clap's, so this is none.
const ASKED: &str = "__man-pages";

/// Writes the pages, if a command line asks for it.
pub(crate) fn write_if_asked(line: &[OsString]) -> Option<io::Result<()>> {
    match line {
        [_, asked, folder] if asked == ASKED => Some(write(Path::new(folder))),
        _ => None,
    }
}

/// Writes the pages into a folder, which is made if it is missing.
fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // Where it was built is not what a manual is about.
    clap_mangen::generate_to(Args::command().long_version(version::SHORT), folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page() {
        let folder = tempfile::TempDir::new().unwrap();
        let folder = folder.path().join("man1");
        let line = [OsString::new(), ASKED.into(), folder.clone().into_os_string()];
        write_if_asked(&line).unwrap().unwrap();
        assert!(write_if_asked(&line[..2]).is_none());
        let pages = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<_> =
            pages.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let commands = ["-completion", "-demo", "-get", "-serve", "-watch", ""];
        assert_eq!(names, commands.map(|it| format!("kubectl-informer{it}.1")));
        for name in names {
            let page = std::fs::read_to_string(folder.join(&name)).unwrap();
            assert!(page.contains(".SH NAME") && page.contains(version::SHORT), "{name}");
            assert!(!page.contains("rustc"), "{name}");
        }
    }
}
