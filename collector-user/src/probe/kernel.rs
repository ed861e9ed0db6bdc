//! Probes of the kernel's functions: which are meant, and how they are reached. Each is a place of an event of tracefs; or a program
//! of ours is attached to all functions of a pattern in one step, where the kernel can do that.

use std::collections::BTreeMap;
#[cfg(feature = "ebpf")]
use std::collections::HashMap;
use std::fs;
use std::io;
#[cfg(feature = "ebpf")]
use std::sync::Arc;

use collector_common::event::near;
#[cfg(feature = "ebpf")]
use collector_common::event::{
    Event, EventField, EventId, Extent, FieldKind, Place as FieldPlace, PointerWidth, Width,
};
use collector_common::glob::{is_glob, matches_glob};
#[cfg(feature = "ebpf")]
use collector_common::wire::FunctionCall;

#[cfg(feature = "ebpf")]
use super::argument::ArgumentType;
use super::definition::Location;
#[cfg(feature = "ebpf")]
use super::definition::calls_at_once;
use super::error::{FUNCTION, ProbeError};
use super::functions::is_part;
use super::machine::Machine;
#[cfg(feature = "ebpf")]
use super::registered::{left_out, missed_returns};
#[cfg(feature = "ebpf")]
use super::spec::Moment;
use super::spec::Probe;
use crate::kernel::KALLSYMS;
#[cfg(feature = "ebpf")]
use crate::kernel::Release;
#[cfg(feature = "ebpf")]
use crate::source::Hook;
#[cfg(feature = "ebpf")]
use crate::tracefs::Tracefs;

/// Functions of the kernel that a program is attached to in one step.
#[derive(Debug)]
#[cfg_attr(not(feature = "ebpf"), expect(dead_code, reason = "programs alone are attached to them"))]
pub struct KernelFunctions {
    /// Where they begin.
    pub(crate) addresses: Vec<u64>,
    /// Whether it is their returns that are meant.
    pub(crate) is_return: bool,
    /// What of the pattern is left out, for people.
    pub(crate) note: Option<String>,
}

/// Functions of the kernel by name, with where they begin.
pub(super) type Functions = BTreeMap<String, Vec<u64>>;

impl Probe {
    /// The kernel's functions of a name or pattern, each a place of an event of tracefs.
    pub(super) fn in_kernel(
        &self,
        functions: &Functions,
        function: &str,
        offset: u64,
    ) -> Result<Vec<Location>, ProbeError> {
        let chosen = self.chosen(functions, function)?;
        let fetched = self.fetched(Machine::here())?;
        let place = |name: &str| if offset == 0 { name.to_owned() } else { format!("{name}+{offset}") };
        Ok(chosen
            .into_iter()
            .map(|(name, _)| Location { place: place(name), fetched: fetched.clone() })
            .collect())
    }

    fn chosen<'a>(
        &self,
        functions: &'a Functions,
        function: &str,
    ) -> Result<Vec<(&'a str, &'a [u64])>, ProbeError> {
        let chosen: Vec<_> = if is_glob(function) {
            functions.iter().filter(|(name, _)| !is_part(name) && matches_glob(function, name)).collect()
        } else {
            functions.get_key_value(function).into_iter().collect()
        };
        if chosen.is_empty() {
            let near = near(function, functions.keys().map(String::as_str)).into_iter().map(str::to_owned);
            return Err(self.unknown(
                "the kernel".to_owned(),
                FUNCTION,
                function,
                near.collect(),
                functions.len(),
            ));
        }
        self.check_count(chosen.len())?;
        Ok(chosen.into_iter().map(|(name, addresses)| (name.as_str(), addresses.as_slice())).collect())
    }

    /// The functions of a pattern, for a program to be attached to in one step; `None` where the kernel can't do that, or what is
    /// to be fetched is more than registers; or of a kernel that does not meet all returns of calls that wait, where events of tracefs have
    /// room for more.
    #[cfg(feature = "ebpf")]
    pub(super) fn at_once(
        &self,
        tracefs: &Tracefs,
        functions: &Functions,
        function: &str,
    ) -> Result<Option<Hook>, ProbeError> {
        let is_number = |kind| !matches!(kind, ArgumentType::Text | ArgumentType::UserText);
        let is_fetched = self.arguments.iter().all(|it| it.register.is_none() && is_number(it.kind));
        if !is_glob(function) || !is_fetched || !can_reach_at_once(functions) {
            return Ok(None);
        }
        let Ok(traceable) = tracefs.read("available_filter_functions") else { return Ok(None) };
        let chosen = self.chosen(functions, function)?;
        self.fetched(Machine::here())?;
        let is_return = self.moment == Moment::Return;
        let keeps_returns = Release::of_this_kernel() >= Release::WITH_ALL_RETURNS;
        if !keeps_returns && calls_at_once(self.moment, true, chosen.len()).is_some() {
            return Ok(None);
        }
        let (addresses, refused) = reachable(&chosen, &traceable);
        if addresses.is_empty() {
            return Ok(None);
        }
        let refused = left_out(&self.name, chosen.len(), &refused);
        let missed = (is_return && !keeps_returns).then(|| missed_returns(&self.name, addresses.len()));
        let notes: Vec<String> = refused.into_iter().chain(missed).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let functions = KernelFunctions { addresses, is_return, note };
        Ok(Some(Hook::functions(self.event_of_call(), Arc::new(functions))))
    }

    /// With the fields of [`FunctionCall`] that are asked for.
    #[cfg(feature = "ebpf")]
    fn event_of_call(&self) -> Event {
        const VALUES: u32 = std::mem::offset_of!(FunctionCall, values) as u32;
        let function = match self.moment {
            Moment::Entry => "__probe_ip",
            Moment::Return => "__probe_func",
        };
        let thread = FieldPlace::At(std::mem::offset_of!(FunctionCall, tid) as u32);
        let mut event = Event::new(EventId(0), self.name.as_str());
        let mut add = |name: &str, type_name: &str, kind, place| {
            let field = EventField::new(name, type_name, kind, Extent::One, place);
            let added = event.format_mut().add_field(field);
            added.unwrap_or_else(|error| unreachable!("names were checked when they were read: {error}"));
        };
        add("common_pid", "int", FieldKind::Signed(Width::W32), thread);
        add(function, "unsigned long", FieldKind::Pointer(PointerWidth::W64), FieldPlace::At(0));
        for argument in &self.arguments {
            let place = FieldPlace::At(VALUES + 8 * argument.position as u32);
            let (type_name, kind) = argument.kind.in_register();
            add(&argument.name, &type_name, kind, place);
        }
        event
    }
}

/// Whether this kernel attaches programs to many of its functions at once: whether it has what calls them.
#[cfg(feature = "ebpf")]
fn can_reach_at_once(functions: &Functions) -> bool {
    const CALLS_PROGRAMS: &str = "kprobe_multi_link_handler";
    let first = functions.range(CALLS_PROGRAMS.to_owned()..).next();
    Release::of_this_kernel() >= Release::WITH_KPROBE_MULTI
        && first.is_some_and(|(name, _)| name.starts_with(CALLS_PROGRAMS))
}

/// Where functions begin that can be traced, and the names of the others. `traceable` is tracefs' list of them. It has no addresses
/// before Linux 6.5: of several functions of one name all or none are taken.
#[cfg(feature = "ebpf")]
fn reachable<'a>(chosen: &[(&'a str, &[u64])], traceable: &str) -> (Vec<u64>, Vec<&'a str>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in traceable.lines().filter_map(|line| line.split_ascii_whitespace().next()) {
        *counts.entry(name).or_default() += 1;
    }
    let is_known = |addresses: &[u64]| addresses.iter().all(|address| *address != 0);
    let (taken, refused): (Vec<_>, Vec<_>) = chosen
        .iter()
        .partition(|(name, addresses)| counts.get(name) == Some(&addresses.len()) && is_known(addresses));
    let addresses = taken.into_iter().flat_map(|(_, addresses)| addresses.iter().copied());
    (addresses.collect(), refused.into_iter().map(|(name, _)| name).collect())
}

/// The kernel's functions.
pub(super) fn kernel_functions() -> io::Result<Functions> {
    let is_code = |kind: &str| matches!(kind, "t" | "T" | "w" | "W");
    let text = fs::read_to_string(KALLSYMS)?;
    let mut functions = Functions::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if is_code(kind) {
            let addresses = functions.entry(name.to_owned()).or_default();
            addresses.push(u64::from_str_radix(address, 16).unwrap_or(0));
        }
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Place;
    use crate::probe::definition::line;

    fn functions() -> Functions {
        let named = |(name, addresses): (&str, &[u64])| (name.to_owned(), addresses.to_vec());
        let functions: [(&str, &[u64]); 5] = [
            ("vfs_read", &[16]),
            ("vfs_read.cold", &[24]),
            ("vfs_write", &[32]),
            ("do_exit", &[48]),
            ("vfs_twice", &[64, 80]),
        ];
        functions.map(named).into()
    }

    fn in_kernel(text: &str) -> Result<Vec<String>, ProbeError> {
        let probe = Probe::parse(text)?;
        let Place::Kernel { function, offset } = &probe.place else { panic!("{text}") };
        let locations = probe.in_kernel(&functions(), function, *offset)?;
        Ok(locations.iter().map(|it| line(probe.moment, None, "g", "e", it).trim().to_owned()).collect())
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn probes_of_the_kernel_are_defined_as_its_documentation_says() {
        for (text, expected) in [
            ("kprobe:do_exit", &["p:g/e do_exit"][..]),
            ("kprobe:do_exit+4(code:i64)", &["p:g/e do_exit+4 code=%di:s64"]),
            ("kretprobe:vfs_read(ret:i64)", &["r:g/e vfs_read ret=$retval:s64"]),
            (
                "kprobe:vfs_*r*(file:ptr, buf:ustr)",
                &[
                    "p:g/e vfs_read file=%di:u64 buf=+0(%si):ustring",
                    "p:g/e vfs_write file=%di:u64 buf=+0(%si):ustring",
                ],
            ),
            ("kprobe:do_exit(x@r10:u8)", &["p:g/e do_exit x=%r10:u8"]),
        ] {
            assert_eq!(in_kernel(text).unwrap(), expected, "{text}");
        }
        let error = in_kernel("kprobe:vfs_raed").unwrap_err().to_string();
        assert!(error.contains("did you mean vfs_read"), "{error}");
        let error = in_kernel("kprobe:do_exit(_,_,_,_,_,_,g:u64)").unwrap_err().to_string();
        assert!(error.contains("`g` can't be fetched: it is on the stack"), "{error}");
    }

    #[test]
    #[cfg(feature = "ebpf")]
    fn all_functions_of_a_name_can_be_traced_or_none() {
        let functions = functions();
        let probe = Probe::parse("kprobe:vfs_*").unwrap();
        let chosen = probe.chosen(&functions, "vfs_*").unwrap();
        let reach = |traceable| reachable(&chosen, traceable);
        assert_eq!(
            reach("vfs_twice\nvfs_read\nvfs_twice [module]\nother\n"),
            (vec![16, 64, 80], vec!["vfs_write"])
        );
        assert_eq!(reach("vfs_twice\nvfs_write\n"), (vec![32], vec!["vfs_read", "vfs_twice"]));
        assert_eq!(reachable(&[("vfs_read", &[0])], "vfs_read\n"), (vec![], vec!["vfs_read"]), "hidden");
    }

    #[test]
    #[cfg(feature = "ebpf")]
    fn fields_of_a_call_are_where_its_record_has_them() {
        use collector_common::event::EventData;

        let probe = Probe::parse("kprobe:vfs_*(_, small:u8, _, signed:i32, flag:bool)").unwrap();
        let event = probe.event_of_call();
        let call = FunctionCall {
            function: 16,
            values: [1, 0x302, 3, u64::from(u32::MAX), 0x100, 6, 7, 8],
            event: 5,
            tid: 99,
        };
        let data = EventData::new(bytemuck::bytes_of(&call), bytemuck::bytes_of(&call), event.format());
        let number = |name| data.try_get_i64(event.format().field_ref(name).unwrap()).unwrap();
        assert_eq!(number("common_pid"), 99);
        assert_eq!([number("small"), number("signed")], [2, -1]);
        let flag = event.format().field_ref("flag").unwrap();
        assert!(!data.try_get_bool(flag).unwrap(), "its lowest byte counts");
        let ip = event.format().field_ref("__probe_ip").unwrap();
        assert_eq!(data.try_get_u64(ip).unwrap(), 16);
        let returns = Probe::parse("kretprobe:vfs_*(ret:i64)").unwrap().event_of_call();
        assert!(returns.format().field_ref("__probe_func").is_some());
    }
}
