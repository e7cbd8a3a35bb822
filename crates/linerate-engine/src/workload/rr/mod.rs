//! Requests and responses on one flow: one after another, several under way, or at a rate.
//!
//! Responses come in the order of their requests. What is due, under way and complete is kept by
//! [`OrderedRequests`], which reads no clock and makes no call; the parts make the calls.

/// The calls and pauses of one end, where an exchange has several.
mod pass;
/// The part that sends requests and times the responses.
mod requester;
/// Requests due, under way and complete.
mod requests;
/// The part that answers.
mod responder;

use linerate_model::Bytes;

use crate::flow::FlowConfig;
use crate::workload::messages::SizeSequence;
use crate::workload::sizes::Draw;

pub(crate) use requester::Requester;
pub(crate) use requests::OrderedRequests;
pub(crate) use responder::Responder;

/// Bytes that requests or responses joined in one send call have together at the most, unless
/// one alone is longer: beyond this nothing is gained, since the call is not what costs.
const JOINED_BYTES_MAX: usize = 1 << 20;

/// The sizes of a flow's transactions, and how they go into calls.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    request_bytes: usize,
    response_bytes: usize,
    /// Requests, or responses, that one send call may carry.
    batch: usize,
    /// Requests that may be under way.
    in_flight: usize,
    /// The size of each transaction, of its request and of its response, where they differ.
    draw: Option<Draw>,
}

impl Shape {
    /// Returns the shape of a flow's transactions; traffic without any counts as 1 byte each.
    pub(crate) fn of(config: &FlowConfig) -> Self {
        let manner = &config.manner;
        let draw = manner
            .sizes
            .as_ref()
            .map(|sizes| Draw::new(sizes, config.flow));
        let exchange = config.traffic.exchange();
        let (request_bytes, response_bytes) = exchange.unwrap_or((Bytes(1), Bytes(1)));
        Self {
            request_bytes: request_bytes.0 as usize,
            response_bytes: response_bytes.0 as usize,
            batch: manner.batch.max(1) as usize,
            in_flight: manner.in_flight.max(1) as usize,
            draw,
        }
    }

    /// Returns the bytes of the longest send call of a requester.
    pub(crate) fn request_call_bytes_max(&self) -> usize {
        self.call_bytes_max(self.request_bytes)
    }

    /// Returns the bytes of the longest send call of a responder.
    pub(crate) fn response_call_bytes_max(&self) -> usize {
        self.call_bytes_max(self.response_bytes)
    }

    /// Returns the bytes of requests that may wait for a responder.
    pub(crate) fn requests_bytes_max(&self) -> usize {
        self.in_flight
            .saturating_mul(self.largest(self.request_bytes))
    }

    /// Returns the bytes of responses that may wait for a requester.
    pub(crate) fn responses_bytes_max(&self) -> usize {
        self.in_flight
            .saturating_mul(self.largest(self.response_bytes))
    }

    fn request_sizes(&self) -> SizeSequence {
        self.sizes(self.request_bytes)
    }

    fn response_sizes(&self) -> SizeSequence {
        self.sizes(self.response_bytes)
    }

    fn sizes(&self, bytes: usize) -> SizeSequence {
        let draw = self.draw.clone();
        SizeSequence { bytes, draw }
    }

    fn call_bytes_max(&self, bytes: usize) -> usize {
        let one = self.largest(bytes);
        let calls = self.batch.min(self.in_flight);
        one.max(one.saturating_mul(calls).min(JOINED_BYTES_MAX))
    }

    fn largest(&self, bytes: usize) -> usize {
        self.draw.as_ref().map_or(bytes, Draw::largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_room_for_what_they_join() {
        let mut shape = Shape {
            request_bytes: 1000,
            response_bytes: 1,
            batch: 1,
            in_flight: 1,
            draw: None,
        };
        assert_eq!(shape.request_call_bytes_max(), 1000);
        shape.batch = 8;
        assert_eq!(shape.request_call_bytes_max(), 1000);
        shape.in_flight = 4;
        assert_eq!(shape.request_call_bytes_max(), 4000);
        assert_eq!(shape.requests_bytes_max(), 4000);
        shape.request_bytes = 1 << 22;
        assert_eq!(shape.request_call_bytes_max(), 1 << 22);
    }
}
