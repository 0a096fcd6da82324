//! Writes the JavaScript and TypeScript face of a WebAssembly module that was compiled with wasm-bindgen.
//!
//! The command `wasm-bindgen` does the same, but cannot be installed with pinned dependencies of one's own.

use std::env;
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (module, folder, keeps_names) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [module, folder] => (module, folder, false),
        ["--names", module, folder] => (module, folder, true),
        _ => {
            eprintln!("usage: bindgen [--names] MODULE.wasm FOLDER");
            return ExitCode::FAILURE;
        }
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("engine").typescript(true).keep_debug(false);
    // Only profilers need the names of functions.
    bindgen.remove_name_section(!keeps_names).remove_producers_section(true);
    let written = bindgen.web(true).and_then(|bindgen| bindgen.generate(folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
