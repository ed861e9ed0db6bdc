//! The name of an output in, where it is written or sent out.

use std::path::{Path, PathBuf};

use export::format::otlp::Otlp;
use export::format::{ExportFormat, for_path};

use super::ExportError;
use super::receiver::Receiver;
use crate::output::{OutputFile, is_url};

/// Where a recording goes.
pub(super) enum Output {
    File(OutputFile),
    Receiver(Receiver),
}

impl Output {
    /// Makes sure that it can be written, or that somebody listens there.
    pub(super) fn open(path: &Path, may_be_url: bool) -> Result<Self, ExportError> {
        match path.to_str().filter(|_| may_be_url && is_url(path)) {
            Some(url) => Receiver::open(url).map(Self::Receiver),
            None => OutputFile::open(path)
                .map(Self::File)
                .map_err(|source| ExportError::Output { path: path.to_owned(), source }),
        }
    }

    /// Where links lead to, or the URL.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::File(file) => file.place().to_owned(),
            Self::Receiver(receiver) => receiver.url().into(),
        }
    }
}

/// The format of an output by its name.
pub(super) fn format_of(path: &Path) -> Option<&'static dyn ExportFormat> {
    if is_url(path) { Some(&Otlp) } else { for_path(path) }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "otlp")]
    use std::net::TcpListener;

    use super::*;
    use crate::universal::{ExportSettings, UniversalExporter};

    fn refused(url: &str) -> String {
        let mut exporter = UniversalExporter::new(ExportSettings::default().with_output(url));
        let failed = exporter.start_collection().unwrap_err();
        assert!(matches!(&failed, ExportError::Receiver { url: told, .. } if told == url), "{failed:?}");
        failed.to_string()
    }

    #[test]
    #[cfg(feature = "otlp")]
    fn a_url_without_a_receiver_is_told_at_the_start() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let opened = Output::open(Path::new(&url), true).unwrap();
        assert_eq!(opened.name(), Path::new(&url));
        assert_eq!(format_of(Path::new(&url)).unwrap().name(), "otlp");
        drop(listener);
        assert!(refused(&url).contains("refused"));
        assert!(refused("http://ann:secret@host").contains("a user in a URL is not sent"));
    }

    #[test]
    #[cfg(not(feature = "otlp"))]
    fn a_build_that_sends_nothing_says_so() {
        assert!(refused("http://127.0.0.1:1").contains("build with the feature `otlp`"));
    }

    #[test]
    fn a_format_of_the_programs_own_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.own");
        assert!(matches!(Output::open(&path, false), Ok(Output::File(_))));
        let as_file = Output::open(Path::new("http://127.0.0.1:1"), false);
        assert!(matches!(as_file, Err(ExportError::Output { .. })));
    }
}
