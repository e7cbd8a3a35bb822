//! How numbers are written on axes; all others are written by [`linerate_model::number`].

pub use linerate_model::number::{
    EstimateText, Prefixed, counted, display, estimate, percent, value_with_bounds,
};
use linerate_model::number::{GROUP_FROM, in_groups, largest_prefix};
use linerate_model::unit::Unit;

/// Returns the prefix for an axis that reaches up to `maximum`.
///
/// An axis changes to the next prefix only at twice its size: ticks 200, 400 … 1000 Mbit/s read
/// better than 0.2, 0.4 … 1 Gbit/s.
pub fn prefix_of_axis(unit: Unit, maximum: f64) -> Prefixed {
    largest_prefix(unit, maximum, 2.0)
}

/// Writes `value` as a position on an axis that reaches up to `maximum`.
///
/// Message sizes up to a segment stay in bytes, so that 536 B, 1024 B and 1460 B stand beside one
/// another.
pub fn display_on_axis(value: f64, unit: Unit, maximum: f64) -> String {
    if unit == Unit::Bytes && maximum < 2048.0 && value.fract() == 0.0 {
        return format!("{value} B");
    }
    display(value, unit)
}

/// Writes a number of an axis with this many decimals, its thousands apart from [`GROUP_FROM`] on.
pub fn grouped(value: f64, decimals: usize) -> String {
    // No minus before a zero.
    let text = format!("{:.decimals$}", value + 0.0);
    if value.abs() < GROUP_FROM {
        text
    } else {
        in_groups(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_keeps_the_smaller_prefix_up_to_twice_the_next() {
        assert_eq!(prefix_of_axis(Unit::BitsPerSecond, 1.0e9).symbol, "Mbit/s");
        assert_eq!(prefix_of_axis(Unit::BitsPerSecond, 9.4e9).symbol, "Gbit/s");
        assert_eq!(prefix_of_axis(Unit::Nanoseconds, 44e6).symbol, "ms");
    }

    #[test]
    fn sizes_up_to_a_segment_stay_in_bytes() {
        assert_eq!(display_on_axis(1024.0, Unit::Bytes, 1460.0), "1024 B");
        assert_eq!(display_on_axis(1024.0, Unit::Bytes, 65_536.0), "1 KiB");
    }
}
