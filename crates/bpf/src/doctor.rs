//! What a kernel and its settings lack for these controllers, and the command that mends it.

use crate::error::{BpfError, REBUILD};
use crate::libbpf::Kernel;
use crate::pins::check_pins;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub is_well: bool,
    /// How it is.
    pub is: String,
    /// What mends it, or what it is good for; empty where all is well.
    pub remedy: String,
    /// Whether nothing works without it.
    pub is_needed: bool,
}

/// Whether anything here could load a program.
pub const CAN_LOAD: bool = cfg!(feature = "libbpf");

/// CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF, and CAP_SYS_ADMIN, which stands for the last two.
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

fn capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
}

/// What `uname -r` says.
pub(crate) fn release() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether this process may load programs, as far as its capabilities tell.
pub fn may_load() -> bool {
    let has = capabilities();
    has & NET_ADMIN != 0 && (has & SYS_ADMIN != 0 || has & (BPF | PERFMON) == BPF | PERFMON)
}

fn finding(what: &'static str, is_well: bool, is: impl Into<String>, remedy: &str) -> Finding {
    let remedy = if is_well { String::new() } else { remedy.to_owned() };
    Finding { what, is_well, is: is.into(), remedy, is_needed: true }
}

/// Looks at everything, whatever is missing.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![finding("kernel", true, format!("Linux {}", release()), "")];
    let is = if CAN_LOAD { "built in" } else { "not built in, as libelf or zlib was missing" };
    findings.push(finding("loader of programs (libbpf)", CAN_LOAD, is, REBUILD));
    match Kernel::running() {
        Ok(kernel) => examine_kernel(&kernel, &mut findings),
        // Without the loader nothing can read the kernel's types.
        Err(BpfError::NotBuilt) => {}
        Err(error) => findings.push(finding(
            "type information (BTF)",
            false,
            error.to_string(),
            "run a kernel of a distribution, or build one with CONFIG_DEBUG_INFO_BTF=y",
        )),
    }
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    let is_on = jit.trim() == "1" || jit.trim() == "2";
    let is = if is_on { "on" } else { "off: programs are interpreted, or refused" };
    findings.push(finding("BPF compiler (JIT)", is_on, is, "sysctl net.core.bpf_jit_enable=1"));
    let is_able = may_load();
    let is = if is_able { "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN" } else { "not enough to load programs" };
    findings.push(finding("privileges", is_able, is, "run with sudo"));
    let pins = check_pins();
    let is = if pins.is_ok() { "mounted" } else { "not mounted: a controller ends with the command that loads it" };
    let pins = finding("/sys/fs/bpf", pins.is_ok(), is, "mount -t bpf bpf /sys/fs/bpf");
    findings.push(Finding { is_needed: false, ..pins });
    let stats = std::fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").unwrap_or_default();
    let is_counted = stats.trim() == "1";
    let is = if is_counted { "counted" } else { "not counted" };
    let cost =
        finding("cost of programs", is_counted, is, "sysctl kernel.bpf_stats_enabled=1 (costs some 20 ns a call)");
    findings.push(Finding { is_needed: false, ..cost });
    findings
}

fn examine_kernel(kernel: &Kernel, findings: &mut Vec<Finding>) {
    findings.push(finding("type information (BTF)", true, "there", ""));
    let newer = "install a newer kernel";
    match kernel.operations() {
        Ok(_) => findings.push(finding("controllers by BPF", true, "with all arguments of Linux 6.10", "")),
        Err(BpfError::KernelTooOld { feature, since, .. }) => {
            findings.push(finding("controllers by BPF", false, format!("no {feature} (Linux {since})"), newer));
        }
        Err(error) => findings.push(finding("controllers by BPF", false, error.to_string(), newer)),
    }
    // Links of operations came with 6.4; the state that they keep is in the types.
    let has_links = kernel.has_member("bpf_struct_ops_link", "map");
    let is = if has_links { "there" } else { "missing (Linux 6.4)" };
    findings.push(finding("registration by links", has_links, is, newer));
    let has_microseconds = kernel.has_member("tcp_sock", "tcp_usec_ts");
    let is = if has_microseconds { "there; `load rapid --route` sets them" } else { "missing (Linux 6.7): no RAPID" };
    let microseconds = finding("time stamps in microseconds", has_microseconds, is, newer);
    findings.push(Finding { is_needed: false, ..microseconds });
}
