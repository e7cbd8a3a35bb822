//! Families of generic netlink: the number of one, by its name.
//!
//! Numbers are those of include/uapi/linux/genetlink.h.

use std::io;

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::attributes::{attribute, first_attribute};
use crate::sys::netlink::{NetlinkSocket, Question};

/// The family of families.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Length of struct genlmsghdr, in bytes.
const HEADER_BYTES: usize = 4;

/// Opens a socket in the network namespace of the calling thread, and asks for the number of the
/// family called `name`.
pub(crate) fn open_family(name: &str) -> io::Result<(NetlinkSocket, u16)> {
    let mut socket = NetlinkSocket::open(NETLINK_GENERIC)?;
    let mut question = Question::single(GENL_ID_CTRL, &family_question(name));
    let mut family = None;
    socket.ask(&mut question, |_, payload| family = family_number(payload))?;
    let family = family.ok_or_else(|| io::Error::other("the family has no number"))?;
    Ok((socket, family))
}

/// Makes the header of a question.
pub(crate) fn header(command: u8) -> Vec<u8> {
    // struct genlmsghdr: command, version, reserved (u16).
    vec![command, 1, 0, 0]
}

/// Returns the attributes of an answer.
pub(crate) fn attributes_of(payload: &[u8]) -> Option<&[u8]> {
    payload.get(HEADER_BYTES..)
}

/// Makes the question for the number of the family called `name`.
fn family_question(name: &str) -> Vec<u8> {
    let name = [name.as_bytes(), &[0]].concat();
    let mut payload = header(CTRL_CMD_GETFAMILY);
    payload.extend(attribute(CTRL_ATTR_FAMILY_NAME, &name));
    payload
}

/// Reads the number of a family.
fn family_number(payload: &[u8]) -> Option<u16> {
    let number = first_attribute(attributes_of(payload)?, CTRL_ATTR_FAMILY_ID)?;
    Some(u16::from_ne_bytes(*number.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_family_has_a_number() {
        let payload = [
            header(1),
            attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0"),
            attribute(CTRL_ATTR_FAMILY_ID, &[0x1d, 0]),
        ];
        assert_eq!(family_number(&payload.concat()), Some(0x1d));
        assert_eq!(family_question("netdev").len() % 4, 0);
        assert_eq!(family_number(&[]), None);
    }

    #[test]
    fn a_family_that_is_not_there_is_an_error() {
        let error = open_family("nosuchfamily").map(drop).expect_err("none");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload: Vec<u8>) {
            let _ = family_number(&payload);
        }
    }
}
