//! `collector convert` of builds that record nothing: what has its stacks already, in other formats.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use collector_user::etw::name_from_pdbs;
use collector_user::output::Places;
use export::format::Profile;
use export::import::Imported;
use export::symbolize::Detail;

use crate::args::{ConvertArgs, detail};
use crate::imported::{import, readable, reader_of, summary, whole};
use crate::output::{Output, event_bytes, tell_all_but_last, tell_left_out};
use crate::{Usage, say};

pub(crate) fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let mut taken = Places::default();
    let is_read =
        |path: &&PathBuf| path.canonicalize().is_ok_and(|it| args.input.canonicalize().ok() == Some(it));
    if let Some(path) = args.outputs.iter().find(is_read) {
        let path = path.display();
        return Err(Usage(format!("{path} is what is read, and would be replaced: name another file")).into());
    }
    let outputs: anyhow::Result<Vec<Output>> =
        args.outputs.iter().map(|path| Output::open(path, args.format.as_deref(), &mut taken)).collect();
    let outputs = outputs?;
    let name = if args.input.as_os_str() == "-" { "stdin".into() } else { args.input.display().to_string() };
    let failed = || format!("{name} can't be converted");
    let mut file = whole(&args.input).with_context(failed)?;
    let reader = reader_of(&mut file, &args.input).with_context(failed)?.with_context(|| {
        format!(
            "{name} is nothing that can be read here, which is: {}; perf.data is read on Linux",
            readable()
        )
    })?;
    let imported = import(reader, &mut file, event_bytes(&outputs)).with_context(failed)?;
    let Imported { machine, symbols, left_out } = imported;
    say(&summary(&machine));
    for line in left_out {
        say(&format!("warning: {line}"));
    }
    let symbols = match detail(args.no_inline, args.no_symbols) {
        Detail::Addresses => symbols,
        detail => name_from_pdbs(&machine, symbols, detail),
    };
    let profile = Profile { machine: &machine, symbols: &symbols };
    tell_left_out(&outputs, profile);
    tell_all_but_last(outputs.into_iter().map(|output| output.write(profile)).collect())?;
    Ok(ExitCode::SUCCESS)
}
