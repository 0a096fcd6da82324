#![no_main]

#[path = "../src/bytes.rs"]
mod input;
#[path = "../src/node.rs"]
mod node;
#[path = "../src/fuzz_carrier.rs"]
mod fuzz_carrier;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    node::check(bytes);
});
