//! How a worker waits: blocking calls, epoll, io_uring or spinning, chosen once for all its flows.
//!
//! 1. One flow whose parts take turns blocks in its call: the kernel wakes the thread, and nothing
//!    else has to be asked.
//! 2. Several flows that speak and listen are received for by io_uring, where the kernel has it
//!    and lets us; all others wait by epoll.
//! 3. A flow with several requests under way, or with instants to keep, cannot block in one call
//!    and counts as several.
//! 4. Spinning is asked for, never chosen. Where packets come from the CPU that is spun on, the worker
//!    yields that CPU while it waits, and says so.

use std::io;

use linerate_model::manner::WaitBy;
use linerate_model::setting::name;
use linerate_model::workload::Setting;

use crate::sys::socket;
use crate::worker::epoll::EpollLoop;
use crate::worker::ring::RingLoop;
use crate::worker::spin::Pause;
use crate::worker::{Memory, Seat, Wait, blocking, deadline, spin};
use crate::workload::Player;

/// How a worker waits.
pub(super) enum Waiting {
    /// In the call that moves payload.
    Block,
    /// Not at all.
    Spin(Pause),
    /// By epoll.
    Epoll(EpollLoop),
    /// By io_uring.
    Uring(Box<RingLoop>),
}

impl Wait for Waiting {
    type Player = Player;

    fn choose(seats: &mut [Seat<Player>], memory: &Memory) -> io::Result<(Self, Option<Setting>)> {
        let asked = asked(seats);
        let alone = seats.len() == 1;
        let takes_turns = seats.iter().all(takes_turns);
        let talks = seats.iter_mut().all(|seat| seat.player.talk().is_some());
        let mut refused = None;
        let waiting = match asked {
            WaitBy::Auto | WaitBy::Xdp if alone && takes_turns => {
                let flow = &seats[0].flow;
                blocking::prepare(flow.socket(), deadline::watches(&flow.config))?;
                Waiting::Block
            }
            WaitBy::Spin => {
                for seat in seats.iter() {
                    socket::set_blocking(seat.flow.socket(), None)?;
                }
                Waiting::Spin(Pause::measure())
            }
            WaitBy::Epoll => Waiting::Epoll(EpollLoop::prepare(seats)?),
            WaitBy::Uring if !talks => {
                refused = Some("io_uring serves requests and responses only".to_owned());
                Waiting::Epoll(EpollLoop::prepare(seats)?)
            }
            WaitBy::Auto | WaitBy::Xdp if !talks => Waiting::Epoll(EpollLoop::prepare(seats)?),
            WaitBy::Auto | WaitBy::Xdp | WaitBy::Uring => {
                match RingLoop::prepare(seats, memory.room.bytes()) {
                    Ok(ring) => Waiting::Uring(Box::new(ring)),
                    Err(error) => {
                        refused = Some(without_io_uring(&error));
                        Waiting::Epoll(EpollLoop::prepare(seats)?)
                    }
                }
            }
        };
        let said = wait_setting(asked, waiting.word(), refused);
        Ok((waiting, Some(said)))
    }

    fn play(self, seats: &mut [Seat<Player>], memory: &mut Memory, said: &mut Option<Setting>) {
        let mut effective = said.as_mut().and_then(|said| said.effective.as_mut());
        match self {
            Waiting::Block => {
                for seat in seats {
                    let ending = blocking::play(&mut seat.player, &mut memory.io(&seat.flow));
                    seat.end(ending);
                }
            }
            Waiting::Spin(pause) => {
                let yielded = match seats {
                    [seat] => {
                        let mut io = memory.io(&seat.flow);
                        // Matched once here, so that each kind has a loop without a branch.
                        let (ending, yielded) = match &mut seat.player {
                            Player::Requester(part) => spin::play(part, &mut io, pause),
                            Player::Responder(part) => spin::play(part, &mut io, pause),
                            other => spin::play(&mut **other, &mut io, pause),
                        };
                        seat.end(ending);
                        yielded
                    }
                    seats => spin::play_rounds(seats, memory),
                };
                if yielded && let Some(effective) = &mut effective {
                    effective.push_str(", yielding to the peer on its CPU");
                }
            }
            Waiting::Epoll(many) => many.play(seats, memory),
            Waiting::Uring(ring) => ring.play(seats, memory),
        }
        if memory.cpu_yield.is_shared()
            && let Some(effective) = effective
        {
            effective.push_str(", senders yielding to receivers on their CPU");
        }
    }
}

impl Waiting {
    fn word(&self) -> &'static str {
        match self {
            Waiting::Block => "blocking",
            Waiting::Spin(_) => wait_word(WaitBy::Spin),
            Waiting::Epoll(_) => wait_word(WaitBy::Epoll),
            Waiting::Uring(_) => wait_word(WaitBy::Uring),
        }
    }
}

/// Returns how the flows of a worker are asked to be waited for; they are alike.
pub(super) fn asked<P>(seats: &[Seat<P>]) -> WaitBy {
    let first = seats.first();
    first.map_or(WaitBy::Auto, |seat| seat.flow.config.manner.wait)
}

/// Returns how waiting is told; `refused` is why io_uring does not serve, if it does not: a cap where it was
/// asked for.
pub(super) fn wait_setting(asked: WaitBy, granted: &str, refused: Option<String>) -> Setting {
    let granted = Some(granted.to_owned());
    let (capped_by, why) = match asked {
        WaitBy::Uring => (refused, None),
        _ => (None, refused),
    };
    Setting {
        effective: granted.clone(),
        capped_by,
        why,
        ..Setting::granted(name::WAIT, Some(wait_word(asked).to_owned()), granted)
    }
}

/// Returns whether one blocking call after another is all that the flow's part makes.
fn takes_turns(seat: &Seat<Player>) -> bool {
    // A sender that keeps a rate of its own has instants to keep.
    let has_pace = seat.flow.pace_bps.is_some();
    let manner = &seat.flow.config.manner;
    !has_pace && manner.in_flight == 1 && !manner.rests_between_requests()
}

/// Returns why io_uring does not serve: beside the kernel's own word the causes that a person can do
/// something about.
pub(super) fn without_io_uring(error: &io::Error) -> String {
    format!(
        "io_uring: {error} (needs Linux 6.1, kernel.io_uring_disabled = 0 and a container that \
         allows it)"
    )
}

pub(super) fn wait_word(wait: WaitBy) -> &'static str {
    match wait {
        WaitBy::Auto => "auto",
        WaitBy::Epoll => "epoll",
        WaitBy::Uring => "io_uring",
        WaitBy::Spin => "spin",
        WaitBy::Xdp => "xdp",
    }
}
