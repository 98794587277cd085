//! Medians and percentiles.

/// The value at or below which `fraction` of the values lie (nearest rank); 0 for none.
pub(crate) fn percentile(values: &mut [f64], fraction: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * fraction).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The middle value; of two middle ones the mean.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len().is_multiple_of(2), sorted.get(middle)) {
        (true, Some(upper)) => f64::midpoint(sorted[middle - 1], *upper),
        (false, Some(value)) => *value,
        (_, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert!((percentile(&mut values, 0.5) - 2.0).abs() < f64::EPSILON);
        assert!((percentile(&mut values, 0.99) - 4.0).abs() < f64::EPSILON);
        assert!(percentile(&mut [], 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn the_median_of_an_even_count_is_between_the_middle_values() {
        assert!((median(&[1.0, 9.0, 3.0]) - 3.0).abs() < f64::EPSILON);
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < f64::EPSILON);
    }
}
