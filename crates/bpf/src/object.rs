//! From an object file to a controller that the kernel knows.
//!
//! The kernel finds by itself where the members of its types lie (CO-RE, since Linux 5.17), if a program comes with its type
//! information and the list of its accesses. What is left to do here: to make the maps, put their descriptors and those of the
//! constants into the instructions, load each operation, and register them together as `tcp_congestion_ops`.
//!
//! Everything is held by descriptors until the last step has succeeded, so that a failure leaves nothing behind.

use crate::btf::Btf;
use crate::elf::{Elf, Section, u32_at};
use crate::error::BpfError;
use crate::kernel::Kernel;
use crate::sys::{Attributes, Command};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Kinds of maps, programs and links, and flags (include/uapi/linux/bpf.h).
const MAP_ARRAY: u32 = 2;
const MAP_STRUCT_OPS: u32 = 26;
const PROGRAM_STRUCT_OPS: u32 = 27;
const PROGRAM_SOCKET_OPERATIONS: u32 = 13;
const ATTACH_STRUCT_OPS: u32 = 44;
const ATTACH_SOCKET_OPERATIONS: u32 = 3;
const READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;
const REGISTERED_BY_LINK: u32 = 1 << 13;
/// Which anyone may choose, as `net.ipv4.tcp_allowed_congestion_control` has it (TCP_CONG_NON_RESTRICTED).
const UNRESTRICTED: u32 = 1;

/// An instruction, bytes.
const INSTRUCTION: usize = 8;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const REFERS_TO_MAP: u8 = 1;
const REFERS_TO_VALUE: u8 = 2;
const TO_DATA: u32 = 1;
const TO_FUNCTION: u32 = 10;

/// The section of the variable that watchers write, and how its map is named, before the program's name.
const WATCHED: &str = ".data.watch";
/// As [`WATCHED`].
pub const WATCH_PREFIX: &str = "sl_";

/// What the verifier may write.
const LOG_BYTES: usize = 1 << 20;

/// A program before it is loaded, with constants that can be set.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    program: &'a str,
    elf: Elf<'a>,
    btf: Btf,
    constants: Vec<u8>,
}

/// What the kernel holds for a controller. It is gone when this is dropped, unless something is pinned.
#[derive(Debug)]
pub struct Registered {
    /// As long as this is open the controller is registered.
    pub link: OwnedFd,
    /// Maps, by name; `.bss` has the variables.
    pub maps: BTreeMap<String, OwnedFd>,
}

/// Where the records about one section are.
struct Records<'a> {
    record_bytes: u32,
    by_section: BTreeMap<&'a str, Vec<u8>>,
}

impl<'a> Object<'a> {
    /// Reads an object file.
    ///
    /// # Errors
    /// [`BpfError::Object`] for what clang did not write.
    pub fn parse(program: &'a str, file: &'a [u8]) -> Result<Object<'a>, BpfError> {
        let damaged = |what: &str| BpfError::Object { program: program.to_owned(), what: what.to_owned() };
        let elf = Elf::parse(file).ok_or_else(|| damaged("no ELF file of 64 bits"))?;
        let (_, section) = elf.section(".BTF").ok_or_else(|| damaged("no type information"))?;
        let mut btf =
            Btf::parse(section.data.to_vec()).ok_or_else(|| damaged("type information of an unknown form"))?;
        btf.place_variables(&elf);
        let constants = elf.section(".rodata").map(|(_, section)| section.data.to_vec()).unwrap_or_default();
        Ok(Object { program, elf, btf, constants })
    }

    fn damaged(&self, what: impl Into<String>) -> BpfError {
        BpfError::Object { program: self.program.to_owned(), what: what.into() }
    }

    /// Sets a member of the constant `settings`: `name`, `name[2]`, or `name[2].inner`.
    ///
    /// # Errors
    /// [`BpfError::Object`] where the program has no such member.
    pub fn set(&mut self, path: &str, value: u64) -> Result<(), BpfError> {
        let (mut kind, mut offset) = self
            .btf
            .variables(".rodata")
            .into_iter()
            .find_map(|(name, kind, offset)| (name == "settings").then_some((kind, offset)))
            .ok_or_else(|| self.damaged("no settings"))?;
        for part in path.split(['.', '[']) {
            if let Some(index) = part.strip_suffix(']') {
                let (element, count) = self.btf.array(kind);
                let index: u32 = index.parse().map_err(|_| self.damaged(format!("no setting {path}")))?;
                if index >= count {
                    return Err(self.damaged(format!("no setting {path}: there are {count}")));
                }
                (kind, offset) = (element, offset + index * self.btf.size(element));
            } else {
                let member = self.btf.member(kind, part).ok_or_else(|| self.damaged(format!("no setting {path}")))?;
                (kind, offset) = (member.kind, offset + member.offset);
            }
        }
        let (start, length) = (offset as usize, self.btf.size(kind).min(8) as usize);
        let bytes = &value.to_le_bytes()[..length];
        match self.constants.get_mut(start..start + length) {
            Some(place) => place.copy_from_slice(bytes),
            None => return Err(self.damaged(format!("setting {path} lies outside"))),
        }
        Ok(())
    }

    /// The constant `settings` as it is set, byte for byte.
    pub fn settings(&self) -> &[u8] {
        let found = self.btf.variables(".rodata").into_iter().find(|&(name, ..)| name == "settings");
        let range = found.map(|(_, kind, offset)| offset as usize..(offset + self.btf.size(kind)) as usize);
        range.and_then(|range| self.constants.get(range)).unwrap_or_default()
    }

    /// Where a variable lies in `.bss`.
    pub fn variable(&self, wanted: &str) -> Option<u32> {
        self.btf.variables(".bss").into_iter().find_map(|(name, _, offset)| (name == wanted).then_some(offset))
    }

    /// Loads the program and registers it as `name`.
    ///
    /// # Errors
    /// What the kernel refuses; nothing is left behind then.
    pub fn register(&self, name: &str, kernel: &Kernel) -> Result<Registered, BpfError> {
        let operations = kernel.operations()?;
        let btf = load_btf(self.btf.bytes())?;
        let maps = self.make_maps(name, btf.as_fd())?;
        let (functions, lines, accesses) = self.records()?;
        let mut value = vec![0; operations.value_bytes as usize];
        let mut loaded = Vec::new();
        for (number, section) in self.elf.sections.iter().enumerate() {
            let Some(operation) = section.name.strip_prefix("struct_ops/") else { continue };
            let member = operations
                .member(operation)
                .ok_or_else(|| self.damaged(format!("the kernel has no operation {operation}")))?;
            let fd = self.load(&Operation {
                number,
                section,
                title: &format!("{name}_{operation}"),
                btf: btf.as_fd(),
                maps: &maps,
                kind: PROGRAM_STRUCT_OPS,
                attach_btf_id: operations.kind,
                attach_type: member.index,
                functions: &functions,
                lines: &lines,
                accesses: &accesses,
            })?;
            let place = (operations.data_offset + member.offset) as usize;
            value[place..place + 8].copy_from_slice(&(fd.as_raw_fd() as u64).to_ne_bytes());
            loaded.push(fd);
        }
        let at =
            |member: &str| operations.member(member).map(|member| (operations.data_offset + member.offset) as usize);
        let (name_at, flags_at) =
            at("name").zip(at("flags")).ok_or_else(|| self.damaged("the kernel's operations have no name"))?;
        value[name_at..name_at + name.len()].copy_from_slice(name.as_bytes());
        value[flags_at..flags_at + 4].copy_from_slice(&UNRESTRICTED.to_ne_bytes());
        let link = attach(name, &value, operations.value_kind, btf.as_fd())?;
        Ok(Registered { link, maps })
    }

    /// Loads the program of the section `sockops` and attaches it to a cgroup, as long as the link is open.
    ///
    /// # Errors
    /// What the kernel refuses; nothing is left behind then.
    pub fn attach_to_cgroup(&self, title: &str, cgroup: BorrowedFd<'_>) -> Result<OwnedFd, BpfError> {
        let (number, section) = self.elf.section("sockops").ok_or_else(|| self.damaged("no program for cgroups"))?;
        let btf = load_btf(self.btf.bytes())?;
        let maps = self.make_maps(title, btf.as_fd())?;
        let (functions, lines, accesses) = self.records()?;
        let program = self.load(&Operation {
            number,
            section,
            title,
            btf: btf.as_fd(),
            maps: &maps,
            kind: PROGRAM_SOCKET_OPERATIONS,
            attach_btf_id: 0,
            attach_type: ATTACH_SOCKET_OPERATIONS,
            functions: &functions,
            lines: &lines,
            accesses: &accesses,
        })?;
        let attributes = Attributes::new().fd(0, program.as_fd()).fd(4, cgroup).u32(8, ATTACH_SOCKET_OPERATIONS);
        attributes
            .run_for_fd(Command::LinkCreate)
            .map_err(|error| BpfError::system("attaching to a cgroup (which needs CONFIG_CGROUP_BPF)", error))
    }

    /// Makes the maps that the program declares, and those of its constants and variables.
    fn make_maps(&self, name: &str, btf: BorrowedFd<'_>) -> Result<BTreeMap<String, OwnedFd>, BpfError> {
        let mut maps = BTreeMap::new();
        for (map, kind, _) in self.btf.variables(".maps") {
            let number = |member: &str| -> u32 {
                let found = self.btf.member(kind, member);
                found.map_or(0, |member| self.btf.array(self.btf.target(self.btf.resolved(member.kind))).1)
            };
            let target = |member: &str| -> u32 {
                let found = self.btf.member(kind, member);
                found.map_or(0, |member| self.btf.target(self.btf.resolved(member.kind)))
            };
            let (key, value) = (target("key"), target("value"));
            let size = |kind: u32| if kind == 0 { 0 } else { self.btf.size(kind) };
            let mut attributes = Attributes::new()
                .u32(0, number("type"))
                .u32(4, size(key))
                .u32(8, size(value))
                .u32(12, number("max_entries"))
                .u32(16, number("map_flags"))
                .name(28, map);
            if key != 0 {
                attributes = attributes.fd(48, btf).u32(52, key).u32(56, value);
            }
            let fd = attributes
                .run_for_fd(Command::MapCreate)
                .map_err(|error| BpfError::system(format!("making the map {map} of {name}"), error))?;
            maps.insert(map.to_owned(), fd);
        }
        if !self.constants.is_empty() {
            let fd = make_array("rodata", self.constants.len() as u32, READ_ONLY_FOR_PROGRAMS)?;
            write(fd.as_fd(), &self.constants)?;
            Attributes::new()
                .fd(0, fd.as_fd())
                .run(Command::MapFreeze)
                .map_err(|error| BpfError::system("closing the map of constants", error))?;
            maps.insert(".rodata".to_owned(), fd);
        }
        // By the name of the second one whoever looks at the kernel's maps knows the program.
        for (variables, title) in
            [(".bss", "variables".to_owned()), (WATCHED, format!("{WATCH_PREFIX}{}", self.program))]
        {
            if let Some((_, section)) = self.elf.section(variables)
                && section.size > 0
            {
                maps.insert(variables.to_owned(), make_array(&title, section.size as u32, 0)?);
            }
        }
        Ok(maps)
    }

    /// The records of .BTF.ext: functions, lines, and accesses to the kernel's types.
    fn records(&self) -> Result<(Records<'_>, Records<'_>, Records<'_>), BpfError> {
        let (_, extra) = self.elf.section(".BTF.ext").ok_or_else(|| self.damaged("no list of accesses"))?;
        let table = |index: usize| {
            self.table(extra.data, index).ok_or_else(|| self.damaged("a list of accesses that ends early"))
        };
        Ok((table(0)?, table(1)?, table(2)?))
    }

    fn table(&self, extra: &[u8], index: usize) -> Option<Records<'_>> {
        let header = u32_at(extra, 4)? as usize;
        let start = header + u32_at(extra, 8 + 8 * index)? as usize;
        let end = start + u32_at(extra, 12 + 8 * index)? as usize;
        // A program without such records has no table of them.
        if start == end {
            return Some(Records { record_bytes: 16, by_section: BTreeMap::new() });
        }
        let record_bytes = u32_at(extra, start)?;
        let (_, btf) = self.elf.section(".BTF")?;
        let strings = u32_at(btf.data, 4)? as usize + u32_at(btf.data, 16)? as usize;
        let mut by_section = BTreeMap::new();
        let mut at = start + 4;
        while at < end {
            let name = crate::elf::text_at(btf.data, strings + u32_at(extra, at)? as usize)?;
            let bytes = u32_at(extra, at + 4)? as usize * record_bytes as usize;
            by_section.insert(name, extra.get(at + 8..at + 8 + bytes)?.to_vec());
            at += 8 + bytes;
        }
        Some(Records { record_bytes, by_section })
    }

    /// Loads one operation, with the functions that it calls behind it.
    fn load(&self, operation: &Operation<'_>) -> Result<OwnedFd, BpfError> {
        let mut code = operation.section.data.to_vec();
        let own_bytes = code.len();
        let text = self.elf.section(".text");
        let calls = self.elf.relocations(operation.number).iter().any(|place| place.kind == TO_FUNCTION);
        let mut pieces = vec![(operation.number, operation.section.name, 0)];
        if let (true, Some((number, section))) = (calls, text) {
            code.extend_from_slice(section.data);
            pieces.push((number, section.name, own_bytes));
        }
        for &(number, _, base) in &pieces {
            self.relocate(&mut code, number, base, own_bytes, operation.maps)?;
        }
        let gather = |records: &Records<'_>, in_instructions: bool| {
            let mut all = Vec::new();
            for &(_, name, base) in &pieces {
                let of_piece = records.by_section.get(name).map(Vec::as_slice).unwrap_or_default();
                for record in of_piece.chunks_exact(records.record_bytes as usize) {
                    let mut record = record.to_vec();
                    let offset = u32_at(&record, 0).unwrap_or_default() + base as u32;
                    let offset = if in_instructions { offset / INSTRUCTION as u32 } else { offset };
                    record[..4].copy_from_slice(&offset.to_le_bytes());
                    all.extend_from_slice(&record);
                }
            }
            all
        };
        let (functions, lines, accesses) =
            (gather(operation.functions, true), gather(operation.lines, true), gather(operation.accesses, false));
        let count = |all: &[u8], records: &Records<'_>| all.len() as u32 / records.record_bytes;
        let attributes = Attributes::new()
            .u32(0, operation.kind)
            .u32(4, (code.len() / INSTRUCTION) as u32)
            .input(8, &code)
            .input(16, b"GPL\0")
            .name(48, operation.title)
            .u32(68, operation.attach_type)
            .fd(72, operation.btf)
            .u32(76, operation.functions.record_bytes)
            .input(80, &functions)
            .u32(88, count(&functions, operation.functions))
            .u32(92, operation.lines.record_bytes)
            .input(96, &lines)
            .u32(104, count(&lines, operation.lines))
            .u32(108, operation.attach_btf_id)
            .u32(116, count(&accesses, operation.accesses))
            .input(128, &accesses)
            .u32(136, operation.accesses.record_bytes);
        let error = match unless_interrupted(|| attributes.clone().run_for_fd(Command::ProgramLoad)) {
            Ok(fd) => return Ok(fd),
            Err(error) => error,
        };
        if error.kind() == io::ErrorKind::WouldBlock {
            return Err(BpfError::Interrupted { program: operation.title.to_owned() });
        }
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error() == Some(nix::libc::EPERM) {
            return Err(BpfError::system(format!("loading {}", operation.title), error));
        }
        // Once more, for the verifier's reasons.
        let mut log = vec![0; LOG_BYTES];
        let _ = attributes.u32(24, 1).u32(28, LOG_BYTES as u32).output(32, &mut log).run_for_fd(Command::ProgramLoad);
        let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
        let said = String::from_utf8_lossy(said);
        let lines: Vec<&str> =
            said.lines().filter(|line| !line.is_empty() && !line.starts_with("processed ")).collect();
        let last = lines[lines.len().saturating_sub(12)..].join("\n");
        let last = if last.is_empty() { error.to_string() } else { last };
        Err(BpfError::Refused { program: operation.title.to_owned(), last })
    }

    /// Puts descriptors, and the places of functions, into the instructions of a section that begin at `base`.
    fn relocate(
        &self,
        code: &mut [u8],
        number: usize,
        base: usize,
        text_base: usize,
        maps: &BTreeMap<String, OwnedFd>,
    ) -> Result<(), BpfError> {
        for place in self.elf.relocations(number) {
            let at = base + place.offset as usize;
            let symbol =
                self.elf.symbols.get(place.symbol).ok_or_else(|| self.damaged("a relocation without a symbol"))?;
            let section =
                self.elf.sections.get(symbol.section).ok_or_else(|| self.damaged("a symbol without a section"))?;
            let immediate = u32_at(code, at + 4).ok_or_else(|| self.damaged("a relocation outside of its section"))?;
            let mut set =
                |offset: usize, value: u32| code[at + offset..at + offset + 4].copy_from_slice(&value.to_le_bytes());
            match place.kind {
                TO_DATA => {
                    let is_map = section.name == ".maps";
                    let map = if is_map { symbol.name } else { section.name };
                    let fd = maps.get(map).ok_or_else(|| self.damaged(format!("no map {map}")))?;
                    set(4, fd.as_raw_fd() as u32);
                    if !is_map {
                        set(12, symbol.value as u32 + immediate);
                    }
                    if code[at] != LOAD_IMMEDIATE_64 {
                        return Err(self.damaged("a relocation of an instruction that loads nothing"));
                    }
                    let reference = if is_map { REFERS_TO_MAP } else { REFERS_TO_VALUE };
                    code[at + 1] = (code[at + 1] & 0x0f) | (reference << 4);
                }
                TO_FUNCTION => {
                    let target = (text_base + symbol.value as usize) / INSTRUCTION;
                    let target = target as u32 + immediate.wrapping_add(1);
                    set(4, target.wrapping_sub((at / INSTRUCTION) as u32 + 1));
                }
                kind => return Err(self.damaged(format!("a relocation of the unknown kind {kind}"))),
            }
        }
        Ok(())
    }
}

/// How often a program is loaded at most that signals interrupt.
const MOST_ATTEMPTS: usize = 20;

/// Calls again where a signal has ended the verification of a program, which takes seconds (EAGAIN). The signal's handler has
/// run by then.
fn unless_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..MOST_ATTEMPTS {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
    }
    call()
}

/// What is needed to load one operation.
struct Operation<'a> {
    number: usize,
    section: &'a Section<'a>,
    title: &'a str,
    btf: BorrowedFd<'a>,
    maps: &'a BTreeMap<String, OwnedFd>,
    kind: u32,
    attach_btf_id: u32,
    /// Which member of the operations it is, or how it is attached.
    attach_type: u32,
    functions: &'a Records<'a>,
    lines: &'a Records<'a>,
    accesses: &'a Records<'a>,
}

fn load_btf(bytes: &[u8]) -> Result<OwnedFd, BpfError> {
    Attributes::new()
        .input(0, bytes)
        .u32(16, bytes.len() as u32)
        .run_for_fd(Command::BtfLoad)
        .map_err(|error| BpfError::system("loading type information", error))
}

fn make_array(name: &str, bytes: u32, flags: u32) -> Result<OwnedFd, BpfError> {
    Attributes::new()
        .u32(0, MAP_ARRAY)
        .u32(4, 4)
        .u32(8, bytes)
        .u32(12, 1)
        .u32(16, flags)
        .name(28, name)
        .run_for_fd(Command::MapCreate)
        .map_err(|error| BpfError::system(format!("making the map {name}"), error))
}

/// Writes the only element of an array.
pub fn write(map: BorrowedFd<'_>, value: &[u8]) -> Result<(), BpfError> {
    Attributes::new()
        .fd(0, map)
        .input(8, &0u32.to_ne_bytes())
        .input(16, value)
        .run(Command::MapUpdate)
        .map_err(|error| BpfError::system("writing a map", error))
}

/// Reads the only element of an array.
pub fn read(map: BorrowedFd<'_>, bytes: usize) -> Result<Vec<u8>, BpfError> {
    let mut value = vec![0; bytes];
    Attributes::new()
        .fd(0, map)
        .input(8, &0u32.to_ne_bytes())
        .output(16, &mut value)
        .run(Command::MapLookup)
        .map_err(|error| BpfError::system("reading a map", error))?;
    Ok(value)
}

/// Registers the operations, for as long as the link is open.
fn attach(name: &str, value: &[u8], value_kind: u32, btf: BorrowedFd<'_>) -> Result<OwnedFd, BpfError> {
    let map = Attributes::new()
        .u32(0, MAP_STRUCT_OPS)
        .u32(4, 4)
        .u32(8, value.len() as u32)
        .u32(12, 1)
        .u32(16, REGISTERED_BY_LINK)
        .name(28, name)
        .fd(48, btf)
        .u32(60, value_kind)
        .run_for_fd(Command::MapCreate)
        .map_err(|error| BpfError::system(format!("making the operations of {name}"), error))?;
    write(map.as_fd(), value)?;
    let link = Attributes::new().fd(0, map.as_fd()).u32(8, ATTACH_STRUCT_OPS).run_for_fd(Command::LinkCreate);
    link.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BpfError::NameTaken { name: name.to_owned(), by: String::new() },
        _ => BpfError::system(format!("registering {name}"), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_signal_interrupts_is_called_again_and_not_for_ever() {
        let mut calls = 0;
        let mut answer = |until: usize| {
            calls = 0;
            let outcome = unless_interrupted(|| {
                calls += 1;
                if calls < until { Err(io::Error::from_raw_os_error(nix::libc::EAGAIN)) } else { Ok(calls) }
            });
            (outcome.map_err(|error| error.kind()), calls)
        };
        assert_eq!(answer(1), (Ok(1), 1));
        assert_eq!(answer(8), (Ok(8), 8));
        assert_eq!(answer(1000), (Err(io::ErrorKind::WouldBlock), MOST_ATTEMPTS));
        let refused = unless_interrupted(|| Err::<(), _>(io::ErrorKind::InvalidInput.into()));
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidInput));
    }
}
