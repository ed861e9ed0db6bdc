//! A build id in; the file that some server has, or the cache, out.
//!
//! Servers are asked in turn. One that fails is not asked again, and is told of once. All requests together have a limit of
//! time, since somebody waits for the recording to be written.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::env;
use std::fs::File;
use std::io::{Seek as _, Write};
use std::time::{Duration, Instant};

use collector_common::ids::BuildId;

use super::cache::{Artifact, Cache, Known};
use super::http::Http;
use super::settings::Settings;
use crate::modules::build_id_of;

/// The longest that all requests may take together.
const MOST_TIME: Duration = Duration::from_mins(5);

/// The largest file that is taken where nobody says. That of a browser has 2 GB.
const LARGEST: u64 = 4 << 30;

/// How one request may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Until it answers, and between pieces of its answer.
    pub(super) answer: Option<Duration>,
    /// Until all is there.
    pub(super) whole: Duration,
    /// Bytes of the answer.
    pub(super) largest: u64,
    /// Whether the user said so, so that the server is told.
    pub(super) has_largest: bool,
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All bytes are there.
    Whole,
    /// The server does not have it.
    Absent,
    /// It is larger than what is taken.
    TooLarge,
}

/// What a server says of a file.
enum Answer {
    Has(File),
    HasNot,
    IsTooLarge,
}

/// What makes requests.
pub(super) trait Fetch: Send {
    /// Writes what is at `address`.
    ///
    /// # Errors
    /// When the server can't be reached, or does not do what it should: why, in a few words.
    fn fetch(&self, address: &str, limits: Limits, out: &mut dyn Write) -> Result<Outcome, String>;
}

/// The servers and the cache.
pub(super) struct Client {
    settings: Settings,
    cache: Option<Cache>,
    fetch: Box<dyn Fetch>,
    deadline: Cell<Option<Instant>>,
    /// Files that were looked for in vain.
    absent: RefCell<HashSet<(BuildId, Artifact)>>,
    /// Servers that failed.
    failed: RefCell<HashMap<String, String>>,
    /// What to tell, a line each.
    told: RefCell<Vec<String>>,
}

impl Client {
    /// That of this process's environment; `None` where it names no server.
    pub(super) fn of_environment() -> Option<Self> {
        Some(Self::new(Settings::of(|name| env::var_os(name))?, Box::new(Http::default())))
    }

    fn new(settings: Settings, fetch: Box<dyn Fetch>) -> Self {
        Self {
            cache: settings.cache.clone().map(Cache::at),
            settings,
            fetch,
            deadline: Cell::new(None),
            absent: RefCell::default(),
            failed: RefCell::default(),
            told: RefCell::default(),
        }
    }

    /// What went wrong since it was asked last, a line each.
    pub(super) fn take_told(&self) -> Vec<String> {
        self.told.take()
    }

    /// A file of the build with this id.
    pub(super) fn find(&self, id: BuildId, artifact: Artifact) -> Option<File> {
        if self.absent.borrow().contains(&(id, artifact)) {
            return None;
        }
        let known = self.cache.as_ref().map_or(Known::Unknown, |cache| cache.look_up(id, artifact));
        let found = match known {
            Known::Here(file) if build_id_of(&file) == Some(id) => Some(file),
            Known::Nowhere => None,
            // What is damaged is replaced.
            Known::Here(_) | Known::Unknown => self.ask_all(id, artifact),
        };
        if found.is_none() {
            self.absent.borrow_mut().insert((id, artifact));
        }
        found
    }

    fn ask_all(&self, id: BuildId, artifact: Artifact) -> Option<File> {
        let mut all_say_no = true;
        for server in &self.settings.servers {
            if self.failed.borrow().contains_key(server) {
                all_say_no = false;
                continue;
            }
            match self.ask(server, id, artifact) {
                Ok(Answer::Has(file)) => return Some(file),
                Ok(Answer::HasNot) => {}
                // With another limit it is there.
                Ok(Answer::IsTooLarge) => all_say_no = false,
                Err(why) => {
                    all_say_no = false;
                    self.tell(format!("{server} is not asked for debug files any more: {why}"));
                    self.failed.borrow_mut().insert(server.clone(), why);
                }
            }
        }
        // Where that can't be noted, it is asked again in another recording.
        let noted = self.cache.as_ref().filter(|_| all_say_no).map(|cache| cache.note_nowhere(id, artifact));
        if let Some(Err(error)) = noted {
            log::info!("that no server has a file can't be noted: {error}");
        }
        None
    }

    fn tell(&self, line: String) {
        self.told.borrow_mut().push(line);
    }

    /// What one server has.
    fn ask(&self, server: &str, id: BuildId, artifact: Artifact) -> Result<Answer, String> {
        let deadline = self.deadline.get().unwrap_or_else(|| Instant::now() + MOST_TIME);
        self.deadline.set(Some(deadline));
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("all requests together took {} min", MOST_TIME.as_secs() / 60));
        }
        let limits = Limits {
            answer: self.settings.timeout,
            whole: self.settings.longest.unwrap_or(left).min(left),
            largest: self.settings.largest.unwrap_or(LARGEST),
            has_largest: self.settings.largest.is_some(),
        };
        let name = artifact.name();
        let address = format!("{server}/buildid/{id}/{name}");
        let kept = self.cache.as_ref().and_then(|cache| Some((cache, cache.new_file(id).ok()?)));
        // Without a cache, for now.
        let mut file = match &kept {
            Some((_, file)) => file.reopen(),
            None => tempfile::tempfile(),
        }
        .map_err(|error| format!("what it sends can't be kept: {error}"))?;
        match self.fetch.fetch(&address, limits, &mut file)? {
            Outcome::Absent => return Ok(Answer::HasNot),
            Outcome::TooLarge => {
                self.tell(format!("{address} is not taken: it has more than {} bytes", limits.largest));
                return Ok(Answer::IsTooLarge);
            }
            Outcome::Whole => {}
        }
        if file.rewind().is_err() || build_id_of(&file) != Some(id) {
            return Err(format!("its {name} of {id} has another build id"));
        }
        let kept = kept.map(|(cache, file)| cache.keep(file, id, artifact));
        Ok(Answer::Has(kept.and_then(Result::ok).unwrap_or(file)))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use super::*;

    const ID: [u8; 4] = [0xab, 0xcd, 0xef, 0x01];

    /// What is asked, in order, and what is answered by the beginning of the address.
    #[derive(Default)]
    struct Told {
        asked: Mutex<Vec<String>>,
        answers: Vec<(&'static str, Result<Outcome, String>, Vec<u8>)>,
    }

    impl Fetch for Arc<Told> {
        fn fetch(&self, address: &str, _: Limits, out: &mut dyn Write) -> Result<Outcome, String> {
            self.asked.lock().unwrap().push(address.to_owned());
            let (_, outcome, bytes) =
                self.answers.iter().find(|(server, ..)| address.starts_with(server)).unwrap();
            out.write_all(bytes).unwrap();
            outcome.clone()
        }
    }

    /// A program with that build id.
    fn program(folder: &Path) -> Vec<u8> {
        let (source, path) = (folder.join("source.c"), folder.join("main"));
        fs::write(&source, "int main(void) { return 0; }").unwrap();
        let options = ["-Wl,--build-id=0xabcdef01", "-o"];
        assert!(Command::new("gcc").args(options).args([&path, &source]).status().unwrap().success());
        fs::read(path).unwrap()
    }

    fn client(cache: &Path, servers: &[&str], told: &Arc<Told>) -> Client {
        let settings = Settings {
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
            cache: Some(cache.to_owned()),
            timeout: None,
            longest: None,
            largest: None,
        };
        Client::new(settings, Box::new(Arc::clone(told)))
    }

    #[test]
    fn servers_are_asked_in_turn_and_what_one_has_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let answers = vec![
            ("http://none", Ok(Outcome::Absent), Vec::new()),
            ("http://has", Ok(Outcome::Whole), program(folder.path())),
        ];
        let told = Arc::new(Told { answers, ..Told::default() });
        let id = BuildId::new(&ID).unwrap();
        let cache = folder.path().join("cache");
        for _ in 0..2 {
            let client = client(&cache, &["http://none", "http://has"], &told);
            assert_eq!(build_id_of(&client.find(id, Artifact::DebugInfo).unwrap()), Some(id));
            assert!(client.take_told().is_empty());
        }
        let asked = ["http://none/buildid/abcdef01/debuginfo", "http://has/buildid/abcdef01/debuginfo"];
        assert_eq!(*told.asked.lock().unwrap(), asked, "the second time, it was in the cache");
    }

    /// As when the disk was full, or the machine lost power while another client wrote.
    #[test]
    fn what_is_damaged_in_the_cache_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let whole = program(folder.path());
        let cache = folder.path().join("cache");
        let kept = cache.join("abcdef01/debuginfo");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, &whole[..100]).unwrap();
        let answers = vec![("http://", Ok(Outcome::Whole), whole.clone())];
        let told = Arc::new(Told { answers, ..Told::default() });
        let id = BuildId::new(&ID).unwrap();
        let found = client(&cache, &["http://has"], &told).find(id, Artifact::DebugInfo);
        assert_eq!(build_id_of(&found.unwrap()), Some(id));
        assert_eq!(fs::read(&kept).unwrap(), whole);
    }

    #[test]
    fn what_no_server_has_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let answers = vec![("http://", Ok(Outcome::Absent), Vec::new())];
        let told = Arc::new(Told { answers, ..Told::default() });
        let id = BuildId::new(&ID).unwrap();
        for _ in 0..2 {
            let client = client(folder.path(), &["http://a", "http://b"], &told);
            assert!(client.find(id, Artifact::Executable).is_none() && client.take_told().is_empty());
        }
        assert_eq!(told.asked.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_server_that_fails_is_told_of_once() {
        let folder = tempfile::tempdir().unwrap();
        let answers = vec![("http://broken", Err("no route".to_owned()), b"half".to_vec())];
        let told = Arc::new(Told { answers, ..Told::default() });
        let client = client(folder.path(), &["http://broken"], &told);
        for id in [&ID, &[1, 2, 3, 4]] {
            for _ in 0..2 {
                assert!(client.find(BuildId::new(id).unwrap(), Artifact::DebugInfo).is_none());
            }
        }
        assert_eq!(client.take_told(), ["http://broken is not asked for debug files any more: no route"]);
        assert_eq!(told.asked.lock().unwrap().len(), 1);
        let left: Vec<_> = fs::read_dir(folder.path().join("abcdef01")).unwrap().collect();
        assert!(left.is_empty(), "neither half of a file nor a note that nobody has it: {left:?}");
    }

    /// As elfutils' client does: it would be kept from whoever takes larger ones.
    #[test]
    fn what_is_too_large_is_not_noted_as_absent() {
        let folder = tempfile::tempdir().unwrap();
        let answers = vec![("http://", Ok(Outcome::TooLarge), Vec::new())];
        let told = Arc::new(Told { answers, ..Told::default() });
        let id = BuildId::new(&ID).unwrap();
        let client = client(folder.path(), &["http://large"], &told);
        assert!(client.find(id, Artifact::DebugInfo).is_none());
        assert!(client.take_told().concat().contains("is not taken: it has more than"));
        assert!(!folder.path().join("abcdef01/debuginfo").exists());
    }

    #[test]
    fn a_file_of_another_build_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let whole = program(folder.path());
        for bytes in [whole.clone(), whole[..whole.len() / 2].to_vec(), b"<html>".to_vec(), Vec::new()] {
            let answers = vec![("http://", Ok(Outcome::Whole), bytes)];
            let told = Arc::new(Told { answers, ..Told::default() });
            let client = client(&folder.path().join("cache"), &["http://wrong"], &told);
            assert!(client.find(BuildId::new(&[9, 9]).unwrap(), Artifact::DebugInfo).is_none());
            let says = client.take_told().concat();
            assert!(says.contains("its debuginfo of 0909 has another build id"), "{says}");
        }
    }

    #[test]
    fn without_a_place_for_a_cache_it_is_asked_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let answers = vec![("http://", Ok(Outcome::Whole), program(folder.path()))];
        let told = Arc::new(Told { answers, ..Told::default() });
        let file = folder.path().join("main");
        let client = client(&file.join("below a file"), &["http://has"], &told);
        assert!(client.find(BuildId::new(&ID).unwrap(), Artifact::DebugInfo).is_some());
    }
}
