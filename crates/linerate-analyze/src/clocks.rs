//! The clocks with which the kernel shares out a sender's time (tcp_chrono_* in net/ipv4/tcp_output.c), and what each can mean.

use linerate_model::limiter::Limiter;
use serde::Serialize;

use crate::evidence::MOST;

/// What a sender's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Nothing was outstanding: its program had nothing to send.
    Idle,
    /// The receive window held it.
    Window,
    /// The send buffer held it.
    Buffer,
    /// It had data outstanding, and neither held it: what the path, losses or its congestion control allow.
    Sending,
}

impl Clock {
    /// Whatever limits a stream over TCP, apart from its hosts' CPUs.
    pub const ALL_LIMITERS: &[Limiter] = &[
        Limiter::Application,
        Limiter::ReceiverWindow,
        Limiter::SlowReader,
        Limiter::SendBuffer,
        Limiter::PathRate,
        Limiter::LinkRate,
        Limiter::CongestionWindow,
        Limiter::HostDrops,
        Limiter::NothingArrives,
    ];

    /// Returns the limiters that a stream can have that this clock has most of.
    pub fn limiters(self) -> &'static [Limiter] {
        match self {
            Self::Idle => &Self::ALL_LIMITERS[..1],
            Self::Window => &Self::ALL_LIMITERS[1..3],
            Self::Buffer => &Self::ALL_LIMITERS[3..4],
            // One that paces is held by a window, a buffer or its program between its turns, which no clock counts.
            Self::Sending => Self::ALL_LIMITERS,
        }
    }
}

/// What a sender's time went to, as shares of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Clocks {
    /// Nothing was outstanding.
    pub idle: f64,
    /// Waiting for the receive window.
    pub window: f64,
    /// Waiting for the send buffer.
    pub buffer: f64,
    /// Sending.
    pub sending: f64,
}

impl Clocks {
    /// Returns what follows from the kernel's three clocks, which it rounds to ticks: the time with data outstanding, and of it
    /// that at the receive window and that at the send buffer.
    pub fn of(busy: f64, window: f64, buffer: f64) -> Self {
        let busy = busy.max(window + buffer).min(1.0);
        let window = window.min(busy);
        let buffer = buffer.min(busy - window);
        Self {
            idle: 1.0 - busy,
            window,
            buffer,
            sending: busy - window - buffer,
        }
    }

    /// Returns the mean of several, each by its weight; absent where there are none.
    pub fn mean(all: impl Iterator<Item = (Self, f64)>) -> Option<Self> {
        let (sum, weight) = all.fold((Self::default(), 0.0), |(sum, of_all), (one, weight)| {
            let add = |sum: f64, one: f64| sum + weight * one;
            let sum = Self {
                idle: add(sum.idle, one.idle),
                window: add(sum.window, one.window),
                buffer: add(sum.buffer, one.buffer),
                sending: add(sum.sending, one.sending),
            };
            (sum, of_all + weight)
        });
        (weight > 0.0).then(|| Self {
            idle: sum.idle / weight,
            window: sum.window / weight,
            buffer: sum.buffer / weight,
            sending: sum.sending / weight,
        })
    }

    /// Returns the shares in their order.
    pub fn shares(&self) -> [(Clock, f64); 4] {
        [
            (Clock::Idle, self.idle),
            (Clock::Window, self.window),
            (Clock::Buffer, self.buffer),
            (Clock::Sending, self.sending),
        ]
    }

    /// Returns the clock that has most of the time, if one has.
    pub fn most(&self) -> Option<Clock> {
        let mut shares = self.shares().into_iter();
        Some(shares.find(|(_, share)| *share > MOST)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_whole_and_each_clock_can_mean_what_limits_a_stream() {
        for (busy, window, buffer) in [
            (0.2, 0.0, 0.0),
            (1.0, 0.7, 0.2),
            (0.1, 0.6, 0.6),
            (1.2, 0.0, 0.3),
        ] {
            let clocks = Clocks::of(busy, window, buffer);
            let sum: f64 = clocks.shares().iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{clocks:?}");
            assert!(
                clocks.shares().iter().all(|(_, share)| *share >= 0.0),
                "{clocks:?}"
            );
        }
        assert_eq!(Clocks::of(1.0, 0.7, 0.2).most(), Some(Clock::Window));
        assert_eq!(Clocks::of(1.0, 0.4, 0.4).most(), None);
        for clock in [Clock::Idle, Clock::Window, Clock::Buffer, Clock::Sending] {
            let mut limiters = clock.limiters().iter();
            assert!(limiters.all(|limiter| Clock::ALL_LIMITERS.contains(limiter)));
        }
    }
}
