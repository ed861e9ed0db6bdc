//! What `off_cpu:min=10ms` says in, which times off a CPU are samples out: the same as on Linux.

use collector_common::ids::Nanos;

/// The shortest times off a CPU that are recorded: from when a thread gives up its CPU or loses it until it has one again. What is shorter is left
/// out, with all that it is made of; it is no loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortest {
    /// Of `off_cpu`.
    pub off_cpu: Nanos,
    /// Of `wall_clock`: the time on a CPU is all there.
    pub wall_clock: Nanos,
}

impl Shortest {
    /// That of a scenario, by its full name; none where it records no such times.
    pub fn of_scenario(&mut self, name: &str) -> Option<&mut Nanos> {
        match name {
            "off_cpu" => Some(&mut self.off_cpu),
            "wall_clock" => Some(&mut self.wall_clock),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use windows_etw::plan::SCENARIOS;

    use super::*;

    #[test]
    fn scenarios_have_one_each() {
        let mut shortest = Shortest::default();
        for (scenario, nanos) in SCENARIOS.iter().zip(1..) {
            if let Some(of) = shortest.of_scenario(scenario.name) {
                *of = Nanos(nanos);
            }
        }
        let place = |name| SCENARIOS.iter().position(|it| it.name == name).unwrap() as u64 + 1;
        let [off_cpu, wall_clock] = ["off_cpu", "wall_clock"].map(|name| Nanos(place(name)));
        assert_eq!(shortest, Shortest { off_cpu, wall_clock });
    }
}
