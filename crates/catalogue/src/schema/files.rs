//! Files that a scenario names: topologies, flow lists and size distributions.

use super::error::ScenarioError;
use super::field::Field;
use super::formats::{self, FileFormat, NotText, PREFIX_BYTES, Purpose};
use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The maximum size of a text file, which is read as a whole: a gigabyte, such as thirty million flows.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// The content of a file, which is read in pieces.
pub type Content = Box<dyn Read + Send>;

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
    /// The format in which it is read, if that is known from its content or its extension.
    pub format: Option<FileFormat>,
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

    /// Opens the file that `field` names if it is a packet capture, and returns its name in messages and its content.
    ///
    /// # Errors
    /// Fails if the value is not a path.
    pub fn capture(&self, field: &Field<'_>) -> Result<Option<(String, Content)>, ScenarioError> {
        let path = self.folder.join(field.text()?);
        Ok(open_capture(&path).map(|content| (path.display().to_string(), content)))
    }

    /// Reads the file that `field` names for this purpose.
    ///
    /// # Errors
    /// Fails if the file does not exist or is not text. The message names its format if that is known.
    pub fn read(&self, field: &Field<'_>, purpose: Purpose) -> Result<Input, ScenarioError> {
        self.read_at_most(field, purpose, MAX_TEXT_BYTES)
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
        let format = formats::detect(&text, purpose, &extension);
        Ok(Input { name, format, text, purpose })
    }
}

/// Opens the file at `path` if it is a packet capture, by its first bytes; the reader begins at the first byte. Returns
/// `None` for other files, and for files that cannot be read.
pub fn open_capture(path: &Path) -> Option<Content> {
    let mut file = File::open(path).ok()?;
    let mut prefix = Vec::new();
    file.by_ref().take(PREFIX_BYTES as u64).read_to_end(&mut prefix).ok()?;
    formats::is_capture(&prefix).then(|| -> Content { Box::new(Cursor::new(prefix).chain(file)) })
}

/// Reads the text of the file at `path`, without a byte order mark.
///
/// # Errors
/// States the problem and what is allowed.
pub fn read_text(path: &Path) -> Result<String, NotText> {
    read_text_at_most(path, MAX_TEXT_BYTES)
}

fn read_text_at_most(path: &Path, max_bytes: u64) -> Result<String, NotText> {
    let cannot = |error: std::io::Error| {
        let message = match error.kind() {
            ErrorKind::NotFound => "file not found".to_owned(),
            ErrorKind::IsADirectory => "this is a directory; allowed: a file of text".to_owned(),
            kind => format!("cannot be read ({kind}); allowed: a file of text"),
        };
        NotText { line: None, message }
    };
    let mut file = File::open(path).map_err(cannot)?;
    let mut content = Vec::new();
    // A large binary file is refused by its beginning. The limits also end the reading of devices that have no end.
    file.by_ref().take(PREFIX_BYTES as u64).read_to_end(&mut content).map_err(cannot)?;
    formats::check_text(&content)?;
    file.take(max_bytes).read_to_end(&mut content).map_err(cannot)?;
    if content.len() as u64 > max_bytes {
        let message = format!("larger than {} MiB; allowed: up to that", max_bytes >> 20);
        return Err(NotText { line: None, message });
    }
    formats::decoded(content)
}

impl Input {
    /// Returns an error in this file, or that the file has another tool's format, if that is recognized. The message
    /// names the format in which the file was read if it is another tool's.
    pub fn error(&self, line: Option<usize>, message: impl Into<String>) -> ScenarioError {
        if let Some(what) = formats::recognized(&self.text, self.purpose, self.format) {
            return ScenarioError::in_file(&self.name, None, what);
        }
        let message = match self.format.and_then(FileFormat::foreign_name) {
            Some(name) => format!("{} (this file is {name})", message.into()),
            None => message.into(),
        };
        ScenarioError::in_file(&self.name, line.and_then(|line| u32::try_from(line).ok()), message)
    }

    /// Returns the error for a file without a known format. `field` is the key that names the file.
    pub fn unknown_kind(&self, field: &Field<'_>, allowed: &str) -> ScenarioError {
        let what = formats::recognized(&self.text, self.purpose, self.format)
            .map_or_else(String::new, |what| format!("; {what}"));
        field.error(format!("unknown kind of file; allowed: {allowed}{what}"))
    }
}
