//! `linerate serve`: take part in measurements of other hosts.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linerate_agent::access::{Access, Register, Strangers};
use linerate_agent::api::{Announcement, LimitsInfo, PROGRAM};
use linerate_agent::confine::{Becoming, Confined};
use linerate_agent::log::LogEntry;
use linerate_agent::serve::{Plain, ServeError, Server};
use linerate_agent::tls::{Fingerprint, Identity, TlsFileError};
use linerate_agent::{AgentConfig, Core};
use linerate_compat::iperf3::auth::{Gate, Padding, PrivateKey, Users};
use nix::fcntl::OFlag;
use serde::Serialize;

use crate::args::{Iperf3AuthArgs, LogFormat, ServeArgs};
use crate::exit::{CmdResult, Exit, Failure};
use crate::{files, hosts, places, term};

/// How often a server that ends after one run looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// How long the last entries of the log may take to be written.
const LOG_FLUSH: Duration = Duration::from_secs(1);

/// Runs the command; ends on SIGINT or SIGTERM, after one run if that was asked for, or with its launcher.
pub fn serve(args: &ServeArgs) -> CmdResult {
    if args.daemon {
        // What detaches itself loses its exit code, its log and its limits; a supervisor keeps them.
        let error = anyhow!("--daemon (-D): linerate does not put itself into the background");
        return Err(Failure::usage(error).next(
            "let `systemd-run --unit linerate linerate serve` keep it, or `nohup linerate serve &`",
        ));
    }
    let becoming = args.user.as_deref().map(Becoming::user).transpose();
    let becoming = becoming.map_err(Failure::usage)?;
    if args.copied {
        // Nobody starts it again: the next one has a copy of its own.
        std::fs::remove_file(std::env::current_exe()?)
            .context("cannot remove this copy of the program")?;
    }
    files::raise_limit();
    // It starts no programs; whatever comes in must not gain rights by one.
    nix::sys::prctl::set_no_new_privs()?;
    let token = if args.launched {
        Some(hosts::token_line(std::io::stdin().lock())?)
    } else {
        hosts::token(args.token_file.as_deref())?
    };
    if args.limit_flows == 0 || args.limit_time.0 == 0 || args.limit_run.0 == 0 {
        return Err(Failure::usage(anyhow!(
            "a limit of zero would refuse every measurement"
        )));
    }
    let core = Core::new(AgentConfig {
        host_name: hosts::host_name(),
        limits: LimitsInfo {
            flows: Some(args.limit_flows),
            trial: Some(args.limit_time),
            rate: args.limit_rate,
            runs: Some(args.limit_runs),
            run: Some(args.limit_run),
        },
        lab: args.lab_host,
    });
    let form = args.log_format;
    let core = core.with_names(args.names.clone());
    // A lab's own agents serve the program that made them, which tells of its run itself.
    let core = if args.lab_host {
        core
    } else {
        core.with_log(move |entry| log(entry, form))
    };
    let core = Arc::new(core);
    let state = state(args)?;
    let has_tokens = token.is_some() || register_has_tokens(state.as_deref())?;
    let access = access(
        args,
        token.as_ref().map(|token| &*token.secret),
        state.as_deref(),
    );
    let mut server = bind(args, &core)?;
    server.access = access;
    let (server, identity) = with_tls(server, args, state.as_deref())?;
    let server = with_iperf3_auth(server, &args.iperf3)?;
    let (server, socket) = with_socket(server, args)?;
    let pid = args.pidfile.as_deref().map(PidFile::write).transpose()?;
    let confined = confine(args, becoming, state.as_deref(), socket.as_deref())?;
    if let Some(confined) = &confined {
        core.note_confined(confined);
    }
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let (stop, stopped) = std::sync::mpsc::channel();
    if args.one_off {
        let (stop, core) = (stop.clone(), Arc::clone(&core));
        let idle = args.idle_timeout.map(Duration::from_secs);
        std::thread::spawn(move || {
            wait_for_one(&core, idle);
            let _ = stop.send(());
        });
    }
    if args.launched {
        let stop = stop.clone();
        std::thread::spawn(move || {
            // What comes says nothing; that nothing more can come says that whoever launched it is gone.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = stop.send(());
        });
    }
    std::thread::spawn(move || {
        signals.forever().next();
        let _ = stop.send(());
    });
    let _pid = pid;
    // Said last: who waits for it may read the file, send a signal and come with a run at once.
    if let (true, Some(fingerprint)) = (args.launched, identity) {
        term::json_row(&Announcement {
            program: PROGRAM.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            port: server.address()?.port(),
            certificate: fingerprint.to_string(),
            node: std::env::var("SLURMD_NODENAME").ok(),
        });
    } else if !args.lab_host {
        if let Some(fingerprint) = identity {
            term::note(&format!("certificate {fingerprint}"));
        }
        if let Some(socket) = socket {
            let path = socket.display();
            term::note(&format!("serving root and this user on {path}"));
        }
        if let Some(confined) = confined.filter(|_| args.user.is_some()) {
            term::note(&format!("confined: {confined}"));
        }
        term::note(&format!("serving on {}", server.address()?));
        if let Some(note) = note_on_access(args, has_tokens) {
            term::note(&note);
        }
    }
    // What it took to get here is not needed to serve.
    linerate_agent::give_back_text();
    linerate_agent::read_text_ahead();
    let served = server.run(stopped);
    // Whoever reads the log may have stopped; the agent ends all the same.
    core.flush_log(LOG_FLUSH);
    served?;
    Ok(Exit::Ok)
}

/// Becomes the user that was asked for, to whom belongs what it has to read and to remove; without one gives up
/// what root has and no agent needs.
fn confine(
    args: &ServeArgs,
    becoming: Option<Becoming>,
    state: Option<&Path>,
    socket: Option<&Path>,
) -> CmdResult<Option<Confined>> {
    let Some(becoming) = becoming else {
        // A lab's agent shares its process's rights with the lab that it is of.
        return if args.lab_host {
            Ok(None)
        } else {
            Ok(linerate_agent::confine::reduce_root()?)
        };
    };
    let words = |path: &Path| format!("cannot give {} to that user", path.display());
    if let Some(state) = state {
        // Those that root makes later are that user's as well. Where none can be made none will be.
        let _ = Register::of(state).make();
        let given = becoming.own_private(state);
        given.with_context(|| words(state))?;
    }
    let tokens = state.map(|state| Register::of(state).path());
    for path in tokens.as_deref().into_iter().chain(socket) {
        becoming.own(path).with_context(|| words(path))?;
    }
    let folders = [socket, args.pidfile.as_deref()].into_iter().flatten();
    let folders: Vec<&Path> = folders.filter_map(Path::parent).collect();
    let confined = becoming.confine(&folders)?;
    // Said now, and not to every caller.
    register_has_tokens(state).map_err(|failure| {
        failure.next("name a directory that this user may enter with --state")
    })?;
    Ok(Some(confined))
}

/// Waits until a run has had this host and nobody has it any more, or until nobody has come for
/// `idle`.
fn wait_for_one(core: &Core, idle: Option<Duration>) {
    let began = Instant::now();
    loop {
        match core.runs() {
            (0, 0) if idle.is_some_and(|idle| began.elapsed() >= idle) => return,
            (1.., 0) => return,
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// The file that says which process this is; it goes with the server.
struct PidFile<'a>(&'a Path);

impl<'a> PidFile<'a> {
    fn write(path: &'a Path) -> anyhow::Result<Self> {
        let mut how = std::fs::OpenOptions::new();
        how.write(true).create(true).truncate(true);
        // Whoever put a link there may not be who may write where it leads; a pipe would be waited for.
        how.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
        let written = how
            .open(path)
            .and_then(|mut file| writeln!(file, "{}", std::process::id()));
        written.with_context(|| format!("cannot write the process id to {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        // Whoever removed it before wanted the same.
        let _ = std::fs::remove_file(self.0);
    }
}

/// Returns the directory of key and tokens, unless nobody elsewhere can come.
fn state(args: &ServeArgs) -> CmdResult<Option<PathBuf>> {
    let is_near = args.lab_host || args.bind.to_canonical().is_loopback();
    // Who launched it has its token and is told its certificate: nobody has to know it again.
    if (is_near || args.launched) && args.tls.state.is_none() {
        Ok(None)
    } else {
        places::state(args.tls.state.as_deref()).map(Some)
    }
}

fn register_has_tokens(state: Option<&Path>) -> CmdResult<bool> {
    match state {
        Some(state) => {
            let register = Register::of(state);
            let has_tokens = !register.tokens()?.is_empty();
            if has_tokens && !register.had_tokens() {
                // Where it cannot be noted, it is remembered while this agent runs.
                let _ = register.note_tokens();
            }
            Ok(has_tokens)
        }
        None => Ok(false),
    }
}

fn access(args: &ServeArgs, token: Option<&str>, state: Option<&Path>) -> Access {
    let strangers = if args.public {
        Strangers::Measure
    } else {
        Strangers::Refused
    };
    let register = state.map(Register::of);
    let access = Access::new(token, register, strangers, args.networks.clone());
    match args.tls.client_ca {
        Some(_) => access.with_certificates(),
        None => access,
    }
}

/// Says who may come, where that is not whoever has a token.
fn note_on_access(args: &ServeArgs, has_tokens: bool) -> Option<String> {
    let is_near = args.bind.to_canonical().is_loopback();
    match args.public {
        _ if is_near => None,
        true => Some(
            "public: other hosts may measure without a token, but not observe this one".to_owned(),
        ),
        false if has_tokens => None,
        false => Some(format!(
            "no token: only this host may measure; `linerate token add NAME{}` makes one for others, \
             --public lets everyone measure",
            places::state_words(args.tls.state.as_deref())
        )),
    }
}

/// Speaks TLS unless nobody elsewhere can come; returns the fingerprint of what it shows.
fn with_tls(
    mut server: Server,
    args: &ServeArgs,
    state: Option<&Path>,
) -> CmdResult<(Server, Option<Fingerprint>)> {
    // A lab's control network is in namespaces of its own.
    server.plain = if args.tls.plain || args.lab_host {
        Plain::Everywhere
    } else {
        Plain::Loopback
    };
    let tls = &args.tls;
    let given = tls.tls_cert.as_deref().zip(tls.tls_key.as_deref());
    let identity = match (given, state) {
        (Some((certificate, key)), _) => {
            Identity::read(certificate, key).map_err(hosts::unusable_identity)?
        }
        (None, Some(state)) => kept_identity(state)?,
        (None, None) if args.lab_host => return Ok((server, None)),
        // Where only this host can connect, tokens are shown to who proves to know them.
        (None, None) => Identity::passing(&hosts::host_name())?,
    };
    let is_told = args.launched || given.is_some() || state.is_some();
    let fingerprint = is_told.then(|| identity.fingerprint());
    let server = server.with_tls(identity, args.tls.client_ca.as_deref());
    Ok((server.map_err(Failure::usage)?, fingerprint))
}

fn kept_identity(state: &Path) -> CmdResult<Identity> {
    Identity::kept_in(state, &hosts::host_name()).map_err(|error| {
        let next = match &error {
            TlsFileError::Readable { path, .. } => format!("chmod 600 {}", path.display()),
            _ => {
                "name another directory with --state, or files with --tls-cert and --tls-key".into()
            }
        };
        Failure::failed(error).next(next)
    })
}

/// Writes an entry of the log.
fn log(entry: &LogEntry, form: LogFormat) {
    /// An entry with its moment; whoever reads sentences has them stamped by what keeps them.
    #[derive(Serialize)]
    struct Stamped<'a> {
        time: String,
        #[serde(flatten)]
        entry: &'a LogEntry,
    }
    let time = jiff::Timestamp::now().to_string();
    match (form, serde_json::to_string(&Stamped { time, entry })) {
        (LogFormat::Json, Ok(line)) => term::bare_note(&line),
        // On one line, however long: others read it by lines.
        _ => term::bare_note(&format!("linerate: {entry}")),
    }
}

/// Serves this host's users by a Unix socket: the one that was asked for, or the usual one where it can
/// be made.
fn with_socket(mut server: Server, args: &ServeArgs) -> CmdResult<(Server, Option<PathBuf>)> {
    if let Some(path) = &args.socket {
        server.add_socket(path)?;
        return Ok((server, Some(path.clone())));
    }
    // The hosts of a lab share this machine's folders, and one that was launched leaves nothing there.
    if args.lab_host || args.launched {
        return Ok((server, None));
    }
    let port = server.address()?.port();
    let run = Some(PathBuf::from("/run")).filter(|_| nix::unistd::geteuid().is_root());
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let Some(folder) = run.or(own).filter(|folder| folder.is_dir()) else {
        return Ok((server, None));
    };
    let path = folder.join(format!("linerate/{port}.sock"));
    linerate_agent::serve::sweep(&folder.join("linerate"));
    // Nobody asked for it, and most agents do without.
    let made = server.add_socket(&path).is_ok();
    Ok((server, made.then_some(path)))
}

/// Lets only known users come with iperf3, if that was asked for.
fn with_iperf3_auth(mut server: Server, args: &Iperf3AuthArgs) -> CmdResult<Server> {
    let (Some(key), Some(users)) = (&args.rsa_private_key_path, &args.authorized_users_path) else {
        return Ok(server);
    };
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path);
        text.with_context(|| format!("cannot read {}", path.display()))
    };
    let (private_key, users_text) = (read(key)?, read(users)?);
    let named = || format!("{} and {}", key.display(), users.display());
    server.iperf3_gate = Some(Gate {
        key: PrivateKey::from_pem(&private_key).with_context(named)?,
        users: Users::parse(&users_text).with_context(named)?,
        padding: if args.use_pkcs1_padding {
            Padding::Pkcs1
        } else {
            Padding::Oaep
        },
        skew_s: args.time_skew_threshold,
    });
    Ok(server)
}

/// Binds the address; where the kernel has no IPv6, the default falls back to IPv4.
fn bind(args: &ServeArgs, core: &Arc<Core>) -> CmdResult<Server> {
    let address = SocketAddr::new(args.bind, args.port);
    let result = match Server::bind(address, Arc::clone(core)) {
        Err(ServeError::Bind { source, .. })
            if args.bind.is_unspecified()
                && args.bind.is_ipv6()
                && source.kind() != std::io::ErrorKind::AddrInUse =>
        {
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), args.port);
            Server::bind(any, Arc::clone(core))
        }
        result => result,
    };
    result.map_err(|error| {
        let in_use = matches!(&error, ServeError::Bind { source, .. }
            if source.kind() == std::io::ErrorKind::AddrInUse);
        let next = "another program has the port: end it, or choose one with --port";
        Failure::failed(error).maybe(in_use.then_some(next))
    })
}
