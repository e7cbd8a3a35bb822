//! How far one end is in an exchange of several calls.
//!
//! 1. A request that is split over calls has these as its steps.
//! 2. Of an exchange of steps each end makes its own calls and pauses, and takes the other's calls. Pauses before the first
//!    message come after the last step.
//! 3. Any other exchange has none.

use std::sync::Arc;

use linerate_model::Bytes;
use linerate_model::sample::End;
use linerate_model::step::Step;
use linerate_model::workload::Part;

use crate::flow::FlowConfig;
use crate::sys::clock::now_ns;

/// How far one end is in its steps, which all flows share.
#[derive(Debug)]
pub(super) struct Pass {
    steps: Arc<[Step]>,
    own: End,
    /// The step that comes next, or is under way.
    at: usize,
    /// The steps with the first and the last message.
    first: usize,
    last: Option<usize>,
    /// Bytes that have come and that no step has taken yet.
    ahead_bytes: u64,
    /// When the pause that is under way ends.
    until_ns: Option<u64>,
    /// Whether the last message is over, which nobody has asked about.
    is_whole: bool,
}

impl Pass {
    /// Returns the start of the steps of `config`'s end; a split request's are allocated here.
    pub(super) fn of(config: &FlowConfig) -> Self {
        let own = match config.part {
            Part::Requester => End::Client,
            _ => End::Server,
        };
        let steps = match &config.manner.steps {
            Some(steps) => Arc::clone(steps),
            None if own == End::Client => split(config),
            None => Arc::default(),
        };
        let is_message = |step: &Step| step.message().is_some();
        // A split request is whole when its response is.
        let of_steps = config.manner.steps.is_some();
        Self {
            own,
            at: steps.iter().position(is_message).unwrap_or(0),
            first: steps.iter().position(is_message).unwrap_or(0),
            last: steps.iter().rposition(is_message).filter(|_| of_steps),
            ahead_bytes: 0,
            until_ns: None,
            is_whole: false,
            steps,
        }
    }

    /// Returns whether the exchange has steps: it is them that say when it is whole.
    pub(super) fn is_of_steps(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether the first step is over, and not all of the rest.
    pub(super) fn is_under_way(&self) -> bool {
        self.at != self.first
    }

    /// Returns whether more has come than the steps have.
    pub(super) fn is_overrun(&self) -> bool {
        !self.is_under_way() && self.ahead_bytes > 0
    }

    /// Returns whether the last message has come to its end since this was asked last.
    pub(super) fn take_whole(&mut self) -> bool {
        std::mem::take(&mut self.is_whole)
    }

    /// Notes that so many bytes have come.
    pub(super) fn received(&mut self, bytes: usize) {
        self.ahead_bytes += bytes as u64;
    }

    /// Returns the bytes of the call that is to be made now, if one is; takes what has come, and begins and leaves pauses.
    ///
    /// Cost: 1 ns, and 2 ns a step; the clock 30 ns for a pause.
    pub(super) fn due(&mut self) -> Option<usize> {
        loop {
            let step = *self.steps.get(self.at)?;
            match (step.message(), step) {
                (Some((end, bytes)), _) if end == self.own => return Some(bytes.0 as usize),
                (Some((_, bytes)), _) => {
                    self.ahead_bytes = self.ahead_bytes.checked_sub(bytes.0)?;
                }
                (None, Step::Pause { end, time, .. }) if end == self.own => {
                    let now_ns = now_ns();
                    if now_ns < *self.until_ns.get_or_insert(now_ns + time.0) {
                        return None;
                    }
                }
                (None, _) => {}
            }
            self.go_on();
        }
    }

    /// Goes on to the step after the one that is over.
    pub(super) fn go_on(&mut self) {
        self.until_ns = None;
        self.is_whole |= self.last == Some(self.at);
        self.at += 1;
        if self.at >= self.steps.len() {
            self.at = 0;
        }
    }

    /// Returns when the pause that is under way ends.
    pub(super) fn until_ns(&self) -> Option<u64> {
        self.until_ns
    }

    /// Returns whether its CPU is kept busy meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        let step = self.until_ns.and_then(|_| self.steps.get(self.at));
        matches!(step, Some(Step::Pause { busy: true, .. }))
    }
}

/// Returns the calls of a request that is split; the first ones take what does not divide evenly.
fn split(config: &FlowConfig) -> Arc<[Step]> {
    let writes = u64::from(config.traffic.request_writes());
    let exchange = config.traffic.exchange();
    let (Bytes(bytes), _) = exchange.filter(|_| writes > 1).unwrap_or_default();
    let call = |at| Step::Send {
        bytes: Bytes(bytes / writes + u64::from(at < bytes % writes)),
    };
    let calls = if writes > 1 { writes } else { 0 };
    (0..calls).map(call).collect()
}
