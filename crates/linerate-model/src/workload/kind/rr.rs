//! A request, then a response, then the next request on the same flow.

use crate::manner::{DATAGRAM_BYTES_MAX, Manner, NAMES_OF_A_BYTE, Sizes, Transport};
use crate::response::name;
use crate::sample::End;
use crate::step::{PAUSE_MAX, STEPS_MAX, Step, exchanged};
use crate::unit::Bytes;
use crate::workload::{
    About, Case, MESSAGE_BYTES_MAX, REQUEST_WRITES_MAX, Traffic, WorkloadError, within, within_case,
};

/// Responses of traffic of requests.
pub(super) const RESPONSES: &[&str] = &[
    name::TRANSACTIONS,
    name::RTT_P50,
    name::RTT_P99,
    name::RTT_MEAN,
    name::ONE_WAY,
    name::ACKS_PER_TRANSACTION,
];

pub(super) const ABOUT: About = About {
    title: "request/response",
    counted: "transactions",
    transports: Transport::ALL,
    responses: RESPONSES,
    headline: name::TRANSACTIONS,
    carries_payload: true,
    is_placed: false,
    traffic: Traffic::Rr {
        request_bytes: Bytes(1),
        response_bytes: Bytes(1),
        request_writes: 1,
    },
};

pub(super) fn check(
    (request, response): (Bytes, Bytes),
    request_writes: u32,
    manner: &Manner,
) -> Result<(), WorkloadError> {
    let (most, writes) = (MESSAGE_BYTES_MAX.0, request_writes.into());
    within("request_bytes", request.0, 1, most)?;
    within("response_bytes", response.0, 1, most)?;
    // Sizes that differ take the place of the request's own; that they exclude a split is said later.
    let size = manner.sizes.as_ref().map_or(request.0, |_| most);
    within("request_writes", writes, 1, size.min(REQUEST_WRITES_MAX))?;
    if let Some(steps) = &manner.steps {
        check_steps(steps, (request, response))?;
    }
    if manner.transport != Transport::Udp {
        return Ok(());
    }
    let most = DATAGRAM_BYTES_MAX;
    within_case("request_bytes", Case::Udp, request.0, 1, most)?;
    within_case("response_bytes", Case::Udp, response.0, 1, most)?;
    within_case("request_writes", Case::Udp, writes, 1, 1)?;
    let sizes = manner.sizes.as_ref();
    if sizes.map_or(request.min(response), Sizes::smallest).0 < 2 {
        let (case, most) = (Case::UdpOfOneByte, NAMES_OF_A_BYTE.into());
        within_case("in_flight", case, manner.in_flight.into(), 1, most)?;
    }
    manner.check_datagrams(1)
}

/// Checks the steps of an exchange that has these bytes of request and response.
fn check_steps(steps: &[Step], exchange: (Bytes, Bytes)) -> Result<(), WorkloadError> {
    let (count, most) = (steps.len() as u64, STEPS_MAX as u64);
    within("the number of steps", count, 1, most)?;
    steps.iter().try_for_each(check_step)?;
    let mut ends = steps.iter().filter_map(|step| Some(step.message()?.0));
    let first = ends.next();
    if (first, ends.next_back()) != (Some(End::Client), Some(End::Server)) {
        return Err(WorkloadError::Contradiction {
            keys: &["steps"],
            why: "what moves first in steps is sent by the client, and what moves last is received by it",
        });
    }
    if exchanged(steps) != exchange {
        return Err(WorkloadError::Contradiction {
            keys: &["steps", "request_bytes", "response_bytes"],
            why: "request_bytes and response_bytes are what the steps come to: leave them out",
        });
    }
    Ok(())
}

/// Checks how much or how long a step is.
fn check_step(step: &Step) -> Result<(), WorkloadError> {
    let (what, value, most) = match step {
        Step::Send { bytes } | Step::Receive { bytes } => {
            ("the size of a step", bytes.0, MESSAGE_BYTES_MAX.0)
        }
        Step::Pause { time, .. } => ("the pause of a step, in ns,", time.0, PAUSE_MAX.0),
    };
    within(what, value, 1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_steps_are_refused() {
        let refused = |words: &[&str], told: &str| {
            let steps = steps(words);
            let error = check_steps(&steps, exchanged(&steps)).expect_err(told);
            assert!(error.to_string().contains(told), "{error}");
        };
        refused(&[], "number of steps is 0");
        refused(&["send 1"; 1001], "number of steps is 1001");
        refused(&["send 65M", "receive 1"], "size of a step");
        refused(&["send 0", "receive 1"], "size of a step");
        refused(&["send 1", "pause 2h", "receive 1"], "pause of a step");
        refused(&["receive 1", "send 1"], "sent by the client");
        refused(&["receive 1"], "sent by the client");
        refused(&["send 1", "receive 1", "send 1"], "received by it");
        refused(&["pause 1ms"], "sent by the client");
        let plain = steps(&["pause 1ms", "send 1", "receive 2", "server spin 1ms"]);
        assert_eq!(check_steps(&plain, (Bytes(1), Bytes(2))).ok(), Some(()));
        assert!(check_steps(&plain, (Bytes(1), Bytes(1))).is_err());
    }

    fn steps(words: &[&str]) -> Vec<Step> {
        let step = |text: &&str| Step::named(text).expect("a step");
        words.iter().map(step).collect()
    }
}
