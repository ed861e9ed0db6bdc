//! The page: `viewer/index.html` with the style, the script and the profile in the places of its marks.
//!
//! The profile is compressed (RFC 1951, "deflate-raw" to the browser's `DecompressionStream`) and in base64, so
//! that no name in it can end the element that holds it.

use std::io::{self, BufWriter, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::bundle::script;
use super::encode::encode;
use crate::format::{ExportFormat, Holds, Part, Profile};

const TEMPLATE: &str = include_str!("viewer/index.html");
const STYLES: [&str; 5] = [
    include_str!("viewer/style.css"),
    include_str!("viewer/controls.css"),
    include_str!("viewer/panels.css"),
    include_str!("viewer/timeline.css"),
    include_str!("viewer/comparison.css"),
];

/// Where the style, the script and the profile go in the template, in this order.
const MARKS: [&str; 3] = ["@style@", "@profile@", "@script@"];

/// The self-contained page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl ExportFormat for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn ending(&self) -> &'static str {
        ".html"
    }

    fn description(&self) -> &'static str {
        "interactive page in one file: flame graph, callers, timeline by thread, hottest functions, comparison"
    }

    fn holds(&self) -> Holds {
        Holds::everything()
            .without(&[
                Part::EarlyTimes,
                Part::Attributes,
                Part::Unsampled,
                Part::Programs,
                Part::Lives,
                Part::Parents,
                Part::BuildIds,
                Part::FileDetails,
                Part::Mappings,
                Part::FrameRules,
                Part::System,
                Part::Events,
                Part::Spans,
                Part::Tables,
            ])
            .with_some(&[Part::Estimates])
    }

    fn write(&self, profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
        let [before_style, before_profile, before_script, end] = template()?;
        out.write_all(before_style.as_bytes())?;
        STYLES.iter().try_for_each(|style| out.write_all(style.as_bytes()))?;
        out.write_all(before_profile.as_bytes())?;
        write_profile(profile, out)?;
        out.write_all(before_script.as_bytes())?;
        out.write_all(script().as_bytes())?;
        out.write_all(end.as_bytes())?;
        out.flush()
    }
}

fn write_profile(profile: Profile<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut base64 = EncoderWriter::new(out, &STANDARD);
    let mut deflate = DeflateEncoder::new(&mut base64, Compression::default());
    encode(profile, BufWriter::with_capacity(1 << 16, &mut deflate))?;
    deflate.finish()?;
    base64.finish()?;
    Ok(())
}

/// The template's pieces around the marks.
fn template() -> io::Result<[&'static str; 4]> {
    let mut pieces = [""; 4];
    let mut rest = TEMPLATE;
    for (piece, mark) in pieces.iter_mut().zip(MARKS) {
        let (before, after) = rest
            .split_once(mark)
            .ok_or_else(|| io::Error::other(format!("the template of the HTML page has no {mark}")))?;
        *piece = before;
        rest = after;
    }
    pieces[MARKS.len()] = rest;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use collector_common::ids::{Nanos, Pid, Svma, Tid};
    use collector_common::record::{
        AttributeListId, ExportMachine, Frame, FrameFlags, ModuleId, Sample, Unit,
    };

    use super::*;
    use crate::symbolize::Symbols;

    fn page(machine: &ExportMachine, symbols: &Symbols) -> String {
        let mut out = Vec::new();
        Html.write(Profile { machine, symbols }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// A machine whose every name tries to break out of the page.
    fn hostile(name: &str) -> (ExportMachine, Symbols) {
        let mut machine = ExportMachine::default();
        name.clone_into(&mut machine.system_mut().host);
        name.clone_into(&mut machine.system_mut().command);
        let process = machine.add_process(Pid(1), name, None, Nanos(0));
        let string = machine.intern_string(name);
        let thread = machine.intern_thread(process, Tid(1), string);
        let kind = machine.add_kind(name, Unit::Count, 1);
        let frame = machine.intern_frame(Frame {
            module: ModuleId::KERNEL,
            address: Svma(1),
            flags: FrameFlags(FrameFlags::KERNEL),
        });
        let stack = machine.intern_stack(&[frame]);
        let attributes = AttributeListId::NONE;
        machine.add_sample(&Sample { time: Nanos(5), thread, stack, cpu: 0, kind, value: 1, attributes });
        let mut symbols = Symbols::unresolved(&machine);
        symbols.set(frame, name, name);
        (machine, symbols)
    }

    #[test]
    fn marks_are_there_once() {
        template().unwrap();
        for mark in MARKS {
            assert_eq!(TEMPLATE.matches(mark).count(), 1, "{mark}");
        }
        assert!(STYLES.iter().all(|style| !style.contains("</style")));
    }

    #[test]
    fn names_never_stand_in_the_page() {
        let plain = page(&ExportMachine::default(), &Symbols::default());
        for name in ["</script><script>alert(1)</script>", "<!--<script>", "]]>\"'&<img src=x onerror=y>"] {
            let (machine, symbols) = hostile(name);
            let page = page(&machine, &symbols);
            assert!(!page.contains(name));
            for tag in ["<script", "</script", "<!--", "<img"] {
                assert_eq!(page.matches(tag).count(), plain.matches(tag).count(), "{tag} in {name}");
            }
        }
    }

    #[test]
    fn nothing_points_to_the_network() {
        let page = page(&ExportMachine::default(), &Symbols::default());
        for address in ["http:", "https:", "src=", "url("] {
            assert!(!page.contains(address), "{address}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
