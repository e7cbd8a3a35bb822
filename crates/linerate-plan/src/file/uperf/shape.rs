//! What a group of strands does, as far as that is one thing.
//!
//! 1. A transaction that connects, may exchange something, and disconnects: connections one after another.
//! 2. Transactions that connect, one that writes and reads, and one that disconnects: traffic over one connection of
//!    each strand, which is what is measured.
//! 3. Transactions of no iterations and flowops of type nop do nothing and are passed over.

use std::ops::Range;

use linerate_model::Bytes;

use super::exchange::{Pass, pass};
use super::options::Act;
use super::parse::{Extent, RawFlowop, RawStrands, RawTransaction};
use crate::file::error::ReadError;
use crate::file::source::Source;

/// What a group of strands does.
pub(super) struct Shape<'p> {
    pub(super) strands: u32,
    /// The flowop that makes its connections.
    pub(super) open: &'p RawFlowop,
    /// The transaction that is measured.
    pub(super) transaction: &'p RawTransaction,
    pub(super) pass: Pass,
    pub(super) life: Life,
}

/// How long a connection lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// As long as its strand.
    Strand,
    /// For one pass of the transaction.
    Pass,
}

/// What the transactions of a group have come to so far.
#[derive(Default)]
struct Found<'p> {
    open: Option<&'p RawFlowop>,
    work: Option<(&'p RawTransaction, Life)>,
    is_closed: bool,
}

impl Shape<'_> {
    /// Returns what each connection sends in all, where the transaction ends with its iterations and only sends.
    pub(super) fn volume(&self) -> Option<Bytes> {
        match (self.transaction.extent, self.life) {
            (Extent::Times(times), Life::Strand) => {
                self.pass.one_way_bytes()?.checked_mul(times).map(Bytes)
            }
            _ => None,
        }
    }
}

/// Returns what `group` does.
pub(super) fn shape<'p>(
    source: &Source<'_>,
    group: &'p RawStrands,
) -> Result<Shape<'p>, ReadError> {
    let mut found = Found::default();
    let executed = |one: &&RawTransaction| one.extent != Extent::Times(0);
    for transaction in group.transactions.iter().filter(executed) {
        found.take(source, transaction)?;
    }
    let wrong = |message: &str| source.at("group", group.at.clone()).wrong(message);
    let open = found
        .open
        .ok_or_else(|| wrong("it has no connect or accept"))?;
    if open.options.remote_host.is_none() {
        return Err(source
            .at("options", open.at.clone())
            .wrong("it has no remotehost"));
    }
    let (transaction, life) = found.work.ok_or_else(|| {
        wrong("it has no transaction that writes, reads, or connects and disconnects")
    })?;
    let moves: Vec<&RawFlowop> = transaction
        .flowops
        .iter()
        .filter(|one| one.act.is_work())
        .collect();
    Ok(Shape {
        strands: group.strands,
        open,
        transaction,
        pass: pass(source, &moves)?,
        life,
    })
}

impl Act {
    fn opens(self) -> bool {
        matches!(self, Act::Connect | Act::Accept)
    }

    fn is_work(self) -> bool {
        matches!(self, Act::Write | Act::Read | Act::Think)
    }
}

impl<'p> Found<'p> {
    fn take(
        &mut self,
        source: &Source<'_>,
        transaction: &'p RawTransaction,
    ) -> Result<(), ReadError> {
        let wrong =
            |at: &Range<usize>, message: &str| Err(source.at("", at.clone()).wrong(message));
        let acts = || transaction.flowops.iter().filter(|one| one.act != Act::Nop);
        let Some(last) = acts().next_back() else {
            return Ok(());
        };
        let life = match acts().next() {
            Some(first) if first.act.opens() && last.act == Act::Disconnect => Life::Pass,
            _ => Life::Strand,
        };
        let is_once = transaction.extent == Extent::Times(1);
        let mut has_work = life == Life::Pass;
        for flowop in acts() {
            let own = self.open.map_or(0, |open| open.options.connection);
            let named = flowop.options.connection;
            if self.is_closed {
                return wrong(&flowop.at, "a group of strands ends with its disconnect");
            }
            match flowop.act {
                act if act.opens() => {
                    self.open(source, flowop)?;
                    if life == Life::Strand && !is_once {
                        return wrong(
                            &flowop.at,
                            "connections that are made again need a disconnect in the same transaction",
                        );
                    }
                }
                _ if self.open.is_none() => {
                    return wrong(&flowop.at, "it stands before the connect of its group");
                }
                _ if named != 0 && named != own => {
                    return wrong(
                        &flowop.at,
                        "another connection than the one that its group has",
                    );
                }
                Act::Disconnect => self.is_closed = true,
                _ if life == Life::Strand && acts().any(|one| !one.act.is_work()) => {
                    let message = "traffic stands in a transaction of its own, or between connect and disconnect in one";
                    return wrong(&flowop.at, message);
                }
                _ => has_work = true,
            }
        }
        if !has_work {
            return Ok(());
        }
        if self.work.is_some() {
            let message = "a second transaction with traffic: a group is measured in one";
            return wrong(&transaction.at, message);
        }
        self.work = Some((transaction, life));
        Ok(())
    }

    fn open(&mut self, source: &Source<'_>, flowop: &'p RawFlowop) -> Result<(), ReadError> {
        let wrong = |message: &str| Err(source.at("", flowop.at.clone()).wrong(message));
        if self.open.is_some() {
            return wrong("a second connection: a strand has one");
        }
        if flowop.options.count > 1 {
            return wrong("a count of connections: a strand has one");
        }
        self.open = Some(flowop);
        Ok(())
    }
}
