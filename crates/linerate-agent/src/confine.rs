//! An agent that gives up what it does not need, once it has bound and read what took root.
//!
//! One that stays root keeps the capabilities that observers ask for (`KEPT`), and what root reads of others
//! (`KEPT_BY_ROOT`). One that is told to become another user goes further:
//!
//! 1. It becomes that user, and keeps the capabilities that observers ask for.
//! 2. It reads files and changes none: Landlock, where the kernel has it.
//! 3. What no agent ever asks of the kernel is refused: seccomp, where the kernel has it. It is a list of what
//!    is denied, not of what is allowed: libraries and kernels come by calls that nobody foresaw, and an
//!    agent that cannot measure is no safer than one that is not there. New namespaces are denied whatever
//!    call asks for them: in a user namespace of its own a process has every capability again.
//!
//! Where the kernel lacks one of the last two, the agent goes on and says so.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use caps::{CapSet, Capability, CapsHashSet};
use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use nix::unistd::{Gid, Uid, User};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// The capabilities that are kept, and for what.
pub const KEPT: [(Capability, &str); 6] = [
    (Capability::CAP_NET_RAW, "captures, AF_XDP frames"),
    (
        Capability::CAP_NET_ADMIN,
        "what connections counted to their end, conntrack",
    ),
    (
        Capability::CAP_PERFMON,
        "profiles of the kernel, time in interrupts",
    ),
    (Capability::CAP_BPF, "time in interrupts"),
    (Capability::CAP_SYSLOG, "names of the kernel's functions"),
    (Capability::CAP_IPC_LOCK, "memory of rings"),
];

/// What an agent that stays root keeps beside them, and for what.
pub const KEPT_BY_ROOT: [(Capability, &str); 2] = [
    (
        Capability::CAP_SYS_PTRACE,
        "which program of another user has a connection",
    ),
    (
        Capability::CAP_DAC_READ_SEARCH,
        "tokens in a directory of another user",
    ),
];

/// Newest rights over files that are known here; an older kernel denies those that it knows.
const FILES: ABI = ABI::V3;

/// What no agent asks of the kernel: other programs, other processes' memory, the system's own state.
const DENIED: [libc::c_long; 45] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_mknodat,
    libc::SYS_personality,
];

/// The flags of clone(2) that make namespaces: denied as unshare is, since threads have none of them.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// What x32 adds to the numbers of its calls, which are otherwise those of x86_64 (`__X32_SYSCALL_BIT` of
/// asm/unistd.h); no call of another architecture has such a number.
const X32_BIT: u32 = 0x4000_0000;

/// Why an agent could not give up what it does not need; it then does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// There is no such user.
    #[error("there is no user `{0}` here")]
    NoUser(String),
    /// The user is root, who could take everything back.
    #[error("`{0}` is root, who may do everything")]
    Root(String),
    /// Only root becomes another user.
    #[error("only root becomes another user")]
    NotRoot,
    /// Others would keep the rights of root.
    #[error("{0} threads run already, and each has rights of its own")]
    Threads(usize),
    /// A step failed.
    #[error("cannot {doing}")]
    Step {
        /// What it was about to do.
        doing: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn step<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    doing: &'static str,
) -> impl FnOnce(E) -> ConfineError {
    move |source| ConfineError::Step {
        doing,
        source: source.into(),
    }
}

/// Whom an agent becomes.
#[derive(Debug, Clone)]
pub struct Becoming(User);

impl Becoming {
    /// Looks up a user by name or number.
    pub fn user(name: &str) -> Result<Self, ConfineError> {
        let found = match name.parse::<u32>() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => User::from_name(name),
        };
        let user = found.map_err(step("read the users of this host"))?;
        let user = user.ok_or_else(|| ConfineError::NoUser(name.to_owned()))?;
        if user.uid.is_root() {
            return Err(ConfineError::Root(name.to_owned()));
        }
        if !Uid::effective().is_root() {
            return Err(ConfineError::NotRoot);
        }
        Ok(Self(user))
    }

    /// Gives a file or a directory to the user, where there is one.
    pub fn own(&self, path: &Path) -> io::Result<()> {
        let (user, group) = (self.0.uid.as_raw(), self.0.gid.as_raw());
        match std::os::unix::fs::lchown(path, Some(user), Some(group)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives a directory to the user that nobody but its owner may enter; others it can read, or not, as
    /// it is meant.
    pub fn own_private(&self, directory: &Path) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        match std::fs::symlink_metadata(directory) {
            Ok(found) if found.is_dir() && found.mode() & 0o077 == 0 => self.own(directory),
            _ => Ok(()),
        }
    }

    /// Becomes the user and gives up the rest; to be called before threads are made, since each has rights
    /// of its own. `removed_in` are directories from which files may be removed.
    pub fn confine(&self, removed_in: &[&Path]) -> Result<Confined, ConfineError> {
        require_one_thread()?;
        nix::sys::prctl::set_no_new_privs().map_err(step("give up gaining rights"))?;
        self.become_the_user()?;
        let reads_only = reads_only(removed_in);
        let denies = denies();
        Ok(Confined::User {
            user: self.0.name.clone(),
            reads_only,
            denies,
        })
    }

    fn become_the_user(&self) -> Result<(), ConfineError> {
        let kept = bound(&KEPT)?;
        let (user, group) = (self.0.uid, self.0.gid);
        nix::sys::prctl::set_keepcaps(true).map_err(step("keep capabilities"))?;
        nix::unistd::setgroups(&[group]).map_err(step("leave the groups of root"))?;
        nix::unistd::setresgid(group, group, group).map_err(step("become the user's group"))?;
        nix::unistd::setresuid(user, user, user).map_err(step("become the user"))?;
        keep(&kept)?;
        // What follows takes none of these back, and nobody may rely on what did not happen.
        let is_user = (Uid::current(), Gid::current()) == (user, group);
        if is_user && nix::unistd::setuid(Uid::from_raw(0)).is_err() {
            Ok(())
        } else {
            Err(step("become the user")("it still may become root"))
        }
    }
}

/// Gives up the capabilities of root that no agent needs, where this is root; to be called before threads are
/// made, since each has capabilities of its own.
pub fn reduce_root() -> Result<Option<Confined>, ConfineError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    require_one_thread()?;
    let mut wanted = [&KEPT[..], &KEPT_BY_ROOT].concat();
    if !caps::runtime::thread_all_supported().contains(&Capability::CAP_PERFMON) {
        let before = "what CAP_PERFMON and CAP_BPF are for, before Linux 5.8";
        wanted.push((Capability::CAP_SYS_ADMIN, before));
    }
    let kept = bound(&wanted)?;
    keep(&kept)?;
    let mut kept: Vec<String> = kept.iter().map(Capability::to_string).collect();
    kept.sort_unstable();
    Ok(Some(Confined::Root { kept }))
}

fn require_one_thread() -> Result<(), ConfineError> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    let threads = threads.map_err(step("count the threads"))?;
    if threads > 1 {
        return Err(ConfineError::Threads(threads));
    }
    Ok(())
}

/// Returns what of `wanted` this process has, and bounds what it may ever have to that.
fn bound(wanted: &[(Capability, &str)]) -> Result<CapsHashSet, ConfineError> {
    // A root without all of them, as in a container, keeps what it has.
    let had = caps::read(None, CapSet::Permitted).map_err(step("read its capabilities"))?;
    let wanted = wanted.iter().map(|(capability, _)| *capability);
    let kept: CapsHashSet = wanted.filter(|wanted| had.contains(wanted)).collect();
    let bounding = caps::read(None, CapSet::Bounding).map_err(step("read its capabilities"))?;
    if had.contains(&Capability::CAP_SETPCAP) {
        for given_up in bounding.difference(&kept) {
            let dropped = caps::drop(None, CapSet::Bounding, *given_up);
            dropped.map_err(step("bound its capabilities"))?;
        }
    }
    Ok(kept)
}

/// Gives up all capabilities but `kept`, of which this process has each.
fn keep(kept: &CapsHashSet) -> Result<(), ConfineError> {
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, kept).map_err(step("give up capabilities"))?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(step("give up capabilities"))?;
    let left = caps::read(None, CapSet::Permitted).map_err(step("read its capabilities"))?;
    if left == *kept {
        Ok(())
    } else {
        Err(step("give up capabilities")("it still has others"))
    }
}

/// Denies every change of files, but removals in `removed_in`; says why where the kernel cannot.
fn reads_only(removed_in: &[&Path]) -> Result<(), String> {
    let change = AccessFs::from_write(FILES) | AccessFs::Execute;
    let restrict = || -> Result<RestrictionStatus, RulesetError> {
        let mut rules = Ruleset::default().handle_access(change)?.create()?;
        for directory in removed_in {
            if let Ok(at) = PathFd::new(directory) {
                let removal: BitFlags<AccessFs> = AccessFs::RemoveFile.into();
                rules = rules.add_rule(PathBeneath::new(at, removal))?;
            }
        }
        rules.restrict_self()
    };
    match restrict() {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            Err("the kernel has no Landlock (5.13, CONFIG_SECURITY_LANDLOCK, lsm=)".to_owned())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Denies the calling thread, and those that it makes, calls that no agent needs, and new namespaces; says why where the kernel cannot.
///
/// Calls of another architecture, as 32-bit ones are, end the process: their numbers mean other calls.
pub fn denies() -> Result<(), String> {
    let mut rules: BTreeMap<i64, Vec<_>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let with_flag = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let is_set = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_set, flag)?;
        SeccompRule::new(vec![is_set])
    };
    let with_flags: Result<Vec<_>, _> = NAMESPACES.into_iter().map(with_flag).collect();
    let with_flags = with_flags.map_err(|error| error.to_string())?;
    rules.insert(libc::SYS_clone, with_flags);
    // Its flags are in memory, where a filter cannot look. Who is told that there is no such call takes clone.
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    deny(newer, libc::ENOSYS)?;
    seccompiler::apply_filter(&x32_denied()).map_err(|error| error.to_string())?;
    deny(rules, libc::EPERM)
}

/// Lets calls that meet one of `rules` fail with `errno`.
fn deny(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: libc::c_int) -> Result<(), String> {
    let words = |error: &dyn fmt::Display| error.to_string();
    let target = std::env::consts::ARCH.try_into();
    let target = target.map_err(|error: seccompiler::BackendError| words(&error))?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, target);
    let filter = filter.map_err(|error| words(&error))?;
    let program: BpfProgram = filter
        .try_into()
        .map_err(|error: seccompiler::BackendError| words(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| words(&error))
}

/// Returns the program that lets every call of x32 fail: it has the architecture of x86_64, and other numbers.
fn x32_denied() -> BpfProgram {
    let instruction = |code: u32, k, jt, jf| seccompiler::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        // `nr` is the first field of struct seccomp_data.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, X32_BIT, 0, 1),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
            0,
            0,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]
}

/// What an agent has given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confined {
    /// It is another user.
    User {
        /// Its name.
        user: String,
        /// Whether files are out of reach; if not, why.
        reads_only: Result<(), String>,
        /// Whether calls are; if not, why.
        denies: Result<(), String>,
    },
    /// It is root, with capabilities of these names only.
    Root {
        /// The capabilities.
        kept: Vec<String>,
    },
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, reads_only, denies) = match self {
            Confined::Root { kept } if kept.is_empty() => {
                return f.write_str("root without capabilities");
            }
            Confined::Root { kept } => return write!(f, "root with {} only", kept.join(", ")),
            Confined::User {
                user,
                reads_only,
                denies,
            } => (user, reads_only, denies),
        };
        write!(f, "user {user}, ")?;
        match reads_only {
            Ok(()) => f.write_str("changes no file (Landlock)")?,
            Err(why) => write!(
                f,
                "may change the user's files, as there is no Landlock: {why}"
            )?,
        }
        match denies {
            Ok(()) => f.write_str(", starts no program and touches no other (seccomp)"),
            Err(why) => write!(f, ", no calls are denied, as there is no seccomp: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Both hold for the calling thread, so each test makes one for itself.
    fn on_a_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(work).join().expect("the thread ends"));
    }

    #[test]
    fn files_are_read_and_not_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [kept, gone] = ["kept", "gone"].map(|name| folder.path().join(name));
        std::fs::write(&kept, "kept").expect("a file");
        let removed_in = folder.path().join("run");
        std::fs::create_dir(&removed_in).expect("a folder");
        let socket = removed_in.join("socket");
        std::fs::write(&socket, "").expect("a file");
        on_a_thread(|| {
            if let Err(why) = reads_only(&[&removed_in]) {
                assert!(why.contains("Landlock"), "{why}");
                return;
            }
            assert_eq!(std::fs::read_to_string(&kept).expect("readable"), "kept");
            let denied = [
                std::fs::write(&kept, "changed"),
                std::fs::write(&gone, ""),
                std::fs::remove_file(&kept),
                std::fs::rename(&kept, &gone),
                std::fs::create_dir(&gone),
                std::fs::write(removed_in.join("more"), ""),
            ];
            for result in denied {
                let kind = result.expect_err("it is denied").kind();
                assert_eq!(kind, io::ErrorKind::PermissionDenied);
            }
            std::fs::remove_file(&socket).expect("what it made goes with it");
        });
        assert_eq!(std::fs::read_to_string(&kept).expect("readable"), "kept");
        std::fs::write(&kept, "changed").expect("other threads are as before");
    }

    #[test]
    fn no_program_is_started_and_threads_are() {
        assert!(Command::new("true").status().is_ok());
        on_a_thread(|| {
            denies().expect("every kernel that runs this has seccomp");
            let denied = Command::new("true").status().expect_err("it is denied");
            assert_eq!(denied.raw_os_error(), Some(libc::EPERM));
            let beside = std::thread::spawn(|| Command::new("true").status().is_err());
            assert!(beside.join().expect("threads are made"));
        });
    }

    #[test]
    fn users_are_looked_up_and_root_is_none_of_them() {
        assert!(matches!(Becoming::user("0"), Err(ConfineError::Root(_))));
        assert!(matches!(Becoming::user("root"), Err(ConfineError::Root(_))));
        let unknown = Becoming::user("nobody-of-this-name");
        assert!(matches!(unknown, Err(ConfineError::NoUser(_))));
    }

    #[test]
    fn threads_that_run_already_keep_nobody_from_being_told() {
        let user = User::from_uid(Uid::from_raw(0)).expect("users are read");
        let Some(user) = user else { return };
        // Tests run on threads.
        let refused = Becoming(user).confine(&[]);
        assert!(
            matches!(refused, Err(ConfineError::Threads(_))),
            "{refused:?}"
        );
    }
}
