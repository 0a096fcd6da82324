//! Comparisons of each BPF program with the controller in `sparelane-cc` that it must agree with.
//!
//! A twin is a program compiled for the host, in a process that reads events from its standard input. Twin and
//! controller receive the same acknowledgments. The twin gets the constants that the loader would set, byte for byte,
//! so the conversion of settings to fixed point is tested, too. The tests need a C compiler, as does linking Rust.
#![cfg(target_os = "linux")]

mod rapid;
mod rtcp;
mod scavenger;

use sparelane_bpf::programs;
use sparelane_core::Rate;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The path of a compiled twin.
struct Twin(PathBuf);

impl Twin {
    fn compiled(name: &str) -> Twin {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("twins");
        // Tests run in parallel, so each has its own file.
        let number = std::thread::current().id();
        let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("twin-{name}-{number:?}"));
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-DSPARELANE_TWIN", "-fsanitize=undefined", "-fno-sanitize-recover=all"])
            .args(["-fno-sanitize=alignment", "-o"])
            .arg(&binary)
            .arg(sources.join(name).with_extension("c"))
            .output()
            .expect("cc, with which Rust links");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Twin(binary)
    }

    /// Runs the twin on a script. Returns the numbers of each line of its answer.
    fn answers(&self, constants: &[u8], script: &str) -> Vec<Vec<u64>> {
        self.lines(constants, script).iter().map(|line| numbers(line)).collect()
    }

    /// Runs the twin on a script. Returns the lines of its answer.
    fn lines(&self, constants: &[u8], script: &str) -> Vec<String> {
        let mut child =
            Command::new(&self.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program that runs");
        let mut input = child.stdin.take().expect("a pipe");
        let script = format!("{}\n{script}", hexadecimal(constants));
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()).expect("a reader"));
        let output = child.wait_with_output().expect("an end");
        writer.join().expect("a writer");
        assert!(output.status.success(), "{}", output.status);
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}

/// A running twin that answers line by line.
struct Conversation {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Conversation {
    fn new(twin: &Twin, constants: &[u8]) -> Conversation {
        let mut child =
            Command::new(&twin.0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program that runs");
        let mut input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        writeln!(input, "{}", hexadecimal(constants)).expect("a reader");
        Conversation { child, input, output }
    }

    fn ask(&mut self, line: &str) -> Vec<u64> {
        writeln!(self.input, "{line}").expect("a reader");
        numbers(&self.output.next().expect("an answer").expect("text"))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn numbers(line: &str) -> Vec<u64> {
    line.split(' ').map(|number| number.parse().expect("a number")).collect()
}

/// Returns the constants of a program with these settings, on an interface of this rate.
fn constants(program: &str, settings: &[(&str, &str)], line: Rate) -> Vec<u8> {
    let given: Vec<(String, String)> =
        settings.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let program = programs::find(program).expect("a program");
    program.prepared(&given, line).expect("settings").settings().to_vec()
}
