//! What one end does in an exchange of several calls: each call with what has to have come before it, and pauses.
//!
//! 1. A request that is split over calls has these calls, and waits for nothing.
//! 2. Of an exchange of steps each end has its own: what it sends, after the bytes that it has received by then, and its
//!    own pauses. A pause before the first message is one after the last.
//! 3. Any other exchange has none.

use linerate_model::sample::End;
use linerate_model::step::Step;
use linerate_model::workload::Part;

use crate::flow::FlowConfig;
use crate::sys::clock::now_ns;

/// How far one end is in its calls and pauses.
#[derive(Debug, Default)]
pub(super) struct Pass {
    acts: Box<[Act]>,
    /// The act that comes next, or is under way.
    at: usize,
    /// Bytes that have come of this exchange; below 0 where some of the one before are still missing.
    received: i64,
    /// Bytes that come in a whole exchange.
    whole_bytes: i64,
    /// When the pause that is under way ends.
    until_ns: Option<u64>,
}

#[derive(Debug)]
struct Act {
    /// Bytes of the exchange that have to have come.
    after_bytes: i64,
    does: Does,
}

#[derive(Debug)]
enum Does {
    /// A send call of so many bytes.
    Send(usize),
    Pause {
        ns: u64,
        busy: bool,
    },
}

impl Pass {
    /// Returns the calls and pauses of `config`'s end.
    pub(super) fn of(config: &FlowConfig) -> Self {
        let is_requester = config.part == Part::Requester;
        let writes = config.traffic.request_writes() as usize;
        match &config.manner.steps {
            Some(steps) if is_requester => Self::of_steps(steps, End::Client),
            Some(steps) => Self::of_steps(steps, End::Server),
            None if is_requester && writes > 1 => {
                let bytes = config
                    .traffic
                    .exchange()
                    .map_or(1, |(request, _)| request.0);
                Self::split(bytes as usize, writes)
            }
            None => Self::default(),
        }
    }

    /// Returns calls that together send `bytes`; the first ones take what does not divide evenly.
    fn split(bytes: usize, writes: usize) -> Self {
        let call = |at| bytes / writes + usize::from(at < bytes % writes);
        let act = |at| Act {
            after_bytes: 0,
            does: Does::Send(call(at)),
        };
        Self {
            acts: (0..writes).map(act).collect(),
            ..Self::default()
        }
    }

    fn of_steps(steps: &[Step], own: End) -> Self {
        let first = steps.iter().position(|step| step.message().is_some());
        let (early, rest) = steps.split_at(first.unwrap_or(0));
        let mut acts = Vec::new();
        let mut after_bytes = 0;
        for step in rest.iter().chain(early) {
            let does = match (step.message(), *step) {
                (Some((end, bytes)), _) if end == own => Does::Send(bytes.0 as usize),
                (Some((_, bytes)), _) => {
                    after_bytes += bytes.0.cast_signed();
                    continue;
                }
                (None, Step::Pause { end, time, busy }) if end == own => {
                    Does::Pause { ns: time.0, busy }
                }
                _ => continue,
            };
            acts.push(Act { after_bytes, does });
        }
        Self {
            acts: acts.into(),
            whole_bytes: after_bytes,
            ..Self::default()
        }
    }

    /// Returns whether there is anything to go through.
    pub(super) fn is_some(&self) -> bool {
        !self.acts.is_empty()
    }

    /// Returns whether the first call has been made, and not all of the rest.
    pub(super) fn is_under_way(&self) -> bool {
        self.at > 0
    }

    /// Returns whether the call that is to be made now is the last one of the exchange.
    pub(super) fn is_last_call(&self) -> bool {
        let mut rest = self.acts.iter().skip(self.at + 1);
        !rest.any(|act| matches!(act.does, Does::Send(_)))
    }

    /// Returns whether a pause comes before what is received last, so that this has not been asked for yet.
    pub(super) fn holds_last(&self) -> bool {
        self.is_under_way()
            && self.acts.get(self.at).is_some_and(|act| {
                act.after_bytes < self.whole_bytes && matches!(act.does, Does::Pause { .. })
            })
    }

    /// Notes that so many bytes have come.
    pub(super) fn received(&mut self, bytes: usize) {
        self.received += bytes as i64;
    }

    /// Returns the bytes of the call that is to be made now, if one is; begins the pause that is due, and leaves one whose
    /// time is over.
    ///
    /// Cost: two compares, 1 ns; the clock 30 ns for a pause.
    pub(super) fn due(&mut self) -> Option<usize> {
        loop {
            let act = self.acts.get(self.at)?;
            if self.received < act.after_bytes {
                return None;
            }
            match act.does {
                Does::Send(bytes) => return Some(bytes),
                Does::Pause { ns, .. } => {
                    let now_ns = now_ns();
                    if now_ns < *self.until_ns.get_or_insert(now_ns + ns) {
                        return None;
                    }
                    self.go_on();
                }
            }
        }
    }

    /// Goes on to what comes after the call or pause that is over.
    pub(super) fn go_on(&mut self) {
        self.until_ns = None;
        self.at += 1;
        if self.at >= self.acts.len() {
            self.at = 0;
            self.received -= self.whole_bytes;
        }
    }

    /// Returns when the pause that is under way ends.
    pub(super) fn until_ns(&self) -> Option<u64> {
        self.until_ns
    }

    /// Returns whether its CPU is kept busy meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        let act = self.until_ns.and_then(|_| self.acts.get(self.at));
        act.is_some_and(|act| matches!(act.does, Does::Pause { busy: true, .. }))
    }
}
