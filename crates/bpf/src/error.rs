//! Errors of loading, finding and removing controllers.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The instructions for a build with libbpf, as part of an error message.
pub const REBUILD: &str = "install libelf-dev, zlib1g-dev and pkg-config, then rebuild with `make build` or with \
                           `MATURIN_PEP517_ARGS='--features libbpf' pip install .`";

/// The reason why a controller could not be loaded, found or removed.
///
/// After an error, the kernel holds nothing of a controller that was only partly loaded.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The process lacks the capabilities.
    #[error("{what} needs the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run it with sudo")]
    NotPermitted {
        /// The operation.
        what: String,
    },
    /// The build lacks libbpf.
    #[error("this sparelane was built without libbpf, which loads programs into the kernel: {REBUILD}")]
    NotBuilt,
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF ({path}): it must be built with CONFIG_DEBUG_INFO_BTF=y, as distribution kernels are"
    )]
    NoBtf {
        /// The file in which the kernel would show it.
        path: PathBuf,
    },
    /// The running kernel is too old.
    #[error("Linux {release} lacks {feature}, which needs Linux {since} or later")]
    KernelTooOld {
        /// The release of the running kernel.
        release: String,
        /// The missing feature.
        feature: &'static str,
        /// The first release that has it.
        since: &'static str,
    },
    /// Another controller already has the name.
    #[error("a controller named {name} is already loaded{by}: unload it, or load this one under another name (--name)")]
    NameTaken {
        /// The name.
        name: String,
        /// The program or owner of the other controller, in parentheses or after "by"; empty if unknown.
        by: String,
    },
    /// No such controller is loaded.
    #[error("no controller named {name} is loaded; loaded: {loaded}")]
    NotLoaded {
        /// The name.
        name: String,
        /// The names of the loaded controllers, or "none".
        loaded: String,
    },
    /// The kernel cannot store the name.
    #[error("\"{name}\" is not a controller name; allowed: 1 to 15 letters, digits and `_`")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no program of that name.
    #[error("there is no program \"{name}\"; available: {known}")]
    NoProgram {
        /// The requested name.
        name: String,
        /// The names of all programs.
        known: String,
    },
    /// A setting does not exist, or its value is not allowed.
    #[error("{0}")]
    Setting(String),
    /// No BPF file system is mounted, so nothing can be pinned.
    #[error(
        "{path} is not a BPF file system, which controllers need to outlive a command: run `mount -t bpf bpf {path}`, \
         or load the controller with --foreground"
    )]
    NoBpfFileSystem {
        /// The expected mount point.
        path: PathBuf,
    },
    /// A route does not exist.
    #[error(
        "there is no route to {destination} in table main; `ip route` and `ip -6 route` list the routes \
         (`default` is the default route of IPv4, and ::/0 that of IPv6)"
    )]
    NoRoute {
        /// The requested destination.
        destination: String,
    },
    /// A route leads to no other host, so no connection uses it.
    #[error("the route to {destination} is {kind}; allowed: a route to another host (unicast)")]
    NotUnicast {
        /// The requested destination.
        destination: String,
        /// The type of the route, as in the output of `ip route`.
        kind: &'static str,
    },
    /// The changes to undo are in another network namespace.
    #[error("{name} changed routes or interfaces in another network namespace ({namespace}): unload it there")]
    OtherNamespace {
        /// The controller.
        name: String,
        /// The inode number of the namespace, as in the output of `lsns -t net`.
        namespace: u64,
    },
    /// An interface does not exist.
    #[error("there is no interface \"{name}\"; `ip link` lists the interfaces")]
    NoInterface {
        /// The requested name.
        name: String,
    },
    /// The kernel's verifier rejected a program.
    #[error("the kernel rejected the program {program}: {last}")]
    Rejected {
        /// The program.
        program: String,
        /// The last lines of the verifier's log.
        last: String,
    },
    /// Signals interrupted every attempt to load a program.
    #[error("signals kept interrupting the kernel's verification of the program {program}: try again")]
    Interrupted {
        /// The program.
        program: String,
    },
    /// The loader cannot use the object file of a program.
    #[error("the object file of {program} is damaged: {what}")]
    DamagedObject {
        /// The program.
        program: String,
        /// The fault.
        what: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system call.
        source: io::Error,
    },
}

impl BpfError {
    /// Returns the error of a failed operation: [`BpfError::NotPermitted`] if a privilege is missing, otherwise
    /// [`BpfError::System`].
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> BpfError {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => BpfError::NotPermitted { what },
            _ => BpfError::System { what, source },
        }
    }
}
