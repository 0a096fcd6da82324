//! Bytes read as numbers; what is beyond the end is zero.

/// A reader of bytes.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// Whether all has been read.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Whether a bit of the next byte is set.
    pub fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// The next eight bytes.
    pub fn any(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// A number that is mostly within some dozens of `near`, and sometimes anything.
    pub fn around(&mut self, near: u64) -> u64 {
        match self.byte() {
            255 => self.any(),
            254 => u64::MAX - u64::from(self.byte()),
            253 => (u64::from(u32::MAX)).wrapping_add(u64::from(self.byte())),
            byte => near.saturating_add(u64::from(byte)).saturating_sub(100),
        }
    }

    /// A whole number of no certain magnitude.
    pub fn scaled(&mut self) -> u64 {
        let shift = self.byte() % 64;
        (u64::from(self.byte()) << 56 | u64::from(self.byte()) << 48) >> shift
    }
}
