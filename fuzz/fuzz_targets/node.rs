#![no_main]

#[path = "../src/bytes.rs"]
mod input;
#[path = "../src/node.rs"]
mod node;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    node::check(bytes);
});
