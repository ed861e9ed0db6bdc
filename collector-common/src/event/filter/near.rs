//! Names that someone may have meant who wrote another.

/// Characters of a name that are looked at.
const LONGEST: usize = 64;

/// Up to three of `names` that are near to `wrong`, the nearest first.
pub fn near<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let bound = (wrong.chars().count() / 3).max(1);
    let small = wrong.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| {
            *distance <= bound || (small.len() > 2 && name.to_lowercase().contains(&small))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Characters that must be put in, left out, replaced or swapped with the next to get from one to the other, whatever their case.
fn distance(from: &str, to: &str) -> usize {
    let [from, to] =
        [from, to].map(|name| name.chars().take(LONGEST).flat_map(char::to_lowercase).collect::<String>());
    strsim::osa_distance(&from, &to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_someone_may_have_meant() {
        let names = ["main", "mean", "domain", "sched_switch", "x"];
        let near = |wrong| near(wrong, names.into_iter());
        assert_eq!(near("mian"), ["main", "mean"], "letters that changed places");
        assert_eq!(near("MAIN"), ["main", "domain"]);
        assert_eq!(near("sched_swich"), ["sched_switch"]);
        assert_eq!(near("unlike"), [""; 0]);
    }
}
