//! Files that a scenario names: topologies, flow lists and size distributions.

use super::error::ScenarioError;
use super::field::Field;
use super::formats::{self, NotText, Purpose};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The place of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The scenario's name in messages.
    pub file: String,
    /// The folder to which its relative paths refer.
    pub folder: PathBuf,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name in messages.
    pub name: String,
    /// Its extension in lower case.
    pub extension: String,
    /// The content, without a byte order mark.
    pub text: String,
    /// The purpose for which the scenario names the file.
    pub purpose: Purpose,
}

impl Source {
    /// Returns the source of the scenario file at `path`.
    pub fn at(path: &Path) -> Source {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Source { file: path.display().to_string(), folder }
    }

    /// Reads the file that `field` names for this purpose.
    ///
    /// # Errors
    /// Fails if the file does not exist or is not text. The message names its format if that is known.
    pub fn read(&self, field: &Field<'_>, purpose: Purpose) -> Result<Input, ScenarioError> {
        self.read_at_most(field, purpose, u64::MAX)
    }

    /// Like [`Source::read`], for a file of at most `max_bytes`. A larger one is not loaded.
    ///
    /// # Errors
    /// Those of [`Source::read`], and a file that is too large.
    pub fn read_at_most(&self, field: &Field<'_>, purpose: Purpose, max_bytes: u64) -> Result<Input, ScenarioError> {
        let path = self.folder.join(field.text()?);
        let name = path.display().to_string();
        let text = read_text_at_most(&path, max_bytes).map_err(|NotText { line, message }| {
            let place = line.map_or_else(String::new, |line| format!(":{line}"));
            field.error(format!("{message}: {name}{place}"))
        })?;
        let extension = path.extension().map(|end| end.to_string_lossy().to_lowercase()).unwrap_or_default();
        Ok(Input { name, extension, text, purpose })
    }
}

/// Reads the text of the file at `path`, without a byte order mark.
///
/// # Errors
/// States the problem and what is allowed.
pub fn read_text(path: &Path) -> Result<String, NotText> {
    read_text_at_most(path, u64::MAX)
}

fn read_text_at_most(path: &Path, max_bytes: u64) -> Result<String, NotText> {
    let read = || {
        // A device can be endless, and the length of a file can be misstated: the bytes that are read count.
        let mut content = Vec::new();
        std::fs::File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut content)?;
        Ok(content)
    };
    let content = read().map_err(|error: std::io::Error| {
        let message = match error.kind() {
            ErrorKind::NotFound => "file not found".to_owned(),
            ErrorKind::IsADirectory => "this is a directory; allowed: a file of text".to_owned(),
            kind => format!("cannot be read ({kind}); allowed: a file of text"),
        };
        NotText { line: None, message }
    })?;
    if content.len() as u64 > max_bytes {
        let message = format!("larger than {} MiB; allowed: up to that", max_bytes >> 20);
        return Err(NotText { line: None, message });
    }
    formats::decoded(content)
}

impl Input {
    /// Returns an error in this file, or that the file has another tool's format, if that is recognized.
    pub fn error(&self, line: Option<usize>, message: impl Into<String>) -> ScenarioError {
        match formats::recognized(&self.text, self.purpose, &self.extension) {
            Some(what) => ScenarioError::in_file(&self.name, None, what),
            None => ScenarioError::in_file(&self.name, line.and_then(|line| u32::try_from(line).ok()), message),
        }
    }

    /// Returns the error for a file name whose extension is not in `allowed`. `field` is the key that names the file.
    pub fn unknown_kind(&self, field: &Field<'_>, allowed: &str) -> ScenarioError {
        let what = formats::recognized(&self.text, self.purpose, &self.extension)
            .map_or_else(String::new, |what| format!("; {what}"));
        field.error(format!("unknown kind of file; allowed: {allowed}{what}"))
    }
}
