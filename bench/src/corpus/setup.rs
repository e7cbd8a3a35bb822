//! The set-ups of the corpus, each with its truth: what holds the number, written down before anything is measured.
//!
//! A set-up is a network, what is done to its hosts, and the traffic. Faults come at two strengths, on paths of several
//! rates and delays. [`Proof`] says by which counter of the kernel, or by how much less than without the fault, it is
//! shown that the fault was there: a recording whose proof fails is not kept.

/// What a host of a set-up is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Where `linerate serve` runs.
    Server,
    /// Where `linerate run` runs.
    Client,
    /// A second client, for the traffic of others.
    Other,
    /// What joins the networks of a [`Net::Router`].
    Router,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Net {
    /// A lab of linerate's: what the links of server, client and the other client have, in TOML.
    Lab {
        /// The server's.
        server: String,
        /// The client's, and the other client's.
        client: String,
    },
    /// Namespaces made by hand: client and server behind a router, that has the rate of this token bucket towards the
    /// server, if any.
    Router {
        /// Rate, burst and latency, as `tc` has them.
        tbf: Option<String>,
    },
}

/// By what it is shown that a fault was there.
#[derive(Debug, Clone, PartialEq)]
pub enum Proof {
    /// Nothing is wrong.
    Healthy,
    /// The number is at most this share of that of the same traffic on the same network without it.
    Below(f64),
    /// A counter of /proc/net/netstat or /proc/net/snmp, as `TcpExt:TCPTimeouts`, grew by this much on that host.
    Counter(Role, &'static str, u64),
    /// The server's control group was throttled in this many periods.
    Throttled(u64),
}

/// A set-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Its name: family, network, strength.
    pub name: String,
    /// The file that it is kept in.
    pub family: &'static str,
    /// The network.
    pub net: Net,
    /// Commands before the agents start.
    pub prepare: Vec<(Role, String)>,
    /// Commands that go on meanwhile. `$SERVER` is the process of the agent.
    pub meanwhile: Vec<(Role, String)>,
    /// What the server is started by, as `taskset -c 0`.
    pub server: String,
    /// Percent of a CPU that the server's control group may use.
    pub quota: Option<u32>,
    /// What the client is started by.
    pub client: String,
    /// Flags of `linerate run`.
    pub flags: String,
    /// Those of them that are the fault.
    pub fault: String,
    /// What holds the number.
    pub cause: &'static str,
    /// Limiters whose name is right.
    pub limiters: &'static [&'static str],
    /// By what that is shown.
    pub proof: Vec<Proof>,
}

impl Setup {
    /// Returns the same traffic on the same network with nothing done to it.
    pub fn base(&self) -> Self {
        Self {
            prepare: Vec::new(),
            meanwhile: Vec::new(),
            server: String::new(),
            quota: None,
            client: String::new(),
            flags: self.flags.replace(&self.fault, ""),
            fault: String::new(),
            proof: Vec::new(),
            ..self.clone()
        }
    }

    fn on(mut self, host: Role, command: impl Into<String>) -> Self {
        self.prepare.push((host, command.into()));
        self
    }

    fn meanwhile(mut self, host: Role, command: impl Into<String>) -> Self {
        self.meanwhile.push((host, command.into()));
        self
    }

    fn proven(mut self, proof: Proof) -> Self {
        self.proof.push(proof);
        self
    }
}

/// Limiters that are right of a path whose rate is full.
const PATH: &[&str] = &["path-rate", "link-rate"];
/// Limiters that are right where the machine has no more to give.
const CPUS: &[&str] = &["cpu", "generator"];
/// Those of exchanges that wait for a response.
const TRIP: &[&str] = &["round-trip"];
const RECEIVE_WINDOW: &[&str] = &["receiver-window"];
const BUFFER: &[&str] = &["send-buffer"];
const CONGESTION: &[&str] = &["congestion-window"];
const PACING: &[&str] = &["pacing"];

/// A lab whose path has this rate and this delay one way, if any.
fn lab(rate: &str, delay: &str) -> Net {
    lab_with(rate, delay, "", "")
}

/// The same with more of the links of server and clients.
fn lab_with(rate: &str, delay: &str, server: &str, client: &str) -> Net {
    let rate = match rate {
        "none" => String::new(),
        rate => format!("rate = \"{rate}\", "),
    };
    let delay = match delay {
        "0" => String::new(),
        delay => format!("delay = \"{delay}\", "),
    };
    Net::Lab { server: format!("{rate}{server}"), client: format!("{rate}{delay}{client}") }
}

fn router(tbf: Option<&str>) -> Net {
    Net::Router { tbf: tbf.map(str::to_owned) }
}

/// Packets to the server, to a filter of the router.
const TO_SERVER: &str = "ip daddr 10.91.2.2";

/// What makes the router apply a rule of nft to all that it passes on.
fn filter(rule: &str) -> String {
    format!(
        "nft add table ip t && nft 'add chain ip t f {{ type filter hook forward priority 0; }}' && \
         nft 'add rule ip t f {rule}'"
    )
}

fn setup(family: &'static str, name: String, net: Net, flags: impl Into<String>, cause: &'static str, limiters: &'static [&'static str]) -> Setup {
    Setup {
        name: format!("{family}/{name}"),
        family,
        net,
        prepare: Vec::new(),
        meanwhile: Vec::new(),
        server: String::new(),
        quota: None,
        client: String::new(),
        flags: flags.into(),
        fault: String::new(),
        cause,
        limiters,
        proof: Vec::new(),
    }
}

/// Returns all of them.
pub fn all() -> Vec<Setup> {
    let mut all = Vec::new();
    healthy(&mut all);
    windows(&mut all);
    losses(&mut all);
    paths(&mut all);
    exchanges(&mut all);
    hosts(&mut all);
    programs(&mut all);
    datagrams(&mut all);
    pairs(&mut all);
    all
}

/// Nothing is wrong: what limits is what the set-up is made of.
fn healthy(all: &mut Vec<Setup>) {
    let mut add = |name: &str, net: Net, flags: &str, cause, limiters| {
        let one = setup("healthy", name.to_owned(), net, flags, cause, limiters);
        all.push(one.proven(Proof::Healthy));
    };
    for (path, rate, delay) in [
        ("10M-20ms", "10M", "10ms"),
        ("100M", "100M", "0"),
        ("100M-20ms", "100M", "10ms"),
        ("100M-80ms", "100M", "40ms"),
        ("1G", "1G", "0"),
        ("1G-4ms", "1G", "2ms"),
    ] {
        let net = || lab(rate, delay);
        add(&format!("stream-cubic-{path}"), net(), "-C cubic", "path-rate", PATH);
        add(&format!("stream-bbr-{path}"), net(), "-C bbr", "path-rate", PATH);
        add(&format!("stream-8-{path}"), net(), "-C cubic -P 8", "path-rate", PATH);
        add(&format!("rr-{path}"), net(), "--rr", "round-trip", TRIP);
    }
    for (path, rate, delay) in [("100M-20ms", "100M", "10ms"), ("1G", "1G", "0")] {
        let net = || lab(rate, delay);
        add(&format!("reverse-{path}"), net(), "-R -C cubic", "path-rate", PATH);
        add(&format!("both-{path}"), net(), "--bidir -C cubic", "path-rate", PATH);
        add(&format!("paced-{path}"), net(), "-C cubic -b 40M", "pacing.asked", PACING);
        add(&format!("fq-{path}"), net(), "-C cubic --fq-rate 30M", "pacing.socket", PACING);
        add(&format!("udp-{path}"), net(), "-u -b 50M", "pacing.asked", PACING);
        add(&format!("crr-{path}"), net(), "--crr -r 100,1000", "round-trip", TRIP);
        let cause = if path == "1G" { "cpu" } else { "round-trip" };
        add(&format!("rr-16-{path}"), net(), "--rr -P 16 -r 100,1000", cause, &["round-trip", "cpu", "generator"]);
    }
    for (path, net) in [("router", router(None)), ("lab", lab("none", "0"))] {
        add(&format!("stream-cubic-{path}"), net.clone(), "-C cubic", "cpu", CPUS);
        add(&format!("stream-4-{path}"), net.clone(), "-C cubic -P 4", "cpu", CPUS);
        add(&format!("rr-{path}"), net.clone(), "--rr", "round-trip", TRIP);
        add(&format!("rate-{path}"), net.clone(), "--rr --rate 500", "pacing.asked", PACING);
    }
    add("stream-30-1G", lab("1G", "1ms"), "-C cubic -P 30", "path-rate", PATH);
    add("rr-100-100M", lab("100M", "5ms"), "--rr -P 100", "round-trip", TRIP);
    add("stream-router-100M", router(Some("rate 100mbit burst 16kb latency 50ms")), "-C cubic", "path-rate", PATH);
    add("stream-router-1G", router(Some("rate 1gbit burst 128kb latency 20ms")), "-C cubic", "path-rate", PATH);
}

/// What holds the data at an end.
fn windows(all: &mut Vec<Setup>) {
    let paths =
        [("free-4ms", "none", "2ms", ""), ("1G-10ms", "1G", "5ms", ""), ("100M-80ms", "100M", "40ms", ""), ("free-4ms-P4", "none", "2ms", " -P 4")];
    for (path, rate, delay, flags) in paths {
        let net = || lab(rate, delay);
        let mut add = |family, name: String, flags: String, cause, limiters, host, command: String| {
            let one = setup(family, name, net(), format!("-C cubic{flags}"), cause, limiters);
            all.push(one.on(host, command).proven(Proof::Below(0.85)));
        };
        // Of 4 ms and 10 ms a window of 256 KiB is 524 and 210 Mbit/s.
        for kib in [64, 256] {
            let bytes = 1024 * kib;
            add(
                "window",
                format!("cap-{kib}K-{path}"),
                flags.to_owned(),
                "receiver-window.cap",
                RECEIVE_WINDOW,
                Role::Server,
                format!("sysctl -qw net.ipv4.tcp_rmem='4096 {0} {0}'", 2 * bytes),
            );
            add(
                "window",
                format!("send-cap-{kib}K-{path}"),
                flags.to_owned(),
                "send-buffer.cap",
                BUFFER,
                Role::Client,
                format!("sysctl -qw net.ipv4.tcp_wmem='4096 16384 {}'", 2 * bytes),
            );
            add(
                "window",
                format!("route-{kib}K-{path}"),
                flags.to_owned(),
                "receiver-window.route",
                RECEIVE_WINDOW,
                Role::Server,
                format!("ip route change 10.77.0.0/24 dev eth0 src $ADDRESS window {bytes}"),
            );
        }
        add(
            "window",
            format!("unscaled-{path}"),
            flags.to_owned(),
            "receiver-window.unscaled",
            RECEIVE_WINDOW,
            Role::Server,
            "sysctl -qw net.ipv4.tcp_window_scaling=0".to_owned(),
        );
        add(
            "window",
            format!("untuned-{path}"),
            flags.to_owned(),
            "receiver-window.untuned",
            RECEIVE_WINDOW,
            Role::Server,
            "sysctl -qw net.ipv4.tcp_moderate_rcvbuf=0".to_owned(),
        );
    }
    for (path, rate, delay, flags) in paths {
        for kib in [64, 256] {
            let fault = format!(" -w {kib}K");
            let name = format!("buffer-{kib}K-{path}");
            let flags = format!("-C cubic{flags}{fault}");
            let limiters = &["receiver-window", "send-buffer"];
            let mut one = setup("window", name, lab(rate, delay), flags, "receiver-window.buffer", limiters);
            one.fault = fault;
            all.push(one.proven(Proof::Below(0.85)));
        }
    }
    // Over before the window has grown.
    for (path, rate, delay) in [("100M-80ms", "100M", "40ms"), ("1G-20ms", "1G", "10ms"), ("free-40ms", "none", "20ms")] {
        for kib in [50, 300] {
            // Most of the time are round trips, more of them than the message needs.
            let name = format!("start-{kib}K-{path}");
            let limiters = &["congestion-window", "round-trip"];
            all.push(setup("window", name, lab(rate, delay), format!("-C cubic --crr -r 1,{kib}K"), "slow-start", limiters));
            // Most of the time is the pause that was asked for.
            let name = format!("idle-{kib}K-{path}");
            let flags = format!("-C cubic --rr -r 1,{kib}K --think 400ms");
            all.push(setup("window", name, lab(rate, delay), flags, "pacing.asked", &["pacing", "congestion-window"]));
        }
    }
}

/// What is taken for loss, and loss.
fn losses(all: &mut Vec<Setup>) {
    for (path, rate, delay) in [("100M-20ms", "100M", "10ms"), ("1G-4ms", "1G", "2ms"), ("free-10ms", "none", "5ms")] {
        for (strength, loss) in [("weak", "0.002"), ("strong", "0.01")] {
            let lossy = |delay| lab_with(rate, delay, "", &format!("loss = {loss}, "));
            let proof = |one: Setup| one.proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 10));
            all.push(proof(setup(
                "loss",
                format!("random-{strength}-{path}"),
                lossy(delay),
                "-C cubic",
                "congestion-window.random-loss",
                CONGESTION,
            )));
            all.push(proof(setup(
                "loss",
                format!("random-reno-4-{strength}-{path}"),
                lossy(delay),
                "-C reno -P 4",
                "congestion-window.random-loss",
                CONGESTION,
            )));
            let rtos = |one: Setup| one.proven(Proof::Counter(Role::Client, "TcpExt:TCPTimeouts", 2));
            all.push(rtos(setup(
                "loss",
                format!("rr-{strength}-{path}"),
                lossy(delay),
                "--rr -P 8 -r 100,1000",
                "timeouts",
                &["timeouts", "round-trip"],
            )));
        }
        // Without SACK each loss takes a round trip of its own.
        let lossy = lab_with(rate, delay, "", "loss = 0.01, ");
        all.push(
            setup("loss", format!("no-sack-{path}"), lossy, "-C cubic", "no-sack", CONGESTION)
                .on(Role::Server, "sysctl -qw net.ipv4.tcp_sack=0")
                .proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 10)),
        );
        for (strength, share) in [("weak", "0.02"), ("strong", "0.1")] {
            let net = lab_with(rate, delay, "", &format!("reorder = {share}, "));
            all.push(
                setup("loss", format!("reorder-{strength}-{path}"), net, "-C cubic", "reordering", CONGESTION)
                    .on(Role::Client, "sysctl -qw net.ipv4.tcp_recovery=0 net.ipv4.tcp_max_reordering=3")
                    .proven(Proof::Below(0.85))
                    .proven(Proof::Counter(Role::Client, "TcpExt:TCPSACKReorder", 1)),
            );
        }
    }
    for (path, rate, delay, queue) in [
        ("100M-20ms", "100M", "10ms", "12K"),
        ("100M-20ms-more", "100M", "10ms", "24K"),
        ("1G-10ms", "1G", "5ms", "48K"),
        ("50M-40ms", "50M", "20ms", "12K"),
    ] {
        let net = lab_with(rate, delay, &format!("queue = \"{queue}\", "), "");
        for flows in [1, 4] {
            all.push(
                setup(
                    "loss",
                    format!("queue-{flows}-{path}"),
                    net.clone(),
                    format!("-C cubic -P {flows}"),
                    "congestion-window.queue-loss",
                    &["congestion-window", "path-rate", "link-rate"],
                )
                .proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 5)),
            );
        }
    }
    // A filter of the router: single frames, since the client sends no superframes.
    let frames = "ethtool -K v0 tso off gso off";
    for (name, mbit, burst) in [("100M", 100, 64), ("100M-deep", 100, 250), ("300M", 300, 64), ("30M", 30, 32)] {
        let rule = filter(&format!("{TO_SERVER} limit rate over {} kbytes/second burst {burst} kbytes drop", mbit * 125));
        for flags in ["-C cubic", "-C bbr", "-C cubic -P 4"] {
            let name = format!("policer-{name}-{}", flags.replace(' ', ""));
            all.push(
                setup("loss", name, router(None), flags, "policer", &["path-rate", "link-rate", "congestion-window"])
                    .on(Role::Client, frames)
                    .on(Role::Router, rule.clone())
                    .proven(Proof::Below(0.85))
                    .proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 5)),
            );
        }
    }
    for (strength, mille) in [("weak", 2), ("strong", 10)] {
        let rule = filter(&format!("{TO_SERVER} numgen random mod 1000 lt {mille} drop"));
        all.push(
            // Without superframes a CPU holds it, and losses cost a tenth.
            setup("loss", format!("router-{strength}"), router(None), "-C cubic", "offloads", &["cpu", "generator", "congestion-window"])
                .on(Role::Client, frames)
                .on(Role::Router, rule)
                .proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 10)),
        );
        // One lane of four: a quarter of the ports.
        let rule = filter(&format!("{TO_SERVER} tcp sport & 3 == 1 numgen random mod 1000 lt {} drop", 10 * mille));
        all.push(
            setup("loss", format!("lane-{strength}"), router(None), "-C cubic -P 8", "lossy-lane", &["congestion-window", "cpu", "generator"])
                .on(Role::Client, frames)
                .on(Role::Router, rule)
                .proven(Proof::Counter(Role::Client, "Tcp:RetransSegs", 10)),
        );
        let rule = filter(&format!("{TO_SERVER} tcp flags ack numgen random mod 100 lt {mille} ip ecn set ce"));
        all.push(
            // The weak ones cost a quarter of what a CPU without superframes carries.
            setup("loss", format!("marks-{strength}"), router(None), "-C cubic", "ecn-marks", if mille == 2 { &["congestion-window", "cpu", "generator"] } else { CONGESTION })
                .on(Role::Client, frames)
                .on(Role::Client, "sysctl -qw net.ipv4.tcp_ecn=1")
                .on(Role::Server, "sysctl -qw net.ipv4.tcp_ecn=1")
                .on(Role::Router, rule)
                .proven(Proof::Counter(Role::Server, "IpExt:InCEPkts", 10)),
        );
    }
}

/// What the path has.
fn paths(all: &mut Vec<Setup>) {
    // The way back carries few ACKs.
    for (strength, rate) in [("weak", "1M"), ("strong", "300K")] {
        for (path, delay) in [("1G-4ms", "2ms"), ("1G", "0")] {
            let kbit = if rate == "1M" { 1000 } else { 300 };
            all.push(
                setup("path", format!("acks-{strength}-{path}"), lab("1G", delay), "-C cubic", "ack-path", &[])
                    .on(Role::Server, format!("tc qdisc replace dev eth0 root tbf rate {kbit}kbit burst 4kb latency 200ms"))
                    .proven(Proof::Below(0.85)),
            );
        }
    }
    // A queue that others keep full, and a path that others share.
    for (path, rate, delay) in [("100M-10ms", "100M", "5ms"), ("1G", "1G", "0"), ("50M-40ms", "50M", "20ms")] {
        for (strength, flows) in [("weak", 1), ("strong", 8)] {
            let others = format!("linerate run server -p 5202 -C cubic -P {flows} -t 30 -R");
            let with_others =
                |one: Setup| one.meanwhile(Role::Server, "linerate serve -p 5202 --public").meanwhile(Role::Other, others.replace(" -R", ""));
            all.push(
                with_others(setup("path", format!("shared-{strength}-{path}"), lab(rate, delay), "-C cubic", "other-traffic", PATH))
                    .proven(Proof::Below(0.85)),
            );
            all.push(
                with_others(setup("path", format!("bloat-{strength}-{path}"), lab(rate, delay), "--rr -r 100,100", "queue", TRIP))
                    .proven(Proof::Below(0.85)),
            );
        }
    }
    // Full-size packets vanish.
    for (strength, bytes) in [("weak", 1450), ("strong", 1400)] {
        for (name, flags) in [("stream", "-C cubic"), ("rr", "--rr -r 4000,100")] {
            all.push(
                setup("path", format!("hole-{name}-{strength}"), router(None), flags, "mtu-hole", &["nothing-arrives"])
                    .on(Role::Client, "ethtool -K v0 tso off gso off")
                    .on(Role::Router, filter(&format!("meta length gt {bytes} drop")))
                    .proven(Proof::Counter(Role::Client, "TcpExt:TCPTimeouts", 1)),
            );
        }
    }
    for (name, tbf) in [
        ("20M", "rate 20mbit burst 8kb latency 100ms"),
        ("200M", "rate 200mbit burst 32kb latency 20ms"),
        ("400M-short", "rate 400mbit burst 64kb latency 2ms"),
    ] {
        for flags in ["-C cubic", "-C bbr", "-C cubic -P 8", "-R -C cubic", "--rr -P 32 -r 100,8K"] {
            let is_free = flags.starts_with("-R");
            let (cause, limiters) = match (is_free, flags.starts_with("--rr")) {
                (true, _) => ("cpu", CPUS),
                (_, true) => (if name == "20M" { "round-trip" } else { "cpu" }, &["round-trip", "cpu", "generator"][..]),
                _ => ("path-rate", PATH),
            };
            all.push(setup("path", format!("shaper-{name}-{}", flags.replace(' ', "")), router(Some(tbf)), flags, cause, limiters));
        }
    }
    // The host's own queue has the rate, long or short.
    for (name, tbf) in [("deep", "rate 100mbit burst 16kb latency 50ms"), ("fast", "rate 500mbit burst 64kb latency 10ms")] {
        for flags in ["-C cubic", "-C bbr", "-C cubic -P 8"] {
            all.push(
                setup("path", format!("own-{name}-{}", flags.replace(' ', "")), router(None), flags, "own-qdisc", PATH)
                    .on(Role::Client, format!("tc qdisc add dev v0 root tbf {tbf}"))
                    .proven(Proof::Below(0.85)),
            );
        }
    }
    for (name, tbf) in [("short", "rate 200mbit burst 8kb limit 20000"), ("shorter", "rate 100mbit burst 8kb limit 10000")] {
        all.push(
            setup("path", format!("own-{name}"), router(None), "-C cubic", "own-qdisc.drops", &["path-rate", "link-rate", "host-drops"])
                .on(Role::Client, format!("tc qdisc add dev v0 root tbf {tbf}"))
                .proven(Proof::Below(0.85)),
        );
    }
}

/// What exchanges wait for.
fn exchanges(all: &mut Vec<Setup>) {
    for (path, net) in [("router", router(None)), ("lan", lab("1G", "0")), ("4ms", lab("100M", "2ms"))] {
        for (name, flags) in [("2-writes", "--rr --request-writes 2 -r 300,300"), ("3-writes-4", "--rr -P 4 --request-writes 3 -r 900,100")] {
            all.push(
                setup("exchange", format!("nagle-{name}-{path}"), net.clone(), flags, "nagle-delayed-ack", &["nagle-delayed-ack"])
                    .proven(Proof::Counter(Role::Server, "TcpExt:DelayedACKs", 8)),
            );
        }
        // The agent stands still at times: a server that thinks.
        for (strength, pause, run) in [("weak", "0.01", "0.02"), ("strong", "0.04", "0.01")] {
            // Only on the long path the strong one is most of the time.
            let limiters: &[&str] = if strength == "strong" && path == "4ms" { &["application"] } else { &["application", "round-trip"] };
            let stop = format!("while :; do kill -STOP $SERVER; sleep {pause}; kill -CONT $SERVER; sleep {run}; done");
            all.push(
                setup("exchange", format!("thinks-{strength}-{path}"), net.clone(), "--rr -r 100,1000", "server-thinks", limiters)
                    .meanwhile(Role::Server, stop)
                    .proven(Proof::Below(0.85)),
            );
        }
        for (name, flags) in [("1", "--rr -r 200,200"), ("large", "--rr -r 100,64K"), ("in-flight", "--rr --in-flight 8 -N"), ("crr", "--crr")] {
            // Without a path many at a time fill the CPUs.
            let cause = if name == "in-flight" && path != "4ms" { "cpu" } else { "round-trip" };
            let limiters = &["round-trip", "cpu", "generator"];
            all.push(setup("exchange", format!("trip-{name}-{path}"), net.clone(), flags, cause, limiters));
        }
    }
    for (path, delay) in [("10ms", "5ms"), ("40ms", "20ms"), ("80ms", "40ms")] {
        for (name, flags) in [("rr", "--rr"), ("rr-8", "--rr -P 8 -r 100,1000"), ("crr-4", "--crr -P 4"), ("rr-reverse", "--rr -r 1000,10")] {
            all.push(setup("exchange", format!("far-{name}-{path}"), lab("1G", delay), flags, "round-trip", TRIP));
        }
    }
    // A listener whose queue is short.
    for (strength, backlog) in [("weak", 8), ("strong", 1)] {
        all.push(
            setup("exchange", format!("backlog-{strength}"), router(None), "--crr -P 64", "listen-backlog", &["timeouts"])
                .on(Role::Server, format!("sysctl -qw net.core.somaxconn={backlog} net.ipv4.tcp_syncookies=0"))
                .proven(Proof::Counter(Role::Server, "TcpExt:ListenOverflows", 10)),
        );
    }
}

/// What the hosts lack.
fn hosts(all: &mut Vec<Setup>) {
    let hog = "while :; do :; done";
    let nets = [("router", router(None)), ("1G", lab("1G", "0")), ("free-4ms", lab("none", "2ms"))];
    for (path, net) in nets {
        for (name, flags) in [("stream", "-C cubic"), ("stream-4", "-C cubic -P 4"), ("rr", "--rr"), ("reverse", "-R -C cubic")] {
            // Of an exchange over 4 ms most is the path, whatever waits beside that.
            let is_far = name == "rr" && path == "free-4ms";
            let limiters = |own: &'static [&'static str], both: &'static [&'static str]| if is_far { both } else { own };
            let others = limiters(&["other-programs"], &["other-programs", "round-trip"]);
            let quotas = limiters(&["cpu-quota"], &["cpu-quota", "round-trip"]);
            for (strength, hogs) in [("weak", 2), ("strong", 6)] {
                let mut one = setup("host", format!("others-{strength}-{name}-{path}"), net.clone(), flags, "other-programs", others);
                for _ in 0..hogs {
                    one = one.meanwhile(Role::Server, hog);
                }
                all.push(one.proven(Proof::Below(0.85)));
            }
            for (strength, percent) in [("weak", 20), ("strong", 5)] {
                let mut one = setup("host", format!("quota-{strength}-{name}-{path}"), net.clone(), flags, "cpu-quota", quotas);
                one.quota = Some(percent);
                all.push(one.proven(Proof::Below(0.85)).proven(Proof::Throttled(5)));
            }
        }
    }
    for (name, flags) in [("stream", "-C cubic"), ("rr-8", "--rr -P 8"), ("udp", "-u -b 0")] {
        let mut one = setup("host", format!("pinned-{name}"), router(None), flags, "pinned", &["cpu", "cpu-quota", "generator", "round-trip"]);
        one.server = "taskset -c 0".to_owned();
        one.client = "taskset -c 0".to_owned();
        all.push(one.proven(Proof::Below(0.9)));
        let off = "ethtool -K v0 tso off gso off gro off";
        all.push(setup("host", format!("offloads-{name}"), router(None), flags, "offloads", &["cpu", "generator", "round-trip"]).on(Role::Client, off).on(Role::Server, off));
    }
    for (name, flags) in [
        ("small-64", "-l 64 -N -C cubic"),
        ("small-200", "-l 200 -N -C cubic"),
        ("small-64-P4", "-l 64 -N -C cubic -P 4"),
        ("rr-many", "--rr -P 32"),
        ("crr-many", "--crr -P 16"),
        ("one-way", "-C reno"),
        ("zero", "-C cubic -Z"),
    ] {
        all.push(setup("host", format!("full-{name}"), router(None), flags, "cpu", &["cpu", "generator", "round-trip"]));
    }
}

/// What programs do.
fn programs(all: &mut Vec<Setup>) {
    let nets = [("router", router(None)), ("1G-10ms", lab("1G", "5ms")), ("free-4ms", lab("none", "2ms"))];
    for (path, net) in nets {
        for (strength, pause, run) in [("weak", "0.02", "0.02"), ("strong", "0.08", "0.02")] {
            let stop = |who: &str| format!("while :; do kill -STOP {who}; sleep {pause}; kill -CONT {who}; sleep {run}; done");
            for (flows, flags) in [("1", "-C cubic"), ("4", "-C cubic -P 4")] {
                all.push(
                    setup("program", format!("reader-{strength}-{flows}-{path}"), net.clone(), flags, "slow-reader", &["slow-reader"])
                        .meanwhile(Role::Server, stop("$SERVER"))
                        .proven(Proof::Below(0.85)),
                );
                all.push(
                    setup(
                        "program",
                        format!("writer-{strength}-{flows}-{path}"),
                        net.clone(),
                        format!("-R {flags}"),
                        "pausing-writer",
                        &["application"],
                    )
                    .meanwhile(Role::Server, stop("$SERVER"))
                    .proven(Proof::Below(0.85)),
                );
            }
        }
        for (name, flags) in [
            ("asked", "-C cubic -b 20M"),
            ("asked-4", "-C cubic -P 4 -b 10M"),
            ("socket", "-C cubic --fq-rate 40M"),
            ("socket-4", "-C bbr -P 4 --fq-rate 10M"),
            ("requests", "--rr --rate 100 -P 2 -N"),
            ("datagrams", "-u -b 20M -P 2"),
        ] {
            let cause = if name.starts_with("socket") { "pacing.socket" } else { "pacing.asked" };
            all.push(setup("program", format!("paced-{name}-{path}"), net.clone(), flags, cause, PACING));
        }
    }
}

/// Where datagrams are lost.
fn datagrams(all: &mut Vec<Setup>) {
    for (strength, bytes) in [("weak", "32K"), ("strong", "4K")] {
        for (name, flags) in [("1", "-u -b 300M -l 400"), ("2", "-u -b 200M -P 2")] {
            all.push(
                setup("datagram", format!("buffer-{strength}-{name}"), router(None), format!("{flags} -w {bytes}"), "udp-buffer", PACING)
                    .proven(Proof::Counter(Role::Server, "Udp:RcvbufErrors", 50)),
            );
        }
    }
    for (path, net) in [
        ("100M", lab("100M", "0")),
        ("100M-20ms", lab("100M", "10ms")),
        ("router-50M", router(Some("rate 50mbit burst 16kb latency 20ms"))),
        ("1G", lab("1G", "0")),
    ] {
        let beyond = if path == "1G" { "1500M" } else { "200M" };
        for (strength, rate) in [("weak", "0"), ("strong", beyond)] {
            all.push(setup("datagram", format!("full-{strength}-{path}"), net.clone(), format!("-u -b {rate}"), "path-rate", PATH));
        }
        all.push(setup("datagram", format!("half-{path}"), net, "-u -b 20M", "pacing.asked", PACING));
    }
    for (strength, percent) in [("weak", 1), ("strong", 10)] {
        let lossy = filter(&format!("{TO_SERVER} udp length gt 0 numgen random mod 100 lt {percent} drop"));
        all.push(setup("datagram", format!("lossy-{strength}"), router(None), "-u -b 50M", "random-loss", PACING).on(Role::Router, lossy));
        let fragments = filter(&format!("ip frag-off & 0x1fff != 0 numgen random mod 100 lt {percent} drop"));
        all.push(
            setup("datagram", format!("fragments-{strength}"), router(None), "-u -b 50M -l 8000", "fragments", PACING).on(Role::Router, fragments),
        );
    }
}

/// Two things at once, of which one holds the number.
fn pairs(all: &mut Vec<Setup>) {
    let rmem = |bytes: u32| format!("sysctl -qw net.ipv4.tcp_rmem='4096 {bytes} {bytes}'");
    // A small window in front of a queue: the path's rate holds.
    for (path, rate, delay, window) in [("100M-4ms", "100M", "2ms", 256), ("50M-20ms", "50M", "10ms", 512), ("20M-10ms", "20M", "5ms", 128)] {
        let (cause, limiters) = ("path-rate", PATH);
        all.push(
            setup("pair", format!("window-behind-queue-{path}"), lab(rate, delay), "-C cubic", cause, limiters)
                .on(Role::Server, rmem(2 * 1024 * window)),
        );
    }
    for (path, rate, delay, loss) in [("1G-10ms", "1G", "5ms", "0.0001"), ("free-20ms", "none", "10ms", "0.0002")] {
        let net = || lab_with(rate, delay, "", &format!("loss = {loss}, "));
        // The window allows less than the losses do.
        all.push(
            setup("pair", format!("window-and-loss-{path}"), net(), "-C cubic", "receiver-window.cap", RECEIVE_WINDOW)
                .on(Role::Server, rmem(96 << 10))
                .proven(Proof::Below(0.85)),
        );
        all.push(setup("pair", format!("paced-and-loss-{path}"), net(), "-C cubic --fq-rate 5M", "pacing.socket", PACING));
    }
    for (path, net) in [("1G-10ms", lab("1G", "5ms")), ("100M", lab("100M", "0")), ("router", router(None))] {
        let hog = "while :; do :; done";
        // Somebody takes a CPU, and nobody misses it.
        all.push(
            setup("pair", format!("paced-and-others-{path}"), net.clone(), "-C cubic -b 5M", "pacing.asked", PACING).meanwhile(Role::Server, hog),
        );
        all.push(
            setup("pair", format!("rr-paced-and-others-{path}"), net.clone(), "--rr --rate 50 -N", "pacing.asked", PACING)
                .meanwhile(Role::Server, hog),
        );
    }
    for (path, rate, delay) in [("10M", "10M", "0"), ("20M-20ms", "20M", "10ms")] {
        let hog = "while :; do :; done";
        all.push(
            setup("pair", format!("slow-path-and-others-{path}"), lab(rate, delay), "-C cubic", "path-rate", PATH)
                .meanwhile(Role::Server, hog)
                .meanwhile(Role::Server, hog),
        );
        all.push(
            setup("pair", format!("bbr-slow-path-and-others-{path}"), lab(rate, delay), "-C bbr", "path-rate", PATH)
                .meanwhile(Role::Server, hog)
                .meanwhile(Role::Server, hog),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_those_of_limiters_are_known() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        let known: Vec<&str> = linerate_analyze::limiters().into_iter().map(linerate_model::limiter::Limiter::id).collect();
        for one in &all {
            assert!(linerate_analyze::causes::place(one.cause).is_some(), "{}", one.cause);
        }
        for limiter in all.iter().flat_map(|one| one.limiters) {
            assert!(known.contains(limiter), "{limiter}");
        }
        let healthy = all.iter().filter(|one| one.proof.contains(&Proof::Healthy));
        assert!(healthy.count() >= 40);
    }
}
