//! Which datagrams a listener takes at all: those that somebody waits for.
//!
//! Where nobody waits, the kernel drops what comes before it wakes anybody, so that a flood of noise costs
//! little more than its packets do, and cannot fill the receive buffer before the hellos that are waited for.
//! It is a saving, not a check: who looks at a datagram that came through decides as if there were no sieve,
//! and where the kernel takes no filter there is none.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::opening::{COOKIE_AT, COOKIE_BYTES, HELLO_BYTES};
use crate::sys::filter::{self, Instruction};

/// Cookies that are told apart: more than runs are together in practice. Beyond them every datagram is
/// taken; nine instructions each are far below what a filter may have.
const COOKIES_MAX: usize = 32;
/// Bytes of a UDP header, with which a filter's view of a datagram begins.
const UDP_HEADER_BYTES: usize = 8;

/// The sieve of one listener; copies are the same one.
#[derive(Debug, Clone)]
pub struct Sieve(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    socket: OwnedFd,
    awaited: Mutex<Vec<Awaited>>,
}

/// Datagrams that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Hellos and echoes with this cookie.
    Cookie([u8; COOKIE_BYTES]),
    /// Greetings of other programs, of so many bytes.
    Greeting(u32),
}

/// What is waited for, until this is dropped.
#[derive(Debug)]
pub struct Await {
    sieve: Sieve,
    awaited: Awaited,
}

impl Sieve {
    /// Returns the sieve of `socket`, which from now on takes nothing.
    pub(super) fn new(socket: OwnedFd) -> Self {
        let sieve = Self(Arc::new(Shared {
            socket,
            awaited: Mutex::default(),
        }));
        sieve.apply(&sieve.awaited());
        sieve
    }

    /// Lets through what is `awaited` until the answer is dropped.
    pub fn wait_for(&self, awaited: Awaited) -> Await {
        let mut all = self.awaited();
        all.push(awaited);
        self.apply(&all);
        let sieve = self.clone();
        Await { sieve, awaited }
    }

    fn awaited(&self) -> MutexGuard<'_, Vec<Awaited>> {
        let awaited = self.0.awaited.lock();
        awaited.unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, all: &[Awaited]) {
        let fd = self.0.socket.as_raw_fd();
        let applied = match program(all) {
            Some(program) => filter::attach(fd, &program),
            None => Err(io::ErrorKind::InvalidInput.into()),
        };
        if applied.is_err() {
            // A sieve that lets through too much is slow, one that holds back what is waited for is wrong.
            filter::detach(fd);
        }
    }
}

impl Drop for Await {
    fn drop(&mut self) {
        let mut all = self.sieve.awaited();
        if let Some(at) = all.iter().position(|one| *one == self.awaited) {
            all.swap_remove(at);
        }
        self.sieve.apply(&all);
    }
}

/// Returns what lets `all` through and nothing else; none if that would be too long.
fn program(all: &[Awaited]) -> Option<Vec<Instruction>> {
    let mut program = vec![Instruction::load_length()];
    let greetings = all.iter().filter_map(|one| match one {
        Awaited::Greeting(bytes) => Some(*bytes),
        Awaited::Cookie(_) => None,
    });
    // Of a length each, of which there are few.
    let mut lengths: Vec<u32> = greetings.collect();
    lengths.sort_unstable();
    lengths.dedup();
    for length in lengths {
        program.push(Instruction::skip_unless_equal(
            UDP_HEADER_BYTES as u32 + length,
            1,
        ));
        program.push(Instruction::TAKE);
    }
    program.push(Instruction::skip_if_at_least(
        (UDP_HEADER_BYTES + HELLO_BYTES) as u32,
        1,
    ));
    program.push(Instruction::DROP);
    let cookies = all.iter().filter_map(|one| match one {
        Awaited::Cookie(cookie) => Some(cookie),
        Awaited::Greeting(_) => None,
    });
    for (number, cookie) in cookies.enumerate() {
        if number == COOKIES_MAX {
            return None;
        }
        let (words, _) = cookie.as_chunks::<4>();
        for (at, word) in words.iter().enumerate() {
            let from = UDP_HEADER_BYTES + COOKIE_AT + 4 * at;
            program.push(Instruction::load_word(from as u32));
            // Past the words that are left, and what takes the datagram.
            let left = 2 * (words.len() - 1 - at) + 1;
            program.push(Instruction::skip_unless_equal(
                u32::from_be_bytes(*word),
                left as u8,
            ));
        }
        program.push(Instruction::TAKE);
    }
    program.push(Instruction::DROP);
    Some(program)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use super::*;
    use crate::DatagramListener;
    use crate::flow::opening::echo;

    fn hello(cookie: [u8; COOKIE_BYTES]) -> [u8; HELLO_BYTES] {
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(b"LINERATE");
        hello[COOKIE_AT..].copy_from_slice(&cookie);
        hello
    }

    struct Place {
        listener: DatagramListener,
        sieve: Sieve,
        peer: UdpSocket,
    }

    impl Place {
        fn on(address: &str) -> Self {
            let address: SocketAddr = address.parse().unwrap();
            let listener = DatagramListener::bind(address).unwrap();
            let peer = UdpSocket::bind((address.ip(), 0)).unwrap();
            peer.connect((address.ip(), listener.port())).unwrap();
            let sieve = listener.sieve().unwrap();
            Self {
                listener,
                sieve,
                peer,
            }
        }

        /// Loopback delivers within the call.
        fn takes(&self, datagram: &[u8]) -> bool {
            assert_eq!(self.peer.send(datagram).unwrap(), datagram.len());
            let came = self.listener.receive(64).is_ok();
            assert!(self.listener.receive(64).is_err());
            came
        }
    }

    #[test]
    fn nothing_comes_through_that_nobody_waits_for() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let place = Place::on(address);
            let noise: [&[u8]; 5] = [b"", b"9876", &[7; 32], &[7; 1400], &hello([1; 16])];
            assert!(noise.iter().all(|noise| !place.takes(noise)), "{address}");
        }
    }

    #[test]
    fn a_cookie_comes_through_for_as_long_as_it_is_waited_for() {
        let place = Place::on("127.0.0.1:0");
        let own = std::array::from_fn(|at| 0xf0 + at as u8);
        let one = place.sieve.wait_for(Awaited::Cookie(own));
        let other = place.sieve.wait_for(Awaited::Cookie([2; 16]));
        for cookie in [own, [2; 16]] {
            assert!(place.takes(&hello(cookie)));
            assert!(place.takes(&echo(&hello(cookie), &[9; 16])));
        }
        // Each of its words is looked at.
        for at in 0..COOKIE_BYTES {
            let mut wrong = own;
            wrong[at] ^= 1;
            assert!(!place.takes(&hello(wrong)), "{at}");
        }
        assert!(!place.takes(&hello(own)[..31]) && !place.takes(b"9876"));
        drop(one);
        assert!(!place.takes(&hello(own)) && place.takes(&hello([2; 16])));
        drop(other);
        assert!(!place.takes(&hello([2; 16])));
    }

    #[test]
    fn greetings_come_through_while_one_is_waited_for() {
        let place = Place::on("127.0.0.1:0");
        let waits = [(); 2].map(|()| place.sieve.wait_for(Awaited::Greeting(4)));
        let cookie = place.sieve.wait_for(Awaited::Cookie([3; 16]));
        for more in waits {
            assert!(place.takes(b"9876") && place.takes(&hello([3; 16])));
            assert!(!place.takes(b"98765") && !place.takes(b"987") && !place.takes(&[7; 64]));
            drop(more);
        }
        assert!(!place.takes(b"9876") && place.takes(&hello([3; 16])));
        drop(cookie);
    }

    #[test]
    fn with_more_than_it_can_tell_apart_everything_comes_through() {
        let place = Place::on("127.0.0.1:0");
        let wait = |number: usize| place.sieve.wait_for(Awaited::Cookie([number as u8; 16]));
        let mut waits: Vec<Await> = (1..=COOKIES_MAX).map(wait).collect();
        assert!(place.takes(&hello([COOKIES_MAX as u8; 16])) && !place.takes(&[0xff; 64]));
        waits.push(wait(COOKIES_MAX + 1));
        assert!(place.takes(&[0xff; 64]));
        waits.pop();
        assert!(place.takes(&hello([1; 16])) && !place.takes(&[0xff; 64]));
    }
}
