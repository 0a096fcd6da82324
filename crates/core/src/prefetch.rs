//! Prefetching of memory before it is needed.

/// Prefetches the first `lines` cache lines of a value that begins at one.
#[inline(always)]
pub fn prefetch_start<T>(value: &T, lines: usize) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for line in 0..lines {
        prefetch(start.wrapping_add(line * 64));
    }
}

/// Asks the processor to load the cache line at `place`, without waiting for it. Results never depend on it, whatever
/// `place` is. It does nothing on processors other than x86-64. An invalid address costs time but is harmless.
///
/// It pays off for data that is certain to be read some hundred instructions later but too rarely to be cached, such as
/// the packets of long links.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // // SAFETY: the instruction is a hint; it accesses no memory architecturally and does not fault, whatever the
        // address.
        #[expect(unsafe_code, reason = "there is no safe form of this instruction")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
