//! Asking for memory before it is needed.

/// Asks the processor to bring the cache line at `place` near, without waiting for it. It changes no result, whatever
/// `place` is, and does nothing on processors that it does not know. An address that is no memory costs time.
///
/// It pays for what is certain to be read some hundred instructions later and is read too seldom to be still cached: the
/// packets of long links, say.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint; it reads and writes nothing and does not fault, whatever the address.
        #[expect(unsafe_code, reason = "there is no safe form of this instruction")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
