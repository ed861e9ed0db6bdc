//! The name of an output in, whether it is a receiver and no file out.

use std::path::Path;

/// How URLs of receivers begin.
const SCHEMES: [&str; 4] = ["http://", "https://", "grpc://", "grpcs://"];

/// Whether an output is the URL of a receiver of profiles (`http://`, `https://`, `grpc://`, `grpcs://`, in any case), and no file.
pub fn is_url(path: &Path) -> bool {
    let begins = |text: &str, scheme: &str| {
        text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    path.to_str().is_some_and(|text| SCHEMES.iter().any(|scheme| begins(text, scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_files() {
        let is_url = |text: &str| is_url(Path::new(text));
        assert!(
            ["http://[::1]:4318", "HTTPS://host/in", "grpc://host", "Grpcs://host:1"].into_iter().all(is_url)
        );
        assert!(
            !["", "http", "http:/x", "ftp://host/x", "./http://x", "x.otlp", "ä"].into_iter().any(is_url)
        );
    }
}
