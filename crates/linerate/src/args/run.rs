//! The flags of `linerate run`, grouped as its help shows them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, StringValueParser};
use clap::{Args, value_parser};
use linerate_analyze::precision::Precision;
use linerate_lab::Preset;
use linerate_model::capture::CaptureOptions;
use linerate_model::experiment::AUTO;
use linerate_model::parameter::{Shape, parameter_of, short};
use linerate_model::probe::{Probes, SampleRate};
use linerate_model::{BitsPerSec, Bytes, Nanos};

use super::given::{Given, Levels};
use super::peer::PeerArgs;
use super::quantity::{self, half_share, seconds};
use super::{FleetArgs, OF_HOSTS};

/// Lets flags take a number below zero, which is refused later with words of its own; a positional
/// argument may not, or `-6 HOST` would be a host called -6.
fn numbers_below_zero(arg: clap::Arg) -> clap::Arg {
    let takes = arg.get_action().takes_values() && !arg.is_positional();
    arg.allow_negative_numbers(takes)
}

/// `linerate run`.
#[derive(Debug, Args)]
#[command(
    mut_args(numbers_below_zero),
    args_override_self = true,
    after_help = "Sizes take K, M, G (1024), rates K, M, G (1000), times ns, us, ms, s, m, h.\n\n\
                  Examples:\n  \
                  linerate run HOST                      one TCP stream to the server\n  \
                  linerate run HOST -R -P 4 -t 30        four streams from it, for 30 s\n  \
                  linerate run HOST --rr --rate 1000     latency at 1000 requests per second\n  \
                  linerate run HOST -u -b 100M           datagrams at 100 Mbit/s: loss, jitter\n  \
                  linerate run HOST --loaded             latency alone and during a stream\n  \
                  linerate run HOST --runs 5 -J          five runs, a document for programs\n  \
                  linerate run HOST -C cubic,bbr         which of two is faster, interleaved\n\n\
                  docs/guide/run.md has more, by purpose."
)]
pub struct RunArgs {
    /// The server; it runs `linerate serve`
    #[arg(value_name = "HOST[:PORT]", required_unless_present = "lab")]
    pub host: Option<String>,
    /// What was typed of all that follows, by parameter; first, since those below take what they read.
    #[command(flatten)]
    pub given: Given,
    /// What is sent.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// How much of it.
    #[command(flatten)]
    pub rate: RateArgs,
    /// By which system calls.
    #[command(flatten)]
    pub calls: CallArgs,
    /// Through what sockets.
    #[command(flatten)]
    pub socket: SocketArgs,
    /// What goes on beside it.
    #[command(flatten)]
    pub groups: GroupArgs,
    /// On which CPUs.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// How long and how often.
    #[command(flatten)]
    pub time: TimeArgs,
    /// What is looked at beside it.
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// What is told of it.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How to find and share the hosts.
    #[command(flatten)]
    pub fleet: FleetArgs,
    /// A server that is not ours.
    #[command(flatten)]
    pub peer: PeerArgs,
    /// A plan instead of one measurement.
    #[command(flatten)]
    pub plan: PlanOfRunArgs,
    /// What is the same, in an experiment.
    #[command(flatten)]
    pub margins: super::MarginArgs,
    /// What its result is held against.
    #[command(flatten)]
    pub gate: super::GateArgs,
}

/// What is sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic (default: a TCP stream to the server)")]
pub struct TrafficArgs {
    /// The server sends, the client receives
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Both directions at once: each flow gets a second one in the opposite direction
    #[arg(long)]
    pub bidir: bool,
    /// Request/response: the next request follows the response
    #[arg(long)]
    pub rr: bool,
    /// Connect, request, response, close: a new connection per transaction
    #[arg(long)]
    pub crr: bool,
    /// Connect and close: the same as --crr -r 0,0
    #[arg(long)]
    pub connect: bool,
    /// Connections that carry nothing
    #[arg(long)]
    pub idle: bool,
    /// UDP instead of TCP: a stream of datagrams, or --rr
    #[arg(short, long)]
    pub udp: bool,
    /// Multipath TCP, if both kernels support it
    #[arg(short, long)]
    pub mptcp: bool,
    /// Unix-domain stream sockets: a baseline without a network, on one host
    #[arg(long)]
    pub unix: bool,
    /// Parallel flows
    #[arg(short = 'P', long, default_value_t = 1, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub parallel: u32,
    /// Message size of a stream [default: 128K; UDP 1448, or what fits the path]
    #[arg(short = 'l', long, value_name = "BYTES[,…]", value_parser = Levels::of(Bytes::from_str))]
    pub length: Option<Bytes>,
    /// Sizes of request and response, for --rr and --crr [default: 1,1]
    #[arg(short = 'r', long, value_name = "REQ[,RESP]")]
    pub sizes: Option<String>,
    /// Mixed sizes: list:64,1K,64K uniform:64-1K lognormal:4K,1.0 file:PATH
    #[arg(long, value_name = "SPEC")]
    pub size_mix: Option<String>,
    /// Send calls per request
    #[arg(long, default_value_t = 1, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub request_writes: u32,
}

/// How much is sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rate and volume")]
pub struct RateArgs {
    /// Payload rate of each flow, sent N messages back to back; 0 = no limit [default: none; UDP 1M]
    #[arg(short, long, value_name = "RATE[/N]")]
    pub bitrate: Option<String>,
    /// Let the kernel pace each flow at this rate (SO_MAX_PACING_RATE)
    #[arg(long, value_name = "RATE")]
    pub fq_rate: Option<BitsPerSec>,
    /// Bytes that each flow sends, instead of a time
    #[arg(short = 'n', long, value_name = "BYTES", conflicts_with_all = ["blockcount", "time"])]
    pub bytes: Option<Bytes>,
    /// Messages that each flow sends, instead of a time
    #[arg(short = 'k', long, value_name = "N", conflicts_with = "time")]
    pub blockcount: Option<u64>,
    /// Requests in flight per flow, for --rr [default: 1; 64 with --rate]
    #[arg(long, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub in_flight: Option<u32>,
    /// Requests per second of each flow, whether or not responses have arrived (open loop)
    #[arg(long, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub rate: Option<u32>,
    /// Pause between a response and the next request
    #[arg(long, value_name = "TIME")]
    pub think: Option<Nanos>,
}

/// Reads a word of the parameter `key`, `without` one.
fn word_of(key: &str, without: &str) -> PossibleValuesParser {
    let words = match parameter_of(key).map(|parameter| parameter.shape) {
        Some(Shape::OneOf(words)) => words(),
        _ => Vec::new(),
    };
    let words = words.into_iter().filter(|word| *word != without);
    words.map(short).collect::<Vec<_>>().into()
}

/// By which system calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "System calls")]
pub struct CallArgs {
    /// Send without copying: auto, vmsplice, msg, sendfile [alone: auto]
    #[arg(short = 'Z', long, value_parser = Levels::of(word_of("send", "copy")).or("copy"), value_name = "HOW",
          num_args = 0..=1, require_equals = true, default_missing_value = "auto",
          hide_possible_values = true)]
    pub zerocopy: Option<String>,
    /// Copy received payload, or let the kernel count and discard it
    #[arg(
        long,
        value_parser = Levels::of(word_of("receive", "")),
        value_name = "copy|discard",
        hide_possible_values = true,
        conflicts_with = "skip_rx_copy"
    )]
    pub rx: Option<String>,
    /// The same as --rx discard
    #[arg(long)]
    pub skip_rx_copy: bool,
    /// Messages or datagrams per send call [default: 1; 8 for a plain TCP stream without -l, -w or a
    /// rate; 64 for several flows of small datagrams with -b 0]
    #[arg(long, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub batch: Option<u32>,
    /// Datagrams that the kernel splits one send into (UDP_SEGMENT)
    #[arg(long, default_value_t = 1, value_name = "N[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub gso: u32,
    /// Receive datagrams that the kernel has coalesced (UDP_GRO)
    #[arg(long)]
    pub gro: bool,
    /// Busy-wait: repeat calls instead of sleeping; takes one CPU per worker
    #[arg(long, conflicts_with = "io")]
    pub busy_poll: bool,
    /// Wait method of workers with several flows or short-lived connections: auto, epoll, uring; xdp
    /// sends datagrams through AF_XDP, bypassing the sockets
    #[arg(long, value_parser = Levels::of(word_of("wait", "spin")), value_name = "HOW", hide_possible_values = true)]
    pub io: Option<String>,
}

/// Through what sockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Socket options, on both sides")]
pub struct SocketArgs {
    /// Socket buffers
    #[arg(short, long, value_name = "BYTES[,…]", value_parser = Levels::of(Bytes::from_str).or(AUTO))]
    pub window: Option<Bytes>,
    /// Congestion control algorithm
    #[arg(short = 'C', long, value_name = "NAME[,…]", value_parser = Levels::of(StringValueParser::new()))]
    pub congestion: Option<String>,
    /// Maximum segment size
    #[arg(short = 'M', long, value_name = "BYTES[,…]", value_parser = Levels::of(value_parser!(u32)))]
    pub set_mss: Option<u32>,
    /// Set TCP_NODELAY (Nagle's algorithm off), the default of --rr with --rate
    #[arg(short = 'N', long)]
    pub no_delay: bool,
    /// Leave Nagle's algorithm on with --rr --rate, which otherwise set TCP_NODELAY
    #[arg(long, conflicts_with = "no_delay")]
    pub nagle: bool,
    /// Set TCP_CORK: send full segments only, or after 200 ms
    #[arg(long)]
    pub cork: bool,
    /// Acknowledge at once: re-arm TCP_QUICKACK at each receive
    #[arg(long)]
    pub quick_ack: bool,
    /// Wake the receiver once this much has arrived (SO_RCVLOWAT); 0 = for every byte [default: 32K for
    /// small messages with -N]
    #[arg(long, value_name = "BYTES")]
    pub rcvlowat: Option<Bytes>,
    /// Poll the device's queue for this many µs before a receive call sleeps, 1 to 1000 (SO_BUSY_POLL)
    #[arg(long, value_name = "US")]
    pub busy_poll_us: Option<u32>,
    /// Type-of-service byte: 0 to 255, or 0x…
    #[arg(short = 'S', long, value_name = "BYTE", conflicts_with = "dscp")]
    pub tos: Option<String>,
    /// Differentiated services: 0 to 63, or a name such as af41, cs5, ef
    #[arg(long, value_name = "CLASS")]
    pub dscp: Option<String>,
}

/// What goes on beside the traffic.
#[derive(Debug, Args)]
#[command(next_help_heading = "Groups (several kinds of traffic at once)")]
pub struct GroupArgs {
    /// Add traffic that starts at the same instant and has its own result: a kind (stream, rr, crr, idle) and
    /// its flags, as in --with 'rr -r 1,1 -P 4'; may be given several times
    #[arg(long, value_name = "'KIND FLAGS'")]
    pub with: Vec<String>,
    /// Latency under load: request/response alone, then during a stream to the server, then during one from it;
    /// the flags of a stream are the stream's
    #[arg(long, conflicts_with_all = ["with", "reverse", "bidir", "rr", "crr", "connect", "idle", "unix",
          "bytes", "blockcount", "csv", "json_stream", "interval", "verbose", "precision", "confidence"])]
    pub loaded: bool,
}

/// On which CPUs.
#[derive(Debug, Args)]
#[command(next_help_heading = "CPUs")]
pub struct PlaceArgs {
    /// Pin workers to CPUs: LOCAL[,REMOTE], lists such as 0:2:4; none = leave it to the scheduler
    #[arg(short = 'A', long, value_name = "CPUS")]
    pub affinity: Option<String>,
    /// Confine the workers of each end to the first N CPUs that they may use
    #[arg(long, value_name = "N[,…]", conflicts_with = "affinity", value_parser = Levels::of(value_parser!(u32)))]
    pub cpus: Option<u32>,
    /// Most worker threads per host [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,
}

/// What is looked at beside the traffic.
#[derive(Debug, Args)]
#[command(next_help_heading = "Observation, on both hosts")]
pub struct ObserveArgs {
    /// Profile the CPUs: share of each kind of work, and flame graphs with --out
    #[arg(long)]
    pub profile: bool,
    /// Measure softirq and hardirq time, instead of sampling it at the tick
    #[arg(long)]
    pub irq_time: bool,
    /// Samples per second, 1 to 1000 [default: 10]
    #[arg(long, value_name = "HZ", value_parser = sample_rate)]
    pub sample_rate: Option<SampleRate>,
    /// What is captured.
    #[command(flatten)]
    pub capture: CaptureArgs,
}

/// What each host captures.
#[derive(Debug, Clone, Copy, Args)]
pub struct CaptureArgs {
    /// Capture the headers of the traffic's own packets on each host, into the bundle; limits:
    /// snap=128,packets=1000000,bytes=32M,time=TIME
    #[arg(long, value_name = "LIMITS", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub capture: Option<CaptureOptions>,
    /// Capture anonymised addresses and no payload
    #[arg(long, requires = "capture")]
    pub anonymous: bool,
}

impl CaptureArgs {
    /// Returns what is asked for, if anything is.
    pub fn options(&self) -> Option<CaptureOptions> {
        self.capture.map(|options| CaptureOptions {
            anonymous: self.anonymous,
            ..options
        })
    }
}

/// Reads the rate that `--sample-rate` asks for.
pub fn sample_rate(text: &str) -> Result<SampleRate, String> {
    let hz: u32 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a whole number"))?;
    SampleRate::try_from(hz).map_err(|error| error.to_string())
}

impl ObserveArgs {
    /// Returns what is looked at beyond what every trial shows.
    pub fn probes(&self) -> Probes {
        Probes {
            profile: self.profile,
            irq_time: self.irq_time,
            sample_rate: self.sample_rate,
            capture: self.capture.options(),
        }
    }
}

/// How long and how often.
#[derive(Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Time to measure: 10, 10s, 2m; 0 = until Ctrl-C
    #[arg(short, long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    pub time: f64,
    /// Warm-up: traffic at the start that is not counted [default: 0.2; 0 with -n and -k]
    #[arg(short = 'O', long, value_name = "SECONDS", value_parser = seconds)]
    pub omit: Option<f64>,
    /// Repeat the measurement, for an interval of the result; with --precision or -I, the minimum
    /// [default: 1; of several levels as many blocks as can tell them apart]
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    /// Begin a repetition every so many seconds, so that they show how the hosts change
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub every: Option<f64>,
    /// Repeat until the 95 % interval is within this share of the result: 2%
    #[arg(long, value_name = "PERCENT", value_parser = half_share, conflicts_with = "confidence")]
    pub precision: Option<f64>,
    /// The same in netperf's form: confidence level, and full width of the interval in percent [width:
    /// 5]
    #[arg(short = 'I', long, value_name = "LEVEL[,WIDTH]", value_parser = confidence)]
    pub confidence: Option<Precision>,
    /// Most repetitions with --precision or -I [default: 30]
    #[arg(long, value_name = "N")]
    pub runs_max: Option<u32>,
    /// Then change one thing after another for so many seconds at the most, and say what that proves of what limits the number
    /// [without a value: 20]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, num_args = 0..=1, require_equals = true,
          default_missing_value = "20", conflicts_with_all = ["runs", "every", "precision", "confidence", "runs_max", "with",
          "loaded", "bytes", "blockcount", "csv", "experiment", "search", "idle"])]
    pub prove: Option<f64>,
}

/// Fewest measurements where an interval is asked for.
const RUNS_FOR_INTERVAL: u32 = 3;
/// Most measurements where an interval is asked for and nothing else.
const RUNS_MAX_DEFAULT: u32 = 30;

impl TimeArgs {
    /// Returns what is asked of the interval of the result.
    pub fn wanted(&self) -> Option<Precision> {
        let precision = self.precision.map(|half_share| Precision {
            confidence: 0.95,
            half_share,
        });
        precision.or(self.confidence)
    }

    /// Returns how often is measured: at least, and at the most.
    pub fn repetitions(&self) -> RangeInclusive<u32> {
        match self.wanted() {
            None => self.runs.unwrap_or(1)..=self.runs.unwrap_or(1),
            Some(_) => {
                let least = self.runs.unwrap_or(1).max(RUNS_FOR_INTERVAL);
                least..=self.runs_max.unwrap_or(RUNS_MAX_DEFAULT).max(least)
            }
        }
    }
}

/// Reads `95,5` as netperf's `-I`: the width is that of the whole interval.
fn confidence(text: &str) -> Result<Precision, String> {
    let (level, width) = text.split_once(',').unwrap_or((text, "5"));
    let confidence = match level.trim() {
        "95" => 0.95,
        "99" => 0.99,
        other => return Err(format!("the level is {other}, but must be 95 or 99")),
    };
    let half_share = half_share(width)? / 2.0;
    Ok(Precision {
        confidence,
        half_share,
    })
}

/// Prefixes of printed rates, lower case bits and upper case bytes, with the unit and how many bits per second
/// one of it is.
pub const RATE_UNITS: [(&str, &str, f64); 8] = [
    ("k", "kbit/s", 1e3),
    ("m", "Mbit/s", 1e6),
    ("g", "Gbit/s", 1e9),
    ("t", "Tbit/s", 1e12),
    ("K", "KiB/s", 8.0 * 1024.0),
    ("M", "MiB/s", 8.0 * 1024.0 * 1024.0),
    ("G", "GiB/s", 8.0 * 1024.0 * 1024.0 * 1024.0),
    ("T", "TiB/s", 8.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0),
];
/// The format that is no prefix: the documents of iperf3.
pub const OF_IPERF3: &str = "iperf3";

fn rate_formats() -> PossibleValuesParser {
    let prefixes = RATE_UNITS.into_iter().map(|(prefix, ..)| prefix);
    prefixes.chain([OF_IPERF3]).collect::<Vec<_>>().into()
}

/// What is told of it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Time between interval lines, from 0.1; 0 = none [default: 1; with --runs none, except in JSON and CSV]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<f64>,
    /// Show settings, CPUs, placement and mechanisms, too
    #[arg(short, long, short_alias = 'V')]
    pub verbose: bool,
    /// Print one JSON document, on one line unless standard output is a terminal
    #[arg(short = 'J', long, conflicts_with = "json_stream")]
    pub json: bool,
    /// Print one line of JSON per event
    #[arg(long)]
    pub json_stream: bool,
    /// Print rows of values: a row for each interval and flow, then one for the result of each run
    #[arg(long, conflicts_with_all = ["json", "json_stream"])]
    pub csv: bool,
    /// Show every flow in full; otherwise the intervals of more than 4 flows (JSON: 256) show only
    /// their sum
    #[arg(long, conflicts_with = "sum_only")]
    pub all_flows: bool,
    /// Show only the sum of the flows in each interval
    #[arg(long)]
    pub sum_only: bool,
    /// Prefix of rates: k m g t for bits, K M G T for bytes; iperf3 = JSON as iperf3 -J prints it
    #[arg(
        short,
        long,
        value_name = "kmgtKMGT|iperf3",
        value_parser = rate_formats(),
        hide_possible_values = true
    )]
    pub format: Option<String>,
    /// Write an evidence bundle with its report to this directory
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Whether its story is shown, as `linerate explain` does.
    #[arg(skip)]
    pub story: bool,
}

/// What is a plan of many measurements.
const OF_SEVERAL: &str = "of_several";

/// A plan instead of one measurement.
#[derive(Debug, Args)]
#[command(next_help_heading = "Experiments")]
pub struct PlanOfRunArgs {
    /// Execute this experiment file or profile of uperf, or a chapter of the study, instead of one measurement
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["TrafficArgs", "RateArgs", "CallArgs", "SocketArgs", "GroupArgs", "PlaceArgs", "TimeArgs",
            "interval", "verbose", "json", "json_stream", "csv", "all_flows", "sum_only", "format"],
        group = OF_SEVERAL
    )]
    pub experiment: Option<PathBuf>,
    /// Find where a condition stops to hold between two levels of one flag, as in
    /// -w 8K,4M --search 'throughput > 95% of auto'
    #[arg(
        long,
        value_name = "CONDITION",
        conflicts_with_all = ["GroupArgs", "affinity", "workers", "bytes", "blockcount", "every", "precision", "confidence", "runs_max",
            "interval", "verbose", "json", "json_stream", "csv", "all_flows", "sum_only", "format"],
        group = OF_SEVERAL
    )]
    pub search: Option<String>,
    /// With --search: the share by which the two levels of its answer differ, at the most
    #[arg(long, requires = "search", value_name = "SHARE", default_value = "5%")]
    pub resolution: String,
    /// Execute it in a network of virtual hosts on this machine: of one switch, or as PRESET says
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "lan", value_name = "PRESET", value_parser = quantity::preset(), requires = OF_SEVERAL, conflicts_with_all = OF_HOSTS, conflicts_with = "host")]
    pub lab: Option<Preset>,
    #[command(flatten)]
    pub lab_link: super::LabLinkArgs,
    /// Time limit
    #[arg(long, requires = OF_SEVERAL, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Seed of the order of trials [default: random]
    #[arg(long)]
    pub seed: Option<u64>,
}
