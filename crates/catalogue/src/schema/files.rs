//! Files that a scenario names: topologies, flow lists, size distributions.

use super::error::ScenarioError;
use super::field::Field;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a scenario comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in messages.
    pub file: String,
    /// The folder that relative paths in it start from.
    pub folder: PathBuf,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name in messages.
    pub name: String,
    /// Its extension in lower case.
    pub extension: String,
    /// What it says.
    pub text: String,
}

impl Source {
    /// The scenario file at `path`.
    pub fn at(path: &Path) -> Source {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Source { file: path.display().to_string(), folder }
    }

    /// Reads the file that `field` names.
    ///
    /// # Errors
    /// There is no such file, or it is not text.
    pub fn read(&self, field: &Field<'_>) -> Result<Input, ScenarioError> {
        let path = self.folder.join(field.text()?);
        let name = path.display().to_string();
        let text = read_text(&path).map_err(|message| field.error(format!("{message}: {name}")))?;
        let extension = path.extension().map(|end| end.to_string_lossy().to_lowercase()).unwrap_or_default();
        Ok(Input { name, extension, text })
    }
}

/// The text of the file at `path`, or what is wrong with it.
pub fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "file not found".to_owned(),
        ErrorKind::InvalidData => "not a text file".to_owned(),
        kind => format!("cannot be read ({kind}); allowed: a file of text"),
    })
}

impl Input {
    /// A mistake in this file.
    pub fn error(&self, line: Option<usize>, message: impl Into<String>) -> ScenarioError {
        ScenarioError::in_file(&self.name, line.and_then(|line| u32::try_from(line).ok()), message)
    }
}
