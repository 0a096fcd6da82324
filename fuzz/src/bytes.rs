//! A reader that turns fuzz input into numbers. It returns zeros beyond the end.

/// A reader of bytes.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// Returns whether all bytes have been read.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Reads a byte and returns its lowest bit.
    pub fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Reads an arbitrary number from eight bytes.
    pub fn any(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    /// Reads a number that is usually within 155 of `near`, and sometimes arbitrary.
    pub fn around(&mut self, near: u64) -> u64 {
        match self.byte() {
            255 => self.any(),
            254 => u64::MAX - u64::from(self.byte()),
            253 => (u64::from(u32::MAX)).wrapping_add(u64::from(self.byte())),
            byte => near.saturating_add(u64::from(byte)).saturating_sub(100),
        }
    }

    /// Reads a number of random magnitude.
    pub fn scaled(&mut self) -> u64 {
        let shift = self.byte() % 64;
        (u64::from(self.byte()) << 56 | u64::from(self.byte()) << 48) >> shift
    }
}
