//! The types of the kernel that runs, and where it has the operations of a congestion controller.

use super::said;
use crate::doctor::release;
use crate::error::BpfError;
use libbpf_rs::btf::types::{FuncProto, MemberAttr, Ptr, Struct, StructMember};
use libbpf_rs::btf::{BtfType, TypeId};
use libbpf_rs::{Btf, ErrorKind, ReferencesType};
use std::path::Path;

/// Where the kernel shows its type information.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Arguments of `cong_control` since Linux 6.10.
const ARGUMENTS_OF_CONG_CONTROL: usize = 4;

/// The kernel's types.
#[derive(Debug)]
pub struct Kernel {
    release: String,
    types: Btf<'static>,
}

/// `tcp_congestion_ops` as the kernel has it, in the value of a map.
#[derive(Debug)]
pub struct Operations {
    /// The number of the value's type.
    pub value_kind: u32,
    /// Where the controller's name is in the value, bytes.
    pub name_at: usize,
    /// The operations that are functions, and where they are.
    pub functions: Vec<(String, usize)>,
}

fn member<'a>(structure: &'a Struct<'_>, name: &str) -> Option<StructMember<'a>> {
    structure.iter().find(|member| member.name.is_some_and(|found| found == name))
}

/// Where a member is, bytes.
fn place(member: &StructMember<'_>) -> usize {
    let (MemberAttr::Normal { offset } | MemberAttr::BitField { offset, .. }) = member.attr;
    offset as usize / 8
}

impl Kernel {
    /// The kernel that runs.
    ///
    /// # Errors
    /// [`BpfError::NoBtf`] where it does not show its types.
    pub fn running() -> Result<Kernel, BpfError> {
        Kernel::at(Path::new(TYPES))
    }

    /// As [`Kernel::running`], with its types from another file.
    fn at(path: &Path) -> Result<Kernel, BpfError> {
        said();
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

    /// The function to which a member points.
    fn function(&self, kind: TypeId) -> Option<FuncProto<'_>> {
        let resolved = self.types.type_by_id::<BtfType<'_>>(kind)?.skip_mods_and_typedefs();
        let pointer = Ptr::try_from(resolved).ok()?;
        FuncProto::try_from(pointer.referenced_type().skip_mods_and_typedefs()).ok()
    }

    /// Where the operations of a congestion controller lie.
    ///
    /// # Errors
    /// [`BpfError::KernelTooOld`], with what is missing.
    pub fn operations(&self) -> Result<Operations, BpfError> {
        let missing = || self.too_old("congestion control by BPF (struct_ops for tcp_congestion_ops)", "5.6");
        let table = self.structure("tcp_congestion_ops").ok_or_else(missing)?;
        let value = self.structure("bpf_struct_ops_tcp_congestion_ops").ok_or_else(missing)?;
        let start = member(&value, "data").as_ref().map(place).ok_or_else(missing)?;
        let control = member(&table, "cong_control").and_then(|control| self.function(control.ty));
        if control.ok_or_else(missing)?.len() < ARGUMENTS_OF_CONG_CONTROL {
            return Err(self.too_old("the arguments `ack` and `flag` of cong_control", "6.10"));
        }
        let name_at = start + member(&table, "name").as_ref().map(place).ok_or_else(missing)?;
        let functions = table.iter().filter(|member| self.function(member.ty).is_some());
        let functions = functions
            .filter_map(|member| Some((member.name?.to_string_lossy().into_owned(), start + place(&member))))
            .collect();
        Ok(Operations { value_kind: value.type_id().into(), name_at, functions })
    }

    /// Whether a structure of the kernel has a member.
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

    /// A file that is gone with its test.
    fn with_file<T>(name: &str, bytes: &[u8], test: impl FnOnce(&Path) -> T) -> T {
        let file = std::env::temp_dir().join(format!("sparelane-{name}-{}", std::process::id()));
        std::fs::write(&file, bytes).expect("a file");
        let outcome = test(&file);
        std::fs::remove_file(file).expect("a file");
        outcome
    }

    #[test]
    fn a_kernel_without_types_is_refused_with_what_it_needs() {
        let error = Kernel::at(Path::new("/no/such/kernel")).expect_err("no types").to_string();
        assert_eq!(
            error,
            "this kernel has no BTF (/no/such/kernel): it must be built with CONFIG_DEBUG_INFO_BTF=y, as those of \
             distributions are"
        );
        with_file("no-btf", b"not types", |file| {
            assert!(matches!(Kernel::at(file), Err(BpfError::NoBtf { .. })));
        });
    }

    /// A program's own types have no value for a map of operations: as those of a kernel before 5.6.
    #[test]
    fn a_kernel_that_is_too_old_is_told_the_feature_and_the_version() {
        let kernel = with_file("old", rtcp::PROGRAM.object, Kernel::at).expect("types");
        let kernel = Kernel { release: "5.4.0".to_owned(), ..kernel };
        let error = kernel.operations().expect_err("no operations").to_string();
        let feature = "congestion control by BPF (struct_ops for tcp_congestion_ops)";
        assert_eq!(error, format!("Linux 5.4.0 lacks {feature}, which is there from Linux 5.6 on"));
        assert!(kernel.has_member("tcp_sock", "snd_cwnd") && !kernel.has_member("tcp_sock", "no_such"));
    }

    /// The numbers in a type, by their paths from there.
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
    fn constants_are_in_the_order_in_which_a_program_has_them() {
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
