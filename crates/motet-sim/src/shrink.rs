//! Makes a failing schedule short: drops steps while the same check still fails.

/// Runs that shortening one schedule may take.
const RUNS_MAX: usize = 1_500;

/// The numbers of those of so many steps that are enough for a schedule to fail.
pub fn shrink(steps: usize, fails: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut keep: Vec<usize> = (0..steps).collect();
    let mut runs = 0;
    let mut fails = |keep: &[usize]| {
        runs += 1;
        runs <= RUNS_MAX && fails(keep)
    };
    let mut chunk = keep.len() / 2;
    while chunk > 0 {
        let mut start = 0;
        let mut dropped = false;
        while start < keep.len() {
            let mut fewer = keep.clone();
            fewer.drain(start..(start + chunk).min(keep.len()));
            if fails(&fewer) {
                keep = fewer;
                dropped = true;
            } else {
                start += chunk;
            }
        }
        if chunk > 1 || !dropped {
            chunk /= 2;
        }
    }
    keep
}

/// Numbers as `1,4-7`.
#[must_use]
pub fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let texts: Vec<_> = parts
        .iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    texts.join(",")
}

/// Reads numbers as `1,4-7`; `None` when the text is something else.
#[must_use]
pub fn parse_ranges(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_back() {
        let numbers = [0, 1, 2, 7, 9, 10];
        assert_eq!(ranges(&numbers), "0-2,7,9-10");
        assert_eq!(parse_ranges("0-2,7,9-10").as_deref(), Some(&numbers[..]));
        assert_eq!(parse_ranges("x"), None);
    }
}
