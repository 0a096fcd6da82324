//! What can go wrong between a command and the kernel.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What brings libbpf into a build that lacks it.
pub const REBUILD: &str = "install libelf-dev, zlib1g-dev and pkg-config, and build it again by `make build`, or by \
                           `MATURIN_PEP517_ARGS='--features libbpf' pip install .`";

/// Why a controller could not be loaded, found or removed. Nothing stays half-loaded: whatever the kernel held for it is gone.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The kernel refuses, as the caller may not.
    #[error("{what} needs the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run it with sudo")]
    NotPermitted {
        /// What was asked for.
        what: String,
    },
    /// There is nothing here that could load a program.
    #[error("this sparelane was built without libbpf, which loads programs into the kernel: {REBUILD}")]
    NotBuilt,
    /// The kernel has no type information.
    #[error(
        "this kernel has no BTF ({path}): it must be built with CONFIG_DEBUG_INFO_BTF=y, as those of distributions are"
    )]
    NoBtf {
        /// Where it would be.
        path: PathBuf,
    },
    /// The kernel lacks something.
    #[error("Linux {release} lacks {feature}, which is there from Linux {since} on")]
    KernelTooOld {
        /// The kernel that runs.
        release: String,
        /// What it lacks.
        feature: &'static str,
        /// The first that has it.
        since: &'static str,
    },
    /// Someone's controller has the name.
    #[error("a controller named {name} is loaded already{by}: unload it, or load this one under another name (--name)")]
    NameTaken {
        /// The name.
        name: String,
        /// Whose it is, as far as it is known.
        by: String,
    },
    /// No such controller is loaded.
    #[error("no controller named {name} is loaded; loaded: {loaded}")]
    NotLoaded {
        /// The name.
        name: String,
        /// What is.
        loaded: String,
    },
    /// A name that the kernel cannot hold.
    #[error("\"{name}\" is no name for a controller: allowed are 1 to 15 letters, digits and `_`")]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no program of that name.
    #[error("there is no program \"{name}\"; there are: {known}")]
    NoProgram {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A setting that does not exist, or a value that it cannot have.
    #[error("{0}")]
    Setting(String),
    /// No file system for pins.
    #[error(
        "{path} is no BPF file system, where what outlives a command is kept: `mount -t bpf bpf {path}`, or stay in the foreground"
    )]
    NoPins {
        /// Where it would be.
        path: PathBuf,
    },
    /// A route that does not exist.
    #[error(
        "there is no route to {destination} in table main; `ip route` and `ip -6 route` show those that there are \
         (`default` is IPv4's, and ::/0 that of IPv6)"
    )]
    NoRoute {
        /// What was asked for.
        destination: String,
    },
    /// A route that no connection goes over.
    #[error("the route to {destination} is {kind}; allowed is one that leads to another host (unicast)")]
    LeadsNowhere {
        /// What was asked for.
        destination: String,
        /// What it is instead, as `ip route` has it.
        kind: &'static str,
    },
    /// What is to be put back is elsewhere.
    #[error("{name} changed routes or interfaces in another network namespace ({namespace}): unload it there")]
    OtherNamespace {
        /// The controller.
        name: String,
        /// The number of the namespace, as `lsns -t net` has it.
        namespace: u64,
    },
    /// An interface that does not exist.
    #[error("there is no interface \"{name}\"; `ip link` shows those that there are")]
    NoInterface {
        /// What was asked for.
        name: String,
    },
    /// The verifier does not accept a program.
    #[error("the kernel refuses the program {program}: {last}")]
    Refused {
        /// Which one.
        program: String,
        /// The end of what the verifier says.
        last: String,
    },
    /// Signals have come too often.
    #[error("signals have interrupted the kernel's check of the program {program} again and again: try it once more")]
    Interrupted {
        /// Which one.
        program: String,
    },
    /// A program's object file is not what the loader expects.
    #[error("the object of {program} is damaged: {what}")]
    Object {
        /// Which one.
        program: String,
        /// What is wrong.
        what: String,
    },
    /// The kernel says no.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// Its answer.
        source: io::Error,
    },
}

impl BpfError {
    /// The kernel's answer to `what`; lack of privileges has an error of its own.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> BpfError {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => BpfError::NotPermitted { what },
            _ => BpfError::System { what, source },
        }
    }
}
