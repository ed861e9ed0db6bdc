//! A Rust program: trait objects, a boxed closure, recursion and a caught unwinding; a second of CPU time.
//! `main`, `descend` 21 times, then `Addition::apply` and the closure in `closure`, each with `burn_rounds`;
//! or `main`, `caught`, `fail`.

use std::hint::black_box;
use std::time::Instant;

trait Operation {
    fn apply(&self, rounds: u64) -> u64;
}

struct Addition(u64);

impl Operation for Addition {
    #[inline(never)]
    fn apply(&self, rounds: u64) -> u64 {
        black_box(burn_rounds(rounds) + self.0)
    }
}

#[inline(never)]
fn burn_rounds(rounds: u64) -> u64 {
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x = black_box(x);
    }
    x
}

#[inline(never)]
fn descend(depth: u32, operation: &dyn Operation, action: &dyn Fn(u64) -> u64) -> u64 {
    let below = match depth {
        0 => operation.apply(100_000) ^ action(100_000),
        _ => descend(depth - 1, operation, action),
    };
    black_box(below)
}

#[inline(never)]
fn fail(value: u64) -> u64 {
    if value % 2 == 1 {
        std::panic::resume_unwind(Box::new(value));
    }
    black_box(value)
}

#[inline(never)]
fn caught(value: u64) -> bool {
    std::panic::catch_unwind(|| fail(value | 1)).is_err()
}

fn main() {
    // A bounded amount of work: about half a second of burning, or what a slow machine makes of it.
    let start = Instant::now();
    let addend = u64::from(start.elapsed().subsec_nanos());
    let mut failures = 0_u64;
    for round in 0..4000 {
        let sum =
            descend(20, black_box(&Addition(addend)), &|rounds| black_box(burn_rounds(rounds) ^ addend));
        failures += u64::from(caught(black_box(sum ^ round)));
    }
    std::process::exit(i32::from(failures != 4000));
}
