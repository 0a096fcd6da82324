#![no_main]

#[path = "../src/bytes.rs"]
mod input;
#[path = "../src/node.rs"]
mod node;
#[path = "../src/puppet.rs"]
mod puppet;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    node::check(bytes);
});
