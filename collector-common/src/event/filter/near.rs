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

/// Characters that must be put in, left out or replaced to get from one to the other (Levenshtein), whatever their case.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    // Of a prefix of `from` to each prefix of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for char in from.chars().take(LONGEST).flat_map(char::to_lowercase) {
        let mut diagonal = 0;
        let mut left = 0;
        for (column, above) in row.iter_mut().enumerate() {
            let replaced = match column.checked_sub(1).and_then(|before| to.get(before)) {
                Some(other) => diagonal + usize::from(char != *other),
                None => usize::MAX,
            };
            diagonal = *above;
            let put_in = if column == 0 { usize::MAX } else { left + 1 };
            *above = replaced.min(*above + 1).min(put_in);
            left = *above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (from, to, expected) in
            [("kitten", "sitting", 3), ("flaw", "lawn", 2), ("", "abc", 3), ("abc", "", 3), ("PID", "pid", 0)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
