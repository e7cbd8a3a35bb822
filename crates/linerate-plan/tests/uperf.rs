//! Profiles of uperf: what they come to, and what is refused with its line and the thing that is refused.

use std::fs;
use std::path::Path;

use linerate_model::experiment::Experiment;
use linerate_model::manner::{Manner, Sizes, Transport};
use linerate_model::step::{Step, exchanged};
use linerate_model::workload::{Direction, FlowOptions, Traffic, TrialHost, Workload};
use linerate_model::{Bytes, Nanos};
use linerate_plan::{
    Hosts, PlanRequest, ReadError, is_profile, plan, read_experiment, read_profile,
};

/// The environment of all profiles here.
fn variable(name: &str) -> Option<String> {
    let known = [
        ("h", "one"),
        ("h2", "TWO"),
        ("nthr", "7"),
        ("dur", "3s"),
        ("bad", "x"),
    ];
    let mut known = known.iter();
    known
        .find(|(key, _)| *key == name)
        .map(|(_, value)| (*value).to_owned())
}

fn read(text: &str) -> Result<Experiment, ReadError> {
    read_profile(text, "example.xml", variable).map(|draft| draft.experiment)
}

/// A profile whose first group has line 2, its transaction with connect 3 to 5, and `work` from line 6 on.
fn profile(connect: &str, work: &str) -> String {
    format!(
        "<profile name=\"An Example\">\n<group nthreads=\"4\">\n<transaction>\n\
         <flowop type=\"connect\" options=\"remotehost=$h {connect}\"/>\n</transaction>\n{work}\n\
         <transaction><flowop type=\"disconnect\"/></transaction>\n</group>\n</profile>\n"
    )
}

/// Flowops, one a line, in a transaction with the attributes `how`.
fn work(how: &str, flowops: &[(&str, &str)]) -> String {
    let flowops = flowops
        .iter()
        .map(|(kind, options)| format!("<flowop type=\"{kind}\" options=\"{options}\"/>\n"));
    let flowops: String = flowops.collect();
    format!("<transaction {how}>\n{flowops}</transaction>")
}

fn of(connect: &str, how: &str, flowops: &[(&str, &str)]) -> Experiment {
    read(&profile(connect, &work(how, flowops))).unwrap_or_else(|error| panic!("{error}"))
}

fn stream(direction: Direction, message_bytes: u64) -> Traffic {
    Traffic::Stream {
        direction,
        message_bytes: Bytes(message_bytes),
    }
}

fn rr(request: u64, response: u64, request_writes: u32) -> Traffic {
    Traffic::Rr {
        request_bytes: Bytes(request),
        response_bytes: Bytes(response),
        request_writes,
    }
}

#[test]
fn one_way_is_a_stream() {
    let check = |flowops: &[(&str, &str)], expected: Traffic| {
        let experiment = of("", "duration=\"2.5s\"", flowops);
        assert_eq!(experiment.workload.traffic, expected, "{flowops:?}");
        assert_eq!(experiment.timing.measure, Nanos::from_ms(2500));
        assert_eq!(experiment.workload.connections, 4);
        assert_eq!(
            (experiment.name.as_str(), experiment.title.as_str()),
            ("an-example", "An Example")
        );
        assert_eq!(experiment.workload.manner, Manner::default());
    };
    let out = |bytes| stream(Direction::ToServer, bytes);
    check(&[("write", "size=8k count=10")], out(8192));
    check(&[("send", "size=90")], out(90));
    check(
        &[
            ("nop", "count=3"),
            ("write", "size=1.5k"),
            ("write", "size=1536 count=2"),
        ],
        out(1536),
    );
    check(
        &[("read", "size=64k")],
        stream(Direction::FromServer, 65_536),
    );
    check(
        &[("recv", "size=64k rsize=8k")],
        stream(Direction::FromServer, 8192),
    );
    check(&[("write", "size=64k rsize=8k")], out(65_536));
}

#[test]
fn write_and_read_are_an_exchange() {
    let check = |flowops: &[(&str, &str)], expected: Traffic, think: Option<Nanos>| {
        let workload = of("", "duration=\"$dur\"", flowops).workload;
        assert_eq!(workload.traffic, expected, "{flowops:?}");
        assert_eq!(workload.manner.think, think, "{flowops:?}");
    };
    let (write, read) = (("write", "size=90"), ("read", "size=64k"));
    check(&[write, read], rr(90, 65_536, 1), None);
    check(&[write, read, write, read], rr(90, 65_536, 1), None);
    // Who is first differs, and that the request has two calls.
    check(&[read, write, write], rr(180, 65_536, 2), None);
    check(&[write, read, write], rr(180, 65_536, 2), None);
    check(
        &[("write", "size=8 count=16"), ("read", "size=1")],
        rr(128, 1, 16),
        None,
    );
    let think = |options| ("think", options);
    let ms = |ms| Some(Nanos::from_ms(ms));
    check(
        &[write, think("duration=10ms idle"), read],
        rr(90, 65_536, 1),
        ms(10),
    );
    check(
        &[think("duration=1s"), write, read, think("duration=5m")],
        rr(90, 65_536, 1),
        ms(1005),
    );
}

#[test]
fn any_other_exchange_has_the_steps_of_the_profile() {
    let check = |how: &str, flowops: &[(&str, &str)], expected: &[&str]| {
        let workload = of("", how, flowops).workload;
        let step = |text: &&str| Step::named(text).expect("a step");
        let steps: Vec<Step> = expected.iter().map(step).collect();
        assert_eq!(workload.manner.steps.as_deref(), Some(steps.as_slice()));
        let (request, response) = exchanged(&steps);
        assert_eq!(workload.traffic, rr(request.0, response.0, 1));
        assert_eq!(workload.manner.think, None);
        workload.manner
    };
    let timed = "duration=\"1\"";
    let (write, read) = (("write", "size=9"), ("read", "size=7"));
    let other = ("read", "size=8");
    check(
        timed,
        &[write, read, write, other],
        &["send 9", "receive 7", "send 9", "receive 8"],
    );
    // It begins with what a client sends after it has received, since a transaction is executed again and again.
    check(
        timed,
        &[read, other, write, other, write],
        &["send 9", "receive 8", "send 9", "receive 7", "receive 8"],
    );
    check(
        timed,
        &[("write", "size=2 count=17"), ("read", "size=4 rsize=2")],
        &[["send 2"; 17].as_slice(), &["receive 2"; 2]].concat(),
    );
    // Both ends of uperf pause.
    check(
        "duration=\"1\" rate=\"10\"",
        &[
            ("think", "duration=5ms"),
            write,
            ("think", "duration=10ms idle"),
            read,
            ("think", "duration=1 busy"),
        ],
        &[
            "send 9",
            "pause 10ms",
            "server pause 10ms",
            "receive 7",
            "spin 1s",
            "server spin 1s",
            "pause 5ms",
            "server pause 5ms",
        ],
    );
    let paced = check(
        "duration=\"1\" rate=\"10\"",
        &[write, read, read],
        &["send 9", "receive 7", "receive 7"],
    );
    assert_eq!(paced.requests_per_s, Some(10));
    let method = of("", timed, &[read, read, write]).method;
    assert!(method.contains("pass of 3 reads and writes"), "{method}");
    assert!(method.contains("Clients send first"), "{method}");
}

#[test]
fn a_connection_in_each_pass_is_connect_and_close() {
    let check = |how: &str, between: &str, expected: (u64, u64)| {
        let text = format!(
            "<profile><group nprocs=\"$nthr\"><transaction {how}><flowop type=\"connect\" options=\"remotehost=b tcp_nodelay\"/>\
             {between}<flowop type=\"disconnect\" options=\"remotehost=b\"/></transaction></group></profile>"
        );
        let experiment = read(&text).unwrap_or_else(|error| panic!("{error}"));
        let workload = experiment.workload;
        assert_eq!(
            workload.traffic.exchange(),
            Some((Bytes(expected.0), Bytes(expected.1)))
        );
        assert!(workload.traffic.is_placed());
        assert_eq!(
            (workload.connections, workload.options.nagle),
            (7, Some(false))
        );
        assert_eq!(experiment.response, "connections_per_s");
        (experiment.timing.measure, workload.manner.requests_per_s)
    };
    let exchange =
        "<flowop type=\"write\" options=\"size=64\"/><flowop type=\"read\" options=\"size=1k\"/>";
    assert_eq!(
        check("iterations=\"1k\"", "", (0, 0)),
        (Nanos::from_s(10), None)
    );
    assert_eq!(
        check("duration=\"4\" rate=\"50\"", exchange, (64, 1024)),
        (Nanos::from_s(4), Some(50))
    );
}

#[test]
fn options_of_connect_are_those_of_the_sockets() {
    let workload = of(
        "protocol=TCP wndsz=256K tcp_nodelay cc=cubic conn=3",
        "duration=\"1\"",
        &[("write", "size=1 conn=3")],
    )
    .workload;
    let expected = FlowOptions {
        socket_buffer: Some(Bytes(262_144)),
        nagle: Some(false),
        congestion: Some("cubic".to_owned()),
        ..FlowOptions::default()
    };
    assert_eq!(workload.options, expected);
    // It leaves Nagle's algorithm on, at a rate, too.
    let exchange = [("write", "size=1"), ("read", "size=1")];
    let rate = "duration=\"1\" rate=\"10\"";
    let nagle = |options, transaction| {
        let workload = of(options, transaction, &exchange).workload;
        workload.options.nagle
    };
    assert_eq!(nagle("protocol=TCP", rate), Some(true));
    assert_eq!(nagle("protocol=TCP tcp_nodelay", rate), Some(false));
    assert_eq!(nagle("protocol=TCP", "duration=\"1\""), None);
    assert_eq!(nagle("protocol=udp", rate), None);
    let udp = of("protocol=udp", "duration=\"1\"", &[("write", "size=64")]).workload;
    assert_eq!(udp.manner.transport, Transport::Udp);
    let passed_over = of(
        "port=5000 timeout=3s canfail",
        "duration=\"1\"",
        &[("write", "size=64 non_blocking")],
    );
    for option in ["port", "timeout", "canfail", "non_blocking"] {
        assert!(
            passed_over.method.contains(option),
            "{}",
            passed_over.method
        );
    }
}

#[test]
fn rates_sizes_and_volumes_are_those_of_the_workload() {
    let manner = |how: &str, flowops: &[(&str, &str)]| of("", how, flowops).workload.manner;
    let paced = manner(
        "duration=\"1\" rate=\"100\"",
        &[("write", "size=1k count=10")],
    );
    assert_eq!(
        (paced.rate_bps, paced.burst),
        (Some(8 * 100 * 10 * 1024), 10)
    );
    let exchange = [("write", "size=1"), ("read", "size=1")];
    let exchanges = manner(
        "duration=\"1\" rate=\"100\"",
        &[exchange, exchange].concat(),
    );
    assert_eq!(exchanges.requests_per_s, Some(200));

    let (low, high) = (Bytes(64), Bytes(1024));
    let uniform = Some(Sizes::Uniform { low, high });
    let random = "size=rand(64,1k)";
    assert_eq!(
        manner("duration=\"1\"", &[("write", random)]).sizes,
        uniform
    );
    assert_eq!(
        manner("duration=\"1\"", &[("write", random), ("read", random)]).sizes,
        uniform
    );
    let list = manner(
        "duration=\"1\"",
        &[("write", "size=7 count=2"), ("write", "size=9")],
    )
    .sizes;
    let bytes = [7, 7, 9].map(Bytes);
    assert_eq!(
        list,
        Some(Sizes::List {
            bytes: bytes.into()
        })
    );

    assert_eq!(
        manner("iterations=\"10\"", &[("write", "size=1k count=2")]).bytes_max,
        Some(Bytes(20_480))
    );
    assert_eq!(
        manner("duration=\"1\"", &[("write", "size=1k")]).bytes_max,
        None
    );
    let iterated = of("", "iterations=\"10\"", &exchange);
    assert_eq!(iterated.timing.measure, Nanos::from_s(10));
    // The line of its transaction.
    assert!(iterated.method.contains('6'), "{}", iterated.method);
}

/// Groups with these connects and these works, each for a second.
fn groups(of: &[(&str, &str)]) -> Result<Experiment, ReadError> {
    let group = |(connect, flowops): &(&str, &str)| {
        format!(
            "<group nthreads=\"2\"><transaction>{connect}</transaction><transaction duration=\"1\">{flowops}</transaction></group>"
        )
    };
    let groups: String = of.iter().map(group).collect();
    read(&format!("<profile>{groups}</profile>"))
}

#[test]
fn several_remote_hosts_are_the_clients_and_the_master_is_the_server() {
    let to_h = "<flowop type=\"connect\" options=\"remotehost=$h\"/>";
    let to_h2 = "<flowop type=\"accept\" options=\"remotehost=$h2\"/>";
    let write = "<flowop type=\"write\" options=\"size=5\"/>";
    let exchange = format!("<flowop type=\"read\" options=\"size=9\"/>{write}");
    let all = groups(&[(to_h, write), (to_h2, &exchange), (to_h, &exchange)]).expect("groups");
    // The two that do the same are one, each client with the flows of its group.
    let [second] = all.beside.as_slice() else {
        panic!("{:?}", all.beside);
    };
    assert_eq!(all.workload.traffic, stream(Direction::FromServer, 5));
    assert_eq!(second.workload.traffic, rr(9, 5, 1));
    let from = |workload: &Workload| workload.from.clone();
    assert_eq!(from(&all.workload), [TrialHost(1)]);
    assert_eq!(from(&second.workload), [TrialHost(2), TrialHost(1)]);
    let flows = second.workload.flows().into_iter();
    assert_eq!(
        flows.map(|flow| flow.from).collect::<Vec<_>>(),
        [2, 1, 2, 1]
    );

    // With one it is the other way round, and groups have no host of their own.
    let same = to_h.replace("$h", "ONE");
    let one = groups(&[(to_h, write), (&same, &exchange)]).expect("groups");
    assert_eq!(one.workload.traffic, stream(Direction::ToServer, 5));
    assert_eq!(one.beside[0].workload.traffic, rr(5, 9, 1));
    assert_eq!(
        (from(&one.workload), from(&one.beside[0].workload)),
        (vec![], vec![])
    );

    let request = |clients| {
        PlanRequest::within(
            None,
            1,
            Hosts {
                clients,
                ..Hosts::default()
            },
        )
    };
    let draft = || linerate_plan::Draft {
        budget: linerate_plan::BudgetHints::fixed(&all),
        experiment: all.clone(),
    };
    let made = plan(&[draft()], &request(2)).expect("a plan");
    assert_eq!(made.trials.len(), 1);
    assert_eq!(made.trials[0].beside.len(), 1);
    assert!(plan(&[draft()], &request(1)).is_err());
}

#[test]
fn what_uperf_has_and_no_workload_is_refused_with_its_line() {
    let check = |text: &str, expected_line: usize, thing: &str| {
        let error = read(text).expect_err(thing);
        let (ReadError::Syntax { line, .. } | ReadError::Value { line, .. }) = &error else {
            panic!("{error}");
        };
        let told = error.to_string();
        assert_eq!(*line, expected_line, "{told}");
        assert!(
            told.contains(thing) && told.contains("example.xml"),
            "{told}"
        );
    };
    // Elements and attributes.
    check("<profile>\n<group/>\n</profil>", 3, "XML");
    check("<profile>\n<!DOCTYPE x>", 2, "XML");
    check("<uperf/>", 1, "<uperf>");
    check("<profile/>", 1, "<group>");
    check(
        "<profile>\n<group nthreads=\"1\"/></profile>",
        2,
        "<transaction>",
    );
    check(
        "<profile>\n<group><transaction/></group></profile>",
        2,
        "nthreads",
    );
    check(
        "<profile>\n<group nthreads=\"1\"\nnprocs=\"1\"/></profile>",
        2,
        "nprocs",
    );
    check(
        "<profile>\n<group\nnthreads=\"0\"/></profile>",
        3,
        "group.nthreads",
    );
    check(
        "<profile>\n<group\nnthreads=\"$gone\"/></profile>",
        3,
        "`gone`",
    );
    check("<profile>\n<group\nnthreads=\"$bad\"/></profile>", 3, "`x`");
    check(
        "<profile>\n<group\nthreads=\"1\"/></profile>",
        3,
        "`threads`",
    );
    check("<profile>\n<flowop/></profile>", 2, "<flowop>");
    let whole =
        |connect: &str, how: &str, flowops: &[(&str, &str)]| profile(connect, &work(how, flowops));
    let plain = [("write", "size=1")];
    check(
        &whole("", "iterations=\"1\" duration=\"1\"", &plain),
        6,
        "duration",
    );
    check(
        &whole("", "duration=\"1h\"", &plain),
        6,
        "transaction.duration",
    );
    check(
        &whole("", "duration=\"10m\"", &plain),
        6,
        "transaction.duration",
    );
    check(&whole("", "rate=\"0\"", &plain), 6, "transaction.rate");
    check(&whole("", "", &[]), 6, "<flowop>");
    // Flowops and their options, which may stand on a line of their own.
    let flowop =
        |kind: &str, options: &str| whole("", "duration=\"1\"", &[("nop", ""), (kind, options)]);
    for (kind, options, thing) in [
        ("sendfile", "dir=/tmp", "sendfile"),
        ("sendfilev", "", "sendfilev"),
        ("wait", "", "`wait`"),
        ("", "", "``"),
        ("write", "", "size"),
        ("write", "size=0", "size"),
        ("write", "size=5g", "size"),
        ("write", "size=$gone", "`gone`"),
        ("write", "size=rand(9,1)", "size"),
        ("write", "size=rand(1)", "size"),
        ("write", "size=1 count=0", "count"),
        ("write", "size=1 colour=3", "`colour`"),
        ("write", "size=1 loud", "`loud`"),
        ("write", "size=1 conn=2", "connection"),
        ("write", "size=70m", "message_bytes"),
        ("read", "size=3 rsize=2", "rsize"),
        ("think", "", "duration"),
        ("think", "duration=1h", "duration"),
        ("accept", "remotehost=h", "connection"),
    ] {
        // What a workload cannot be is that of the whole transaction.
        let line = if thing == "message_bytes" { 6 } else { 8 };
        check(&flowop(kind, options), line, thing);
    }
    for other in ["sctp", "ssl", "vsock", "rds", "udapl", "quic"] {
        check(&whole(&format!("\nprotocol={other}"), "", &plain), 5, other);
    }
    for option in [
        "encaps=9899",
        "stack=rack",
        "bblog=1",
        "engine=x",
        "cipher=x",
        "method=x",
        "localhost=a",
        "repeat=2",
        "batch_size=2",
        "nfiles=1",
        "dir=/",
        "sctp_nodelay",
        "sctp_rto_min=3",
    ] {
        let name = option.split('=').next().expect("a name");
        check(&whole(&format!("\n{option}"), "", &plain), 5, name);
    }
    check(&whole(&"x".repeat(100), "", &plain), 4, "99");
    check(&whole(&"port=1 ".repeat(100), "", &plain), 4, "100");
    check(&whole("count=2", "", &plain), 4, "count");
    check(&whole("wndsz=1", "", &plain), 6, "socket_buffer");
    check(&profile("", ""), 2, "transaction");
    check(
        &whole("", "", &plain).replace("remotehost=$h", ""),
        4,
        "remotehost",
    );
}

#[test]
fn what_no_workload_does_is_refused_with_its_line() {
    let check = |connect: &str, how: &str, flowops: &[(&str, &str)], expected_line: usize| {
        let text = profile(connect, &work(how, flowops));
        match read(&text) {
            Err(ReadError::Syntax { line, .. } | ReadError::Value { line, .. }) => {
                assert_eq!(line, expected_line, "{flowops:?}");
            }
            other => panic!("{flowops:?}: {other:?}"),
        }
    };
    let timed = "duration=\"1\"";
    let (write, read_) = (("write", "size=9"), ("read", "size=9"));
    let think = ("think", "duration=1s");
    check("", timed, &[write, think], 8);
    check("", timed, &[think, write], 7);
    check("", timed, &[("write", "size=9 count=1000"), read_], 8);
    check("", timed, &[write, ("read", "size=9 count=4g")], 8);
    check("", timed, &[write, ("read", "size=9 count=3g")], 8);
    check("", timed, &[write, read_, write, ("read", "size=64m")], 6);
    check(
        "",
        timed,
        &[write, read_, ("write", "size=rand(1,9)"), read_],
        9,
    );
    check(
        "protocol=udp",
        timed,
        &[write, read_, write, read_, read_],
        6,
    );
    check("", timed, &[("write", "size=rand(1,9)"), read_], 7);
    check("", timed, &[("write", "size=rand(1,9)"), write], 7);
    check(
        "",
        timed,
        &[("write", "size=9 count=70000"), ("write", "size=8")],
        7,
    );
    check(
        "",
        "duration=\"1\" rate=\"5\"",
        &[("write", "size=rand(1,9)")],
        6,
    );
    check("", "duration=\"1\" rate=\"5\"", &[write, read_, think], 6);
    check("protocol=udp", timed, &[("write", "size=9")], 6);
    check(
        "protocol=udp tcp_nodelay",
        timed,
        &[("write", "size=99")],
        6,
    );
    check(
        "",
        timed,
        &[("connect", "remotehost=h"), ("disconnect", "")],
        7,
    );
    check("", timed, &[("disconnect", ""), write], 8);

    let line = |text: &str| match read(text) {
        Err(ReadError::Syntax { line, .. } | ReadError::Value { line, .. }) => line,
        other => panic!("{text}: {other:?}"),
    };
    // Two transactions with traffic.
    let two = profile(
        "",
        &format!("{}\n{}", work(timed, &[write]), work(timed, &[read_])),
    );
    assert_eq!(line(&two), 9);
    // Without connect, or connected again without a disconnect.
    let text = profile("", &work(timed, &[write])).replace("\"connect\"", "\"nop\"");
    assert_eq!(line(&text), 7);
    let again = profile("", &work(timed, &[write])).replace(
        "<transaction>\n<flowop type=\"c",
        "<transaction iterations=\"2\">\n<flowop type=\"c",
    );
    assert_eq!(line(&again), 4);
    // A rate of connections that the other end opens, and connections with more than an exchange.
    let of = |open: &str, between: &str| {
        format!(
            "<profile><group nthreads=\"1\">\n<transaction>\n<flowop type=\"{open}\" options=\"remotehost=h\"/>\n{between}\
             <flowop type=\"disconnect\"/></transaction></group></profile>"
        )
    };
    assert_eq!(line(&of("accept", "")), 3);
    let flowop = |kind| format!("<flowop type=\"{kind}\" options=\"size=1\"/>\n");
    assert_eq!(line(&of("connect", &flowop("write"))), 2);
    assert_eq!(
        line(&of("connect", &(flowop("read") + &flowop("write")))),
        4
    );
    let pair = flowop("write") + &flowop("read");
    assert_eq!(line(&of("connect", &format!("{pair}{pair}"))), 2);
    let busy = "<flowop type=\"think\" options=\"duration=1ms busy\"/>\n";
    assert_eq!(line(&of("connect", &format!("{pair}{busy}"))), 6);
    // Groups that end at different times, too many of them, too many strands.
    let group = |strands: u32, time: u32| {
        let text = profile("", &work(&format!("duration=\"{time}\""), &[write]));
        let from = text.find("<group").expect("a group");
        let to = text.find("</profile").expect("an end");
        text[from..to].replace("\"4\"", &format!("\"{strands}\""))
    };
    let all = |groups: &[String]| format!("<profile>{}</profile>", groups.concat());
    assert_eq!(line(&all(&[group(1, 1), group(1, 2)])), 5 + 9);
    assert_eq!(line(&all(&vec![group(1, 1); 9])), 1 + 8 * 9);
    assert_eq!(line(&all(&[group(9_999, 1), group(2, 1)])), 1 + 9);
    assert_eq!(line(&all(&[group(10_001, 1)])), 1);
    // Transactions, flowops, bytes.
    let many = profile("", &work(timed, &vec![write; 1001]));
    assert_eq!(line(&many), 6 + 1001);
    let many = profile("", &vec![work("iterations=\"0\"", &[write]); 99].join("\n"));
    assert_eq!(line(&many), 6 + 3 * 99);
    assert_eq!(line(&" ".repeat((1 << 20) + 1)), 1);
}

#[test]
fn passes_of_no_iterations_are_none() {
    let text = profile(
        "",
        &format!(
            "{}\n{}",
            work("iterations=\"0\"", &[("read", "size=9")]),
            work("duration=\"1\"", &[("write", "size=9")])
        ),
    );
    let experiment = read(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(experiment.workload.traffic, stream(Direction::ToServer, 9));
}

#[test]
fn profiles_are_known_by_how_they_begin() {
    assert!(is_profile("\u{feff}\n <?xml version=\"1.0\"?><profile/>"));
    assert!(!is_profile("format = 1"));
    assert!(!is_profile(""));
    assert!(read_experiment("<profile/>", "x").is_err());
    // All letters are lower-case ones, as for uperf.
    let text = profile(
        "WNDSZ=8K",
        &work("DURATION=\"1S\"", &[("WRITE", "SIZE=1K")]),
    );
    let text = text.replace("group", "Group").replace("profile", "PROFILE");
    assert_eq!(
        read(&text)
            .expect("a profile")
            .workload
            .options
            .socket_buffer,
        Some(Bytes(8192))
    );
}

#[test]
fn the_profiles_that_come_with_the_program_are_read_and_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/uperf");
    for (connections, buffer, strands) in [
        (8, "256k", "2"),
        (32, "256k", "8"),
        (100, "256k", "25"),
        (1000, "32k", "250"),
        (4000, "32k", "1000"),
    ] {
        for (way, direction) in [("tx", Direction::FromServer), ("rx", Direction::ToServer)] {
            let name = format!("{way}-{buffer}.xml");
            let text = fs::read_to_string(folder.join(&name)).expect("a profile");
            let variable = |name: &str| (name == "nthr").then(|| strands.to_owned());
            let draft =
                read_profile(&text, &name, variable).unwrap_or_else(|error| panic!("{error}"));
            let hosts = Hosts {
                clients: 4,
                ..Hosts::default()
            };
            let made = plan(
                std::slice::from_ref(&draft),
                &PlanRequest::within(None, 1, hosts),
            )
            .expect("a plan");
            let [trial] = made.trials.as_slice() else {
                panic!("{name}: {}", made.trials.len());
            };
            let workload = &trial.workload;
            assert_eq!((workload.connections, workload.clients), (connections, 4));
            assert_eq!(workload.traffic, stream(direction, 8192));
            assert_eq!(workload.from, [1, 2, 3, 4].map(TrialHost));
            // Three clients are too few for four.
            let too_few = Hosts {
                clients: 3,
                ..Hosts::default()
            };
            assert!(plan(&[draft], &PlanRequest::within(None, 1, too_few)).is_err());
        }
    }
}
