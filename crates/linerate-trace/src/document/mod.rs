//! What a trace comes to: a document with a number, in base units; `--json` prints it as it is.
//!
//! Keys end with their unit. What was not captured, or not kept, is `null`, never zero.

use serde::Serialize;

/// One connection.
mod connection;
/// Sums over all connections.
mod totals;

pub use connection::{ConnectionReport, Ending, LifeReport};

pub(crate) use connection::{DurationReport, EndReport, TimelineReport};
pub(crate) use totals::Totals;

use crate::capture::Reader;
use crate::datagrams::ConversationReport;
use crate::findings::TcpFinding;

/// The number of the document's shape.
pub(crate) const TRACE_SCHEMA_VERSION: u32 = 2;

/// What a trace comes to.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// What this document is: `linerate.trace`.
    pub schema: &'static str,
    /// The number of its shape.
    pub schema_version: u32,
    /// The files, in the order in which they were read.
    pub files: Vec<FileReport>,
    /// Sums over everything.
    pub totals: Totals,
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
#[derive(Debug, Clone, Serialize)]
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
    /// What is wrong with the file.
    pub damage: Option<String>,
}

impl FileReport {
    /// Returns the report of a file of which nothing was read yet.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: "",
            frames: 0,
            bytes: 0,
            first_ns: None,
            last_ns: None,
            backward: 0,
            before_ns: 0,
            damage: None,
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

    pub(crate) fn finish<R: std::io::Read>(&mut self, reader: &Reader<R>) {
        self.format = reader.format();
        self.frames = reader.frames();
        self.bytes = reader.position_bytes();
        self.damage = reader.damage().map(ToString::to_string);
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
        let warnings = warnings(&files, &totals, &connections);
        Self {
            schema: "linerate.trace",
            schema_version: TRACE_SCHEMA_VERSION,
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

    /// Returns how long the capture took, in nanoseconds.
    pub(crate) fn duration_ns(&self) -> Option<u64> {
        let first = self.files.iter().filter_map(|file| file.first_ns).min()?;
        let last = self.files.iter().filter_map(|file| file.last_ns).max()?;
        Some(last.saturating_sub(first))
    }

    /// Returns when the capture began, in nanoseconds since 1970.
    pub(crate) fn begin_ns(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| file.first_ns).min()
    }
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
        if file.backward > 0 {
            let frames = match file.backward {
                1 => "1 frame lies before the one before it in time; it is".to_owned(),
                more => format!("{more} frames lie before the one before them in time; they are"),
            };
            warnings.push(format!(
                "{}: {frames} taken in the order of the file (reordercap sorts them)",
                file.name
            ));
        }
    }
    if totals.connections == 0 && totals.filtered > 0 {
        warnings.push(format!(
            "no connection is one that --flow wants: all {} TCP segments are of others",
            totals.filtered
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
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            warnings.push(format!("{number} {what}"));
        }
    };
    count(
        totals.cut,
        "frames were cut before the end of their TCP header: capture 128 bytes of each frame at least",
    );
    count(
        totals.options_cut,
        "SYNs were cut before the end of their options: what they offered (window scale, SACK, \
         timestamps) is not known, and no window is told; capture 128 bytes of each frame at least",
    );
    count(
        totals.malformed,
        "frames contradict themselves and were left out",
    );
    count(
        totals.shortened,
        "packets say that they are longer than their frames: what was on the wire is counted",
    );
    count(
        totals.fragments,
        "fragments of IP packets: payload of all but the first is not counted",
    );
    count(
        totals.foreign_links,
        "frames are of link types without IP and were left out",
    );
    for (what, &number) in &totals.undecoded {
        let words = format!("frames have their packets in what is not decoded: {what}");
        count(number, &words);
    }
    count(
        totals.encrypted,
        "frames of 802.11 are encrypted, and what they carry is not seen: capture behind the access \
         point, or decrypt them first (airdecap-ng)",
    );
    count(
        totals.wireless,
        "frames of 802.11 carry no data (management, control)",
    );
    count(
        totals.udp_left_out,
        "datagrams were left out: there were more conversations over UDP than are kept",
    );
    count(
        totals.untracked,
        "segments were left out: too many addresses of IPv6",
    );
    count(
        totals.duplicate_frames,
        "frames were captured twice (on a bridge, or on any interface); counted once",
    );
    count(
        totals.holes_of_capture,
        "ranges were acknowledged but are not in the capture: it lost frames, and what is said of \
         loss and waits around them may be its own",
    );
    count(
        totals.findings_left_out,
        "findings were not kept: there were more than 4096",
    );
    count(
        totals.without_detail,
        "connections were only counted: more were open at once than details are kept of",
    );
    count(
        totals.forgotten,
        "connections are in the totals only: there were more than are kept",
    );
    let half = connections.iter().filter(|one| one.one_sided).count();
    count(
        half as u64,
        "of the connections shown have only one direction in the capture: round trips and \
         acknowledgements are missing",
    );
    warnings
}
