//! The text of a profile as elements, each with the place where it stands.
//!
//! uperf has a parser of its own, for which all letters are lower-case ones. The same holds here, but what is no XML is
//! refused: a tag that is not closed ends uperf's profile early without a word.

use std::ops::Range;

use linerate_model::Nanos;
use linerate_model::group::GROUPS_MAX;
use roxmltree::{Document, Node};

use super::options::{Act, Options};
use super::reading::{Reading, Word};
use crate::file::error::ReadError;
use crate::file::source::Source;

/// The most transactions of a group: ten times what uperf's samples have.
const TRANSACTIONS_MAX: usize = 100;
/// The most flowops of a transaction: a list for 1000 of them is made by a program.
const FLOWOPS_MAX: usize = 1000;
/// The most strands of a profile.
const STRANDS_MAX: u64 = 10_000;

/// A profile.
pub(super) struct RawProfile {
    pub(super) name: String,
    pub(super) groups: Vec<RawStrands>,
}

/// `<group>`
pub(super) struct RawStrands {
    pub(super) strands: u32,
    pub(super) transactions: Vec<RawTransaction>,
    pub(super) at: Range<usize>,
}

/// `<transaction>`
pub(super) struct RawTransaction {
    pub(super) extent: Extent,
    /// Passes per second.
    pub(super) rate: Option<u64>,
    pub(super) flowops: Vec<RawFlowop>,
    pub(super) at: Range<usize>,
}

/// How often a transaction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Times(u64),
    For(Nanos),
}

/// `<flowop>`
pub(super) struct RawFlowop {
    pub(super) act: Act,
    pub(super) options: Options,
    pub(super) at: Range<usize>,
}

/// Reads the elements of `source`.
pub(super) fn parse(
    source: &Source<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<RawProfile, ReadError> {
    // All positions stay: only ASCII letters change.
    let lower = source.text.to_ascii_lowercase();
    let document = Document::parse(&lower).map_err(|error| {
        let row = error.pos().row.saturating_sub(1) as usize;
        let before = lower.split_inclusive('\n').take(row).map(str::len).sum();
        source
            .at("", before..before)
            .wrong(&format!("it is no XML: {error}"))
    })?;
    let reading = Reading { source, variable };
    reading.profile(document.root_element())
}

impl Reading<'_> {
    fn profile(&self, node: Node<'_, '_>) -> Result<RawProfile, ReadError> {
        self.expect(node, "profile")?;
        self.check_attributes(node, &["name"])?;
        let name = node.attribute_node("name").map(|name| name.range_value());
        let name = name.and_then(|at| self.source.text.get(at));
        let groups = self.children(node, "group", 1..=GROUPS_MAX)?;
        let groups = groups.into_iter().map(|group| self.group(group));
        let groups: Vec<RawStrands> = groups.collect::<Result<_, _>>()?;
        let mut strands = 0;
        for group in &groups {
            strands += u64::from(group.strands);
            if strands > STRANDS_MAX {
                let spot = self.spot("group", group.at.clone());
                let found = format!("{strands} strands with those before it");
                return Err(spot.value(found, format!("at most {STRANDS_MAX} in all")));
            }
        }
        Ok(RawProfile {
            name: name
                .unwrap_or("uperf")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            groups,
        })
    }

    fn group(&self, node: Node<'_, '_>) -> Result<RawStrands, ReadError> {
        self.check_attributes(node, &["nthreads", "nprocs"])?;
        let spot = self.spot("group", node.range());
        let words = [
            self.attribute(node, "nthreads")?,
            self.attribute(node, "nprocs")?,
        ];
        let strands = match words {
            [Some(_), Some(_)] => return Err(spot.wrong("it has both nthreads and nprocs")),
            [None, None] => return Err(spot.wrong("it has neither nthreads nor nprocs")),
            [Some(word), None] | [None, Some(word)] => self.number(&word, 1, STRANDS_MAX)?,
        };
        let transactions = self.children(node, "transaction", 1..=TRANSACTIONS_MAX)?;
        let transactions = transactions.into_iter().map(|node| self.transaction(node));
        Ok(RawStrands {
            strands: strands as u32,
            transactions: transactions.collect::<Result<_, _>>()?,
            at: node.range(),
        })
    }

    fn transaction(&self, node: Node<'_, '_>) -> Result<RawTransaction, ReadError> {
        self.check_attributes(node, &["iterations", "duration", "rate"])?;
        let iterations = self.attribute(node, "iterations")?;
        let duration = self.attribute(node, "duration")?;
        let extent = match (iterations, duration) {
            (Some(_), Some(_)) => {
                let spot = self.spot("transaction", node.range());
                return Err(spot.wrong("it has both iterations and duration"));
            }
            (Some(times), None) => Extent::Times(self.number(&times, 0, u32::MAX.into())?),
            (None, Some(time)) => Extent::For(self.time(&time)?),
            (None, None) => Extent::Times(1),
        };
        let rate = self.attribute(node, "rate")?;
        let rate = rate.map(|rate| self.number(&rate, 1, u32::MAX.into()));
        let flowops = self.children(node, "flowop", 1..=FLOWOPS_MAX)?;
        let flowops = flowops.into_iter().map(|node| self.flowop(node));
        Ok(RawTransaction {
            extent,
            rate: rate.transpose()?,
            flowops: flowops.collect::<Result<_, _>>()?,
            at: node.range(),
        })
    }

    fn flowop(&self, node: Node<'_, '_>) -> Result<RawFlowop, ReadError> {
        self.check_attributes(node, &["type", "options"])?;
        if let Some(below) = node.children().find(Node::is_element) {
            let wrong = format!("an element <{}> inside a flowop", below.tag_name().name());
            return Err(self.spot("flowop", below.range()).wrong(&wrong));
        }
        let Some(kind) = self.attribute(node, "type")? else {
            return Err(self.spot("flowop", node.range()).wrong("it has no type"));
        };
        let act = Act::of(self, &kind)?;
        let options = node.attribute_node("options");
        let at = options.map_or(node.range().start..node.range().start, |it| {
            it.range_value()
        });
        Ok(RawFlowop {
            act,
            options: Options::of(self, at)?,
            at: node.range(),
        })
    }

    fn expect(&self, node: Node<'_, '_>, name: &str) -> Result<(), ReadError> {
        let found = node.tag_name().name();
        if found == name {
            return Ok(());
        }
        let spot = self.spot(name, node.range());
        Err(spot.wrong(&format!("<{found}> stands where <{name}> is expected")))
    }

    /// Returns the elements below `node`, all of which are called `name`.
    fn children<'n, 'i>(
        &self,
        node: Node<'n, 'i>,
        name: &str,
        count: std::ops::RangeInclusive<usize>,
    ) -> Result<Vec<Node<'n, 'i>>, ReadError> {
        let mut all = Vec::new();
        for child in node.children().filter(Node::is_element) {
            self.expect(child, name)?;
            if all.len() == *count.end() {
                let found = format!("number {}", all.len() + 1);
                let spot = self.spot(name, child.range());
                return Err(spot.value(found, format!("at most {}", count.end())));
            }
            all.push(child);
        }
        if all.len() < *count.start() {
            let spot = self.spot(node.tag_name().name(), node.range());
            return Err(spot.wrong(&format!("it has no <{name}>")));
        }
        Ok(all)
    }

    fn check_attributes(&self, node: Node<'_, '_>, known: &[&str]) -> Result<(), ReadError> {
        match node.attributes().find(|one| !known.contains(&one.name())) {
            None => Ok(()),
            Some(other) => {
                let (element, name) = (node.tag_name().name(), other.name());
                let names = known.join("`, `");
                let wrong =
                    format!("unknown attribute `{name}` of <{element}>, expected one of `{names}`");
                Err(self.spot(element, other.range()).wrong(&wrong))
            }
        }
    }

    fn attribute(&self, node: Node<'_, '_>, name: &str) -> Result<Option<Word>, ReadError> {
        let Some(attribute) = node.attribute_node(name) else {
            return Ok(None);
        };
        let key = format!("{}.{name}", node.tag_name().name());
        let word = Word {
            key,
            text: attribute.value().trim().to_owned(),
            at: attribute.range_value(),
        };
        self.looked_up(word).map(Some)
    }
}
