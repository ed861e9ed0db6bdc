//! From a probe to its event: where it is, what is fetched there, and the kernel's word for it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use collector_common::event::{Event, EventField, EventFormat, near};
use collector_common::glob::matches_glob;
use object::ReadRef as _;

use super::definition::{Location, group};
use super::elf::{Function, Image, Marker};
use super::error::{FUNCTION, MARKER, ProbeError};
use super::frames;
use super::functions::{NoFunction, choose, is_part};
use super::instructions::around;
use super::kernel::{Functions, kernel_functions};
use super::machine::Machine;
use super::registered::{Registered, remove_left};
use super::spec::{Moment, Place, Probe, number};
use super::usdt;
use crate::kernel::KALLSYMS;
use crate::modules::{BoundedFile, UNWIND_SECTIONS, debug_file_of};
use crate::source::Hook;
use crate::tracefs::{Tracefs, TracefsError, parse_format};

/// Locations that one probe may have. Each costs the kernel's word, and a trap whenever it is passed.
pub(super) const MOST_LOCATIONS: usize = 1000;

/// As much of a function's code is looked at.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// Control files of probes of programs, and of those of the kernel.
pub(super) const USER: &str = "uprobe_events";
pub(super) const KERNEL: &str = "kprobe_events";

impl Probe {
    /// Makes events of the probe: one, or of markers whose arguments differ from place to place one of each kind. They are
    /// called as the probe is, and are removed with their hooks.
    ///
    /// # Errors
    /// When the place does not exist, an argument can't be fetched, or the kernel refuses. Nothing is left then.
    pub fn attach(&self, tracefs: &Tracefs) -> Result<Vec<Hook>, ProbeError> {
        let path = match &self.place {
            Place::Function { path, .. } | Place::Marker { path, .. } => path,
            Place::Kernel { function, offset } => return self.attach_to_kernel(tracefs, function, *offset),
        };
        self.control(tracefs, USER)?;
        let open = || match fs::metadata(path)? {
            metadata if metadata.is_file() => File::open(path),
            _ => Err(io::Error::other("it is no file")),
        };
        let failed = |source| ProbeError::File { probe: self.name.clone(), path: path.clone(), source };
        let opened = open().map_err(failed)?;
        // The kernel reads a path up to the first space.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-=,~@".contains(&byte);
        let word = match path.to_str().filter(|path| path.bytes().all(is_plain)) {
            Some(path) => path.to_owned(),
            None => format!("/proc/self/fd/{}", opened.as_raw_fd()),
        };
        let bounded = BoundedFile::new(opened.try_clone().map_err(failed)?, UNWIND_SECTIONS);
        let mut image = Image::read(&bounded).map_err(|problem| {
            let (probe, path) = (self.name.clone(), path.clone());
            if bounded.is_exceeded() {
                ProbeError::TooLarge { probe, path, most_mib: UNWIND_SECTIONS >> 20 }
            } else if Image::is_meant_by(&bounded) {
                ProbeError::Damaged { probe, path, problem }
            } else {
                ProbeError::NotElf { probe, path, problem }
            }
        })?;
        let debug = debug_file_of(&opened, path).map(|file| BoundedFile::new(file, UNWIND_SECTIONS));
        if let Some(stripped) = debug.as_ref().and_then(|debug| Image::read(debug).ok()) {
            image.functions.extend(stripped.functions);
        }
        let (called, locations) = match &self.place {
            Place::Marker { provider, name, .. } => {
                (name, self.markers(&image, path, &word, provider, name)?)
            }
            Place::Function { function, offset, .. } | Place::Kernel { function, offset } => {
                (function, self.in_functions(&image, &bounded, path, &word, function, *offset)?)
            }
        };
        let mut hooks = self.hooks(tracefs, USER, called, locations)?;
        if image.is_go && self.moment == Moment::Return {
            let registered = hooks.iter_mut().filter_map(|hook| hook.probe.as_mut());
            registered.for_each(|registered| registered.add_note(&self.ends_go_programs(path)));
        }
        Ok(hooks)
    }

    /// For people: what Go makes of the kernel's address among its own.
    fn ends_go_programs(&self, path: &Path) -> String {
        format!(
            "{}: {} is a Go program, which ends itself (unexpected return pc) when it moves or scans a stack while a return is \
             probed: probe the call instead, by uprobe:",
            self.name,
            path.display()
        )
    }

    /// The same for a session that records through programs of ours, and keeps no records for later: those are attached to all
    /// functions of a pattern of the kernel's in one step, where the kernel can do that (Linux 5.18, `CONFIG_FPROBE`) and no text is
    /// to be fetched.
    ///
    /// # Errors
    /// As [`Self::attach`].
    #[cfg(feature = "ebpf")]
    pub fn attach_programs(&self, tracefs: &Tracefs) -> Result<Vec<Hook>, ProbeError> {
        if let Place::Kernel { function, offset: 0 } = &self.place {
            let functions = self.kernel_functions()?;
            if let Some(hook) = self.at_once(tracefs, &functions, function)? {
                return Ok(vec![hook]);
            }
        }
        self.attach(tracefs)
    }

    fn attach_to_kernel(
        &self,
        tracefs: &Tracefs,
        function: &str,
        offset: u64,
    ) -> Result<Vec<Hook>, ProbeError> {
        self.control(tracefs, KERNEL)?;
        let locations = self.in_kernel(&self.kernel_functions()?, function, offset)?;
        self.hooks(tracefs, KERNEL, function, locations)
    }

    fn kernel_functions(&self) -> Result<Functions, ProbeError> {
        kernel_functions().map_err(|source| ProbeError::File {
            probe: self.name.clone(),
            path: KALLSYMS.into(),
            source,
        })
    }

    /// Asks for the kernel's file of such probes, and removes from it what was left.
    fn control(&self, tracefs: &Tracefs, file: &'static str) -> Result<(), ProbeError> {
        match remove_left(tracefs, file) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let probe = self.name.clone();
                Err(if file == KERNEL {
                    let remedy = "use a tracepoint, which `collector list events` lists, or another kernel";
                    let (what, option) = ("probes of its own functions", "CONFIG_KPROBE_EVENTS");
                    ProbeError::NoProbes { probe, what, option, remedy }
                } else {
                    let (what, option) = ("probes of programs", "CONFIG_UPROBE_EVENTS");
                    ProbeError::NoProbes { probe, what, option, remedy: "use another kernel" }
                })
            }
            Err(source) => Err(ProbeError::Control { probe: self.name.clone(), file, source }),
        }
    }

    /// The functions of a file that are meant.
    fn in_functions(
        &self,
        image: &Image<'_>,
        file: &BoundedFile<File>,
        path: &Path,
        word: &str,
        function: &str,
        offset: u64,
    ) -> Result<Vec<Location>, ProbeError> {
        let addresses = match function.strip_prefix("0x").and(number(function)) {
            Some(address) => [address].into(),
            None => self.addresses(image, path, function, offset)?,
        };
        self.check_count(addresses.len())?;
        let fetched = self.fetched(image.machine.filter(|machine| Some(*machine) == Machine::here()))?;
        let locate = |address: u64| {
            let address = address.wrapping_add(offset);
            let Some(at) = image.code_offset(address) else {
                let (within, remedy) =
                    (path.display().to_string(), "an address is one as linked, as `nm` tells it");
                return Err(ProbeError::NoCode { probe: self.name.clone(), within, address, remedy });
            };
            self.check_instruction(image, file, address)?;
            self.check_beginning(image, file, path, address)?;
            Ok(Location { place: format!("{word}:{at:#x}"), fetched: fetched.clone() })
        };
        addresses.into_iter().map(locate).collect()
    }

    /// Refuses a return of what is no function: the kernel puts an address of its own in place of the word that the stack pointer points to.
    fn check_beginning(
        &self,
        image: &Image<'_>,
        file: &BoundedFile<File>,
        path: &Path,
        place: u64,
    ) -> Result<(), ProbeError> {
        if self.moment == Moment::Entry {
            return Ok(());
        }
        let mut named = image.functions.iter().filter(|it| it.address == place).peekable();
        let is_function = match named.peek() {
            Some(_) => named.any(|it| !is_part(it.name)),
            // As of a stripped file.
            None => image.machine.is_some_and(|machine| frames::is_function(file, machine, place)),
        };
        if is_function {
            return Ok(());
        }
        Err(ProbeError::NoBeginning { probe: self.name.clone(), path: path.to_owned(), place })
    }

    /// Refuses a place inside of an instruction, as far as the function that it is in is known.
    fn check_instruction(
        &self,
        image: &Image<'_>,
        file: &BoundedFile<File>,
        place: u64,
    ) -> Result<(), ProbeError> {
        let mut functions = image.functions.iter();
        let is_within = |it: &&Function<'_>| it.address < place && place - it.address < it.size;
        let within = functions.find(is_within).zip(image.machine);
        let Some((function, machine)) = within else { return Ok(()) };
        let size = function.size.min(LONGEST_FUNCTION);
        let code = image.code_offset(function.address).map(|offset| file.read_bytes_at(offset, size));
        let Some(Ok(code)) = code else { return Ok(()) };
        match around(machine, code, function.address, place) {
            Some(instruction) => {
                Err(ProbeError::InsideInstruction { probe: self.name.clone(), place, instruction })
            }
            None => Ok(()),
        }
    }

    /// Where functions of a name or pattern begin, as linked.
    fn addresses(
        &self,
        image: &Image<'_>,
        path: &Path,
        function: &str,
        offset: u64,
    ) -> Result<BTreeSet<u64>, ProbeError> {
        let (probe, name) = (|| self.name.clone(), || function.to_owned());
        let chosen = choose(&image.functions, function).map_err(|reason| match reason {
            NoFunction::Unknown(near) => {
                let within = path.display().to_string();
                self.unknown(within, FUNCTION, function, near, image.functions.len())
            }
            NoFunction::TooLong => {
                ProbeError::Unreadable { probe: probe(), name: name(), within: path.display().to_string() }
            }
            NoFunction::Ambiguous(names) => ProbeError::Ambiguous { probe: probe(), name: name(), names },
            NoFunction::Resolver(implementations) => {
                ProbeError::Resolver { probe: probe(), name: name(), implementations }
            }
        })?;
        let is_beyond = |size: u64| size > 0 && offset >= size;
        if let Some(small) = chosen.iter().find(|it| is_beyond(it.size)) {
            return Err(ProbeError::NoCode {
                probe: probe(),
                within: small.name.to_owned(),
                address: small.address.saturating_add(offset),
                remedy: "the function's size is the bound",
            });
        }
        Ok(chosen.iter().map(|it| it.address).collect())
    }

    /// What is fetched at a function's start or return.
    pub(super) fn fetched(&self, machine: Option<Machine>) -> Result<Vec<(String, String)>, ProbeError> {
        if self.arguments.is_empty() {
            return Ok(Vec::new());
        }
        let machine = machine.ok_or_else(|| ProbeError::OtherMachine { probe: self.name.clone() })?;
        let registers = machine.arguments();
        let fetch = |it: &super::Argument| {
            let wrong = |problem: String| ProbeError::Argument {
                probe: self.name.clone(),
                name: it.name.clone(),
                problem,
            };
            let place = match (&it.register, self.moment) {
                (Some(register), _) => machine
                    .register(register)
                    .map(|register| format!("%{register}"))
                    .ok_or_else(|| wrong(format!("`{register}` is no register of integers")))?,
                (None, Moment::Return) => "$retval".to_owned(),
                (None, Moment::Entry) => {
                    registers.get(it.position).map(|name| format!("%{name}")).ok_or_else(|| {
                        wrong(format!(
                            "it is on the stack, and only the first {} are in registers",
                            registers.len()
                        ))
                    })?
                }
            };
            Ok((it.name.clone(), it.kind.fetch(&place)))
        };
        self.arguments.iter().map(fetch).collect()
    }

    /// The markers of a file that are meant.
    fn markers(
        &self,
        image: &Image<'_>,
        path: &Path,
        word: &str,
        provider: &str,
        name: &str,
    ) -> Result<Vec<Location>, ProbeError> {
        let is_meant = |it: &&Marker<'_>| matches_glob(provider, it.provider) && matches_glob(name, it.name);
        let chosen: Vec<_> = image.markers.iter().filter(is_meant).collect();
        let within = || path.display().to_string();
        if chosen.is_empty() {
            let names: Vec<String> =
                image.markers.iter().map(|it| format!("{}:{}", it.provider, it.name)).collect();
            let wanted = format!("{provider}:{name}");
            let near =
                near(&wanted, names.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
            return Err(self.unknown(within(), MARKER, &wanted, near, names.len()));
        }
        self.check_count(chosen.len())?;
        let machine = image.machine.filter(|machine| Some(*machine) == Machine::here());
        let remedy = "the file is damaged: name a sound one";
        let no_code =
            |address| ProbeError::NoCode { probe: self.name.clone(), within: within(), address, remedy };
        let locate = |marker: &&Marker<'_>| {
            let at = image.code_offset(marker.address).ok_or_else(|| no_code(marker.address))?;
            let semaphore = match marker.semaphore {
                0 => String::new(),
                address => {
                    let at = image.data_offset(address).ok_or_else(|| no_code(address))?;
                    if image.is_mapped_twice(at) {
                        let (probe, path) = (self.name.clone(), path.to_owned());
                        return Err(ProbeError::SharedSemaphore { probe, path });
                    }
                    format!("({at:#x})")
                }
            };
            Ok(Location {
                place: format!("{word}:{at:#x}{semaphore}"),
                fetched: self.marked(machine, marker.arguments)?,
            })
        };
        chosen.iter().map(locate).collect()
    }

    /// What is fetched at a marker: what is asked for, or all that it has.
    fn marked(&self, machine: Option<Machine>, words: &str) -> Result<Vec<(String, String)>, ProbeError> {
        let Some(machine) = machine else {
            let nothing = self.arguments.is_empty();
            return if nothing {
                Ok(Vec::new())
            } else {
                Err(ProbeError::OtherMachine { probe: self.name.clone() })
            };
        };
        let all = usdt::arguments(machine, words);
        if self.arguments.is_empty() {
            let fetched = all.into_iter().enumerate().filter_map(|(position, one)| match one {
                Ok(one) => Some((format!("arg{position}"), format!("{}:{}", one.place, one.kind))),
                Err(word) => {
                    log::warn!(
                        "{}: argument {position}, `{word}`, can't be fetched: it is left out",
                        self.name
                    );
                    None
                }
            });
            return Ok(fetched.collect());
        }
        let fetch = |it: &super::Argument| {
            let wrong = |problem: String| ProbeError::Argument {
                probe: self.name.clone(),
                name: it.name.clone(),
                problem,
            };
            let one = all
                .get(it.position)
                .ok_or_else(|| wrong(format!("the marker has {} arguments", all.len())))?;
            let one =
                one.as_ref().map_err(|word| wrong(format!("it is in no place that can be read, {word}")))?;
            Ok((it.name.clone(), it.kind.fetch(&one.place)))
        };
        self.arguments.iter().map(fetch).collect()
    }

    pub(super) fn check_count(&self, count: usize) -> Result<(), ProbeError> {
        if count > MOST_LOCATIONS {
            return Err(ProbeError::TooMany { probe: self.name.clone(), count });
        }
        Ok(())
    }

    pub(super) fn unknown(
        &self,
        within: String,
        what: &'static str,
        name: &str,
        near: Vec<String>,
        known: usize,
    ) -> ProbeError {
        ProbeError::Unknown { probe: self.name.clone(), within, what, name: name.to_owned(), near, known }
    }

    /// Has the kernel make the events.
    fn hooks(
        &self,
        tracefs: &Tracefs,
        file: &'static str,
        called: &str,
        locations: Vec<Location>,
    ) -> Result<Vec<Hook>, ProbeError> {
        let hook = |locations: Vec<Location>| {
            let registered = Registered::new(tracefs, file, self, called, &locations)?;
            let name = registered.name();
            let text = tracefs.format(&name)?;
            let (id, format) =
                parse_format(&text).map_err(|problem| TracefsError::Format { name, problem })?;
            let mut event = Event::new(id, self.name.as_str());
            *event.format_mut() = self.typed(&format)?;
            Ok(Hook::probe(event, registered))
        };
        group(locations).into_iter().map(hook).collect()
    }

    /// Gives fields the types that they were asked for with, where the kernel knows only numbers.
    fn typed(&self, format: &EventFormat) -> Result<EventFormat, TracefsError> {
        let mut typed = EventFormat::new(format.order());
        for field in format.fields() {
            let asked = self.arguments.iter().find(|it| it.name == field.name());
            let kind = asked.and_then(|it| it.kind.field_kind()).unwrap_or_else(|| field.kind().clone());
            let again = EventField::new(field.name(), field.type_name(), kind, field.extent(), field.place());
            let again = match field.kernel_storage() {
                Some(storage) => again.in_kernel(storage),
                None => again,
            };
            typed.add_field(again).map_err(|problem| TracefsError::Format {
                name: self.name.clone(),
                problem: problem.into(),
            })?;
        }
        Ok(typed)
    }
}
