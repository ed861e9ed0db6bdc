//! The files that rules look at.
//!
//! In: the top folder. Out: path and text of each text file that people write: sources, manifests, documents,
//! scripts. What builds leave and what git keeps for itself is not entered.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A text file of the checkout.
pub(super) struct TextFile {
    /// Relative to the top folder, with `/` between folders.
    pub(super) path: String,
    pub(super) text: String,
}

const NOT_ENTERED: [&str; 3] = [".git", "node_modules", "target"];
const ENDINGS: [&str; 12] =
    ["css", "html", "js", "json", "md", "mjs", "rs", "service", "sh", "toml", "yaml", "yml"];

/// Every text file below `top`, sorted by path.
pub(super) fn read_all(top: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    walk(top, "", &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<TextFile>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{} can't be read", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let (path, relative) = (entry.path(), format!("{prefix}{name}"));
        let kind = entry.file_type()?;
        if kind.is_dir() && !NOT_ENTERED.contains(&name.as_str()) {
            walk(&path, &format!("{relative}/"), files)?;
        } else if kind.is_file() && is_text(&relative) && !is_recording(&relative) {
            let bytes = fs::read(&path).with_context(|| format!("{} can't be read", path.display()))?;
            files.push(TextFile { path: relative, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    Ok(())
}

/// By its ending, or because it is CI's script, which has none.
fn is_text(path: &str) -> bool {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) || path == ".ci/run"
}

/// What `cargo xtask run` leaves beside the sources, as `.gitignore` names it.
fn is_recording(path: &str) -> bool {
    path.strip_suffix(".html").is_some_and(|stem| stem.starts_with("collector-") && !stem.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_file_and_enters_no_build_folder() {
        let top = crate::workspace::Workspace::locate().unwrap();
        let files = read_all(top.top()).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/tidy/files.rs"));
        assert!(files.iter().all(|file| !file.path.starts_with("target/")));
    }

    #[test]
    fn text_is_told_by_its_ending() {
        assert!(is_text("a/b.rs"));
        assert!(is_text(".ci/run"));
        assert!(!is_text("a/b.o"));
        assert!(is_recording("collector-20260131T235959Z.html"));
        assert!(!is_recording("export/src/format/html/viewer/index.html"));
        assert!(!is_text("Cargo.lock"));
    }
}
