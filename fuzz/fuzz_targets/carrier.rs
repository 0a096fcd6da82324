#![no_main]

#[path = "../src/bytes.rs"]
mod input;
#[path = "../src/carrier.rs"]
mod carrier;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    carrier::check(bytes);
});
