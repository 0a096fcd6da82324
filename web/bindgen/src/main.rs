//! Writes the JavaScript and TypeScript face of a WebAssembly module that was compiled with wasm-bindgen.
//!
//! The command `wasm-bindgen` does the same, but cannot be installed with pinned dependencies of one's own.

use std::env;
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, folder] = arguments.as_slice() else {
        eprintln!("usage: bindgen MODULE.wasm FOLDER");
        return ExitCode::FAILURE;
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name("engine").typescript(true).keep_debug(false);
    // Profilers need the names of functions. `wasm-opt` removes them from the page.
    bindgen.remove_name_section(false).remove_producers_section(true);
    let written = bindgen.web(true).and_then(|bindgen| bindgen.generate(folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
