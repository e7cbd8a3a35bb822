//! What arrives is arbitrary bytes in arbitrary pieces: nothing panics, nothing grows without
//! bound, and where bytes are cut changes nothing.

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use linerate_compat::iperf3::auth::{Gate, Padding, PrivateKey, SKEW_S, Users};
use linerate_compat::iperf3::frame::{self, FrameDecoder};
use linerate_compat::iperf3::{
    ClientAction, ClientEnding, ClientMachine, Code, Cookie, Direction, Parameters, Protocol,
    Results, ServerAction, ServerEnding, ServerMachine, StreamId, StreamResult,
};
use linerate_compat::netperf::{
    Length, MESSAGE_BYTES, Message, OmniRequest, OmniResponse, OmniResults, Request,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns `bytes` cut at `cuts`, which are shares of its length.
fn pieces(bytes: &[u8], cuts: &[f64]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|cut| (cut * bytes.len() as f64) as usize)
        .collect();
    at.push(bytes.len());
    at.sort_unstable();
    let mut from = 0;
    at.into_iter()
        .map(|to| {
            let piece = bytes[from..to].to_vec();
            from = to;
            piece
        })
        .collect()
}

fn cuts() -> impl Strategy<Value = Vec<f64>> {
    vec(0.0..1.0, 0..8)
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let protocol = prop_oneof![
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Sctp)
    ];
    let direction = prop_oneof![
        Just(Direction::ToServer),
        Just(Direction::ToClient),
        Just(Direction::Both)
    ];
    let numbers = (0_u32..=86_400, 0_u32..=600, 1_u32..=128, 16_u32..=65_507);
    let options = (
        proptest::option::of(1_u32..=32_767),
        proptest::option::of(1_u32..=512 << 20),
        proptest::option::of(1_u64..1 << 40),
        proptest::option::of("[ -~äß€]{0,40}"),
        proptest::option::of(1_u8..),
    );
    (protocol, direction, numbers, options, any::<[bool; 6]>()).prop_map(
        |(protocol, direction, (time_s, omit_s, parallel, block_bytes), options, flags)| {
            let (mss_bytes, window_bytes, bits_per_second, title, tos) = options;
            Parameters {
                direction,
                time_s,
                omit_s,
                parallel,
                block_bytes,
                mss_bytes,
                window_bytes,
                bits_per_second,
                title,
                tos,
                nodelay: flags[0],
                server_output: flags[1],
                counters_64bit: flags[2],
                repeating_payload: flags[3],
                dont_fragment: flags[4],
                skip_rx_copy: flags[5],
                ..Parameters::of(protocol)
            }
        },
    )
}

/// A small JSON-like text, more likely to get past the first character than noise is.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let key = prop_oneof![
        Just("tcp"),
        Just("udp"),
        Just("time"),
        Just("omit"),
        Just("parallel"),
        Just("len"),
        Just("reverse"),
        Just("bandwidth"),
        Just("window"),
        Just("streams"),
        Just("id"),
        Just("bytes"),
        Just("retransmits"),
        Just("jitter"),
        Just("title"),
        Just("authtoken"),
    ];
    let value = prop_oneof![
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("[]".to_owned()),
        Just("[{}]".to_owned()),
        Just("1e999".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("\"x\"".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        (0_u32..200).prop_map(|number| number.to_string()),
        Just("[".repeat(500)),
    ];
    let object = vec((key, value), 0..8).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        format!("{{{}}}", pairs.join(",")).into_bytes()
    });
    prop_oneof![object, vec(any::<u8>(), 0..200)]
}

/// What may be on a control connection: states, frames, noise.
fn stream_of_bytes() -> impl Strategy<Value = Vec<u8>> {
    let state = prop_oneof![
        Just(1_u8),
        Just(2),
        Just(4),
        Just(9),
        Just(10),
        Just(11),
        Just(12),
        Just(13),
        Just(14),
        Just(16),
        Just(0xFE),
        Just(0xFF),
        any::<u8>(),
    ];
    let good = parameters().prop_map(|own| frame::encode(own.to_json().as_bytes()));
    let results = Just(frame::encode(Results::default().to_json().as_bytes()));
    let part = prop_oneof![
        4 => state.prop_map(|state| vec![state]),
        2 => good,
        2 => results,
        1 => text().prop_map(|text| frame::encode(&text)),
        1 => vec(any::<u8>(), 0..40),
    ];
    vec(part, 0..10).prop_map(|parts| parts.concat())
}

/// An owner that answers every question at once and keeps what it was told.
fn serve(server: &mut ServerMachine, bytes: &[u8], told: &mut Vec<ServerAction>) {
    let mut queue = server.handle_bytes(5, bytes);
    while !queue.is_empty() {
        let mut next = Vec::new();
        for action in &queue {
            next.extend(match action {
                ServerAction::Decide(_) => {
                    let accepted = server.handle_accepted(5);
                    [accepted, server.handle_streams(5)].concat()
                }
                ServerAction::Report(_) => server.handle_results(5, &Results::default()),
                _ => Vec::new(),
            });
        }
        told.append(&mut queue);
        queue = next;
    }
}

fn drive(client: &mut ClientMachine, bytes: &[u8], told: &mut Vec<ClientAction>) {
    let mut queue = client.handle_bytes(5, bytes);
    while !queue.is_empty() {
        let mut next = Vec::new();
        for action in &queue {
            next.extend(match action {
                ClientAction::Run => client.handle_end(5),
                ClientAction::Report => client.handle_results(5, &Results::default()),
                _ => Vec::new(),
            });
        }
        told.append(&mut queue);
        queue = next;
    }
}

fn server() -> ServerMachine {
    ServerMachine::new(0).0
}

fn client() -> ClientMachine {
    let parameters = Parameters::of(Protocol::Tcp);
    ClientMachine::new(0, &Cookie::from_random([0; 36]), parameters).0
}

/// What a client of iperf3 3.22 said on its control connection leads a server to its end, and the other way round.
#[test]
fn the_corpus_is_read_as_what_it_is() {
    for (name, bytes) in corpus::files("iperf3-server") {
        let (mut server, mut told) = (server(), Vec::new());
        // In answer to what it was told: none of it comes before it is asked for.
        for byte in bytes {
            serve(&mut server, &[byte], &mut told);
        }
        let asked = told
            .iter()
            .any(|told| matches!(told, ServerAction::Decide(_)));
        assert!(asked, "{name}: {told:?}");
        if name.contains("/to-") {
            assert!(server.is_over(), "{name}: {told:?}");
            let done = ServerAction::End(ServerEnding::Done);
            assert!(told.contains(&done), "{name}: {told:?}");
        }
    }
    for (name, bytes) in corpus::files("iperf3-client") {
        let (mut client, mut told) = (client(), Vec::new());
        for byte in bytes {
            drive(&mut client, &[byte], &mut told);
        }
        assert!(client.is_over(), "{name}: {told:?}");
        let done = told.contains(&ClientAction::End(ClientEnding::Done));
        assert_eq!(done, name.contains("/to-"), "{name}: {told:?}");
    }
}

/// Returns a message of `bytes`, cut or filled to its length.
fn message(mut bytes: Vec<u8>) -> Message {
    bytes.resize(MESSAGE_BYTES, 0);
    Message::from_bytes(bytes.try_into().expect("as long as a message"))
}

fn omni(message: &Message) -> Option<OmniRequest> {
    match Request::decode(message) {
        Request::Omni(request) => request.ok(),
        _ => None,
    }
}

/// What a client of netperf 2.7.1 says: tests by their names, and of one what it says before.
#[test]
fn the_corpus_of_netperf_is_read_as_what_it_is() {
    for (name, bytes) in corpus::files("netperf") {
        assert_eq!(bytes.len(), MESSAGE_BYTES, "{name}");
        let asked = Request::decode(&message(bytes));
        let is_read = match asked {
            Request::Omni(request) => request.is_ok(),
            Request::Passphrase => name.ends_with("-6"),
            _ => false,
        };
        assert!(is_read, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_message_of_netperf_is_read_within_its_limits(
        bytes in prop_oneof![vec(any::<u8>(), 0..=MESSAGE_BYTES), corpus::changed("netperf")],
    ) {
        let message = message(bytes);
        let _ = OmniResponse::decode(&message);
        let _ = OmniResults::decode(&message);
        if let Some(request) = omni(&message) {
            let sizes = [request.send_bytes, request.receive_bytes, request.request_bytes, request.response_bytes];
            prop_assert!(sizes.into_iter().flatten().all(|size| (1..=64 << 20).contains(&size)));
            prop_assert!(!matches!(request.length, Length::Seconds(86_401..)));
            prop_assert!(request.congestion.as_ref().is_none_or(|name| name.len() < 16));
            prop_assert_eq!(omni(&request.encode()), Some(request));
        }
    }

    #[test]
    fn parameters_of_anything_are_read_or_refused(text in text()) {
        if let Ok(parameters) = Parameters::parse(&text) {
            let written = parameters.to_json();
            let again = Parameters::parse(written.as_bytes()).unwrap();
            prop_assert_eq!(again.to_json(), written);
        }
    }

    #[test]
    fn what_a_client_writes_a_server_reads(parameters in parameters()) {
        prop_assert_eq!(Parameters::parse(parameters.to_json().as_bytes()), Ok(parameters));
    }

    #[test]
    fn results_of_anything_are_read_or_refused(text in text()) {
        if let Ok(results) = Results::parse(&text) {
            prop_assert_eq!(Results::parse(results.to_json().as_bytes()), Ok(results));
        }
    }

    #[test]
    fn a_frame_is_the_same_however_it_is_cut(
        bytes in vec(any::<u8>(), 0..300),
        small in any::<bool>(),
        cuts in cuts(),
    ) {
        // Lengths of noise are mostly too long; most of these are not.
        let bytes = if small && bytes.len() > 4 { [&[0, 0, 0], &bytes[3..]].concat() } else { bytes };
        let whole = feed(std::slice::from_ref(&bytes));
        prop_assert_eq!(feed(&pieces(&bytes, &cuts)), whole);
    }

    #[test]
    fn a_server_bears_anything_in_any_pieces(
        bytes in prop_oneof![stream_of_bytes(), corpus::changed("iperf3-server")],
        cuts in cuts(),
    ) {
        let pieces = pieces(&bytes, &cuts);
        // Where bytes are cut changes nothing of what the machine says.
        let (mut whole, mut cut) = (server(), server());
        let said = whole.handle_bytes(5, &bytes);
        let mut said_in_pieces = Vec::new();
        for piece in &pieces {
            said_in_pieces.extend(cut.handle_bytes(5, piece));
        }
        prop_assert_eq!(said, said_in_pieces);
        // An owner that answers gets further; it ends once and no deadline stays behind.
        let (mut server, mut told) = (server(), Vec::new());
        for piece in &pieces {
            serve(&mut server, piece, &mut told);
        }
        let ends = told.iter().filter(|action| matches!(action, ServerAction::End(_))).count();
        prop_assert_eq!(ends, usize::from(server.is_over()));
        prop_assert_eq!(server.deadline_ns().is_none(), server.is_over());
    }

    #[test]
    fn a_client_bears_anything_in_any_pieces(
        bytes in prop_oneof![stream_of_bytes(), corpus::changed("iperf3-client")],
        cuts in cuts(),
    ) {
        let pieces = pieces(&bytes, &cuts);
        let (mut whole, mut cut) = (client(), client());
        let said = whole.handle_bytes(5, &bytes);
        let mut said_in_pieces = Vec::new();
        for piece in &pieces {
            said_in_pieces.extend(cut.handle_bytes(5, piece));
        }
        prop_assert_eq!(said, said_in_pieces);
        let (mut client, mut told) = (client(), Vec::new());
        for piece in &pieces {
            drive(&mut client, piece, &mut told);
        }
        let ends = told.iter().filter(|action| matches!(action, ClientAction::End(_))).count();
        prop_assert_eq!(ends, usize::from(client.is_over()));
    }

    #[test]
    fn a_client_and_a_server_come_to_their_end(
        parameters in parameters(),
        cuts in vec(0.0_f64..1.0, 0..4),
    ) {
        let cookie = Cookie::from_random([9; 36]);
        let (mut client, asked) = ClientMachine::new(0, &cookie, parameters.clone());
        let (mut server, answered) = ServerMachine::new(0);
        let mut run = Run { to_client: Vec::new(), to_server: Vec::new(), seen: Seen::default() };
        run.client_does(asked);
        // The cookie was read before the server's machine began.
        run.to_server.clear();
        run.server_does(&mut server, answered);
        while !(run.to_client.is_empty() && run.to_server.is_empty()) {
            for piece in pieces(&std::mem::take(&mut run.to_client), &cuts) {
                let actions = client.handle_bytes(1, &piece);
                run.client_answers(&mut client, actions);
            }
            for piece in pieces(&std::mem::take(&mut run.to_server), &cuts) {
                let actions = server.handle_bytes(1, &piece);
                run.server_does(&mut server, actions);
            }
        }
        let seen = run.seen;
        prop_assert_eq!(seen.asked.as_ref(), Some(&parameters));
        prop_assert_eq!(seen.client_end, Some(ClientEnding::Done));
        prop_assert_eq!(seen.server_end, Some(ServerEnding::Done));
        prop_assert_eq!(seen.by_client.unwrap().streams.len(), parameters.streams());
        prop_assert_eq!(seen.by_server.unwrap().streams.len(), parameters.streams());
    }

    #[test]
    fn cookies_of_anything(bytes in vec(any::<u8>(), 37)) {
        let bytes: [u8; 37] = bytes.try_into().unwrap();
        if let Some(cookie) = Cookie::decode(&bytes) {
            prop_assert_eq!(cookie.encode(), bytes);
        }
    }
}

proptest! {
    // Decryption takes milliseconds.
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn tokens_and_users_of_anything(token in "[A-Za-z0-9+/= \\n]{0,400}", users in "[a-f0-9,#\\n]{0,200}") {
        let _ = Users::parse(&users);
        let key = include_str!("keys/only-for-tests-private.pem");
        let gate = Gate {
            key: PrivateKey::from_pem(key).unwrap(),
            users: Users::parse(&format!("a,{}", "0".repeat(64))).unwrap(),
            padding: Padding::Pkcs1,
            skew_s: SKEW_S,
        };
        prop_assert!(gate.check(Some(&token), 0, &mut |bytes| bytes.fill(7)).is_err());
    }
}

/// Returns the texts in a stream of bytes and whether it was refused.
fn feed(pieces: &[Vec<u8>]) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = FrameDecoder::new(200);
    let mut texts = Vec::new();
    for piece in pieces {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            match decoder.feed(rest) {
                Ok((taken, text)) => {
                    assert!(taken > 0, "progress");
                    rest = &rest[taken..];
                    if let Some(text) = text {
                        texts.push(text);
                        decoder = FrameDecoder::new(200);
                    }
                }
                Err(error) => {
                    assert!(error.announced > 200);
                    return (texts, true);
                }
            }
        }
    }
    (texts, false)
}

/// What both ends learned.
#[derive(Debug, Default)]
struct Seen {
    asked: Option<Parameters>,
    by_client: Option<Results>,
    by_server: Option<Results>,
    client_end: Option<ClientEnding>,
    server_end: Option<ServerEnding>,
}

/// A client and a server with nothing but bytes between them.
struct Run {
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    seen: Seen,
}

impl Run {
    fn results(&self) -> Results {
        let streams = self.seen.asked.as_ref().map_or(0, Parameters::streams);
        Results {
            streams: (0..streams)
                .map(|at| StreamResult::nothing(StreamId::of(at)))
                .collect(),
            ..Results::default()
        }
    }

    fn client_does(&mut self, actions: Vec<ClientAction>) {
        for action in actions {
            match action {
                ClientAction::Send(bytes) => self.to_server.extend(bytes),
                ClientAction::Received(results) => self.seen.by_server = Some(*results),
                ClientAction::End(ending) => self.seen.client_end = Some(ending),
                ClientAction::Open | ClientAction::Run | ClientAction::Report => {}
            }
        }
    }

    fn client_answers(&mut self, client: &mut ClientMachine, actions: Vec<ClientAction>) {
        for action in actions {
            let answer = match &action {
                ClientAction::Run => client.handle_end(1),
                ClientAction::Report => client.handle_results(1, &self.results()),
                _ => Vec::new(),
            };
            self.client_does(vec![action]);
            self.client_answers(client, answer);
        }
    }

    fn server_does(&mut self, server: &mut ServerMachine, actions: Vec<ServerAction>) {
        for action in actions {
            let answer = match action {
                ServerAction::Send(bytes) => {
                    self.to_client.extend(bytes);
                    Vec::new()
                }
                ServerAction::Decide(parameters) => {
                    self.seen.asked = Some(*parameters);
                    server.handle_accepted(1)
                }
                ServerAction::Report(results) => {
                    self.seen.by_client = Some(*results);
                    let own = self.results();
                    server.handle_results(1, &own)
                }
                ServerAction::End(ending) => {
                    self.seen.server_end = Some(ending);
                    Vec::new()
                }
                ServerAction::Run | ServerAction::Stop => Vec::new(),
            };
            self.server_does(server, answer);
            // Streams arrive once the client was told to open them.
            if server.is_opening() && self.to_client.ends_with(&[10]) {
                let start = server.handle_streams(1);
                self.server_does(server, start);
            }
        }
    }
}

#[test]
fn a_client_learns_why_a_server_refuses() {
    let cookie = Cookie::from_random([9; 36]);
    let (mut client, _) = ClientMachine::new(0, &cookie, Parameters::of(Protocol::Tcp));
    let (mut server, _) = ServerMachine::new(0);
    let asked = client.handle_bytes(0, &[9]);
    let [ClientAction::Send(text)] = &asked[..] else {
        panic!("{asked:?}");
    };
    server.handle_bytes(0, text);
    let refused = server.handle_refused(Code::AUTHENTICATION, 0, "who are you".into());
    let [ServerAction::Send(told), ServerAction::End(_)] = &refused[..] else {
        panic!("{refused:?}");
    };
    let ending = ClientEnding::ServerError {
        code: Code::AUTHENTICATION,
        errno: 0,
    };
    assert_eq!(client.handle_bytes(0, told), [ClientAction::End(ending)]);
}
