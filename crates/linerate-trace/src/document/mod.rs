//! What a trace comes to: a document with a number, in base units; `--json` prints it as it is.
//!
//! Keys end with their unit. What was not captured, or not kept, is `null`, never zero.

use serde::Serialize;

/// One connection.
mod connection;
/// What was looked for.
mod coverage;
/// Sums over all connections.
mod totals;

pub use connection::{ConnectionReport, Ending, LifeReport};

pub(crate) use connection::{DurationReport, EndReport, SHARES, TimelineReport};
pub(crate) use totals::Totals;

use coverage::Coverage;

use crate::capture::Reader;
use crate::datagrams::ConversationReport;
use crate::findings::TcpFinding;
use crate::number::counted;

/// The number of the document's shape.
pub(crate) const TRACE_SCHEMA_VERSION: u32 = 2;

/// What a trace comes to.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Trace {
    /// What this document is: `linerate.trace`.
    pub schema: &'static str,
    /// The number of its shape.
    pub schema_version: u32,
    /// The files, in the order in which they were read.
    pub files: Vec<FileReport>,
    /// Sums over everything.
    pub totals: Totals,
    /// What was looked for, and what this capture cannot show.
    pub coverage: Coverage,
    /// What was found, the costliest first.
    pub findings: Vec<TcpFinding>,
    /// The connections, most payload first, as many as were asked for.
    pub connections: Vec<ConnectionReport>,
    /// Conversations over UDP, most payload first, as many as were asked for.
    pub conversations: Vec<ConversationReport>,
    /// What to know of the numbers.
    pub warnings: Vec<String>,
}

/// One file.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Its format in words.
    pub format: &'static str,
    /// Frames that were read.
    pub frames: u64,
    /// Bytes that were read, unpacked.
    pub bytes: u64,
    /// When the earliest frame was captured, in nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// When the latest was.
    pub last_ns: Option<u64>,
    /// Frames that lie before the one before them in time.
    pub backward: u64,
    /// When the frame before was captured.
    #[serde(skip)]
    before_ns: u64,
    /// Frames that whoever captured lost, as the file says.
    pub lost: Option<u64>,
    /// What is wrong with the file.
    pub damage: Option<String>,
}

impl FileReport {
    /// Returns the report of a file of which nothing was read yet.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Notes the time of a frame.
    #[inline]
    pub(crate) fn note_frame(&mut self, time_ns: u64) {
        self.backward += u64::from(self.before_ns > time_ns);
        self.before_ns = time_ns;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(Some(time_ns));
    }

    pub(crate) fn finish(&mut self, reader: &Reader<'_>) {
        self.format = reader.format();
        self.frames = reader.frames();
        self.bytes = reader.position_bytes();
        self.lost = reader.lost();
        self.damage = reader.damage().map(str::to_owned);
    }
}

impl Trace {
    pub(crate) fn new(
        files: Vec<FileReport>,
        totals: Totals,
        findings: Vec<TcpFinding>,
        connections: Vec<ConnectionReport>,
        conversations: Vec<ConversationReport>,
    ) -> Self {
        let mut warnings = warnings(&files, &totals, &connections);
        warnings.extend(one_sided(&conversations));
        Self {
            schema: "linerate.trace",
            schema_version: TRACE_SCHEMA_VERSION,
            coverage: Coverage::new(&totals, &connections),
            files,
            totals,
            findings,
            connections,
            conversations,
            warnings,
        }
    }

    /// Returns the document as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("the document has no map with odd keys and no failing serializer")
    }

    /// Returns the names of its files.
    pub(crate) fn name(&self) -> String {
        let names: Vec<&str> = self.files.iter().map(|file| &*file.name).collect();
        names.join(", ")
    }

    /// Returns how long the capture took, in nanoseconds.
    pub(crate) fn duration_ns(&self) -> Option<u64> {
        Some(self.end_ns()?.saturating_sub(self.begin_ns()?))
    }

    /// Returns the payload over the time of the capture, in bits per second.
    pub(crate) fn payload_rate(&self) -> Option<f64> {
        let elapsed_ns = self.duration_ns().filter(|&ns| ns > 0)?;
        Some(self.totals.payload_bytes as f64 * 8e9 / elapsed_ns as f64)
    }

    /// Returns when the capture ended, in nanoseconds since 1970.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| file.last_ns).max()
    }

    /// Returns when the capture began, in nanoseconds since 1970.
    pub(crate) fn begin_ns(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| file.first_ns).min()
    }
}

/// Says of how many conversations over UDP whose protocol answers only one direction was captured.
fn one_sided(conversations: &[ConversationReport]) -> Option<String> {
    let one_sided = conversations.iter().filter(|one| one.is_one_sided());
    let words = "over UDP of those shown [has|have] only one direction in the capture: what answers may go \
                 another way";
    told(one_sided.count() as u64, "conversation", words)
}

/// Says of how many something is true, if it is of any; `words` as [`agreed`] takes them.
fn told(number: u64, noun: &str, words: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {}", counted(number, noun), agreed(words, number)))
}

/// Returns the words with the first of each `[one|many]` for one, and the second for more.
fn agreed(words: &str, number: u64) -> String {
    let agreed = |part| match str::split_once(part, '|') {
        Some((one, _)) if number == 1 => one,
        Some((_, many)) => many,
        None => part,
    };
    words.split(['[', ']']).map(agreed).collect()
}

/// Says what to know of the numbers.
fn warnings(
    files: &[FileReport],
    totals: &Totals,
    connections: &[ConnectionReport],
) -> Vec<String> {
    let mut warnings = Vec::new();
    for file in files {
        if let Some(damage) = &file.damage {
            warnings.push(format!("{}: {damage}", file.name));
        }
        if let Some(lost @ 1..) = file.lost {
            warnings.push(format!(
                "{}: the capturing program lost {} more, as the file says: losses and waits may be \
                 those of the capture (a larger buffer, or less of each frame, helps)",
                file.name,
                counted(lost, "frame")
            ));
        }
        let words = "[is earlier than the frame before it; it is|are earlier than the frame before them; they \
                     are] taken in the order of the file (reordercap sorts them)";
        let backward = told(file.backward, "frame", words);
        warnings.extend(backward.map(|text| format!("{}: {text}", file.name)));
    }
    if totals.connections == 0 && totals.filtered > 0 {
        let others = match totals.filtered {
            1 => "the only TCP segment is".to_owned(),
            all => format!("all {} are", counted(all, "TCP segment")),
        };
        warnings.push(format!(
            "no connection is one that --flow wants: {others} of others"
        ));
    }
    for pair in files.windows(2) {
        if let (Some(last), Some(first)) = (pair[0].last_ns, pair[1].first_ns)
            && first < last
        {
            warnings.push(format!(
                "{} begins before {} ends; give the files in the order of time, or merge them \
                 (mergecap)",
                pair[1].name, pair[0].name
            ));
        }
    }
    let mut tell =
        |number: u64, noun: &str, words: &str| warnings.extend(told(number, noun, words));
    tell(
        totals.cut,
        "frame",
        "[was|were] cut before the end of [its|their] TCP header: capture 128 bytes of each frame at least",
    );
    tell(
        totals.options_cut,
        "SYN",
        "[was|were] cut before the end of [its|their] options: what [it|they] offered (window scale, SACK, \
         timestamps) is not known, and no window is reported; capture 128 bytes of each frame at least",
    );
    tell(
        totals.malformed,
        "frame",
        "[contradicts itself and was|contradict themselves and were] left out",
    );
    tell(
        totals.shortened,
        "packet",
        "[says that it is longer than its frame|say that they are longer than their frames]: what was on the \
         wire is counted",
    );
    tell(
        totals.fragments,
        "fragment",
        "of IP packets: payload of all but the first is not counted",
    );
    tell(
        totals.foreign_links,
        "frame",
        "[is of a link type without IP and was|are of link types without IP and were] left out",
    );
    for (what, &number) in &totals.undecoded {
        let has = "[has its packet|have their packets] in what is not decoded";
        tell(number, "frame", &format!("{has}: {what}"));
    }
    // Some of both are in every capture; much of it is something to know.
    let much = |number: u64| {
        if number > totals.frames / 2 {
            number
        } else {
            0
        }
    };
    tell(
        much(totals.not_ip),
        "frame",
        "[carries|carry] no IP that is known here: another protocol (ARP, spanning tree), or something before \
         IP that is not followed, as the tag of a switch",
    );
    tell(
        much(totals.not_tcp - totals.udp),
        "packet",
        "of IP [carries|carry] neither TCP nor UDP",
    );
    tell(
        totals.encrypted,
        "frame",
        "of 802.11 [is|are] encrypted, and what [it carries|they carry] is not seen: capture behind the access \
         point, or decrypt [it|them] first (airdecap-ng)",
    );
    tell(
        totals.wireless,
        "frame",
        "of 802.11 [carries|carry] no data (management, control)",
    );
    tell(
        totals.udp_left_out,
        "datagram",
        "[was|were] left out: there were more conversations over UDP than are kept",
    );
    tell(
        totals.untracked,
        "segment",
        "[was|were] left out: too many addresses of IPv6",
    );
    tell(
        totals.duplicate_frames,
        "frame",
        "[was|were] captured twice (on a bridge, any interface, both ends) or doubled on [its|their] way; \
         counted once",
    );
    tell(
        totals.holes_of_capture,
        "range",
        "[was|were] acknowledged but [is|are] not in the capture: it lost frames, and losses and waits \
         reported around them may come from the capture",
    );
    tell(
        totals.findings_left_out,
        "finding",
        "[was|were] not kept: there were more than 4096",
    );
    tell(
        totals.without_detail,
        "connection",
        "[was|were] only counted: more were open at once than details are kept of",
    );
    tell(
        totals.forgotten,
        "connection",
        "[is|are] in the totals only: there were more than are kept",
    );
    let half = connections.iter().filter(|one| one.one_sided).count();
    tell(
        half as u64,
        "connection",
        "of those shown [has|have] only one direction in the capture: round trips and acknowledgements are \
         missing",
    );
    warnings
}

#[cfg(test)]
mod tests {
    use super::agreed;

    #[test]
    fn words_agree_with_their_number() {
        let words = "[is of a link|are of links] without IP and [was|were] left out";
        assert_eq!(agreed(words, 1), "is of a link without IP and was left out");
        assert_eq!(
            agreed(words, 2),
            "are of links without IP and were left out"
        );
        assert_eq!(agreed("of IP", 1), "of IP");
    }
}
