//! What the client asks for, as the JSON text that it sends.

use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::iperf3::error::Code;
use crate::iperf3::frame::PARAMETERS_BYTES_MAX;
use crate::iperf3::number::whole;

/// The most streams in one direction.
pub const STREAMS_MAX: u32 = 128;
/// The longest test, in seconds.
pub const TIME_S_MAX: u32 = 86_400;
/// The longest time that is omitted, in seconds.
pub const OMIT_S_MAX: u32 = 600;
/// The largest block of a TCP or SCTP stream.
pub const TCP_BLOCK_BYTES_MAX: u32 = 1 << 20;
/// The block of a TCP stream if the client does not say.
pub const TCP_BLOCK_BYTES: u32 = 128 << 10;
/// The block of an SCTP stream if the client does not say.
const SCTP_BLOCK_BYTES: u32 = 64 << 10;
/// The smallest datagram: the header with 64-bit counters.
pub const UDP_BLOCK_BYTES_MIN: u32 = 16;
/// The largest datagram that IPv4 carries.
pub const UDP_BLOCK_BYTES_MAX: u32 = 65_507;
/// The datagram if the client does not say.
pub const UDP_BLOCK_BYTES: u32 = 1460;
/// The rate of a UDP stream if the user does not say, in bits per second.
pub const UDP_BITS_PER_SECOND: u64 = 1 << 20;
/// The largest socket buffer.
const WINDOW_BYTES_MAX: u32 = 512 << 20;
/// The largest MSS.
const MSS_BYTES_MAX: u32 = 32_767;
/// The longest burst, in blocks.
const BURST_BLOCKS_MAX: u32 = 1000;

/// What the streams are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Returns its name as documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        }
    }
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    ToServer,
    /// The server (`-R`).
    ToClient,
    /// Both, on streams of their own (`--bidir`).
    Both,
}

/// Segmentation and aggregation of datagrams by the kernel, which clients since 3.21 speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gso {
    /// Whether the sender hands over many datagrams at once.
    pub gso: u64,
    /// The datagram inside such a buffer, in bytes.
    pub gso_dg_size: u64,
    /// The buffer, in bytes.
    pub gso_bf_size: u64,
    /// Whether the receiver takes many datagrams at once.
    pub gro: u64,
    /// The buffer, in bytes.
    pub gro_bf_size: u64,
}

/// What a client asks for, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// What the streams are made of.
    pub protocol: Protocol,
    /// Who sends.
    pub direction: Direction,
    /// The time at the start that is not counted, in seconds.
    pub omit_s: u32,
    /// The time that is counted, in seconds; 0 if bytes or blocks decide, or nothing.
    pub time_s: u32,
    /// The bytes after which the client ends the test, over all streams.
    pub bytes: Option<u64>,
    /// The blocks after which the client ends the test, over all streams.
    pub blocks: Option<u64>,
    /// Streams in each direction, 1 to 128.
    pub parallel: u32,
    /// Bytes of one write or one datagram.
    pub block_bytes: u32,
    /// The CPU that the server shall run on.
    pub server_affinity: Option<u32>,
    /// The MSS.
    pub mss_bytes: Option<u32>,
    /// Whether each write is sent at once.
    pub nodelay: bool,
    /// Whether TCP is to be multipath TCP.
    pub mptcp: bool,
    /// Bytes of the socket buffers, both ways.
    pub window_bytes: Option<u32>,
    /// The rate of each stream; absent: as fast as it goes.
    pub bits_per_second: Option<u64>,
    /// The rate at which the kernel paces each stream, in bits per second.
    pub fq_bits_per_second: Option<u64>,
    /// The interval of the sender's own pacing, in µs.
    pub pacing_timer_us: Option<u64>,
    /// Blocks that are sent together.
    pub burst_blocks: Option<u32>,
    /// The type of service.
    pub tos: Option<u8>,
    /// The flow label of IPv6.
    pub flow_label: Option<u32>,
    /// What the user calls the test.
    pub title: Option<String>,
    /// What the user wants to find in the result.
    pub extra_data: Option<String>,
    /// The congestion control.
    pub congestion: Option<String>,
    /// Whether the server's own output shall come with its results.
    pub server_output: bool,
    /// Whether datagrams count in 64 bits.
    pub counters_64bit: bool,
    /// Whether payload repeats.
    pub repeating_payload: bool,
    /// Whether the sender shall not copy; a number, of which 1 means sendfile.
    pub zerocopy: Option<u64>,
    /// Whether datagrams must not be fragmented.
    pub dont_fragment: bool,
    /// Whether the receiver shall not copy.
    pub skip_rx_copy: bool,
    /// User and password, encrypted.
    pub auth_token: Option<String>,
    /// Segmentation and aggregation of datagrams.
    pub gso: Option<Gso>,
    /// What the client calls its version.
    pub client_version: Option<String>,
}

/// Why parameters are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The text is no JSON object.
    #[error("the parameters are no JSON object")]
    NotAnObject,
    /// A value has the wrong type.
    #[error("\"{key}\" of the parameters is not {expected}")]
    Type {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A value is out of range.
    #[error("\"{key}\" of the parameters is {value}, which is not between {min} and {max}")]
    Range {
        /// The key.
        key: &'static str,
        /// The value.
        value: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// The number that the client is told.
        code: Code,
    },
    /// Both `reverse` and `bidirectional` are asked for.
    #[error("the parameters ask for both \"reverse\" and \"bidirectional\"")]
    Directions,
}

impl ParametersError {
    /// Returns the number that the client is told.
    pub fn code(&self) -> Code {
        match self {
            ParametersError::Range { code, .. } => *code,
            ParametersError::Directions => Code(25),
            _ => Code::RECEIVE_PARAMETERS,
        }
    }
}

impl Parameters {
    /// Returns what a client asks for that says nothing beside the protocol.
    pub fn of(protocol: Protocol) -> Self {
        let (block_bytes, bits_per_second) = match protocol {
            Protocol::Tcp => (TCP_BLOCK_BYTES, None),
            Protocol::Udp => (UDP_BLOCK_BYTES, Some(UDP_BITS_PER_SECOND)),
            Protocol::Sctp => (SCTP_BLOCK_BYTES, None),
        };
        Self {
            protocol,
            direction: Direction::ToServer,
            omit_s: 0,
            time_s: 10,
            bytes: None,
            blocks: None,
            parallel: 1,
            block_bytes,
            server_affinity: None,
            mss_bytes: None,
            nodelay: false,
            mptcp: false,
            window_bytes: None,
            bits_per_second,
            fq_bits_per_second: None,
            pacing_timer_us: Some(1000),
            burst_blocks: None,
            tos: None,
            flow_label: None,
            title: None,
            extra_data: None,
            congestion: None,
            server_output: false,
            counters_64bit: false,
            repeating_payload: false,
            zerocopy: None,
            dont_fragment: false,
            skip_rx_copy: false,
            auth_token: None,
            gso: None,
            client_version: None,
        }
    }

    /// Returns the streams of the whole test, over both directions.
    pub fn streams(&self) -> usize {
        let each_way = self.parallel as usize;
        match self.direction {
            Direction::ToServer | Direction::ToClient => each_way,
            Direction::Both => 2 * each_way,
        }
    }

    /// Returns whether the server sends on the stream that was opened at place `index`.
    ///
    /// With both directions the client opens its own sending streams first.
    pub fn server_sends(&self, index: usize) -> bool {
        match self.direction {
            Direction::ToServer => false,
            Direction::ToClient => true,
            Direction::Both => index >= self.parallel as usize,
        }
    }

    /// Reads what a client sent.
    ///
    /// Keys that are not known are ignored, keys that are missing have their defaults. Types and
    /// ranges are checked as strictly as iperf3's own server does.
    pub fn parse(text: &[u8]) -> Result<Self, ParametersError> {
        // iperf3 passes titles on in whatever encoding they have.
        let text = String::from_utf8_lossy(text);
        let Ok(Value::Object(map)) = serde_json::from_str(&text) else {
            return Err(ParametersError::NotAnObject);
        };
        let keys = Keys(&map);
        let mut own = Self::of(protocol(keys)?);
        own.direction = direction(keys)?;
        own.bits_per_second = keys.set("bandwidth")?;
        own.omit_s = keys.within("omit", 0, OMIT_S_MAX, Code::OMIT)?.unwrap_or(0);
        own.time_s = keys
            .within("time", 0, TIME_S_MAX, Code::DURATION)?
            .unwrap_or(own.time_s);
        own.bytes = keys.set("num")?;
        own.blocks = keys.set("blockcount")?;
        own.parallel = keys
            .within("parallel", 1, STREAMS_MAX, Code::STREAMS)?
            .unwrap_or(1);
        own.block_bytes = block_bytes(keys, own.protocol)?.unwrap_or(own.block_bytes);
        own.server_affinity = keys.within("server_affinity", 0, 1 << 16, Code(132))?;
        own.mss_bytes = keys
            .within("MSS", 0, MSS_BYTES_MAX, Code::MSS)?
            .filter(|&mss| mss > 0);
        own.nodelay = keys.flag("nodelay")?;
        own.mptcp = keys.flag("mptcp")?;
        own.window_bytes = keys
            .within("window", 0, WINDOW_BYTES_MAX, Code::BUFFER_SIZE)?
            .filter(|&bytes| bytes > 0);
        own.fq_bits_per_second = keys.set("fqrate")?;
        own.pacing_timer_us = keys.set("pacing_timer")?;
        own.burst_blocks = keys
            .within("burst", 0, BURST_BLOCKS_MAX, Code::BURST)?
            .filter(|&blocks| blocks > 0);
        let tos = keys.within("TOS", 0, 255, Code::TOS)?;
        own.tos = tos.map(|tos| tos as u8).filter(|&tos| tos > 0);
        own.flow_label = keys.within("flowlabel", 0, (1 << 20) - 1, Code::RECEIVE_PARAMETERS)?;
        own.title = keys.words("title")?;
        own.extra_data = keys.words("extra_data")?;
        own.congestion = keys.words("congestion")?;
        own.server_output = keys.truthy("get_server_output")?;
        own.counters_64bit = keys.truthy("udp_counters_64bit")?;
        own.repeating_payload = keys.truthy("repeating_payload")?;
        own.zerocopy = keys.set("zerocopy")?;
        own.dont_fragment = keys.truthy("dont_fragment")?;
        own.skip_rx_copy = keys.truthy("skip_rx_copy")?;
        own.auth_token = keys.words("authtoken")?;
        own.gso = gso(keys)?;
        own.client_version = keys.words("client_version")?;
        Ok(own)
    }

    /// Returns the text that a client sends: keys, order and presence as in 3.12.
    pub fn to_json(&self) -> String {
        // Numbers, booleans and strings under fixed keys always have a text.
        serde_json::to_string(&Wire::of(self)).unwrap_or_default()
    }
}

fn protocol(keys: Keys<'_>) -> Result<Protocol, ParametersError> {
    // As iperf3's server: a text that names none means TCP.
    for (key, protocol) in [("udp", Protocol::Udp), ("sctp", Protocol::Sctp)] {
        if keys.flag(key)? {
            return Ok(protocol);
        }
    }
    keys.flag("tcp")?;
    Ok(Protocol::Tcp)
}

fn direction(keys: Keys<'_>) -> Result<Direction, ParametersError> {
    match (keys.flag("reverse")?, keys.flag("bidirectional")?) {
        (false, false) => Ok(Direction::ToServer),
        (true, false) => Ok(Direction::ToClient),
        (false, true) => Ok(Direction::Both),
        (true, true) => Err(ParametersError::Directions),
    }
}

fn block_bytes(keys: Keys<'_>, protocol: Protocol) -> Result<Option<u32>, ParametersError> {
    match protocol {
        Protocol::Udp => keys.within(
            "len",
            UDP_BLOCK_BYTES_MIN,
            UDP_BLOCK_BYTES_MAX,
            Code::UDP_BLOCK_SIZE,
        ),
        _ => keys.within("len", 1, TCP_BLOCK_BYTES_MAX, Code::BLOCK_SIZE),
    }
}

fn gso(keys: Keys<'_>) -> Result<Option<Gso>, ParametersError> {
    if !keys.0.contains_key("gso") && !keys.0.contains_key("gro") {
        return Ok(None);
    }
    let number = |key| Ok(keys.number(key)?.unwrap_or(0));
    Ok(Some(Gso {
        gso: number("gso")?,
        gso_dg_size: number("gso_dg_size")?,
        gso_bf_size: number("gso_bf_size")?,
        gro: number("gro")?,
        gro_bf_size: number("gro_bf_size")?,
    }))
}

/// The keys of a text, looked up with their types.
#[derive(Clone, Copy)]
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    /// Returns whether `key` is true; it may be missing.
    fn flag(self, key: &'static str) -> Result<bool, ParametersError> {
        let expected = "true or false";
        match self.0.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(ParametersError::Type { key, expected }),
        }
    }

    /// Returns whether `key` is true or a number other than 0; releases differ in which they send.
    fn truthy(self, key: &'static str) -> Result<bool, ParametersError> {
        match self.0.get(key) {
            Some(Value::Bool(flag)) => Ok(*flag),
            _ => Ok(self.set(key)?.is_some()),
        }
    }

    /// Returns a whole number.
    fn number(self, key: &'static str) -> Result<Option<u64>, ParametersError> {
        let expected = "a whole number";
        let Some(value) = self.0.get(key) else {
            return Ok(None);
        };
        match whole(value) {
            Some(number) => Ok(Some(number)),
            None => Err(ParametersError::Type { key, expected }),
        }
    }

    /// Returns a whole number of which 0 means none.
    fn set(self, key: &'static str) -> Result<Option<u64>, ParametersError> {
        Ok(self.number(key)?.filter(|&number| number > 0))
    }

    /// Returns a whole number from `min` to `max`; others are refused with `code`.
    fn within(
        self,
        key: &'static str,
        min: u32,
        max: u32,
        code: Code,
    ) -> Result<Option<u32>, ParametersError> {
        let Some(value) = self.number(key)? else {
            return Ok(None);
        };
        let (min, max) = (u64::from(min), u64::from(max));
        if !(min..=max).contains(&value) {
            return Err(ParametersError::Range {
                key,
                value,
                min,
                max,
                code,
            });
        }
        Ok(Some(value as u32))
    }

    /// Returns a string.
    fn words(self, key: &'static str) -> Result<Option<String>, ParametersError> {
        let expected = "a string of at most 8192 bytes";
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::String(words)) if words.len() <= PARAMETERS_BYTES_MAX => {
                Ok(Some(words.clone()))
            }
            Some(_) => Err(ParametersError::Type { key, expected }),
        }
    }
}

/// The text of a client: presence and order of keys as in 3.12; what came later stands at the end.
#[skip_serializing_none]
#[derive(Serialize)]
struct Wire<'a> {
    tcp: Option<bool>,
    udp: Option<bool>,
    sctp: Option<bool>,
    omit: u32,
    server_affinity: Option<u32>,
    time: u32,
    num: u64,
    blockcount: u64,
    #[serde(rename = "MSS")]
    mss: Option<u32>,
    nodelay: Option<bool>,
    parallel: u32,
    reverse: Option<bool>,
    bidirectional: Option<bool>,
    window: Option<u32>,
    len: u32,
    bandwidth: Option<u64>,
    fqrate: Option<u64>,
    pacing_timer: u64,
    burst: Option<u32>,
    #[serde(rename = "TOS")]
    tos: Option<u8>,
    flowlabel: Option<u32>,
    title: Option<&'a str>,
    extra_data: Option<&'a str>,
    congestion: Option<&'a str>,
    get_server_output: Option<u8>,
    udp_counters_64bit: Option<u8>,
    repeating_payload: Option<u8>,
    zerocopy: Option<u64>,
    dont_fragment: Option<u8>,
    authtoken: Option<&'a str>,
    client_version: Option<&'a str>,
    mptcp: Option<bool>,
    skip_rx_copy: Option<u8>,
    #[serde(flatten)]
    gso: Option<Gso>,
}

impl<'a> Wire<'a> {
    fn of(own: &'a Parameters) -> Self {
        let set = |flag: bool| flag.then_some(true);
        let one = |flag: bool| flag.then_some(1);
        Self {
            tcp: set(own.protocol == Protocol::Tcp),
            udp: set(own.protocol == Protocol::Udp),
            sctp: set(own.protocol == Protocol::Sctp),
            omit: own.omit_s,
            server_affinity: own.server_affinity,
            time: own.time_s,
            num: own.bytes.unwrap_or(0),
            blockcount: own.blocks.unwrap_or(0),
            mss: own.mss_bytes,
            nodelay: set(own.nodelay),
            parallel: own.parallel,
            reverse: set(own.direction == Direction::ToClient),
            bidirectional: set(own.direction == Direction::Both),
            window: own.window_bytes,
            len: own.block_bytes,
            bandwidth: own.bits_per_second,
            fqrate: own.fq_bits_per_second,
            pacing_timer: own.pacing_timer_us.unwrap_or(1000),
            burst: own.burst_blocks,
            tos: own.tos,
            flowlabel: own.flow_label,
            title: own.title.as_deref(),
            extra_data: own.extra_data.as_deref(),
            congestion: own.congestion.as_deref(),
            get_server_output: one(own.server_output),
            udp_counters_64bit: one(own.counters_64bit),
            repeating_payload: one(own.repeating_payload),
            zerocopy: own.zerocopy,
            dont_fragment: one(own.dont_fragment),
            authtoken: own.auth_token.as_deref(),
            client_version: own.client_version.as_deref(),
            mptcp: set(own.mptcp),
            skip_rx_copy: one(own.skip_rx_copy),
            gso: own.gso,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from iperf3 3.12: `-t 2 -O 1 -w 64K -M 1000 -l 8K -b 10M/5 -C cubic -Z -N -S 32
    /// --fq-rate 100M -T "ti tle" --extra-data x -A 0,1 --repeating-payload --get-server-output`.
    const EVERYTHING: &str = r#"{"tcp":true,"omit":1,"server_affinity":1,"time":2,"num":0,"blockcount":0,"MSS":1000,"nodelay":true,"parallel":1,"window":65536,"len":8192,"bandwidth":10000000,"fqrate":100000000,"pacing_timer":1000,"burst":5,"TOS":32,"title":"ti tle","extra_data":"x","congestion":"cubic","get_server_output":1,"repeating_payload":1,"zerocopy":1,"client_version":"3.12"}"#;

    fn everything() -> Parameters {
        Parameters {
            omit_s: 1,
            time_s: 2,
            block_bytes: 8192,
            server_affinity: Some(1),
            mss_bytes: Some(1000),
            nodelay: true,
            window_bytes: Some(65536),
            bits_per_second: Some(10_000_000),
            fq_bits_per_second: Some(100_000_000),
            burst_blocks: Some(5),
            tos: Some(32),
            title: Some("ti tle".into()),
            extra_data: Some("x".into()),
            congestion: Some("cubic".into()),
            server_output: true,
            repeating_payload: true,
            zerocopy: Some(1),
            client_version: Some("3.12".into()),
            ..Parameters::of(Protocol::Tcp)
        }
    }

    fn of_3_12(protocol: Protocol, change: impl FnOnce(&mut Parameters)) -> Parameters {
        let mut parameters = Parameters {
            time_s: 1,
            client_version: Some("3.12".into()),
            ..Parameters::of(protocol)
        };
        change(&mut parameters);
        parameters
    }

    #[test]
    fn words_may_be_long_and_in_any_encoding() {
        let long = "x".repeat(7000);
        let text = format!(r#"{{"tcp":true,"time":1,"extra_data":"{long}"}}"#);
        let parameters = Parameters::parse(text.as_bytes()).unwrap();
        assert_eq!(parameters.extra_data, Some(long));
        let text = b"{\"tcp\":true,\"time\":1,\"title\":\"caf\xe9\"}";
        let parameters = Parameters::parse(text).unwrap();
        assert_eq!(parameters.title.as_deref(), Some("caf\u{fffd}"));
    }

    #[test]
    fn texts_recorded_from_3_12_are_read_and_written_to_the_byte() {
        let check = |text: &str, expected: Parameters| {
            assert_eq!(Parameters::parse(text.as_bytes()).as_ref(), Ok(&expected));
            assert_eq!(expected.to_json(), text);
        };
        check(EVERYTHING, everything());
        check(
            r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.12"}"#,
            of_3_12(Protocol::Tcp, |_| ()),
        );
        check(
            r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":131072,"pacing_timer":1000,"get_server_output":1,"client_version":"3.12"}"#,
            of_3_12(Protocol::Tcp, |own| {
                own.parallel = 2;
                own.direction = Direction::ToClient;
                own.server_output = true;
            }),
        );
        check(
            r#"{"tcp":true,"omit":0,"time":0,"num":10485760,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.12"}"#,
            of_3_12(Protocol::Tcp, |own| {
                own.time_s = 0;
                own.bytes = Some(10_485_760);
            }),
        );
        check(
            r#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":32768,"bandwidth":1048576,"pacing_timer":1000,"get_server_output":1,"udp_counters_64bit":1,"client_version":"3.12"}"#,
            of_3_12(Protocol::Udp, |own| {
                own.parallel = 2;
                own.block_bytes = 32768;
                own.server_output = true;
                own.counters_64bit = true;
            }),
        );
    }

    #[test]
    fn unknown_and_missing_keys_do_no_harm() {
        let parsed = Parameters::parse(br#"{"new_in_9.9":{"a":[1]},"time":3}"#).unwrap();
        let expected = Parameters {
            time_s: 3,
            pacing_timer_us: None,
            ..Parameters::of(Protocol::Tcp)
        };
        assert_eq!(parsed, expected);
        let udp = Parameters::parse(br#"{"udp":true}"#).unwrap();
        assert_eq!(
            udp.bits_per_second, None,
            "a client that sends no rate has none"
        );
        assert_eq!(udp.block_bytes, 1460);
    }

    #[test]
    fn what_is_refused_and_with_which_number() {
        let check = |text: &str, code: i32| {
            let error = Parameters::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.code(), Code(code), "{text}: {error}");
        };
        check("", 114);
        check("[]", 114);
        check("{", 114);
        check(r#"{"tcp":1}"#, 114);
        check(r#"{"time":"1"}"#, 114);
        check(r#"{"time":-1}"#, 114);
        check(r#"{"time":1.5}"#, 114);
        check(r#"{"title":1}"#, 114);
        check(r#"{"time":86401}"#, 5);
        check(r#"{"parallel":129}"#, 6);
        check(r#"{"parallel":0}"#, 6);
        check(r#"{"len":1048577}"#, 7);
        check(r#"{"len":0}"#, 7);
        check(r#"{"window":536870913}"#, 8);
        check(r#"{"MSS":32768}"#, 10);
        check(r#"{"omit":601}"#, 12);
        check(r#"{"burst":1001}"#, 15);
        check(r#"{"udp":true,"len":15}"#, 20);
        check(r#"{"udp":true,"len":65508}"#, 20);
        check(r#"{"TOS":256}"#, 21);
        check(r#"{"reverse":true,"bidirectional":true}"#, 25);
    }

    #[test]
    fn the_server_sends_on_the_second_half_of_both_ways() {
        let both = Parameters {
            direction: Direction::Both,
            parallel: 2,
            ..Parameters::of(Protocol::Tcp)
        };
        assert_eq!(both.streams(), 4);
        let sends: Vec<bool> = (0..4).map(|index| both.server_sends(index)).collect();
        assert_eq!(sends, [false, false, true, true]);
    }

    #[test]
    fn what_a_client_of_3_21_adds_for_datagrams() {
        let parsed = Parameters::parse(
            br#"{"udp":true,"gso":1,"gso_dg_size":1460,"gso_bf_size":65507,"gro":1,"gro_bf_size":65507}"#,
        );
        let gso = parsed.unwrap().gso.unwrap();
        assert_eq!((gso.gso, gso.gso_dg_size, gso.gro), (1, 1460, 1));
    }
}
