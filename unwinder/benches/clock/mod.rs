//! Times two ways to do one thing in turns, so that whatever else the machine does falls on both.

use std::time::{Duration, Instant};

/// Turns of each.
const TURNS: usize = 60;

/// What a turn takes about, with what is prepared for it: less than a time slice, so that some turns are not interrupted
/// on a machine that does other things, too.
const TURN: Duration = Duration::from_millis(5);

/// Seconds that a pass takes, in the fastest turn of each: whatever else the machine does only adds to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    pub(crate) ours: f64,
    pub(crate) peer: f64,
}

impl Compared {
    /// How much of the peer's time is ours.
    pub(crate) fn ratio(self) -> f64 {
        self.ours / self.peer
    }
}

/// Each closure makes one pass and says how long what counts of it took.
pub(crate) fn compare(mut ours: impl FnMut() -> Duration, mut peer: impl FnMut() -> Duration) -> Compared {
    let (passes, peer_passes) = (passes_in_turn(&mut ours), passes_in_turn(&mut peer));
    let (mut times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        times.push(turn(&mut ours, passes));
        peer_times.push(turn(&mut peer, peer_passes));
    }
    Compared { ours: fastest(times), peer: fastest(peer_times) }
}

/// How long a pass takes, alone.
pub(crate) fn alone(mut pass: impl FnMut() -> Duration) -> f64 {
    let passes = passes_in_turn(&mut pass);
    fastest((0..TURNS).map(|_| turn(&mut pass, passes)))
}

/// Runs `pass` and times all of it.
pub(crate) fn timed<T>(pass: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = pass();
    (start.elapsed(), result)
}

fn passes_in_turn(pass: &mut impl FnMut() -> Duration) -> u32 {
    // The first is slower than all others.
    pass();
    let once = timed(&mut *pass).0.max(Duration::from_nanos(1));
    u32::try_from(TURN.as_nanos() / once.as_nanos()).unwrap_or(u32::MAX).max(1)
}

fn turn(pass: &mut impl FnMut() -> Duration, passes: u32) -> f64 {
    (0..passes).map(|_| pass()).sum::<Duration>().as_secs_f64() / f64::from(passes)
}

fn fastest(times: impl IntoIterator<Item = f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}
