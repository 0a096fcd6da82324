//! The objects that are shipped are what the sources give.
//!
//! `make bpf-objects` compiles them and writes down of which sources, and by which clang. Without clang the note is compared with
//! the sources; with the same clang they are compiled again, and must be the same byte for byte.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// FNV-1a: against forgetting, not against anybody.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The first line of what clang says of its version, where there is one.
fn clang() -> Option<String> {
    let said = Command::new("clang").arg("--version").output().ok().filter(|said| said.status.success())?;
    String::from_utf8_lossy(&said.stdout).lines().next().map(str::to_owned)
}

/// All sources and objects with their digests.
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
fn objects_are_of_these_sources() {
    let note = folder("objects").join("built-from.txt");
    if std::env::var_os("SPARELANE_WRITE_OBJECTS").is_some() {
        let clang = clang().expect("clang");
        fs::write(&note, format!("{clang}\n{}", digests())).expect("a note");
    }
    let noted = fs::read_to_string(&note).expect("a note");
    let (_, noted) = noted.split_once('\n').expect("clang's version first");
    assert_eq!(noted, digests(), "sources or objects have changed: `make bpf-objects` compiles them anew");
}

#[test]
fn the_same_clang_gives_the_same_objects() {
    let noted = fs::read_to_string(folder("objects").join("built-from.txt")).expect("a note");
    let by = noted.lines().next().unwrap_or_default();
    let here = clang();
    if here.as_deref() != Some(by) {
        eprintln!("skipped: the objects are of {by}, and here is {}", here.unwrap_or_else(|| "no clang".to_owned()));
        return;
    }
    for program in programs() {
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}.bpf.o"));
        let script = folder("programs").join("compile.sh");
        let done = Command::new("sh").arg(script).arg(&program).arg(&object).status().expect("sh");
        assert!(done.success(), "{program} compiles");
        let shipped = fs::read(folder("objects").join(format!("{program}.bpf.o"))).expect("an object");
        assert!(fs::read(&object).expect("an object") == shipped, "{program} is another: `make bpf-objects`");
    }
}
