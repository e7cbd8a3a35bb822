//! The command line as typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use linerate_agent::access::Scopes;
use linerate_agent::api::PORT_DEFAULT;
use linerate_lab::Preset;
use linerate_model::network::Network;
use linerate_model::probe::SampleRate;
use linerate_model::{BitsPerSec, Bytes, Nanos};

/// `linerate explain`.
mod explain;
/// `linerate fleet`.
mod fleet;
/// Flags of the catalogue of parameters, as they were typed.
mod given;
/// What to type instead.
pub mod hint;
/// Servers of other programs.
mod peer;
/// Times and shares as typed.
pub mod quantity;
/// `linerate run`.
mod run;
/// Flags that several commands share.
mod shared;
/// TLS, for callers of agents and for agents.
mod tls;
/// `linerate trace`.
mod trace;
/// `linerate watch`.
mod watch;

pub use explain::ExplainArgs;
pub use fleet::{
    FleetCheckArgs, FleetCommand, FleetCommandArgs, FleetFileArgs, FleetRunArgs, FleetSbatchArgs,
};
pub use given::Typed;
pub use peer::{PeerArgs, PeerChoice};
pub use run::{OF_IPERF3, RATE_UNITS, RunArgs};
pub use shared::{FleetArgs, GateArgs, MarginArgs};
pub use tls::{ServeTlsArgs, TlsArgs};
pub use trace::{LiveArgs, TraceArgs, TraceFormat};
pub use watch::{PageChoice, WatchArgs};

/// The program's version, with the commit where the build knew it, and what it was built for.
pub const VERSION: &str = env!("LINERATE_VERSION");

/// Measure how servers drive a network, what limits them and what to do about it.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version = VERSION,
    disable_version_flag = true,
    propagate_version = true,
    max_term_width = 80,
    after_help = "Shortcuts: `linerate -s` is `linerate serve`, `linerate -c HOST` is `linerate run \
                  HOST`.\nExit codes: 0 done, 1 failed, 2 usage, 3 measured but unreliable, 4 \
                  worse than asked for, 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Characterise a server with a series of experiments: its numbers and what limits them
    Study(Box<StudyArgs>),
    /// Run the agent that other hosts measure against
    Serve(ServeArgs),
    /// Measure once, or execute an experiment file
    Run(Box<RunArgs>),
    /// Watch a host: CPUs, queues, interrupts, flows, links
    Watch(WatchArgs),
    /// Show the plan of an experiment file
    Plan(PlanArgs),
    /// Render the report again from a bundle's stored data
    Report(ReportArgs),
    /// Compare runs: what differs, what is the same, what got worse
    Compare(CompareArgs),
    /// Say how many CPUs a rate asks for, by what a stored run measured
    Capacity(CapacityArgs),
    /// Measure between many hosts: all to one, pairs, permutations, each with each
    Fleet(FleetCommandArgs),
    /// Say what holds a number: of a stream to a host, a stored run, captures, or a service that is not ours
    Explain(ExplainArgs),
    /// Explain TCP from captures: pcap, pcapng
    Trace(TraceArgs),
    /// Create, use and remove a network of virtual hosts on this machine
    Lab(LabArgs),
    /// Create, list and remove tokens for this host's agent
    Token(TokenArgs),
    /// Print the JSON Schema of a document that linerate prints
    Schema(SchemaArgs),
    /// Print what completes this command line in a shell
    Completions(CompletionsArgs),
    /// Write the man pages
    Man(ManArgs),
}

/// `linerate compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each run is the directory of a bundle, or a file with a document of `linerate run -J`.\n\n\
                        Examples:\n  \
                        linerate compare before.bundle after.bundle\n  \
                        linerate compare --threshold 10% --junit gate.xml main.json branch.json\n\n\
                        docs/guide/compare.md says what it decides and when."
)]
pub struct CompareArgs {
    /// The runs; the others are held against the first
    #[arg(value_name = "RUN", num_args = 2.., required = true)]
    pub runs: Vec<PathBuf>,
    /// What is worse than the first by more than this is a regression (exit code 4) [default: what
    /// --same-… say]
    #[arg(long, value_name = "PERCENT", value_parser = quantity::half_share)]
    pub threshold: Option<f64>,
    /// What is the same.
    #[command(flatten)]
    pub margins: MarginArgs,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Write a JUnit report to this file
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// `linerate capacity`.
#[derive(Debug, Args)]
#[command(
    after_help = "The bundle is that of a study, or of an experiment with plain streams or exchanges at several loads.\n\n\
                        Example:\n  \
                        linerate capacity study.bundle --target 25G --message 8K --flows 1000 --headroom 30%\n\n\
                        docs/guide/capacity.md says what the model is and where it ends."
)]
pub struct CapacityArgs {
    /// Directory of the evidence bundle
    #[arg(value_name = "BUNDLE")]
    pub bundle: PathBuf,
    /// Payload per second that is asked for, all flows together: 25G [default: the model alone]
    #[arg(long, value_name = "RATE")]
    pub target: Option<BitsPerSec>,
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "128K", requires = "target")]
    pub message: Bytes,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1, requires = "target",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub flows: u32,
    /// The server sends, instead of receiving
    #[arg(short = 'R', long, requires = "target")]
    pub reverse: bool,
    /// Share of the CPUs that is to be left, below 100 %
    #[arg(long, value_name = "PERCENT", value_parser = quantity::share, default_value = "0%", requires = "target")]
    pub headroom: f64,
    /// Print a JSON document
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// `linerate schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The document, as its `schema` key names it: linerate.run [default: list them]
    pub name: Option<String>,
}

/// `linerate completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that is to read it
    pub shell: clap_complete::Shell,
}

/// `linerate man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for linerate.1, linerate-run.1, …
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Flags of [`FleetArgs`] and [`TlsArgs`], which a lab has no use for.
const OF_HOSTS: [&str; 13] = [
    "port",
    "clients",
    "token_file",
    "queue",
    "shared",
    "evict",
    "bind",
    "ipv4",
    "ipv6",
    "known_agents",
    "tls_ca",
    "tls_client_cert",
    "plain",
];

/// A form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A sentence
    Text,
    /// One JSON object per line
    Json,
}

/// `linerate study`.
#[derive(Debug, Clone, Args)]
pub struct StudyArgs {
    /// The server to study; it runs `linerate serve`
    #[arg(
        required_unless_present = "lab",
        conflicts_with = "lab",
        value_name = "HOST[:PORT]"
    )]
    pub host: Option<String>,
    /// Study a server in a network of virtual hosts on this machine: of one switch, or as PRESET says
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "lan", value_name = "PRESET", value_parser = quantity::preset(), conflicts_with_all = OF_HOSTS)]
    pub lab: Option<Preset>,
    #[command(flatten)]
    pub lab_link: LabLinkArgs,
    /// Time limit of the whole study: 30m, 4h [default: 5m; longer where the round trip makes the least
    /// of it longer]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// A look of 30 s: throughput each way, a round trip, both at once, and what limits them
    #[arg(long, conflicts_with = "budget")]
    pub quick: bool,
    /// Repeat the same study N times, each with the whole budget, and report how often the verdicts
    /// agree [without a number: 5]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "5", conflicts_with = "dry_run", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub aa: Option<u32>,
    /// Print the plan and how long it takes; measure nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the evidence bundle [default: linerate-study-TIME.bundle]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of the order of trials [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Samples per second on both sides, 1 to 1000 [default: 10]
    #[arg(long, value_name = "HZ", value_parser = run::sample_rate)]
    pub sample_rate: Option<SampleRate>,
    /// What is captured.
    #[command(flatten)]
    pub capture: run::CaptureArgs,
    /// What is the same.
    #[command(flatten)]
    pub margins: MarginArgs,
    /// What its result is held against.
    #[command(flatten)]
    pub gate: GateArgs,
    /// How to find and share the hosts.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

/// `linerate serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Port to listen on
    #[arg(short, long, default_value_t = PORT_DEFAULT)]
    pub port: u16,
    /// Address to listen on
    #[arg(short = 'B', long, default_value = "::", value_name = "ADDRESS")]
    pub bind: std::net::IpAddr,
    /// File with a token that permits everything (`linerate token` makes others, with scopes)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Let other hosts, clients of iperf3 and netperf included, measure without a token, within the limits
    #[arg(long)]
    pub public: bool,
    /// Accept connections only from these networks and from this host (repeatable)
    #[arg(long = "allow", value_name = "ADDRESS[/PREFIX]")]
    pub networks: Vec<Network>,
    /// Switch to this user once the port is open; from then on change no file and start no program.
    /// Captures and profiles still work (root only)
    #[arg(long, value_name = "NAME", conflicts_with = "lab_host")]
    pub user: Option<String>,
    /// Unix socket for root and this user, without a token [default: linerate/PORT.sock in /run or
    /// $XDG_RUNTIME_DIR, if it can be created]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Another name by which callers may address this host, besides its own name, its addresses and
    /// localhost (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Most flows without a token, of one trial and of all trials from one address (IPv6: /64); all
    /// callers without a token together may have four times as many
    #[arg(long, default_value_t = 1024, value_name = "N")]
    pub limit_flows: u32,
    /// Longest trial without a token
    #[arg(long, default_value = "1h", value_name = "TIME")]
    pub limit_time: Nanos,
    /// Most payload rate without a token, all callers and both directions together [default: none]
    #[arg(long, value_name = "RATE")]
    pub limit_rate: Option<BitsPerSec>,
    /// Most concurrent runs without a token, tests of iperf3 and netperf included; one address may have half
    /// of them
    #[arg(long, default_value_t = 48, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=48))]
    pub limit_runs: u32,
    /// Longest time that one run without a token may occupy this host
    #[arg(long, default_value = "4h", value_name = "TIME")]
    pub limit_run: Nanos,
    /// Format of the log of runs and refusals on standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub log_format: LogFormat,
    /// Exit after one run, of linerate, iperf3 or netperf
    #[arg(short = '1', long)]
    pub one_off: bool,
    /// With --one-off: exit if no client has connected for this long
    #[arg(long, value_name = "SECONDS", requires = "one_off", value_parser = quantity::some_seconds)]
    pub idle_timeout: Option<u64>,
    /// File for the process id, removed on exit
    #[arg(short = 'I', long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
    /// Refused: let systemd-run or nohup put it into the background
    #[arg(short = 'D', long, hide = true)]
    pub daemon: bool,
    /// For programs that start agents: the first line of standard input is the token, a line of JSON on standard
    /// output has port and certificate, and the end of standard input ends it. It keeps no file
    #[arg(long, conflicts_with_all = ["token_file", "lab_host"])]
    pub launched: bool,
    /// Its file is a copy for this process alone, which it removes
    #[arg(long, hide = true, requires = "launched")]
    pub copied: bool,
    /// This host is a namespace of a lab
    #[arg(long, hide = true)]
    pub lab_host: bool,
    /// How it shows who it is.
    #[command(flatten)]
    pub tls: ServeTlsArgs,
    /// Who may come with iperf3.
    #[command(flatten)]
    pub iperf3: Iperf3AuthArgs,
}

/// Who may come with iperf3; the flags are those of its own server.
#[derive(Debug, Args)]
#[command(next_help_heading = "iperf3 clients")]
pub struct Iperf3AuthArgs {
    /// RSA private key (PEM, without a passphrase) that decrypts the passwords of iperf3 clients; only
    /// users in the users file are then admitted
    #[arg(long, value_name = "FILE", requires = "authorized_users_path")]
    pub rsa_private_key_path: Option<PathBuf>,
    /// Users file: a line NAME,DIGEST per user, with the SHA-256 digest of {NAME}PASSWORD
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path")]
    pub authorized_users_path: Option<PathBuf>,
    /// Largest difference between an iperf3 client's clock and this host's, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = quantity::whole_seconds, requires = "rsa_private_key_path")]
    pub time_skew_threshold: u64,
    /// Accept passwords with PKCS#1 v1.5 padding, as iperf3 up to 3.16 sends them, instead of OAEP
    #[arg(long, requires = "rsa_private_key_path")]
    pub use_pkcs1_padding: bool,
}

/// `linerate plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The experiment file or profile of uperf, or the name of a built-in one (--list)
    #[arg(required_unless_present = "list")]
    pub experiment: Option<PathBuf>,
    /// List the built-in experiments
    #[arg(long, conflicts_with = "experiment")]
    pub list: bool,
    /// Time limit
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Client hosts to plan for
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub clients: u32,
    /// Seed of the order of trials
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// What a report is rendered as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page that opens without a network.
    Html,
    /// Text with tables.
    Markdown,
    /// Every number, for programs.
    Json,
    /// The rows of results.parquet: one per trial and response.
    Csv,
    /// The page as printed; needs a Chromium in PATH or in LINERATE_BROWSER.
    Pdf,
}

/// `linerate report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the evidence bundle
    pub bundle: PathBuf,
    /// What to render; html and pdf are written into the bundle, the others to standard output
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub format: ReportFormat,
    /// File to write instead; `-` for standard output, but not of a PDF
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Unfold everything on the page, for printing; in Markdown, also include cells, trials, methods,
    /// hosts and counters
    #[arg(long, conflicts_with_all = ["flame", "replay"])]
    pub full: bool,
    /// Show published figures of other systems next to what was measured
    #[arg(long, conflicts_with_all = ["flame", "replay"])]
    pub published: bool,
    /// Write the stacks of its profiles as text for flame-graph tools; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "out"])]
    pub flame: Option<PathBuf>,
    /// Print the run as it was shown live; for one measurement also as -J, --json-stream or --format
    /// iperf3 print it
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        conflicts_with_all = ["format", "out", "flame"]
    )]
    pub replay: Option<ReplayForm>,
    /// Time between the interval lines of --replay, 0.1 s or more; 0 for none [default: 1 s; none of several
    /// runs]
    #[arg(short, long, requires = "replay", value_name = "SECONDS", value_parser = quantity::seconds)]
    pub interval: Option<f64>,
    /// Show every flow of --replay in full, however many there are
    #[arg(long, requires = "replay", conflicts_with = "sum_only")]
    pub all_flows: bool,
    /// Of the flows of --replay show the sum only, interval by interval
    #[arg(long, requires = "replay")]
    pub sum_only: bool,
    /// Show settings, CPUs and mechanisms in --replay, too
    #[arg(short, long, requires = "replay")]
    pub verbose: bool,
}

/// How a stored run is shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplayForm {
    /// Lines for people
    Text,
    /// One document
    Json,
    /// A line for each event
    JsonStream,
    /// Rows of values
    Csv,
    /// iperf3's document
    Iperf3,
}

/// `linerate lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The subcommands of `linerate lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Create a lab and leave it running
    Up(LabUpArgs),
    /// List the labs and their hosts
    List {
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Run a program or a shell in a host
    Exec {
        /// The lab
        name: String,
        /// The host
        host: String,
        /// The program and its arguments [default: your shell]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Remove a lab
    Down {
        /// The lab
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Remove every lab of this user, and the remains of crashed ones
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Hold a lab (internal)
    #[command(hide = true)]
    Hold,
}

/// What the links of a built-in lab are like.
#[derive(Debug, Clone, Args)]
pub struct LabLinkArgs {
    /// With --lab: rate of every link but those with injected loss, or none for as fast as this machine can [default: 1G]
    #[arg(long, requires = "lab", value_name = "RATE", value_parser = quantity::link_rate)]
    pub lab_rate: Option<quantity::LinkRate>,
    /// With --lab: frame loss of every link but those that an experiment asks for, 0 to 50%
    #[arg(long, requires = "lab", value_name = "SHARE", value_parser = quantity::share)]
    pub lab_loss: Option<f64>,
    /// With --lab: delay of every link, one way; a path crosses two links
    #[arg(long, requires = "lab", value_name = "TIME")]
    pub lab_delay: Option<Nanos>,
    /// With --lab: how much longer than its delay a frame takes on every link, at the most
    #[arg(long, requires = "lab", value_name = "TIME")]
    pub lab_jitter: Option<Nanos>,
    /// With --lab: share of frames that three others overtake on every link, 0 to 50%
    #[arg(long, requires = "lab", value_name = "SHARE", value_parser = quantity::share)]
    pub lab_reorder: Option<f64>,
    /// With --lab: share of frames that come twice on every link, 0 to 100%
    #[arg(long, requires = "lab", value_name = "SHARE", value_parser = quantity::share)]
    pub lab_duplicate: Option<f64>,
    /// With --lab: what may wait in the switch before every link [default: 20 ms of its rate]
    #[arg(long, requires = "lab", value_name = "BYTES")]
    pub lab_queue: Option<Bytes>,
    /// With --lab: rate of clients' links towards the switch [default: that of the other way]
    #[arg(long, requires = "lab", value_name = "RATE")]
    pub lab_up_rate: Option<BitsPerSec>,
    /// With --lab: delay of clients' links towards the switch [default: that of the other way]
    #[arg(long, requires = "lab", value_name = "TIME")]
    pub lab_up_delay: Option<Nanos>,
    /// With --lab: what may wait between each client and the switch [default: nothing but in the client]
    #[arg(long, requires = "lab", value_name = "BYTES")]
    pub lab_up_queue: Option<Bytes>,
    /// With --lab: receive queues of every host, 1 to 16 [default: 4]
    #[arg(long, requires = "lab", value_name = "N")]
    pub lab_queues: Option<u32>,
    /// With --lab: congestion control of streams and requests that set none [default: cubic]
    #[arg(long, requires = "lab", value_name = "NAME")]
    pub lab_congestion: Option<String>,
}

impl LabLinkArgs {
    /// Says what was asked for, as it would be typed.
    pub fn words(&self) -> String {
        let share = |share: f64| format!("{}%", (1e10 * share).round() / 1e8);
        // A length of time is shown with a blank and typed without.
        let time = |time: Nanos| time.to_string().replace(' ', "");
        let bytes = |bytes: Bytes| bytes.0.to_string();
        let rate = |rate: BitsPerSec| format!("{:.0}", rate.0);
        let words = [
            ("rate", self.lab_rate.map(|rate| rate.to_string())),
            ("loss", self.lab_loss.map(share)),
            ("delay", self.lab_delay.map(time)),
            ("jitter", self.lab_jitter.map(time)),
            ("reorder", self.lab_reorder.map(share)),
            ("duplicate", self.lab_duplicate.map(share)),
            ("queue", self.lab_queue.map(bytes)),
            ("up-rate", self.lab_up_rate.map(rate)),
            ("up-delay", self.lab_up_delay.map(time)),
            ("up-queue", self.lab_up_queue.map(bytes)),
            ("queues", self.lab_queues.map(|queues| queues.to_string())),
            ("congestion", self.lab_congestion.clone()),
        ];
        let words = words.into_iter();
        words
            .filter_map(|(flag, value)| Some(format!(" --lab-{flag} {}", value?)))
            .collect()
    }
}

/// `linerate lab up`.
#[derive(Debug, Args)]
pub struct LabUpArgs {
    /// Name of the lab [default: the file's, or lab]
    pub name: Option<String>,
    /// Describe hosts and links in this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Client hosts, in addition to one server
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// What links are like, where no flag says otherwise
    #[arg(long, value_name = "NAME", value_parser = quantity::preset(), conflicts_with = "file", default_value = "lan")]
    pub preset: Preset,
    /// Rate of every link [default: 1gbit]
    #[arg(long, value_name = "RATE", conflicts_with = "file")]
    pub rate: Option<BitsPerSec>,
    /// Delay of every link, one way
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    pub delay: Option<Nanos>,
    /// Frame loss of every link, 0 to 50%
    #[arg(long, value_name = "SHARE", conflicts_with = "file", value_parser = quantity::share)]
    pub loss: Option<f64>,
    /// How much longer than its delay a frame takes on every link, at the most
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    pub jitter: Option<Nanos>,
    /// Share of frames that three others overtake on every link, 0 to 50%
    #[arg(long, value_name = "SHARE", conflicts_with = "file", value_parser = quantity::share)]
    pub reorder: Option<f64>,
    /// Share of frames that come twice on every link, 0 to 100%
    #[arg(long, value_name = "SHARE", conflicts_with = "file", value_parser = quantity::share)]
    pub duplicate: Option<f64>,
    /// What may wait in the switch before every link [default: 20 ms of its rate]
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub queue: Option<Bytes>,
    /// Rate of clients' links towards the switch [default: that of the other way]
    #[arg(long, value_name = "RATE", conflicts_with = "file")]
    pub up_rate: Option<BitsPerSec>,
    /// Delay of clients' links towards the switch [default: that of the other way]
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    pub up_delay: Option<Nanos>,
    /// What may wait between each client and the switch [default: nothing but in the client]
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub up_queue: Option<Bytes>,
    /// MTU of every link
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub mtu: Option<u32>,
    /// Receive queues of every host
    #[arg(long, value_name = "N", conflicts_with = "file")]
    pub queues: Option<u32>,
    /// Queue limit of every host's device [default: 64 MiB]
    #[arg(long, value_name = "BYTES", conflicts_with = "file")]
    pub host_queue: Option<Bytes>,
}

/// `linerate token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
    /// State directory of the agent, as in `linerate serve --state`
    #[arg(long, value_name = "DIR", global = true)]
    pub state: Option<PathBuf>,
}

/// The subcommands of `linerate token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it, with the fingerprint of the agent's certificate; it is shown only once
    Add {
        /// Name of the token, shown in lists and refusals
        name: String,
        /// What it permits: measure, observe, capture, admin
        #[arg(long, value_name = "SCOPE,…", default_value_t = Scopes::USUAL)]
        scope: Scopes,
        /// How long it is valid: 12h, 720h [default: until it is removed]
        #[arg(long, value_name = "TIME")]
        expires: Option<Nanos>,
        /// Write it to this new file, which only its owner may read, instead of printing it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List the tokens: name, scopes, expiry
    List,
    /// Remove a token; running agents refuse it from then on
    Remove {
        /// Name of the token
        name: String,
    },
}

/// Turns the habits of iperf3 into subcommands: `-s` into `serve`, `-c HOST` into `run HOST`.
pub fn with_habits(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    match args.get(1).and_then(|first| first.to_str()) {
        Some("-s" | "--server") => args[1] = "serve".into(),
        Some("-c" | "--client") => args[1] = "run".into(),
        _ => {}
    }
    args
}
