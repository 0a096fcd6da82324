#![no_main]

#[path = "../src/bytes.rs"]
mod input;
#[path = "../src/fuzz_carrier.rs"]
mod fuzz_carrier;
#[path = "../src/transfer.rs"]
mod transfer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    transfer::check(bytes);
});
