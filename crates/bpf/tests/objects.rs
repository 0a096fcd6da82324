//! Tests that the shipped object files match their sources.
//!
//! `make bpf-objects` compiles the objects and writes the digests of all sources and objects, and clang's version, to
//! `objects/built-from.txt`. One test compares the digests; it needs no clang. With the same version of clang, the
//! other test compiles the sources again and compares every byte.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// FNV-1a. It detects forgotten rebuilds; it need not withstand an attacker.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the first line of `clang --version`, or `None` if there is no clang.
fn clang() -> Option<String> {
    let output = Command::new("clang").arg("--version").output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

/// Returns all sources and objects with their digests, one per line.
fn digests() -> String {
    let mut lines = String::new();
    for name in ["programs", "objects"] {
        let files = fs::read_dir(folder(name)).expect("a folder").map(|file| file.expect("a file").path());
        let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|kind| kind != "txt")).collect();
        files.sort();
        for file in files {
            let title = file.file_name().expect("a name").to_string_lossy();
            lines += &format!("{name}/{title} {:016x}\n", digest(&fs::read(&file).expect("a file")));
        }
    }
    lines
}

fn programs() -> Vec<String> {
    let files = fs::read_dir(folder("programs")).expect("a folder").map(|file| file.expect("a file").file_name());
    let names = files.filter_map(|name| name.to_string_lossy().strip_suffix(".bpf.c").map(str::to_owned));
    names.collect()
}

#[test]
fn objects_are_built_from_these_sources() {
    let record = folder("objects").join("built-from.txt");
    if std::env::var_os("SPARELANE_WRITE_OBJECTS").is_some() {
        let clang = clang().expect("clang");
        fs::write(&record, format!("{clang}\n{}", digests())).expect("a record");
    }
    let recorded = fs::read_to_string(&record).expect("a record");
    let (_, recorded) = recorded.split_once('\n').expect("clang's version first");
    assert_eq!(recorded, digests(), "sources or objects have changed: run `make bpf-objects`");
}

#[test]
fn the_same_clang_gives_the_same_objects() {
    let recorded = fs::read_to_string(folder("objects").join("built-from.txt")).expect("a record");
    let compiler = recorded.lines().next().unwrap_or_default();
    let here = clang();
    if here.as_deref() != Some(compiler) {
        let here = here.unwrap_or_else(|| "no clang".to_owned());
        eprintln!("skipped: the objects were compiled by {compiler}, and this machine has {here}");
        return;
    }
    for program in programs() {
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}.bpf.o"));
        let script = folder("programs").join("compile.sh");
        let done = Command::new("sh").arg(script).arg(&program).arg(&object).status().expect("sh");
        assert!(done.success(), "{program} compiles");
        let shipped = fs::read(folder("objects").join(format!("{program}.bpf.o"))).expect("an object");
        assert!(fs::read(&object).expect("an object") == shipped, "{program} differs: run `make bpf-objects`");
    }
}
