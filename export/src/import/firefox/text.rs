//! A profile's text in, which is taken piece by piece, each thread being one; an error where a piece would take more memory than any may.
//!
//! What text becomes is told by its bytes: a cell of a column ends at a comma, a marker's facts begin with a brace, and what else there is
//! is kept as it is, or is nothing that is kept. So what is held of it is limited before it is there, whatever it says.

use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{File, HeadMeta, Limited, ThreadClock};
use super::malformed;
use crate::import::ImportError;
use crate::import::unpack::{Beyond, placed, unpacked};

/// The most bytes, uncompressed: what is compressed well would be read for long.
pub(super) const MOST_BYTES: u64 = 4 << 30;

/// The most bytes that are held of a thread, or of all that is no thread's.
const MOST_HELD: u64 = 2 << 30;

/// What a comma may stand for: a number of a column, whose memory is doubled as it grows.
const CELL: u64 = 24;

/// What a brace may: what a marker tells, in a list that grows so.
const OBJECT: u64 = 320;

/// The most threads.
const MOST_THREADS: usize = 1 << 16;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// What is known of the text so far.
#[derive(Clone, Debug, Default)]
struct Held {
    /// What is held of the piece that is read, at most.
    bytes: Rc<Cell<u64>>,
    /// Whether more was asked for than there is.
    has_ended: Rc<Cell<bool>>,
}

impl Held {
    /// An error of the text. A number that is cut is told as one that makes no sense.
    fn error(&self, error: serde_json::Error) -> ImportError {
        if error.is_syntax() && self.has_ended.get() {
            return ImportError::Cut(error.to_string());
        }
        error.into()
    }
}

struct Weighed<R> {
    input: R,
    /// Bytes that it has given.
    position: u64,
    held: Held,
}

impl<R: Read> Read for Weighed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer).map_err(|error| placed(error, self.position))?;
        self.position += read as u64;
        self.held.has_ended.set(read == 0 && !buffer.is_empty());
        let count = |byte: u8| memchr::memchr_iter(byte, &buffer[..read]).count() as u64;
        let held = self.held.bytes.get() + read as u64 + CELL * count(b',') + OBJECT * count(b'{');
        self.held.bytes.set(held);
        if held > MOST_HELD {
            let what = "bytes of memory for a thread, or for what is no thread's";
            return Err(io::Error::other(Beyond { what, limit: MOST_HELD }));
        }
        Ok(read)
    }
}

type Json<'a> = serde_json::Deserializer<serde_json::de::IoRead<BufReader<Weighed<Box<dyn Read + 'a>>>>>;

/// The text, uncompressed.
fn json<'a>(input: impl Read + 'a) -> Result<(Json<'a>, Held), ImportError> {
    let held = Held::default();
    let input = Weighed { input: unpacked(input, MOST_BYTES)?, position: 0, held: held.clone() };
    Ok((serde_json::Deserializer::from_reader(BufReader::with_capacity(PIECE, input)), held))
}

/// What tells the version: it is read no further than to there.
pub(super) fn head(input: impl Read) -> Result<HeadMeta, ImportError> {
    let mut found = None;
    let (mut json, held) = json(input)?;
    let read = FindMeta(&mut found).deserialize(&mut json);
    match (found, read) {
        (Some(meta), _) => Ok(meta),
        (None, Ok(())) => Err(malformed("missing field `meta`".to_owned())),
        (None, Err(error)) => Err(held.error(error)),
    }
}

/// All that is no thread's, and of threads what they tell of the clock.
pub(super) fn whole(input: impl Read) -> Result<File, ImportError> {
    let mut file = File::default();
    let mut clock = Clock::default();
    let (mut json, held) = json(input)?;
    let each = |thread: ThreadClock| {
        clock.add(&thread);
        Ok::<(), ImportError>(())
    };
    let whole =
        Whole { file: Some(&mut file), threads: Threads { held: held.clone(), each, of: PhantomData } };
    let read = whole.deserialize(&mut json).and_then(|()| json.end());
    read.map_err(|error| held.error(error))?;
    file.is_on_cpu = !clock.has_waited;
    Ok(file)
}

/// Each thread, one after the other.
pub(super) fn threads<T: for<'de> Deserialize<'de>>(
    input: impl Read,
    mut each: impl FnMut(T) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut failed = None;
    let (mut json, held) = json(input)?;
    let each = |thread| {
        each(thread).map_err(|error| {
            let text = error.to_string();
            failed = Some(error);
            text
        })
    };
    let threads = Threads { held: held.clone(), each, of: PhantomData };
    let read = Whole { file: None, threads }.deserialize(&mut json);
    match failed {
        Some(error) => Err(error),
        None => read.map_err(|error| held.error(error)),
    }
}

/// Whether a thread was asked for its stack while it did not run.
#[derive(Default)]
struct Clock {
    has_waited: bool,
}

impl Clock {
    fn add(&mut self, thread: &ThreadClock) {
        let samples = &thread.samples;
        let waited = |row| {
            samples.weight_of(row) != 0.0
                && samples.cpu.get(row).partial_cmp(&0.0).is_none_or(std::cmp::Ordering::is_le)
        };
        self.has_waited |= (0..samples.stack.len() as u32).any(waited);
    }
}

struct FindMeta<'a>(&'a mut Option<HeadMeta>);

impl<'de> DeserializeSeed<'de> for FindMeta<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FindMeta<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a profile")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            if key == Key::Meta {
                *self.0 = Some(map.next_value()?);
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// What is read of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Key {
    Meta,
    Libs,
    Shared,
    Threads,
    Counters,
    #[serde(other)]
    Other,
}

/// All of it, into a file if there is one, and the threads to whoever takes them.
struct Whole<'a, T, F> {
    file: Option<&'a mut File>,
    threads: Threads<T, F>,
}

impl<'de, T: Deserialize<'de>, E: Display, F: FnMut(T) -> Result<(), E>> DeserializeSeed<'de>
    for Whole<'_, T, F>
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>, E: Display, F: FnMut(T) -> Result<(), E>> Visitor<'de> for Whole<'_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a profile")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key>()? {
            match (key, self.file.as_deref_mut()) {
                (Key::Threads, _) => map.next_value_seed(&mut self.threads)?,
                (Key::Meta, Some(file)) => file.meta = map.next_value()?,
                (Key::Libs, Some(file)) => file.libs = map.next_value()?,
                (Key::Shared, Some(file)) => file.shared = map.next_value()?,
                (Key::Counters, Some(file)) => {
                    file.counters = map.next_value::<Option<Limited<_, _>>>()?.unwrap_or_default();
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A list of threads, of which each goes to `each` and is forgotten then.
struct Threads<T, F> {
    held: Held,
    each: F,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, E: Display, F: FnMut(T) -> Result<(), E>> DeserializeSeed<'de>
    for &mut Threads<T, F>
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, E: Display, F: FnMut(T) -> Result<(), E>> Visitor<'de> for &mut Threads<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("threads")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let before = self.held.bytes.get();
        let mut count = 0;
        while let Some(thread) = seq.next_element()? {
            count += 1;
            if count > MOST_THREADS {
                return Err(A::Error::custom(format_args!("there are more than {MOST_THREADS} threads")));
            }
            (self.each)(thread).map_err(A::Error::custom)?;
            self.held.bytes.set(before);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn where_a_compressed_profile_is_cut_is_told() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::none());
        packed
            .write_all(br#"{"libs":[],"meta":{"interval":1,"startTime":0,"preprocessedProfileVersion":55}}"#)
            .unwrap();
        let packed = packed.finish().unwrap();
        let told = |len: usize| whole(&packed[..len]).err().map(|error| error.to_string());
        assert_eq!(told(packed.len()), None);
        // Behind 15 bytes of headers 20 of the text are there.
        let cut = told(15 + 20).unwrap();
        assert!(cut.contains(", behind byte 20"), "{cut}");
    }
}
