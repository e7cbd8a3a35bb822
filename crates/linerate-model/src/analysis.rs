//! What is computed from a run, ready to be drawn.
//!
//! The report room turns these into pages and adds no number of its own.

use serde::Serialize;

use crate::answer::Answer;
use crate::finding::{
    CONFIDENCE, Comparison, Estimate, Finding, Recommendation, Trust, range_confidence,
};
use crate::flag::TrialFlag;
use crate::id::{HostName, TrialId};
use crate::limiter::Limiter;
use crate::plan::LeftOut;
use crate::profile::Work;
use crate::unit::{BitsPerSec, Unit};

/// The number of the analysis document's shape.
pub const ANALYSIS_FORMAT: u32 = 2;

/// Everything that a report shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// Shape of this document, [`ANALYSIS_FORMAT`].
    pub format: u32,
    /// Heading: "Study of server", "Experiment socket-buffer".
    pub title: String,
    /// What was asked, when, how long it took, whether it is whole; label and text.
    pub about: Vec<(String, String)>,
    /// Whether nothing was varied: what `linerate run HOST` measures.
    #[serde(skip)]
    pub is_one_measurement: bool,
    /// What to do next after one measurement, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why the numbers are partial, if they are.
    pub partial: Option<String>,
    /// The answer: verdict, headline numbers, what limits each workload.
    pub answer: Answer,
    /// The summary table: one line a headline number.
    pub summary: Table,
    /// How far the numbers may be relied on; absent where none was measured.
    pub trust: Option<Trust>,
    /// The findings, most important first, five at the most.
    pub findings: Vec<Finding>,
    /// Reasons to trust a number less, each of the chapter that it weakens.
    pub cautions: Vec<Finding>,
    /// Every comparison with its verdict.
    pub verdicts: Vec<Comparison>,
    /// What to do.
    pub recommendations: Vec<Recommendation>,
    /// The chapters, in order.
    pub chapters: Vec<Chapter>,
    /// What CPUs did, where a profile was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flames: Vec<Flame>,
    /// The hosts, the server first.
    pub hosts: Vec<HostSummary>,
    /// Protocol counters that moved in the measured windows of valid trials, host by host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<HostCounters>,
    /// Interrupts of network devices in the measured windows of valid trials, host by host; not those
    /// of a lab's hosts, whose links have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<HostInterrupts>,
    /// What could not be measured, and why.
    pub left_out: Vec<LeftOut>,
    /// What was damaged in the bundle.
    pub damage: Vec<String>,
}

/// A host as the report shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostSummary {
    /// Its name.
    pub name: HostName,
    /// What it was for, in words.
    pub part: String,
    /// The device that it is measured over, where that is known.
    #[serde(skip)]
    pub link: Option<String>,
    /// The rate of that device, where it is known.
    #[serde(skip)]
    pub link_rate: Option<BitsPerSec>,
    /// That from the host, where it is another.
    #[serde(skip)]
    pub link_up_rate: Option<BitsPerSec>,
    /// Facts: label and text.
    pub facts: Vec<(String, String)>,
    /// The labels of those that could not be read: their text says why.
    #[serde(skip)]
    pub unread: Vec<String>,
    /// Observers that could not run or are limited: name and reason.
    pub limits: Vec<(String, String)>,
}

/// The protocol counters of a host that moved in measured windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCounters {
    /// The host.
    pub host: HostName,
    /// Trials whose windows are summed.
    pub trials: u32,
    /// Length of those windows together.
    pub seconds: f64,
    /// The counters: those that tell of trouble, then the others by name.
    pub counters: Vec<CounterLine>,
}

/// One protocol counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterLine {
    /// The kernel's name, with the protocol where the kernel tells it apart: `Tcp.RetransSegs`.
    pub name: String,
    /// Whether it tells of loss, want of room, or work done twice.
    pub trouble: bool,
    /// What it counts, as far as that is known.
    pub meaning: Option<String>,
    /// How far it moved; values at an instant can fall.
    pub moved: f64,
    /// The same for a second of the windows.
    pub per_s: f64,
}

/// The interrupts of network devices that a host took in measured windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostInterrupts {
    /// The host.
    pub host: HostName,
    /// Trials whose windows are summed.
    pub trials: u32,
    /// Length of those windows together.
    pub seconds: f64,
    /// The interrupts, those that came most often first.
    pub interrupts: Vec<InterruptLine>,
}

/// One interrupt of a network device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptLine {
    /// Its number.
    pub irq: u32,
    /// The device.
    pub device: Option<String>,
    /// The queue that it serves: `rx:3`, `rxtx:0`.
    pub queue: Option<String>,
    /// The name that the driver gave it.
    pub name: Option<String>,
    /// How often it came.
    pub per_s: f64,
    /// The CPUs that took it, the one that took most first.
    pub cpus: Vec<InterruptCpu>,
}

/// What one CPU took of an interrupt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptCpu {
    /// The CPU.
    pub cpu: u32,
    /// How often it took it.
    pub per_s: f64,
}

/// One chapter: an experiment or a derived result.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chapter {
    /// Number in the study; absent for a lone experiment.
    pub number: Option<u32>,
    /// Identifier for links: `socket-buffer`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// The question.
    pub question: String,
    /// The answer in one or two sentences; absent when nothing valid was measured.
    pub answer: Option<String>,
    /// What follows from it: what limits most cells, and what would raise them; absent where that is
    /// not known.
    pub consequence: Option<String>,
    /// How it was measured.
    pub method: String,
    /// What pairs of hosts came to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heat_maps: Vec<HeatMap>,
    /// The pictures.
    pub figures: Vec<Figure>,
    /// The course of trials that findings rest on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<Figure>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Identifiers of the findings that come from it.
    pub findings: Vec<String>,
    /// The trials behind it.
    pub trials: Vec<TrialLine>,
}

/// A number for each pair of hosts, as a square of colours.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatMap {
    /// Identifier for links, unique in the report.
    pub id: String,
    /// Heading: what it shows.
    pub title: String,
    /// What a reader should see in it.
    pub caption: String,
    /// The hosts, those of the rows and of the columns alike.
    pub hosts: Vec<String>,
    /// The unit of the values.
    pub unit: Unit,
    /// The median of all.
    pub median: f64,
    /// The pairs that were measured.
    pub cells: Vec<HeatCell>,
}

/// A pair of a [`HeatMap`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeatCell {
    /// Who opens the flows, by place: the row.
    pub from: u32,
    /// Who takes them up: the column.
    pub to: u32,
    /// What was measured.
    pub value: f64,
    /// Whether it is slow against the rest.
    pub is_slow: bool,
}

/// A trial as the report lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialLine {
    /// The trial.
    pub trial: TrialId,
    /// Its levels in words.
    pub cell: String,
    /// Which repetition.
    pub replicate: u32,
    /// The main response; absent when invalid.
    pub response: Option<f64>,
    /// The main response's unit.
    pub unit: Unit,
    /// Why it is invalid, if it is.
    pub invalid: Option<String>,
    /// What to know about it.
    pub flags: Vec<TrialFlag>,
}

/// How positions on an axis are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By factor.
    Log,
    /// By name, in order of appearance.
    Category,
}

/// One axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Axis {
    /// What it shows, without the unit.
    pub label: String,
    /// The unit of the positions.
    pub unit: Unit,
    /// How positions are spaced.
    pub scale: Scale,
    /// Whether it is that of the other figures of a chapter whose axes are shared: these stand below each other.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Axis {
    /// Returns an axis of this unit.
    pub fn new(label: impl Into<String>, unit: Unit, scale: Scale) -> Self {
        Self {
            label: label.into(),
            unit,
            scale,
            shared: false,
        }
    }

    /// Returns it as one that several figures of a chapter share.
    pub fn shared(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }
}

/// Where a curve comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Measured in this run.
    Measured,
    /// Follows from a formula: a limit or a prediction.
    Computed,
    /// From a publication.
    Published,
}

/// A position on the horizontal axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// A number in the axis's unit.
    Number(f64),
    /// A category.
    Name(String),
}

/// One point with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Where.
    pub x: Position,
    /// How much.
    pub y: f64,
    /// Lower end of the interval, if known.
    pub low: Option<f64>,
    /// Upper end of the interval, if known.
    pub high: Option<f64>,
    /// Of how many values these are the least and the most, where they are no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_of: Option<u32>,
    /// What a reader sees on hovering, beyond the numbers.
    pub note: String,
    /// What limits the cell that it comes from, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiter: Option<Limiter>,
}

impl Point {
    /// Returns it in the unit of its axis, to be written.
    pub fn estimate(&self, unit: Unit) -> Estimate {
        let confidence = self.range_of.map_or(CONFIDENCE, range_confidence);
        Estimate {
            value: self.y,
            low: self.low,
            high: self.high,
            confidence,
            n: self.range_of.unwrap_or(0),
            unit,
        }
    }
}

/// One curve of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its points, in order.
    pub points: Vec<Point>,
}

/// One picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Identifier for links, unique in the report.
    pub id: String,
    /// Heading: what it shows.
    pub title: String,
    /// What a reader should see in it.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis; starts at zero unless it is logarithmic.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// What the CPUs of one end did: a flame graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flame {
    /// Identifier for links, unique in the report.
    pub id: String,
    /// Heading: whose CPUs, under which traffic.
    pub title: String,
    /// What a reader should see in it.
    pub caption: String,
    /// All looks, with what they found further in.
    pub root: FlameFrame,
}

/// A function in a flame graph, and those that it called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlameFrame {
    /// Its name.
    pub name: String,
    /// Looks that found it, itself or what it called.
    pub looks: u64,
    /// The kind of work that most of them found.
    pub work: Work,
    /// What it called, by name; rare ones are left out.
    pub calls: Vec<FlameFrame>,
}

/// One cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TableCell {
    /// Words.
    Text(String),
    /// A number with interval and unit.
    Estimate(Estimate),
    /// A number without interval.
    Number(f64, Unit),
    /// Not measured, and why (short).
    Absent(String),
}

impl TableCell {
    /// Returns the cell of `value`, or why there is none.
    pub fn of(value: Option<impl Into<TableCell>>, absent: &str) -> Self {
        value.map_or_else(|| TableCell::Absent(absent.to_owned()), Into::into)
    }
}

impl From<Estimate> for TableCell {
    fn from(estimate: Estimate) -> Self {
        TableCell::Estimate(estimate)
    }
}

impl From<(f64, Unit)> for TableCell {
    fn from((number, unit): (f64, Unit)) -> Self {
        TableCell::Number(number, unit)
    }
}

impl From<&str> for TableCell {
    fn from(words: &str) -> Self {
        TableCell::Text(words.to_owned())
    }
}

/// One table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Table {
    /// Heading.
    pub title: String,
    /// Column heads.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<TableCell>>,
}

impl Table {
    /// Returns the table of `rows` under these heads.
    pub fn new(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<TableCell>>,
    ) -> Self {
        Self {
            title: title.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            rows: rows.into_iter().collect(),
        }
    }
}
