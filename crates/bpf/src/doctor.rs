//! Checks of the kernel and its settings: requirements of the controllers that are not met, and how to meet them.

use crate::changes::Changes;
use crate::error::{BpfError, REBUILD};
use crate::libbpf::Kernel;
use crate::loaded::registered_names;
use crate::pins::check_pins;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub what: &'static str,
    /// True if the check passed.
    pub is_well: bool,
    /// The state that was found, in an English phrase.
    pub is: String,
    /// A command or advice that fixes a failed check; empty if the check passed.
    pub remedy: String,
    /// True if no controller can be loaded without this requirement.
    pub is_needed: bool,
}

/// True if this build can load programs, which requires libbpf.
pub const CAN_LOAD: bool = cfg!(feature = "libbpf");

/// Bits of capabilities (include/uapi/linux/capability.h). CAP_SYS_ADMIN implies CAP_PERFMON and CAP_BPF.
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Returns the effective capabilities of this process, or none if they cannot be read.
fn capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

/// Returns the kernel's release, as `uname -r` prints it.
pub(crate) fn release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns whether the capabilities of this process suffice to load programs.
pub fn may_load() -> bool {
    let has = capabilities();
    has & NET_ADMIN != 0 && (has & SYS_ADMIN != 0 || has & (BPF | PERFMON) == BPF | PERFMON)
}

fn finding(what: &'static str, is_well: bool, is: impl Into<String>, remedy: &str) -> Finding {
    let remedy = if is_well { String::new() } else { remedy.to_owned() };
    Finding { what, is_well, is: is.into(), remedy, is_needed: true }
}

/// Runs all checks.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![finding("kernel", true, format!("Linux {}", release()), "")];
    let is = if CAN_LOAD { "built in" } else { "not built in: libelf or zlib was missing" };
    findings.push(finding("loader of programs (libbpf)", CAN_LOAD, is, REBUILD));
    match Kernel::running() {
        Ok(kernel) => examine_kernel(&kernel, &mut findings),
        // Only libbpf can read the kernel's types, and its absence is already reported.
        Err(BpfError::NotBuilt) => {}
        Err(error) => findings.push(finding(
            "type information (BTF)",
            false,
            error.to_string(),
            "run a distribution kernel, or build one with CONFIG_DEBUG_INFO_BTF=y",
        )),
    }
    // Without it, kernels interpret programs, or reject them if they have no interpreter (CONFIG_BPF_JIT_ALWAYS_ON).
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let is_on = jit.trim() == "1" || jit.trim() == "2";
    let is = if is_on { "on" } else { "off: programs are interpreted or rejected" };
    findings.push(finding("BPF compiler (JIT)", is_on, is, "sysctl net.core.bpf_jit_enable=1"));
    let is_able = may_load();
    let is = if is_able { "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" } else { "not enough to load programs" };
    findings.push(finding("privileges", is_able, is, "run with sudo"));
    // Pins and cost counters are optional: controllers work without them.
    let pins = check_pins();
    let is = if pins.is_ok() {
        "mounted"
    } else {
        "not mounted: a controller is unloaded when the command that loaded it exits"
    };
    let pins = finding("/sys/fs/bpf", pins.is_ok(), is, "mount -t bpf bpf /sys/fs/bpf");
    findings.push(Finding { is_needed: false, ..pins });
    findings.extend(remains(&Changes::names(), &registered_names()));
    let stats = std::fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").unwrap_or_default();
    let is_counted = stats.trim() == "1";
    let is = if is_counted { "counted" } else { "not counted" };
    let cost =
        finding("cost of programs", is_counted, is, "sysctl kernel.bpf_stats_enabled=1 (costs about 20 ns per call)");
    findings.push(Finding { is_needed: false, ..cost });
    findings
}

/// Reports changes of controllers that are gone, as after their process was killed together with its
/// janitor.
fn remains(recorded: &[String], registered: &[String]) -> Option<Finding> {
    let gone: Vec<&str> =
        recorded.iter().map(String::as_str).filter(|&name| !registered.iter().any(|one| one == name)).collect();
    if gone.is_empty() {
        return None;
    }
    let changed: Vec<String> = gone
        .iter()
        .flat_map(|name| Changes::read(name).map(|record| record.descriptions()).unwrap_or_default())
        .collect();
    let is = format!("{} left changes: {}", gone.join(", "), changed.join(", "));
    let remedy = format!("sparelane kernel unload {}", gone.join(" "));
    Some(Finding { is_needed: false, ..finding("remains of killed commands", false, is, &remedy) })
}

/// Runs the checks that need the kernel's types.
fn examine_kernel(kernel: &Kernel, findings: &mut Vec<Finding>) {
    findings.push(finding("type information (BTF)", true, "present", ""));
    let newer = "install a newer kernel";
    match kernel.operations() {
        Ok(_) => findings.push(finding("controllers by BPF", true, "present, with all arguments of Linux 6.10", "")),
        Err(BpfError::KernelTooOld { feature, since, .. }) => {
            findings.push(finding("controllers by BPF", false, format!("no {feature} (Linux {since})"), newer));
        }
        Err(error) => findings.push(finding("controllers by BPF", false, error.to_string(), newer)),
    }
    // Registration by links came with Linux 6.4. The kernel's types show it: the structure of such a link exists.
    let has_links = kernel.has_member("bpf_struct_ops_link", "map");
    let is = if has_links { "present" } else { "missing (Linux 6.4)" };
    findings.push(finding("registration by links", has_links, is, newer));
    let has_microseconds = kernel.has_member("tcp_sock", "tcp_usec_ts");
    let is =
        if has_microseconds { "present; `load rapid --route` enables them" } else { "missing (Linux 6.7): no RAPID" };
    let microseconds = finding("time stamps in microseconds", has_microseconds, is, newer);
    findings.push(Finding { is_needed: false, ..microseconds });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_that_left_changes_are_reported_with_the_command_that_undoes_them() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let found = remains(&names(&["no_such_one", "cubic"]), &names(&["reno", "cubic"])).expect("a finding");
        assert_eq!((found.is_well, found.is_needed), (false, false));
        assert_eq!(found.remedy, "sparelane kernel unload no_such_one");
        assert_eq!(remains(&names(&["cubic"]), &names(&["cubic"])), None);
    }
}
