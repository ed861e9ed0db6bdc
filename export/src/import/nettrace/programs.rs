//! The command line of a process in, as .NET's runtime tells it, the program and its arguments out.
//!
//! The runtime puts a space between arguments (`CollectArgs` of `src/coreclr/vm/ceemain.cpp`, `GetCommandLineW` on Windows): where one
//! has spaces of its own, it can be told apart in double quotes alone, as Windows has them.

/// The arguments, the program first.
pub(super) fn arguments(line: &str) -> Vec<&str> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (argument, after) = quoted.or_else(|| rest.split_once(' ')).unwrap_or((rest, ""));
        arguments.push(argument);
        rest = after.trim_start();
    }
    arguments
}

/// What a process of such a program is called: the file's name.
pub(super) fn name<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    arguments.first()?.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_after_its_file() {
        let of = |line| {
            let arguments = arguments(line);
            (name(&arguments), arguments)
        };
        assert_eq!(
            of("/usr/bin/dotnet  app.dll x"),
            (Some("dotnet"), vec!["/usr/bin/dotnet", "app.dll", "x"])
        );
        let windows = r#""C:\Program Files\dotnet\dotnet.exe" app.dll"#;
        assert_eq!(of(windows), (Some("dotnet.exe"), vec![r"C:\Program Files\dotnet\dotnet.exe", "app.dll"]));
        assert_eq!(of(r#"app "a b"#), (Some("app"), vec!["app", "\"a", "b"]));
        assert_eq!(of(" "), (None, vec![]));
        assert_eq!(of("/"), (None, vec!["/"]));
    }
}
