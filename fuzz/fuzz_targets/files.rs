#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sparelane_fuzz::files::check(bytes));
