//! Impossible command lines and documents: refused with exit code 2 before anything is measured,
//! naming the flag or the key and what it may be.

use serde_json::Value;

use crate::common::{Call, Server, file, folder, linerate};

/// Asserts that `words`, split at blanks, are refused with all of `said` on standard error.
#[track_caller]
fn refused(words: &str, said: &[&str]) {
    let words: Vec<&str> = words.split_whitespace().collect();
    linerate(&words).run().failed(2, said);
}

#[test]
fn how_often_a_study_is_made_again_has_limits() {
    refused("study 127.0.0.1:1 --aa=1", &["--aa", "2..=100"]);
    refused("study 127.0.0.1:1 --aa=3 --dry-run", &["--dry-run"]);
}

#[test]
fn flags_that_an_experiment_or_a_lab_has_no_use_for_are_refused() {
    let experiment = |flags: &str, said: &[&str]| {
        refused(
            &format!("run 127.0.0.1:1 --experiment latency {flags}"),
            said,
        );
    };
    experiment("-P 8", &["--experiment", "--parallel"]);
    experiment("-t 3", &["--experiment", "--time"]);
    experiment("-N", &["--experiment", "--no-delay"]);
    experiment("-b 1M", &["--experiment", "--bitrate"]);
    experiment("--affinity 0", &["--experiment", "--affinity"]);
    experiment("--io uring", &["--experiment", "--io"]);
    experiment("--precision 2%", &["--experiment", "--precision"]);
    experiment("-J", &["--experiment", "--json"]);
    experiment("-f iperf3", &["--experiment", "--format"]);
    for lab in ["study --lab", "run --lab --experiment latency"] {
        for flag in [
            "--client a",
            "--token-file x",
            "--queue",
            "-B 127.0.0.1",
            "-p 7",
        ] {
            refused(
                &format!("{lab} {flag}"),
                &["--lab", flag.split(' ').next().unwrap_or_default()].map(long),
            );
        }
    }
    refused(
        "run 127.0.0.1:1 --runs-max 3",
        &["--runs-max", "--precision"],
    );
    refused("run 127.0.0.1:1 --every 30s", &["--every", "--runs"]);
    let soon = "run 127.0.0.1:1 --runs 3 -t 10 --every 5s";
    refused(soon, &["--every is 5", "one run takes"]);
    let both = "run 127.0.0.1:1 --precision 2% --runs 4 --runs-max 2";
    refused(both, &["--runs-max is 2", "4 to 1000"]);
    refused("watch --once -c 3", &["--once", "--count"]);
    refused(
        "watch --json-stream --page tcp",
        &["--json-stream", "--page"],
    );
    let scraped = "watch --prometheus 127.0.0.1:0";
    refused(&format!("{scraped} -i 1s"), &["--prometheus", "--interval"]);
    let near = "serve -p 0 -B 127.0.0.1 --client-ca /nonexistent";
    refused(near, &["/nonexistent"]);
    refused("serve --time-skew-threshold 3", &["--rsa-private-key-path"]);
    refused(
        "report x --format csv --published",
        &["--published has no effect"],
    );
    refused("report x --format json --full", &["--full has no effect"]);
    refused("report x --format pdf -o -", &["standard output", "--out"]);
}

/// Returns a flag as messages name it.
fn long(flag: &str) -> &str {
    match flag {
        "-B" => "--bind",
        "-p" => "--port",
        long => long,
    }
}

#[test]
fn an_argument_in_no_encoding_is_one_all_the_same() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder();
    let out = folder.path().join(std::ffi::OsStr::from_bytes(b"x\xff"));
    let server = Server::start(&[]);
    let said = linerate(&["run", &server.host(), "-t", "0.1", "-O", "0", "-o"])
        .words(&[&out])
        .run();
    assert!(said.is_measured(), "{said:?}");
    assert!(out.join("report.html").is_file() || said.was_read_late());
}

#[test]
fn values_outside_their_limits_name_the_flag_and_the_range() {
    // Nothing listens on port 1: the refusal comes before anyone is asked.
    let check = |flags: &str, said: &[&str]| refused(&format!("run 127.0.0.1:1 {flags}"), said);
    check("-P 0", &["--parallel (-P)", "is 0", "1 to 20000"]);
    check("-P 30000", &["--parallel (-P)", "is 30000", "1 to 20000"]);
    check("-P 15000 --bidir", &["--parallel (-P)", "20000"]);
    check("-P -1", &["--parallel"]);
    check("-l 0", &["--length (-l)", "is 0", "1 to 64M"]);
    check("-l 1G", &["--length (-l)", "is 1G", "1 to 64M"]);
    check("-l -5", &["--length", "-5"]);
    check("-l 5Q", &["--length", "5Q"]);
    check("-i 0.01", &["--interval is 0.01", "0 or 0.1 to 3600 s"]);
    check("-i -1", &["--interval is -1", "0.1 to 3600"]);
    check("-i nan", &["--interval is NaN", "0.1 to 3600"]);
    check("-t -1", &["--time is -1", "0.1 to 86000 s"]);
    check("-t nan", &["--time is NaN", "0.1 to 86000 s"]);
    check("-t inf", &["--time is inf", "0.1 to 86000 s"]);
    check("-t 1e9", &["--time is 1000000000", "0.1 to 86000 s"]);
    check("-O -1", &["--omit is -1", "0 to 86000 s"]);
    check("-w 1", &["--window (-w) is 1", "1K to 1G"]);
    check("-w 2G", &["--window (-w) is 2G", "1K to 1G"]);
    check("-M 1", &["--set-mss (-M) is 1", "88 to 32767"]);
    check("--rr -r 0", &["--sizes (-r) is 0", "1 to 64M"]);
    check("--rr -r 1,0", &["--sizes (-r) is 0", "1 to 64M"]);
    check("--rr -r x,1", &["x", "give sizes as `-r 64,1K`"]);
    check(
        "--rr --request-writes 2",
        &["--request-writes is 2", "1 to 1", "-r 2"],
    );
    check(
        "--rr --request-writes 0",
        &["--request-writes is 0", "1 to 1"],
    );
    check("--runs 0", &["--runs is 0", "1 to 1000"]);
    check("--runs 1001", &["--runs is 1001", "1 to 1000"]);
    check("-A x", &["`x` in --affinity x is not a CPU number"]);
    check(
        "-A 3-1",
        &["`3-1` in --affinity 3-1 is not a CPU number", "0-3"],
    );
    check("-A 0,y", &["`y` in --affinity 0,y is not a CPU number"]);
    check("--seed x", &["--seed", "x"]);
    check("--seed -1", &["--seed", "-1"]);
    check("-f z", &["--format", "k, m, g, t, K, M, G, T"]);
}

#[test]
fn flags_that_do_not_exist_or_do_not_go_together_are_refused() {
    refused("run 127.0.0.1:1 --nosuch", &["--nosuch", "--help"]);
    refused("run 127.0.0.1:1 -R --bidir", &["--reverse", "--bidir"]);
    refused("run 127.0.0.1:1 --rr -R", &["--reverse", "--rr"]);
    refused(
        "run 127.0.0.1:1 -J --json-stream",
        &["--json", "--json-stream"],
    );
    refused("run 127.0.0.1:1 --queue --shared", &["--queue", "--shared"]);
    refused("run 127.0.0.1:1 -4 -6", &["--ipv4", "--ipv6"]);
    refused("run 127.0.0.1:1 --budget 1m", &["--experiment"]);
    refused("run", &["HOST", "Usage"]);
    refused("study", &["HOST", "Usage", "`linerate study --lab`"]);
    refused("study --lab 127.0.0.1", &["--lab", "HOST"]);
    refused("nosuch", &["nosuch", "--help"]);
    refused("rnu 127.0.0.1", &["rnu", "did you mean `run`?"]);
    refused(
        "run 127.0.0.1:1 -t soon",
        &["--time", "`soon` is not a time"],
    );
    refused(
        "lab up --loss x",
        &["--loss", "`x` is not a share: 0.01, or 1%"],
    );
    refused("plan latncy", &["latncy", "did you mean `latency`?"]);
    refused(
        "run 127.0.0.1:1 -B 192.0.2.1",
        &["--bind (-B): cannot connect from 192.0.2.1", "`ip address`"],
    );
    refused(
        "run 127.0.0.1:1 --client 127.0.0.2 -B 127.0.0.1",
        &["--bind (-B)", "--client", "leave one of them out"],
    );
    refused(
        "run 127.0.0.1:1 -o /proc",
        &["/proc exists already", "--out"],
    );
    refused("lab exec", &["<NAME>", "<HOST>"]);
    refused("lab down", &["NAME", "Usage"]);
    refused("report", &["<BUNDLE>"]);
}

#[test]
fn flags_that_would_do_nothing_are_refused_with_a_way_out() {
    let check = |flags: &str, said: &[&str]| refused(&format!("run 127.0.0.1:1 {flags}"), said);
    check(
        "--rr -b 1M",
        &[
            "--bitrate (-b) is for streams",
            "--rr",
            "leave out",
            "--rate",
        ],
    );
    check("--rate 100", &["--rate is for --rr and --crr", "with -b"]);
    check(
        "--crr --in-flight 4",
        &["--in-flight is for --rr", "--crr", "with -P"],
    );
    check(
        "-u -N",
        &["--no-delay (-N) is for TCP and MPTCP", "--udp (-u)"],
    );
    check("-u -C cubic", &["--congestion (-C)", "--udp (-u)"]);
    check(
        "-u --crr",
        &["--udp (-u) is for streams and --rr", "over TCP"],
    );
    check("-u -Z", &["--zerocopy (-Z)", "--udp (-u)"]);
    check("--rr --rcvlowat 4K", &["--rcvlowat is for streams", "--rr"]);
    check("-u --rcvlowat 4K", &["--rcvlowat", "--udp (-u)"]);
    check("--rr --rx discard", &["--rx is for streams", "--rr"]);
    check("--gso 4", &["--gso is for --udp (-u)", "ask for datagrams"]);
    check("--gro", &["--gro is for --udp (-u)"]);
    check(
        "--io uring",
        &["--io uring is for --rr", "--crr", "--io auto"],
    );
    check(
        "--io xdp",
        &["--io xdp is for --udp (-u)", "ask for datagrams"],
    );
    check("--unix -S 16", &["--tos (-S)", "--unix"]);
    check("--idle -l 1K", &["--length (-l) is for streams", "--idle"]);
    check("--idle --busy-poll", &["--busy-poll", "--idle"]);
    check(
        "-r 1,1",
        &["--sizes (-r) is for --rr and --crr", "with --rr or --crr"],
    );
    check(
        "--crr --batch 4",
        &["--batch is for streams and --rr", "with -P"],
    );
    check("--idle --busy-poll", &["--busy-poll is for streams"]);
    check("--unix --busy-poll-us 50", &["--busy-poll-us is for TCP"]);
    check("--connect --size-mix list:1", &["--size-mix", "--connect"]);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let check = |flags: &str, said: &[&str]| refused(&format!("run 127.0.0.1:1 {flags}"), said);
    check(
        "--rr --crr",
        &["--rr and --crr are two kinds of traffic", "choose one"],
    );
    check("--idle --connect", &["--connect and --idle", "choose one"]);
    check("-u --unix", &["--udp (-u) and --unix are two transports"]);
    check("--connect -r 1,1", &["--connect sends nothing", "--crr"]);
    check(
        "--rr --rate 10 --think 1ms",
        &["--rate", "--think", "leave out one"],
    );
    check(
        "--rr --batch 4",
        &["requests that are in flight", "add --in-flight 4"],
    );
    check("-l 1K --size-mix list:1", &["--size-mix", "--length (-l)"]);
    check("-n 1G -t 3", &["--bytes", "--time"]);
    check("-k 10 -t 3", &["--blockcount", "--time"]);
    check("-n 1G -k 3", &["--bytes", "--blockcount"]);
    check("--rx copy --skip-rx-copy", &["--rx", "--skip-rx-copy"]);
    check("--busy-poll --io epoll", &["--busy-poll", "--io"]);
    check("-S 16 --dscp ef", &["--tos", "--dscp"]);
}

/// Where what a flag requires conflicts with something else that was given, clap lets it pass.
#[test]
fn flags_that_nothing_makes_use_of_are_refused() {
    let lab = "instead of HOST: `linerate study --lab --lab-loss 1%`";
    refused("study 127.0.0.1:1 --lab-loss 1%", &["--lab-loss 1%", lab]);
    refused(
        "run 127.0.0.1:1 --lab-loss 1%",
        &["instead of HOST: `linerate study --lab`"],
    );
    refused(
        "run 127.0.0.1:1 -R --lab-loss 1%",
        &["instead of HOST: `linerate study --lab`"],
    );
    refused(
        "run 127.0.0.1:1 --experiment latency --lab-loss 1%",
        &["`linerate run --experiment latency --lab --lab-loss 1%`"],
    );
    let several = ["`--experiment <FILE>`", "`--search <CONDITION>`"];
    refused("run --lab -R", &several);
    refused("run 127.0.0.1:1 -R --budget 30s", &several);
    refused(
        "run 127.0.0.1:1 --token-file x --get-server-output",
        &[
            "--get-server-output is for servers of iperf3",
            "--peer iperf3",
        ],
    );
    refused(
        "run 127.0.0.1:1 --plain --tls-client-key x",
        &["--tls-client-key"],
    );
    refused("report B --format json -v", &["--verbose is for --replay"]);
    refused(
        "trace x.pcap --time 10s --write y.pcapng",
        &["--time is for captures of this host", "with -i"],
    );
    refused(
        "trace x.pcap -w y.pcapng",
        &["--write is for captures of this host"],
    );
    refused(
        "trace x.pcap --ring 1M",
        &["--ring is for captures of this host"],
    );
}

#[test]
fn what_a_server_of_iperf3_cannot_do_is_refused_before_it_is_asked() {
    let next = "run `linerate serve` there and leave out --peer";
    let run = |flags: &str, said: &[&str]| {
        refused(&format!("run 127.0.0.1:1 --peer iperf3 {flags}"), said);
    };
    run("--rr", &["only streams", next]);
    run(
        "--experiment latency",
        &["nothing of the experiment latency", next],
    );
    let format = "run 127.0.0.1:1 --format iperf3";
    refused(
        &format!("{format} --precision 2%"),
        &["not 30", "leave out --precision, or use -J"],
    );
    refused(&format!("{format} -I 95"), &["leave out -I, or use -J"]);
    refused(
        &format!("{format} --runs 2"),
        &["leave out --runs, or use -J"],
    );
}

#[test]
fn commands_that_are_proposed_name_the_same_state() {
    let folder = folder();
    let state = folder.path().join("a state").display().to_string();
    let token = |words: &[&str]| linerate(&[&["token", "--state", &state], words].concat()).run();
    token(&["remove", "nosuch"]).failed(1, &[&format!("`linerate token list --state '{state}'`")]);
    token(&["add", "ci"]).done();
    token(&["add", "ci"]).failed(
        1,
        &[&format!("`linerate token remove ci --state '{state}'`")],
    );
}

#[test]
fn a_server_says_how_it_is_kept_in_the_background() {
    refused("serve -D", &["--daemon (-D)", "systemd-run", "nohup"]);
    refused("serve --idle-timeout 5", &["add `--one-off`"]);
}

#[test]
fn values_of_rates_sizes_and_calls_name_the_flag_and_the_range() {
    let check = |flags: &str, said: &[&str]| refused(&format!("run 127.0.0.1:1 {flags}"), said);
    check("-b x", &["--bitrate (-b)", "x", "-b 100M"]);
    check("-b 10M/x", &["--bitrate (-b) 10M/x", "`x`", "-b 100M/16"]);
    check("-b 0/8", &["--bitrate (-b) 0/8", "no rate", "--batch"]);
    check(
        "-b 10M/2000",
        &["burst of --bitrate (-b) is 2000", "1 to 1000"],
    );
    check(
        "-u --size-mix list:8,100",
        &["--size-mix with --udp (-u) is 8", "16 to 65507"],
    );
    check(
        "-u --rr --in-flight 200",
        &["--in-flight with --udp (-u)", "1 B is 200", "1 to 128"],
    );
    check("-u --gso 4 --size-mix list:64", &["--gso", "--size-mix"]);
    let allowed = "must be 0 (no limit) or 8 bit/s to";
    check("-b 1", &["--bitrate (-b) is 1 bit/s", allowed]);
    check("-b 0.5", &["--bitrate (-b) is 0.5 bit/s", allowed]);
    check("-i 0.25", &["--interval is 0.25 s", "use -i 0.2 or -i 0.3"]);
    check("--fq-rate 1", &["--fq-rate is 1", "8 to"]);
    check("-k 0", &["--blockcount (-k) is 0"]);
    check("-n 0", &["--bytes (-n) is 0"]);
    check("--rr --in-flight 0", &["--in-flight is 0", "1 to 1024"]);
    check("--rr --rate 0", &["--rate is 0", "1 to 100000000"]);
    check("--batch 2000", &["--batch is 2000", "1 to 1024"]);
    check("-u --gso 200", &["--gso is 200", "1 to 128"]);
    check(
        "-u --gso 100",
        &["--gso 100 of 1448 B", "65507", "--gso 45"],
    );
    check(
        "-u -l 8",
        &["--length (-l) with --udp (-u) is 8", "16 to 65507"],
    );
    check(
        "-u --rr -r 65K",
        &["--sizes (-r) with --udp (-u)", "1 to 65507"],
    );
    check("--crr -r 0,1", &["--sizes (-r) is 0", "1 to"]);
    check("-Z=fast", &["--zerocopy", "auto, vmsplice, msg, sendfile"]);
    check("--rx map", &["--rx", "copy, discard"]);
    check("--io poll", &["--io", "auto, epoll, uring"]);
    check("--workers 0", &["--workers", "1..=1024"]);
    check("-S 256", &["--tos (-S) is 256", "0 to 255"]);
    check("--dscp gold", &["--dscp is gold", "af41"]);
    check(
        "--size-mix 64",
        &["--size-mix 64", "uniform:64-1K", "file:PATH"],
    );
    check("--size-mix uniform:9-3", &["--size-mix is 3", "9 to"]);
    check("--size-mix list:0", &["a size of --size-mix is 0"]);
    check(
        "--size-mix file:/nosuch",
        &["cannot read the sizes in /nosuch"],
    );
}

#[test]
fn addresses_and_ports_that_cannot_be_are_refused() {
    for bad in ["127.0.0.1:99999", "127.0.0.1:x", ":80", "127.0.0.1:0"] {
        refused(&format!("run {bad}"), &[bad, "HOST or HOST:PORT"]);
    }
    refused("run 127.0.0.1 -p 70000", &["--port", "70000"]);
    refused("run 127.0.0.1 -p 0", &["--port", "1..=65535"]);
    refused("run 127.0.0.1 -B nowhere", &["--bind", "nowhere"]);
    refused("run 127.0.0.1:1 --client :9", &[":9", "HOST or HOST:PORT"]);
    refused("serve -p x", &["--port", "x"]);
    refused("serve -B nowhere", &["--bind", "nowhere"]);
    refused("serve -p 0 --limit-flows 0", &["limit of zero"]);
    refused("serve -p 0 --limit-time 0s", &["limit of zero"]);
    refused("serve -p 0 --limit-rate=-1", &["--limit-rate"]);
}

/// Whoever parses documents finds one, whatever fails.
#[test]
fn failures_are_documents_where_documents_are_asked_for() {
    let closed = format!("127.0.0.1:{}", crate::common::free_port());
    for (flags, code, words) in [
        ("-t 1", 1, "no agent answers at"),
        ("-l 0", 2, "--length (-l) is 0"),
        ("--nosuch", 2, "'--nosuch'"),
    ] {
        let mut line = vec!["run", &closed];
        line.extend(flags.split(' '));
        let said = linerate(&line).words(&["-J"]).run().failed(code, &[words]);
        let document = crate::common::json(&said.out);
        assert_eq!(document["schema"], "linerate.run", "{flags}");
        let error = document["error"].as_str().expect("an error");
        assert!(error.contains(words), "{flags}: {error}");
        // What looks for a result finds that there is none, and on one line, as one of several in a file.
        assert_eq!(document["summary"]["value"], Value::Null, "{document}");
        assert_eq!(document["summary"]["ok"], false, "{document}");
        assert_eq!(document["trials"], Value::Array(Vec::new()), "{document}");
        assert_eq!(said.out.lines().count(), 1, "{}", said.out);
        // Rows there are none, and the reason is no row.
        let said = linerate(&line).words(&["--csv"]).run();
        let said = said.failed(code, &[words]);
        assert_eq!(said.out, "", "{flags}");
        let said = linerate(&line).words(&["--json-stream"]).run();
        let event = crate::common::json(&said.out);
        assert_eq!((&event["event"], said.code), (&"error".into(), code));
        let error = event["data"]["error"].as_str().expect("an error");
        assert!(error.contains(words), "{flags}: {error}");
    }
    for (line, code, is_stream) in [
        ("plan /nosuch.toml -J", 2, false),
        ("plan latency --clients many --json", 2, false),
        ("watch HOST --json-stream -c 1", 1, true),
        ("watch --json-stream --nosuch", 2, true),
        ("trace /nosuch.pcap --json", 1, false),
        ("trace /nosuch.pcap --format json", 1, false),
        ("trace --json", 2, false),
        ("report /nosuch --format json", 1, false),
        ("report /nosuch --replay=json", 1, false),
        ("report /nosuch --replay=json-stream", 1, true),
        ("lab list --json --nosuch", 2, false),
    ] {
        let line = line.replace("HOST", &closed);
        let words: Vec<&str> = line.split(' ').collect();
        let said = linerate(&words).run();
        let document = crate::common::json(&said.out);
        let error = if is_stream {
            assert_eq!(document["event"], "error", "{line}");
            &document["data"]
        } else {
            &document
        };
        assert_eq!(error["schema"], "linerate.error", "{line}");
        let told = error["error"].as_str().expect("an error");
        assert!(!told.is_empty(), "{line}");
        assert_eq!(said.code, code, "{line}: {told}");
    }
    let said = linerate(&["plan", "/nosuch.toml"]).run();
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    let said = linerate(&["run", "h", "--format", "iperf3", "--nosuch"]).run();
    let document = crate::common::json(&said.out);
    assert!(document["start"]["version"].is_string(), "{document}");
    let error = document["error"].as_str().expect("an error");
    assert!(error.contains("--nosuch"), "{error}");
    let said = linerate(&["run", &closed, "--logfile", "x"]).run();
    let said = said.failed(2, &["--logfile", "linerate run HOST > FILE"]);
    assert!(!said.err.contains("--profile"), "{}", said.err);
}

#[test]
fn tokens_must_be_readable_and_printable() {
    let folder = folder();
    for (name, text) in [
        ("short", "abc"),
        ("empty", "\n"),
        ("odd", "päßwörter sind schön"),
    ] {
        let path = file(&folder, name, text);
        for words in ["run 127.0.0.1:1", "serve -p 0"] {
            let said = [path.as_str(), "linerate token add"];
            refused(&format!("{words} --token-file {path}"), &said);
        }
    }
    refused(
        "run 127.0.0.1:1 --token-file /nosuch/token",
        &["cannot read the token file /nosuch/token"],
    );
    linerate(&["run", "127.0.0.1:1"])
        .with("LINERATE_TOKEN", "abc")
        .run()
        .failed(2, &["LINERATE_TOKEN", "linerate token add"]);
}

/// What others may change or read is no secret, and what never ends no file.
#[test]
fn secrets_are_files_of_their_owner_alone() {
    let folder = folder();
    let token = file(&folder, "token", "0123456789abcdef");
    let mode = |path: &str, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .expect("it is ours");
    };
    let check = |path: &str, next: &str| {
        refused(
            &format!("run 127.0.0.1:1 --token-file {path}"),
            &[path, next],
        );
        refused(
            &format!("serve -p 0 -B 127.0.0.1 --token-file {path}"),
            &[path, next],
        );
    };
    mode(&token, 0o666);
    check(&token, &format!("chmod 600 {token}"));
    // A folder that is its owner's alone keeps others out.
    mode(&token, 0o644);
    mode(&folder.path().display().to_string(), 0o700);
    linerate(&["run", "127.0.0.1:1", "--token-file", &token])
        .run()
        .failed(1, &["no agent answers"]);
    mode(&folder.path().display().to_string(), 0o755);
    check(&token, &format!("chmod 600 {token}"));
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600))
        .expect("a pipe can be made");
    check(&pipe.display().to_string(), "regular file");
    check("/dev/zero", "regular file");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).expect("the folder is ours");
    let words = state.display().to_string();
    mode(&words, 0o777);
    for command in ["serve -p 0", "token add me"] {
        linerate(&command.split(' ').collect::<Vec<_>>())
            .words(&["--state", &words])
            .run()
            .failed(1, &["chmod 700", &words]);
    }
    mode(&words, 0o700);
    let register = state.join("tokens").display().to_string();
    linerate(&["token", "add", "me", "--state", &words])
        .run()
        .done();
    mode(&register, 0o666);
    linerate(&["token", "list", "--state", &words])
        .run()
        .failed(1, &["chmod 600", &register]);
}

/// Whoever put a link there may not be who may write where it leads.
#[test]
fn a_pid_file_is_no_link_and_no_pipe() {
    let folder = folder();
    let victim = file(&folder, "victim", "kept");
    let [link, pipe] = ["link", "pipe"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink(&victim, &link).expect("the folder is ours");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600))
        .expect("a pipe can be made");
    for path in [link, pipe] {
        let path = path.display().to_string();
        linerate(&["serve", "-p", "0", "-B", "127.0.0.1", "-I", &path])
            .run()
            .failed(1, &[&path]);
        assert!(
            std::fs::symlink_metadata(&path).is_ok(),
            "{path} is still there"
        );
    }
    assert_eq!(
        std::fs::read_to_string(&victim).expect("it is there"),
        "kept"
    );
}

/// The shell would have emptied the file before anything was known to go well.
#[test]
fn a_token_is_written_to_a_new_file_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let state = path("state");
    let add =
        |name: &str, to: &str| linerate(&["token", "add", name, "-o", to, "--state", &state]).run();
    let said = add("me", &path("token")).done();
    assert_eq!(said.out, "");
    let kept = std::fs::read_to_string(path("token")).expect("it is written");
    assert!(kept.trim().len() >= 64, "{kept}");
    let made = std::fs::metadata(path("token")).expect("it is there");
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    // Neither the file nor the register changes by what fails.
    add("me", &path("token")).failed(1, &[&path("token")]);
    add("you", &path("token")).failed(1, &[&path("token")]);
    std::os::unix::fs::symlink(path("elsewhere"), path("link")).expect("the folder is ours");
    add("you", &path("link")).failed(1, &[&path("link")]);
    add("me", &path("other")).failed(1, &["token remove me"]);
    for name in ["elsewhere", "other"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    let again = std::fs::read_to_string(path("token")).expect("it is there");
    assert_eq!(again, kept);
    let list = linerate(&["token", "list", "--state", &state]).run().done();
    assert_eq!(list.out.lines().count(), 1, "{list:?}");
}

#[test]
fn a_buffer_above_the_sysctl_names_the_sysctl() {
    let server = Server::start(&[]);
    let most = std::fs::read_to_string("/proc/sys/net/core/wmem_max").expect("Linux has it");
    let said = linerate(&["run", &server.host(), "-w", "1G"]).run();
    said.failed(
        2,
        &[
            "1073741824 B on",
            &format!("net.core.wmem_max = {}", most.trim()),
            &format!("ask for at most {} B", most.trim()),
            "sysctl -w net.core.wmem_max=1073741824 net.core.rmem_max=1073741824",
        ],
    );
    assert!(server.info()["busy"].is_null(), "the host is given back");
}

#[test]
fn what_this_host_cannot_do_is_said_before_anyone_is_asked() {
    // Nothing listens on port 1.
    let check = |flags: &str, said: &[&str]| refused(&format!("run 127.0.0.1:1 {flags}"), said);
    check("-A 8000", &["CPU 8000: this host allows", "with -A"]);
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.expect("Linux has it");
    check("-C nosuch", &["`nosuch`", "with -C", available.trim()]);
    check(
        "-C cubic,nosuch",
        &["`nosuch`", "with -C", available.trim()],
    );
    check("--cpus 1,1024", &["1024", "this host allows", "--cpus"]);
    let with = Call::of(env!("CARGO_BIN_EXE_linerate"));
    let with = with.words(&["run", "127.0.0.1:1", "--with", "stream -C nosuch", "--rr"]);
    with.run().failed(2, &["`nosuch`", available.trim()]);
    let words = "ulimit -n 256; exec \"$0\" run 127.0.0.1:1 -P 2000";
    let said = Call::of("sh").words(&["-c", words, env!("CARGO_BIN_EXE_linerate")]);
    said.run().failed(
        2,
        &["2000 flows need", "may have 256 (RLIMIT_NOFILE)", "ulimit"],
    );
}

#[test]
fn what_another_host_refuses_is_said_once_and_is_no_failure_of_the_run() {
    let server = Server::start(&[]);
    let said = linerate(&["run", &server.host(), "-t", "0.2", "-A", "0,8000"]).run();
    let said = said.failed(
        2,
        &[
            "host server",
            "CPU 8000: this host allows",
            "next: use settings",
        ],
    );
    assert!(!said.out.contains("8000"), "{}", said.out);
}

/// iperf3's servers have no guests to end; an experiment is refused before its file is read.
#[test]
fn a_host_is_not_taken_back_from_guests_of_iperf3() {
    let said = [
        "--evict ends runs at `linerate serve`",
        "next: leave --evict away",
    ];
    refused("run 127.0.0.1:1 --peer iperf3 --evict", &said);
    refused(
        "run 127.0.0.1:1 --peer iperf3 --evict --experiment nosuch.toml",
        &said,
    );
}

#[test]
fn experiment_files_name_file_key_and_what_is_allowed() {
    let folder = folder();
    let source = crate::common::repository().join("experiments/first-look.toml");
    let good = std::fs::read_to_string(source).expect("the example is there");
    let check = |name: &str, text: &str, said: &[&str]| {
        let path = file(&folder, name, text);
        let mut said = said.to_vec();
        said.push(name);
        said.push("docs/reference/experiment.md");
        linerate(&["plan", &path]).run().failed(2, &said);
        linerate(&["run", "127.0.0.1:1", "--experiment", &path])
            .run()
            .failed(2, &said);
    };
    check(
        "unknown.toml",
        &format!("colour = 1\n{good}"),
        &["colour", "expected"],
    );
    check(
        "slip.toml",
        &format!("titel = \"x\"\n{good}"),
        &["titel", "did you mean `title`?"],
    );
    check("empty.toml", "", &[]);
    // What no trial could do is refused before there is one, as a flag would be.
    let of_workload = |keys: &str| {
        let start = good.find("[workload]").expect("a workload");
        let end = start + good[start..].find("\n[").expect("another table");
        format!("{}[workload]\n{keys}{}", &good[..start], &good[end..])
    };
    check(
        "uring.toml",
        &of_workload("kind = \"stream\"\nwait = \"uring\"\n"),
        &["wait = uring is for rr, crr, and does nothing with stream"],
    );
    check(
        "zerocopy.toml",
        &of_workload("kind = \"stream\"\ntransport = \"mptcp\"\nsend = \"msg_zerocopy\"\n"),
        &["MSG_ZEROCOPY works with TCP only"],
    );
    check(
        "gro.toml",
        &of_workload("kind = \"rr\"\ngro = true\n"),
        &["workload.gro", "it belongs to kind `stream`"],
    );
    check("noise.toml", "\u{1}\u{2}[[[", &["line 1"]);
    linerate(&["plan", "/nosuch.toml"])
        .run()
        .failed(2, &["cannot read the experiment file /nosuch.toml"]);
    let huge = file(&folder, "huge.toml", &"#".repeat(1 << 21));
    linerate(&["plan", &huge])
        .run()
        .failed(2, &["huge.toml", "larger than 1 MiB"]);
    let path = file(&folder, "good.toml", &good);
    linerate(&["plan", &path, "--budget", "1ms"])
        .run()
        .failed(2, &["1 ms", "at least", "--budget"]);
    linerate(&["plan", &path, "--budget", "soon"])
        .run()
        .failed(2, &["--budget", "soon"]);
    linerate(&["plan", &path, "--clients", "0"])
        .run()
        .failed(2, &["client"]);
}

#[test]
fn a_study_whose_budget_is_too_small_says_the_least() {
    linerate(&["study", "--lab", "--dry-run", "--budget", "2s"])
        .run()
        .failed(2, &["2 s", "at least", "--budget", "30 s: --quick"]);
    linerate(&["study", "--lab", "--dry-run", "--budget", "0s"])
        .run()
        .failed(2, &["at least", "--budget"]);
    linerate(&["study", "--lab", "--budget=-3m"])
        .run()
        .failed(2, &["--budget"]);
}

#[test]
fn bundles_that_are_none_are_refused() {
    let folder = folder();
    let next = "name a directory that `linerate study` or `linerate run --out` made";
    let empty = folder.path().display().to_string();
    linerate(&["report", "/nosuch/bundle"])
        .run()
        .failed(1, &["/nosuch/bundle", next]);
    linerate(&["report", &empty])
        .run()
        .failed(1, &[&empty, next]);
    file(&folder, "run.json", "{\"format\": 999}");
    linerate(&["report", &empty])
        .run()
        .failed(1, &[&empty, next]);
    file(&folder, "run.json", "garbage");
    linerate(&["report", &empty])
        .run()
        .failed(1, &[&empty, next]);
}
