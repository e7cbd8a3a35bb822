//! How a worker waits for what comes next, chosen once for all its flows, and said.
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

use crate::worker::crowd::Crowd;
use crate::worker::ring::Circle;
use crate::worker::spin::Rest;
use crate::worker::{Bench, Seat, alone, spin, warden};
use crate::workload::{Play, Player};

/// How a worker waits.
pub(super) enum Way {
    /// In the call that moves payload.
    Block,
    /// Not at all.
    Spin(Rest),
    /// By epoll.
    Epoll(Crowd),
    /// By io_uring.
    Uring(Box<Circle>),
}

impl Way {
    /// Chooses and prepares the way of a worker with these flows; returns how it is said.
    pub(super) fn choose(seats: &mut [Seat], bench: &Bench) -> io::Result<(Self, Setting)> {
        let asked = seats
            .first()
            .map_or(WaitBy::Auto, |seat| seat.flow.config.manner.wait);
        let alone = seats.len() == 1;
        let takes_turns = seats.iter().all(takes_turns);
        let talks = seats.iter_mut().all(|seat| seat.player.talk().is_some());
        let mut said = Setting::granted(name::WAIT, Some(word(asked).to_owned()), None);
        let way = match asked {
            WaitBy::Auto if alone && takes_turns => {
                let flow = &seats[0].flow;
                alone::prepare(flow.socket(), warden::watches(&flow.config))?;
                Way::Block
            }
            WaitBy::Spin => {
                for seat in seats.iter() {
                    spin::prepare(seat.flow.socket())?;
                }
                Way::Spin(Rest::measure())
            }
            WaitBy::Epoll => Way::Epoll(Crowd::prepare(seats)?),
            WaitBy::Uring if !talks => {
                let why = "io_uring serves requests and responses only";
                said.capped_by = Some(why.to_owned());
                Way::Epoll(Crowd::prepare(seats)?)
            }
            WaitBy::Auto if !talks => Way::Epoll(Crowd::prepare(seats)?),
            WaitBy::Auto | WaitBy::Uring => match Circle::prepare(seats, bench.room.bytes()) {
                Ok(circle) => Way::Uring(Box::new(circle)),
                Err(error) => {
                    let why = without_io_uring(&error);
                    said.capped_by = (asked == WaitBy::Uring).then(|| why.clone());
                    said.effective = Some(format!("epoll, since {why}"));
                    Way::Epoll(Crowd::prepare(seats)?)
                }
            },
        };
        said.granted = Some(way.word().to_owned());
        said.effective = said.effective.or_else(|| said.granted.clone());
        Ok((way, said))
    }

    /// Plays all parts to their ends; each seat then says how its flow ended. What only showed on the way is
    /// added to how the waiting is `said`.
    pub(super) fn play(self, seats: &mut [Seat], bench: &mut Bench, said: &mut Setting) {
        match self {
            Way::Block => {
                for seat in seats {
                    let ending = alone::play(&mut seat.player, &mut bench.io(&seat.flow));
                    seat.end(ending);
                }
            }
            Way::Spin(rest) => {
                let yielded = match seats {
                    [seat] => {
                        let mut io = bench.io(&seat.flow);
                        // Told apart once here, so that each has a loop without a branch for it.
                        let (ending, yielded) = match &mut seat.player {
                            Player::Requester(part) => spin::play(part, &mut io, rest),
                            Player::Responder(part) => spin::play(part, &mut io, rest),
                            other => spin::play(other, &mut io, rest),
                        };
                        seat.end(ending);
                        yielded
                    }
                    seats => spin::play_rounds(seats, bench),
                };
                if yielded {
                    said.effective = Some("spin, yielding to the peer on its CPU".to_owned());
                }
            }
            Way::Epoll(crowd) => crowd.play(seats, bench),
            Way::Uring(circle) => circle.play(seats, bench),
        }
        if bench.give_way.is_shared()
            && let Some(effective) = &mut said.effective
        {
            effective.push_str(", senders yielding to receivers on their CPU");
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Way::Block => "blocking",
            Way::Spin(_) => word(WaitBy::Spin),
            Way::Epoll(_) => word(WaitBy::Epoll),
            Way::Uring(_) => word(WaitBy::Uring),
        }
    }
}

/// Returns whether one blocking call after another is all that the flow's part makes.
fn takes_turns(seat: &Seat) -> bool {
    let manner = &seat.flow.config.manner;
    match seat.player {
        // A sender that keeps a rate of its own has instants to keep.
        Player::Sender(_) => seat.flow.pace_bps.is_none(),
        Player::Receiver(_) | Player::Keeper(_) => true,
        Player::Requester(_) | Player::Responder(_) => {
            manner.in_flight == 1 && seat.player.alarm_ns().is_none()
        }
    }
}

/// Returns why io_uring does not serve: beside the kernel's own word the causes that a person can do
/// something about.
pub(super) fn without_io_uring(error: &io::Error) -> String {
    format!(
        "io_uring: {error} (needs Linux 6.1, kernel.io_uring_disabled = 0 and a container that \
         allows it)"
    )
}

pub(super) fn word(wait: WaitBy) -> &'static str {
    match wait {
        WaitBy::Auto => "auto",
        WaitBy::Epoll => "epoll",
        WaitBy::Uring => "io_uring",
        WaitBy::Spin => "spin",
    }
}
