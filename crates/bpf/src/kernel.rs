//! The kernel that runs: its release, its types, and the operations of a congestion controller.

use crate::btf::{Btf, Kind};
use crate::error::BpfError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where the kernel shows its type information.
pub const BTF_PATH: &str = "/sys/kernel/btf/vmlinux";

/// The kernel's types.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its release, as `uname -r` has it.
    pub release: String,
    btf: Btf,
}

/// A member of `tcp_congestion_ops`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationPlace {
    /// Its name.
    pub name: String,
    /// Which member it is.
    pub index: u32,
    /// Where it is, bytes.
    pub offset: u32,
    /// Whether it is a function.
    pub is_function: bool,
}

/// `tcp_congestion_ops` as this kernel has it.
#[derive(Clone, Debug)]
pub struct Operations {
    /// The number of its type.
    pub kind: u32,
    /// The number of the type of a map's value, which holds it.
    pub value_kind: u32,
    /// How long that is.
    pub value_bytes: u32,
    /// Where in it the operations are.
    pub data_offset: u32,
    members: Vec<OperationPlace>,
}

impl Operations {
    /// The members that are functions.
    pub fn functions(&self) -> Vec<&OperationPlace> {
        self.members.iter().filter(|member| member.is_function).collect()
    }

    /// The member of that name.
    pub fn member(&self, name: &str) -> Option<&OperationPlace> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// Arguments of `cong_control` since Linux 6.10.
const ARGUMENTS_OF_CONG_CONTROL: usize = 4;

impl Kernel {
    /// The kernel that runs.
    ///
    /// # Errors
    /// [`BpfError::NoBtf`] where it does not show its types.
    pub fn running() -> Result<Kernel, BpfError> {
        Kernel::at(Path::new(BTF_PATH))
    }

    /// As [`Kernel::running`], with its types from another file.
    ///
    /// # Errors
    /// [`BpfError::NoBtf`] where there is no such file, or none of that form.
    pub fn at(path: &Path) -> Result<Kernel, BpfError> {
        let no_btf = || BpfError::NoBtf { path: PathBuf::from(path) };
        let bytes = std::fs::read(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => no_btf(),
            _ => BpfError::system(format!("reading {}", path.display()), error),
        })?;
        Ok(Kernel { release: release(), btf: Btf::parse(bytes).ok_or_else(no_btf)? })
    }

    fn too_old(&self, feature: &'static str, since: &'static str) -> BpfError {
        BpfError::KernelTooOld { release: self.release.clone(), feature, since }
    }

    /// Where the operations of a congestion controller lie.
    ///
    /// # Errors
    /// [`BpfError::KernelTooOld`], with what is missing.
    pub fn operations(&self) -> Result<Operations, BpfError> {
        let missing = || self.too_old("congestion control by BPF (struct_ops for tcp_congestion_ops)", "5.6");
        let kind = self.btf.find(Kind::Structure, "tcp_congestion_ops").ok_or_else(missing)?;
        let value_kind = self.btf.find(Kind::Structure, "bpf_struct_ops_tcp_congestion_ops").ok_or_else(missing)?;
        let data = self.btf.member(value_kind, "data").ok_or_else(missing)?;
        let members: Vec<OperationPlace> = self
            .btf
            .members(kind)
            .iter()
            .enumerate()
            .map(|(index, member)| OperationPlace {
                name: member.name.to_owned(),
                index: index as u32,
                offset: member.offset,
                is_function: self.btf.is_function(member.kind),
            })
            .collect();
        let control = self.btf.member(kind, "cong_control").ok_or_else(missing)?;
        if self.btf.arguments(control.kind) < ARGUMENTS_OF_CONG_CONTROL {
            return Err(self.too_old("the arguments `ack` and `flag` of cong_control", "6.10"));
        }
        Ok(Operations { kind, value_kind, value_bytes: self.btf.size(value_kind), data_offset: data.offset, members })
    }

    /// Whether a structure of the kernel has a member.
    pub fn has_member(&self, structure: &str, member: &str) -> bool {
        let found = self.btf.find(Kind::Structure, structure);
        found.is_some_and(|structure| self.btf.member(structure, member).is_some())
    }
}

/// What `uname -r` says.
pub fn release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Elf;

    #[test]
    fn a_kernel_without_types_is_refused_with_what_it_needs() {
        let error = Kernel::at(Path::new("/no/such/kernel")).expect_err("no types").to_string();
        assert_eq!(
            error,
            "this kernel has no BTF (/no/such/kernel): it must be built with CONFIG_DEBUG_INFO_BTF=y, as those of \
             distributions are"
        );
        let file = std::env::temp_dir().join(format!("sparelane-no-btf-{}", std::process::id()));
        std::fs::write(&file, b"not types").expect("a file");
        assert!(matches!(Kernel::at(&file), Err(BpfError::NoBtf { .. })));
        std::fs::remove_file(file).expect("a file");
    }

    /// A program's own types have no operations: as those of a kernel before 5.6.
    #[test]
    fn a_kernel_that_is_too_old_is_told_the_feature_and_the_version() {
        let program = crate::programs::rtcp::PROGRAM;
        let elf = Elf::parse(program.object).expect("an object");
        let (_, types) = elf.section(".BTF").expect("types");
        let btf = Btf::parse(types.data.to_vec()).expect("types");
        let kernel = Kernel { release: "5.4.0".to_owned(), btf };
        let error = kernel.operations().expect_err("no operations").to_string();
        let feature = "congestion control by BPF (struct_ops for tcp_congestion_ops)";
        assert_eq!(error, format!("Linux 5.4.0 lacks {feature}, which is there from Linux 5.6 on"));
        let refused =
            program.prepared(&[], sparelane_core::Rate::from_gbps(1)).expect("a program").register("x", &kernel);
        assert!(matches!(refused, Err(BpfError::KernelTooOld { .. })), "and nothing is loaded");
        assert!(kernel.has_member("tcp_sock", "snd_cwnd") && !kernel.has_member("tcp_sock", "no_such"));
    }
}
