//! BTF, the kernel's type information: of the kernel that runs, and of a program.
//!
//! The format is that of Documentation/bpf/btf.rst. Only what the loader asks for is read.

use crate::elf::{Elf, text_at, u32_at};

/// Kinds of types that the loader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A pointer.
    Pointer = 2,
    /// A structure.
    Structure = 4,
    /// What a function takes and gives.
    Signature = 13,
    /// The variables of a section.
    Section = 15,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// The number of its type.
    pub kind: u32,
    /// Where it is, bytes.
    pub offset: u32,
}

/// Type information.
#[derive(Clone, Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    strings: usize,
    /// Where each type begins; the first is `void`, which has no place.
    places: Vec<usize>,
}

const HEADER_BYTES: usize = 24;
/// Bytes before what belongs to a kind.
const TYPE_BYTES: usize = 12;

impl Btf {
    /// Type information as the kernel shows it, or as clang writes it; `None` for anything else.
    pub fn parse(bytes: Vec<u8>) -> Option<Btf> {
        if u32_at(&bytes, 0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header = u32_at(&bytes, 4)? as usize;
        let (types, length) = (header + u32_at(&bytes, 8)? as usize, u32_at(&bytes, 12)? as usize);
        let strings = header + u32_at(&bytes, 16)? as usize;
        let mut places = vec![HEADER_BYTES];
        let mut place = types;
        while place < types + length {
            places.push(place);
            let info = u32_at(&bytes, place + 4)?;
            let count = (info & 0xffff) as usize;
            place += TYPE_BYTES
                + match (info >> 24) & 0x1f {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    4 | 5 | 15 | 19 => 12 * count,
                    6 | 13 => 8 * count,
                    2 | 7..=12 | 16 | 18 => 0,
                    _ => return None,
                };
        }
        Some(Btf { bytes, strings, places })
    }

    /// As it was parsed, with what was [fixed](Btf::place_variables) since.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn word(&self, id: u32, at: usize) -> u32 {
        self.places.get(id as usize).and_then(|place| u32_at(&self.bytes, place + at)).unwrap_or_default()
    }

    fn text(&self, offset: u32) -> &str {
        text_at(&self.bytes, self.strings + offset as usize).unwrap_or_default()
    }

    fn kind(&self, id: u32) -> u32 {
        (self.word(id, 4) >> 24) & 0x1f
    }

    fn count(&self, id: u32) -> usize {
        (self.word(id, 4) & 0xffff) as usize
    }

    /// The name of a type.
    pub fn name(&self, id: u32) -> &str {
        self.text(self.word(id, 0))
    }

    /// The number of a type.
    pub fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        let is_it = |&id: &u32| self.kind(id) == kind as u32 && self.name(id) == name;
        (1..self.places.len() as u32).find(is_it)
    }

    /// What is behind names and qualifiers.
    pub fn resolved(&self, id: u32) -> u32 {
        let mut id = id;
        // Typedef, volatile, const, restrict, type tag.
        while matches!(self.kind(id), 8..=11 | 18) {
            id = self.word(id, 8);
        }
        id
    }

    /// What a pointer, variable or signature is of.
    pub fn target(&self, id: u32) -> u32 {
        self.word(id, 8)
    }

    /// How long a value is, bytes.
    pub fn size(&self, id: u32) -> u32 {
        let id = self.resolved(id);
        match self.kind(id) {
            2 => 8,
            3 => self.word(id, 20) * self.size(self.word(id, 12)),
            _ => self.word(id, 8),
        }
    }

    /// The type and number of an array's elements.
    pub fn array(&self, id: u32) -> (u32, u32) {
        let id = self.resolved(id);
        (self.word(id, 12), self.word(id, 20))
    }

    /// The members of a structure.
    pub fn members(&self, id: u32) -> Vec<Member<'_>> {
        let id = self.resolved(id);
        // With bit-fields, the size of one is in the high byte.
        let mask = if self.word(id, 4) >> 31 == 1 { 0xff_ffff } else { u32::MAX };
        let member = |index: usize| {
            let at = TYPE_BYTES + 12 * index;
            let offset = (self.word(id, at + 8) & mask) / 8;
            Member { name: self.text(self.word(id, at)), kind: self.word(id, at + 4), offset }
        };
        (0..self.count(id)).map(member).collect()
    }

    /// The member of that name.
    pub fn member(&self, id: u32, name: &str) -> Option<Member<'_>> {
        self.members(id).into_iter().find(|member| member.name == name)
    }

    /// How many arguments a function takes to which a member points.
    pub fn arguments(&self, pointer: u32) -> usize {
        let signature = self.target(self.resolved(pointer));
        if self.kind(signature) == Kind::Signature as u32 { self.count(signature) } else { 0 }
    }

    /// Whether a member points to a function.
    pub fn is_function(&self, pointer: u32) -> bool {
        let pointer = self.resolved(pointer);
        self.kind(pointer) == Kind::Pointer as u32 && self.kind(self.target(pointer)) == Kind::Signature as u32
    }

    /// The variables of a section: name, type, place.
    pub fn variables(&self, section: &str) -> Vec<(&str, u32, u32)> {
        let Some(id) = self.find(Kind::Section, section) else { return Vec::new() };
        let variable = |index: usize| {
            let at = TYPE_BYTES + 12 * index;
            let variable = self.word(id, at);
            (self.name(variable), self.target(variable), self.word(id, at + 4))
        };
        (0..self.count(id)).map(variable).collect()
    }

    /// Writes down how long sections are and where their variables lie, which clang leaves to the loader.
    pub fn place_variables(&mut self, elf: &Elf<'_>) {
        for id in 1..self.places.len() as u32 {
            if self.kind(id) != Kind::Section as u32 {
                continue;
            }
            let Some((number, section)) = elf.section(self.name(id)) else { continue };
            let size = section.size as u32;
            self.put(id, 8, size);
            for index in 0..self.count(id) {
                let at = TYPE_BYTES + 12 * index;
                let name = self.name(self.word(id, at));
                let found = elf.symbols.iter().find(|symbol| symbol.section == number && symbol.name == name);
                let value = found.map(|symbol| symbol.value as u32);
                if let Some(value) = value {
                    self.put(id, at + 4, value);
                }
            }
        }
    }

    fn put(&mut self, id: u32, at: usize, value: u32) {
        let place = self.places[id as usize] + at;
        self.bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
    }
}
