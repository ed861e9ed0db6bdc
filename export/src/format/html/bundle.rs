//! The viewer's ES modules as one script, because a page in one file has nowhere to import from.
//!
//! The rule is small: modules follow each other in the order of [`MODULES`], lines that start with `import ` are
//! left out, `export ` at the start of a line is taken off, and so are indentation and lines of comment, which are a
//! third of the text. It holds while every import is one line of the form `import { a, b } from "./module.js";` that
//! names exports of a module further up, while no two modules declare the same name at their top level, and while no
//! text reaches over the end of its line. The tests below check that of the real modules.

/// The modules, each after those it imports from.
const MODULES: [(&str, &str); 27] = [
    ("decode.js", include_str!("viewer/decode.js")),
    ("format.js", include_str!("viewer/format.js")),
    ("palette.js", include_str!("viewer/palette.js")),
    ("weigh.js", include_str!("viewer/weigh.js")),
    ("tree.js", include_str!("viewer/tree.js")),
    ("search.js", include_str!("viewer/search.js")),
    ("tooltip.js", include_str!("viewer/tooltip.js")),
    ("flame.js", include_str!("viewer/flame.js")),
    ("ruler.js", include_str!("viewer/ruler.js")),
    ("drag.js", include_str!("viewer/drag.js")),
    ("strip.js", include_str!("viewer/strip.js")),
    ("lanes.js", include_str!("viewer/lanes.js")),
    ("columns.js", include_str!("viewer/columns.js")),
    ("lane.js", include_str!("viewer/lane.js")),
    ("timeline.js", include_str!("viewer/timeline.js")),
    ("table.js", include_str!("viewer/table.js")),
    ("picker.js", include_str!("viewer/picker.js")),
    ("crumbs.js", include_str!("viewer/crumbs.js")),
    ("header.js", include_str!("viewer/header.js")),
    ("merge.js", include_str!("viewer/merge.js")),
    ("comparison.js", include_str!("viewer/comparison.js")),
    ("changes.js", include_str!("viewer/changes.js")),
    ("details.js", include_str!("viewer/details.js")),
    ("opening.js", include_str!("viewer/opening.js")),
    ("comparing.js", include_str!("viewer/comparing.js")),
    ("viewer.js", include_str!("viewer/viewer.js")),
    ("main.js", include_str!("viewer/main.js")),
];

/// The script.
pub(super) fn script() -> String {
    bundle(&MODULES)
}

fn bundle(modules: &[(&str, &str)]) -> String {
    let mut script = String::new();
    for (name, source) in modules {
        script.push_str("\n// ");
        script.push_str(name);
        script.push('\n');
        for line in source.lines().filter(|line| !line.starts_with("import ")) {
            let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
            if !line.is_empty() && !line.starts_with("//") {
                script.push_str(line);
                script.push('\n');
            }
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// The name that a line declares at the top level, and whether it exports it.
    fn declared(line: &str) -> Result<Option<(&str, bool)>, String> {
        let (line, exported) = line.strip_prefix("export ").map_or((line, false), |rest| (rest, true));
        let rest = ["function* ", "async function ", "function ", "class ", "const ", "let ", "var "]
            .iter()
            .find_map(|keyword| line.strip_prefix(keyword));
        let name = rest.map(|rest| {
            rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).next().unwrap_or("")
        });
        match name {
            Some("") => Err(format!("one plain name a declaration: {line}")),
            Some(name) => Ok(Some((name, exported))),
            None if exported => Err(format!("only declarations are exported: {line}")),
            None => Ok(None),
        }
    }

    /// The names and the module of a line `import { a, b } from "./module.js";`.
    fn imported(line: &str) -> Option<(Vec<&str>, &str)> {
        let (names, module) = line.strip_prefix("import { ")?.split_once(" } from \"./")?;
        let names: Vec<&str> = names.split(", ").collect();
        let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
        names.iter().all(plain).then_some((names, module.strip_suffix("\";")?))
    }

    fn check(modules: &[(&str, &str)]) -> Result<(), String> {
        let mut exports: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut names: HashMap<&str, &str> = HashMap::new();
        for &(module, source) in modules {
            if source.contains("</script") || source.contains("<!--") {
                return Err(format!("{module}: would end or comment out the script"));
            }
            if source.contains("import(") || source.contains("import.meta") {
                return Err(format!("{module}: nothing to import from at run time"));
            }
            let mut own = HashSet::new();
            for line in source.lines() {
                if line.matches('`').count() % 2 == 1 || line.trim_start().starts_with('*') {
                    return Err(format!("{module}: text or a comment in several lines: {line}"));
                }
                if line.starts_with("import") {
                    let (wanted, from) = imported(line).ok_or(format!("{module}: {line}"))?;
                    let there = exports.get(from).ok_or(format!("{module}: {from} is not further up"))?;
                    if let Some(name) = wanted.iter().find(|name| !there.contains(**name)) {
                        return Err(format!("{module}: {from} does not export {name}"));
                    }
                } else if let Some((name, exported)) =
                    declared(line).map_err(|error| format!("{module}: {error}"))?
                {
                    if let Some(other) = names.insert(name, module) {
                        return Err(format!("{module}: {name} is also in {other}"));
                    }
                    if exported {
                        own.insert(name);
                    }
                }
            }
            exports.insert(module, own);
        }
        Ok(())
    }

    #[test]
    fn the_viewer_keeps_the_rule() {
        assert_eq!(check(&MODULES), Ok(()));
    }

    #[test]
    fn every_module_of_the_folder_is_in_the_script() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/html/viewer");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| std::path::Path::new(name).extension().is_some_and(|ending| ending == "js"))
            .collect();
        files.sort();
        let mut listed: Vec<&str> = MODULES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }

    #[test]
    fn what_breaks_the_rule_is_found() {
        let a = ("a.js", "export const one = 1;\nconst hidden = 2;\n");
        for wrong in [
            "import { hidden } from \"./a.js\";",
            "import { one } from \"./b.js\";",
            "import * as a from \"./a.js\";",
            "import one from \"./a.js\";",
            "import { one as two } from \"./a.js\";",
            "import {",
            "const hidden = 3;",
            "export default 4;",
            "export { one };",
            "const { x, y } = z;",
            "const text = \"</script>\";",
            "const lazy = () => import(\"./a.js\");",
            "const text = `one",
        ] {
            assert!(check(&[a, ("c.js", wrong)]).is_err(), "{wrong}");
        }
        assert_eq!(check(&[a, ("c.js", "import { one } from \"./a.js\";\nlet two = one + 1;")]), Ok(()));
    }

    #[test]
    fn imports_comments_indentation_and_the_word_export_go() {
        let script = bundle(&[
            ("a.js", "// says import and export\nexport function f() {\n  return \"export x\";\n}\n"),
            ("b.js", "import { f } from \"./a.js\";\nf();\n"),
        ]);
        assert_eq!(script, "\n// a.js\nfunction f() {\nreturn \"export x\";\n}\n\n// b.js\nf();\n");
    }
}
