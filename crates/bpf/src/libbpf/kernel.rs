//! The types of the running kernel (BTF), and the layout of its table of congestion-control operations.

use super::take_log;
use crate::doctor::release;
use crate::error::BpfError;
use libbpf_rs::btf::types::{FuncProto, MemberAttr, Ptr, Struct, StructMember};
use libbpf_rs::btf::{BtfType, TypeId};
use libbpf_rs::{Btf, ErrorKind, ReferencesType};
use std::path::Path;

/// The file with the kernel's type information.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The number of arguments of `cong_control` since Linux 6.10.
const CONG_CONTROL_ARGUMENTS: usize = 4;

/// A kernel's release and types.
#[derive(Debug)]
pub struct Kernel {
    release: String,
    types: Btf<'static>,
}

/// The layout of `tcp_congestion_ops` within the value of a map.
#[derive(Debug)]
pub struct Operations {
    /// The type ID of the value.
    pub value_type: u32,
    /// The offset of the controller's name in bytes.
    pub name_offset: usize,
    /// The names of the operations that are functions, with their offsets in bytes.
    pub functions: Vec<(String, usize)>,
}

fn member<'a>(structure: &'a Struct<'_>, name: &str) -> Option<StructMember<'a>> {
    structure.iter().find(|member| member.name.is_some_and(|found| found == name))
}

/// Returns the offset of a member in bytes.
fn offset(member: &StructMember<'_>) -> usize {
    let (MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. }) = member.attr;
    offset as usize / 8
}

impl Kernel {
    /// Reads the types of the running kernel.
    ///
    /// # Errors
    /// [`BpfError::NoBtf`] if it does not show them.
    pub fn running() -> Result<Kernel, BpfError> {
        Kernel::at(Path::new(TYPES))
    }

    /// Reads the types from a file.
    fn at(path: &Path) -> Result<Kernel, BpfError> {
        take_log();
        let types = Btf::from_path(path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => BpfError::NotPermitted { what: format!("reading {}", path.display()) },
            _ => BpfError::NoBtf { path: path.to_owned() },
        })?;
        Ok(Kernel { release: release(), types })
    }

    fn too_old(&self, feature: &'static str, since: &'static str) -> BpfError {
        BpfError::KernelTooOld { release: self.release.clone(), feature, since }
    }

    fn structure(&self, name: &str) -> Option<Struct<'_>> {
        self.types.type_by_name(name)
    }

    /// Returns the signature of the function to which a member of this type points.
    fn function(&self, kind: TypeId) -> Option<FuncProto<'_>> {
        let resolved = self.types.type_by_id::<BtfType<'_>>(kind)?.skip_mods_and_typedefs();
        let pointer = Ptr::try_from(resolved).ok()?;
        FuncProto::try_from(pointer.referenced_type().skip_mods_and_typedefs()).ok()
    }

    /// Returns the layout of the congestion-control operations.
    ///
    /// # Errors
    /// [`BpfError::KernelTooOld`] if the kernel does not support controllers by BPF, or not all their arguments.
    pub fn operations(&self) -> Result<Operations, BpfError> {
        let missing = || self.too_old("congestion control by BPF (struct_ops for tcp_congestion_ops)", "5.6");
        let table = self.structure("tcp_congestion_ops").ok_or_else(missing)?;
        let value = self.structure("bpf_struct_ops_tcp_congestion_ops").ok_or_else(missing)?;
        let start = member(&value, "data").as_ref().map(offset).ok_or_else(missing)?;
        let control = member(&table, "cong_control").and_then(|control| self.function(control.ty));
        if control.ok_or_else(missing)?.len() < CONG_CONTROL_ARGUMENTS {
            return Err(self.too_old("the arguments `ack` and `flag` of cong_control", "6.10"));
        }
        let name_offset = start + member(&table, "name").as_ref().map(offset).ok_or_else(missing)?;
        let functions = table.iter().filter(|member| self.function(member.ty).is_some());
        let functions = functions
            .filter_map(|member| Some((member.name?.to_string_lossy().into_owned(), start + offset(&member))))
            .collect();
        Ok(Operations { value_type: value.type_id().into(), name_offset, functions })
    }

    /// Returns whether a structure of the kernel has a member of this name.
    pub fn has_member(&self, structure: &str, name: &str) -> bool {
        self.structure(structure).is_some_and(|structure| member(&structure, name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{PROGRAMS, rtcp};
    use libbpf_rs::btf::types::{Array, Var};
    use sparelane_core::Rate;

    /// Calls `test` with a temporary file of this content.
    fn with_file<T>(name: &str, bytes: &[u8], test: impl FnOnce(&Path) -> T) -> T {
        let file = std::env::temp_dir().join(format!("sparelane-{name}-{}", std::process::id()));
        std::fs::write(&file, bytes).expect("a file");
        let outcome = test(&file);
        std::fs::remove_file(file).expect("a file");
        outcome
    }

    #[test]
    fn a_kernel_without_types_is_refused_with_the_required_option() {
        let error = Kernel::at(Path::new("/no/such/kernel")).expect_err("no types").to_string();
        assert_eq!(
            error,
            "this kernel has no BTF (/no/such/kernel): it must be built with CONFIG_DEBUG_INFO_BTF=y, as \
             distribution kernels are"
        );
        with_file("no-btf", b"not types", |file| {
            assert!(matches!(Kernel::at(file), Err(BpfError::NoBtf { .. })));
        });
    }

    /// The types of a program lack the value type of `struct_ops` maps, like those of a kernel before 5.6.
    #[test]
    fn the_error_for_an_old_kernel_names_the_feature_and_the_version() {
        let kernel = with_file("old", rtcp::PROGRAM.object, Kernel::at).expect("types");
        let kernel = Kernel { release: "5.4.0".to_owned(), ..kernel };
        let error = kernel.operations().expect_err("no operations").to_string();
        let feature = "congestion control by BPF (struct_ops for tcp_congestion_ops)";
        assert_eq!(error, format!("Linux 5.4.0 lacks {feature}, which needs Linux 5.6 or later"));
        assert!(kernel.has_member("tcp_sock", "snd_cwnd") && !kernel.has_member("tcp_sock", "no_such"));
    }

    /// Appends the paths of all numbers within a type to `found`.
    fn paths(types: &Btf<'_>, kind: BtfType<'_>, path: &str, found: &mut Vec<String>) {
        let kind = kind.skip_mods_and_typedefs();
        if let Ok(array) = Array::try_from(kind) {
            for at in 0..array.capacity() {
                paths(types, array.contained_type(), &format!("{path}[{at}]"), found);
            }
        } else if let Ok(structure) = Struct::try_from(kind) {
            for member in structure.iter() {
                let name = member.name.expect("a name").to_string_lossy();
                let dot = if path.is_empty() { "" } else { "." };
                paths(types, types.type_by_id(member.ty).expect("a type"), &format!("{path}{dot}{name}"), found);
            }
        } else {
            found.push(path.to_owned());
        }
    }

    #[test]
    fn constants_are_in_the_order_of_the_programs_structure() {
        for program in PROGRAMS {
            let types = with_file(program.name, program.object, |file| Btf::from_path(file)).expect("types");
            let settings: Var<'_> = types.type_by_name("settings").expect("settings");
            let mut declared = Vec::new();
            paths(&types, settings.referenced_type(), "", &mut declared);
            let prepared = program.prepared(&[], Rate::from_gbps(1)).expect("constants");
            let given: Vec<&str> = prepared.constants.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(given, declared, "{}", program.name);
        }
    }
}
