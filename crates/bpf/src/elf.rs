//! Object files as clang writes them for BPF: ELF, 64 bits, little-endian, relocatable.

/// A section.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it holds; nothing for one that is all zero.
    pub data: &'a [u8],
    /// How long it is.
    pub size: u64,
    kind: u32,
    info: u32,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<'a> {
    /// Its name; sections have none.
    pub name: &'a str,
    /// Where it is in its section.
    pub value: u64,
    /// Which section that is.
    pub section: usize,
}

/// A place in a section that depends on a symbol.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Where it is, bytes.
    pub offset: u64,
    /// The number of the symbol.
    pub symbol: usize,
    /// `R_BPF_64_64` is 1, `R_BPF_64_32` is 10.
    pub kind: u32,
}

/// An object file.
#[derive(Clone, Debug)]
pub struct Elf<'a> {
    /// All sections, in order.
    pub sections: Vec<Section<'a>>,
    /// All symbols, in order.
    pub symbols: Vec<Symbol<'a>>,
}

const SYMTAB: u32 = 2;
const NOBITS: u32 = 8;
const REL: u32 = 9;

/// The bytes at `offset`, or `None` beyond the end.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let found = bytes.get(offset..offset.checked_add(4)?)?;
    found.try_into().ok().map(u32::from_le_bytes)
}

/// As [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let found = bytes.get(offset..offset.checked_add(8)?)?;
    found.try_into().ok().map(u64::from_le_bytes)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let found = bytes.get(offset..offset.checked_add(2)?)?;
    found.try_into().ok().map(u16::from_le_bytes)
}

/// The text at `offset`, up to its zero byte.
pub(crate) fn text_at(bytes: &[u8], offset: usize) -> Option<&str> {
    let rest = bytes.get(offset..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

impl<'a> Elf<'a> {
    /// The file's sections and symbols; `None` for what is no such file.
    pub fn parse(file: &'a [u8]) -> Option<Elf<'a>> {
        if file.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let table = u64_at(file, 40)? as usize;
        let (entry_bytes, count, names) =
            (u16_at(file, 58)? as usize, u16_at(file, 60)? as usize, u16_at(file, 62)? as usize);
        let header = |index: usize| file.get(table + index * entry_bytes..table + (index + 1) * entry_bytes);
        let data_of = |header: &[u8]| -> Option<&'a [u8]> {
            let (offset, size) = (u64_at(header, 24)? as usize, u64_at(header, 32)? as usize);
            if u32_at(header, 4)? == NOBITS { Some(&[]) } else { file.get(offset..offset.checked_add(size)?) }
        };
        let names = data_of(header(names)?)?;
        let mut sections = Vec::with_capacity(count);
        let mut symbols = Vec::new();
        for index in 0..count {
            let header = header(index)?;
            let (data, kind) = (data_of(header)?, u32_at(header, 4)?);
            let name = text_at(names, u32_at(header, 0)? as usize)?;
            sections.push(Section { name, data, size: u64_at(header, 32)?, kind, info: u32_at(header, 44)? });
            if kind == SYMTAB {
                symbols = symbols_of(data, data_of(section_header(file, table, entry_bytes, u32_at(header, 40)?)?)?)?;
            }
        }
        Some(Elf { sections, symbols })
    }

    /// The section of that name, with its number.
    pub fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, section)| section.name == name)
    }

    /// The relocations of a section.
    pub fn relocations(&self, section: usize) -> Vec<Relocation> {
        let of_section = |table: &&Section<'_>| table.kind == REL && table.info as usize == section;
        let mut found = Vec::new();
        for table in self.sections.iter().filter(of_section) {
            for entry in table.data.chunks_exact(16) {
                if let (Some(offset), Some(info)) = (u64_at(entry, 0), u64_at(entry, 8)) {
                    found.push(Relocation { offset, symbol: (info >> 32) as usize, kind: info as u32 });
                }
            }
        }
        found
    }
}

fn section_header(file: &[u8], table: usize, entry_bytes: usize, index: u32) -> Option<&[u8]> {
    let start = table.checked_add(index as usize * entry_bytes)?;
    file.get(start..start + entry_bytes)
}

fn symbols_of<'a>(table: &[u8], names: &'a [u8]) -> Option<Vec<Symbol<'a>>> {
    let symbol = |entry: &[u8]| {
        let (name, section) = (text_at(names, u32_at(entry, 0)? as usize)?, u16_at(entry, 6)? as usize);
        Some(Symbol { name, value: u64_at(entry, 8)?, section })
    };
    table.chunks_exact(24).map(symbol).collect()
}
