//! Segment numbers.

/// A segment's number, counted from 0 at the start of the connection. Packets carry its low 32 bits ([`widen`]).
pub type Seq = u64;

/// Returns the number closest to `near` whose low 32 bits are `low`.
#[inline(always)]
pub const fn widen(low: u32, near: Seq) -> Seq {
    near.wrapping_add_signed(low.wrapping_sub(near as u32) as i32 as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_bits_and_a_nearby_number_restore_the_number() {
        for near in [0, 5, u64::from(u32::MAX) - 1, 1 << 32, (7 << 32) + 3, 1 << 62] {
            for number in [near.saturating_sub(1 << 30), near.saturating_sub(1), near, near + 1, near + (1 << 30)] {
                assert_eq!(widen(number as u32, near), number, "near {near}");
            }
        }
    }
}
