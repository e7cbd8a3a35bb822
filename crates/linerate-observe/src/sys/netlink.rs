//! Questions to the kernel by netlink, answered message by message.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Length of struct nlmsghdr, in bytes.
const HEADER_BYTES: usize = 16;
/// Longest datagram taken, in bytes: the kernel fills dumps up to 32 KiB (af_netlink.c).
const DATAGRAM_BYTES_MAX: usize = 64 << 10;
/// Most datagrams of one answer: at 4 KiB each this is some 100 000 devices.
const DATAGRAMS_MAX: usize = 64 << 10;

/// A socket of the network namespace in which it was opened.
pub(crate) struct NetlinkSocket {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
    /// An earlier answer was not read to its end.
    unfinished: bool,
}

/// A question as bytes, made once and sent as often as wanted.
pub(crate) struct Question {
    bytes: Vec<u8>,
}

impl Question {
    /// Makes the question of type `kind` for a list, from the bytes of its payload.
    pub(crate) fn list(kind: u16, payload: &[u8]) -> Self {
        Self::of_bytes(kind, NLM_F_REQUEST | NLM_F_DUMP, payload)
    }

    /// Makes the question of type `kind` for one object, from the bytes of its payload.
    pub(crate) fn single(kind: u16, payload: &[u8]) -> Self {
        Self::of_bytes(kind, NLM_F_REQUEST, payload)
    }

    fn of_bytes(kind: u16, flags: u16, payload: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES + payload.len()];
        let mut buffer = NetlinkBuffer::new(&mut bytes);
        buffer.set_length(u32::try_from(HEADER_BYTES + payload.len()).unwrap_or(u32::MAX));
        buffer.set_message_type(kind);
        buffer.set_flags(flags);
        buffer.payload_mut().copy_from_slice(payload);
        Self { bytes }
    }
}

impl NetlinkSocket {
    /// Opens a socket of routing netlink in the network namespace of the calling thread.
    pub(crate) fn route() -> io::Result<Self> {
        Self::open(NETLINK_ROUTE)
    }

    /// Opens a socket of a netlink protocol in the network namespace of the calling thread.
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // The kernel puts each part of an answer into the socket before the system call that
        // asked for it returns (netlink_dump), so an empty socket is a fault and not a wait.
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(DATAGRAM_BYTES_MAX),
            sequence: 0,
            unfinished: false,
        })
    }

    /// Asks, and hands every message of the answer to `handle` as type and payload.
    pub(crate) fn ask(
        &mut self,
        question: &mut Question,
        mut handle: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        if self.unfinished {
            self.drain();
        }
        self.unfinished = true;
        self.sequence = self.sequence.wrapping_add(1);
        let mut asked = NetlinkBuffer::new(&mut question.bytes);
        asked.set_sequence_number(self.sequence);
        let answer = if asked.flags() & NLM_F_DUMP == NLM_F_DUMP {
            Answer::List
        } else {
            Answer::One
        };
        self.socket.send(&question.bytes, 0)?;
        for _ in 0..DATAGRAMS_MAX {
            self.receive()?;
            let progress = handle_datagram(&self.buffer, self.sequence, answer, &mut handle)?;
            if progress == Progress::Complete {
                self.unfinished = false;
                return Ok(());
            }
        }
        Err(io::Error::other("answer has no end"))
    }

    /// Reads away what is left of an earlier answer: until its end the kernel refuses the next
    /// question for a list with EBUSY.
    fn drain(&mut self) {
        for _ in 0..DATAGRAMS_MAX {
            if self
                .receive()
                .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            {
                return;
            }
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        self.buffer.clear();
        let length = self.socket.recv(&mut self.buffer, libc::MSG_TRUNC)?;
        if length > self.buffer.len() {
            return Err(io::Error::other("datagram longer than the buffer"));
        }
        Ok(())
    }
}

/// What ends an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Its first message.
    One,
    /// NLMSG_DONE only: generic netlink's `netdev` family does not mark the parts of a list as parts
    /// (NLM_F_MULTI).
    List,
}

/// Whether an answer goes on in another datagram.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Continues,
    Complete,
}

/// Walks the messages of one datagram, skipping answers to earlier questions.
fn handle_datagram(
    datagram: &[u8],
    sequence: u32,
    answer: Answer,
    handle: &mut impl FnMut(u16, &[u8]),
) -> io::Result<Progress> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
        let length = message.length() as usize;
        if message.sequence_number() == sequence {
            match message.message_type() {
                NLMSG_DONE | NLMSG_ERROR => return end(message.payload()),
                kind => handle(kind, message.payload()),
            }
            if answer == Answer::One && message.flags() & NLM_F_MULTIPART == 0 {
                return Ok(Progress::Complete);
            }
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Progress::Continues)
}

/// Reads the end of an answer: both NLMSG_DONE and NLMSG_ERROR begin with a negative errno or 0.
fn end(payload: &[u8]) -> io::Result<Progress> {
    let code = payload
        .first_chunk()
        .map_or(0, |code| i32::from_ne_bytes(*code));
    if code < 0 {
        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
    }
    Ok(Progress::Complete)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 16 + payload.len()];
        let mut message = NetlinkBuffer::new(&mut bytes);
        message.set_length(16 + payload.len() as u32);
        message.set_message_type(kind);
        message.set_flags(flags);
        message.set_sequence_number(sequence);
        message.payload_mut().copy_from_slice(payload);
        bytes
    }

    fn check(datagram: &[u8], expect: &Result<Progress, i32>, expect_kinds: &[u16]) {
        check_answer(Answer::One, datagram, expect, expect_kinds);
    }

    fn check_answer(
        answer: Answer,
        datagram: &[u8],
        expect: &Result<Progress, i32>,
        expect_kinds: &[u16],
    ) {
        let mut kinds = Vec::new();
        let progress = handle_datagram(datagram, 7, answer, &mut |kind, _| kinds.push(kind));
        let progress = progress.map_err(|error| error.raw_os_error().unwrap_or(0));
        assert_eq!((&progress, kinds.as_slice()), (expect, expect_kinds));
    }

    #[test]
    fn parts_of_an_answer_go_on_until_done() {
        let part = message(16, NLM_F_MULTIPART, 7, &[0; 8]);
        let stale = message(16, NLM_F_MULTIPART, 6, &[0; 8]);
        let done = message(NLMSG_DONE, NLM_F_MULTIPART, 7, &[0; 4]);
        check(&part, &Ok(Progress::Continues), &[16]);
        check(&stale, &Ok(Progress::Continues), &[]);
        check(
            &[stale, part, done].concat(),
            &Ok(Progress::Complete),
            &[16],
        );
    }

    #[test]
    fn errors_carry_the_errno() {
        let refused = message(NLMSG_ERROR, 0, 7, &(-libc::EPERM).to_ne_bytes());
        check(&refused, &Err(libc::EPERM), &[]);
        check(&refused[..10], &Err(0), &[]);
    }

    #[test]
    fn a_single_answer_is_complete() {
        check(&message(24, 0, 7, &[0; 12]), &Ok(Progress::Complete), &[24]);
    }

    #[test]
    fn a_list_without_marks_goes_on_until_done() {
        let part = message(20, 0, 7, &[0; 8]);
        let done = message(NLMSG_DONE, 0, 7, &[0; 4]);
        let check = |datagram: &[u8], progress, kinds: &[u16]| {
            check_answer(Answer::List, datagram, &Ok(progress), kinds);
        };
        let two = [part.clone(), part].concat();
        check(&two, Progress::Continues, &[20, 20]);
        check(&[two, done].concat(), Progress::Complete, &[20, 20]);
    }

    #[test]
    fn a_question_of_bytes_is_what_the_parser_reads() {
        let question = Question::list(38, &[1, 2, 3, 4, 5]);
        assert_eq!(question.bytes.len(), 21);
        let message = NetlinkBuffer::new_checked(&question.bytes).expect("a message");
        assert_eq!((message.length(), message.message_type()), (21, 38));
        assert_eq!(message.flags(), NLM_F_REQUEST | NLM_F_DUMP);
        assert_eq!(message.payload(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_answer_left_unread_does_not_spoil_the_next() {
        let mut socket = NetlinkSocket::route().expect("a netlink socket");
        let mut question = Question::list(libc::RTM_GETLINK, &[0; 16]);
        socket.socket.send(&question.bytes, 0).expect("asked");
        socket.unfinished = true;
        let mut messages = 0;
        let answer = socket.ask(&mut question, |_, _| messages += 1);
        assert!(
            answer.is_ok() && messages > 0,
            "{answer:?}, {messages} messages"
        );
    }

    proptest! {
        #[test]
        fn no_datagram_panics(datagram in proptest::collection::vec(any::<u8>(), 0..200)) {
            for answer in [Answer::One, Answer::List] {
                let _ = handle_datagram(&datagram, 0, answer, &mut |_, _| {});
            }
        }
    }
}
