//! Integer arithmetic missing from the standard library.

/// Returns a mask of the `count` lowest bits; `count` is at most 64.
#[inline(always)]
pub const fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1u64 << count) - 1 }
}

/// Returns `value * numerator / denominator`, rounded down, with an intermediate of 128 bits. Saturates at `u64::MAX`.
///
/// # Panics
/// If `denominator` is zero.
pub fn mul_div(value: u64, numerator: u64, denominator: u64) -> u64 {
    assert!(denominator != 0, "division by zero");
    let exact = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_both_ends() {
        assert_eq!((low_bits(0), low_bits(3), low_bits(64)), (0, 0b111, u64::MAX));
    }

    #[test]
    fn products_beyond_64_bits_divide_exactly() {
        assert_eq!(mul_div(u64::MAX, 6, 3), u64::MAX);
        assert_eq!(mul_div(1 << 40, 1 << 40, 1 << 41), 1 << 39);
    }
}
