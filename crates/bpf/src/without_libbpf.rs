//! The replacement of `libbpf` in builds without it. Its functions return [`BpfError::NotBuilt`], and its types have no
//! values.

use crate::error::BpfError;
use crate::loaded::Found;
use crate::programs::Prepared;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::Path;

/// The types of the running kernel, which cannot be read without libbpf.
#[derive(Debug)]
pub struct Kernel(Infallible);

impl Kernel {
    pub fn running() -> Result<Kernel, BpfError> {
        Err(BpfError::NotBuilt)
    }

    pub fn operations(&self) -> Result<(), BpfError> {
        match self.0 {}
    }

    pub fn has_member(&self, _structure: &str, _name: &str) -> bool {
        match self.0 {}
    }
}

/// A link that this process owns.
#[derive(Debug)]
pub struct OwnedLink(Infallible);

impl OwnedLink {
    pub fn detach(&self) {
        match self.0 {}
    }

    pub fn is_registered(&self) -> bool {
        match self.0 {}
    }

    pub fn pin(&mut self, _path: &Path) -> io::Result<()> {
        match self.0 {}
    }
}

pub fn register(_prepared: &Prepared, _name: &str) -> Result<OwnedLink, BpfError> {
    Err(BpfError::NotBuilt)
}

pub fn choose(_settings: &[u8], _cgroup: &File) -> Result<OwnedLink, BpfError> {
    Err(BpfError::NotBuilt)
}

pub fn controllers() -> Result<Vec<Found>, BpfError> {
    Err(BpfError::NotBuilt)
}

pub fn choosers(_settings: &[u8]) -> Result<Vec<u32>, BpfError> {
    Err(BpfError::NotBuilt)
}

pub fn detach(_link: u32) {}

/// The maps of a program's samples.
#[derive(Debug)]
pub struct Samples(Infallible);

impl Samples {
    pub fn find_in(_maps: &[u32]) -> Option<Samples> {
        None
    }

    pub fn take(&self) -> Result<Option<Vec<u8>>, BpfError> {
        match self.0 {}
    }

    pub fn record_until(&self, _ns: u64) -> Result<(), BpfError> {
        match self.0 {}
    }
}
