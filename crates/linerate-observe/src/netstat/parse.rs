//! The tables of `/proc/net/snmp` and `/proc/net/netstat` and the list of `snmp6`, as functions of bytes.
//!
//! A table has two lines per protocol: `Tcp: InSegs OutSegs …` and `Tcp: 1 2 …`. Columns are found by
//! name, since kernels add them in the middle. A list has a line for each counter: `Udp6InDatagrams 12`.

use linerate_model::metric::Metric;

use super::Counter;
use crate::text::{complete_lines, words};

/// Hands every wanted counter that the text holds to `push`.
///
/// A value that is not a number, or has no name above it, is not handed on.
pub(super) fn parse(text: &[u8], wanted: &[Counter], mut push: impl FnMut(Metric, i64)) {
    each(text, |protocol, name, value| {
        push_wanted(wanted, (protocol, name, value), &mut push);
    });
}

/// Hands a counter, as its protocol, name and value, to `push` if it is wanted.
pub(super) fn push_wanted(
    wanted: &[Counter],
    (protocol, name, value): (&[u8], &[u8], &[u8]),
    push: impl FnOnce(Metric, i64),
) {
    let known = wanted
        .iter()
        .find(|(of, known, _)| known.as_bytes() == name && of.as_bytes() == protocol);
    if let Some((_, _, metric)) = known
        && let Some(value) = crate::text::value(value)
    {
        push(*metric, value);
    }
}

/// Hands every protocol, name and value of the text to `handle`, whatever they are; a list names no
/// protocol.
pub(super) fn each<'a>(text: &'a [u8], mut handle: impl FnMut(&'a [u8], &'a [u8], &'a [u8])) {
    let mut lines = complete_lines(text);
    while let Some(line) = lines.next() {
        let Some((protocol, names)) = split(line) else {
            let mut line = words(line);
            if let (Some(name), Some(value)) = (line.next(), line.next()) {
                handle(b"", name, value);
            }
            continue;
        };
        if let Some((same, values)) = lines.next().and_then(split)
            && protocol == same
        {
            for (name, value) in words(names).zip(words(values)) {
                handle(protocol, name, value);
            }
        }
    }
}

/// Splits a line at its first colon.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((&line[..colon], &line[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{NETSTAT, SNMP};
    use super::*;

    fn check(text: &str, wanted: &[Counter], expect: &[(Metric, i64)]) {
        let mut found = Vec::new();
        parse(text.as_bytes(), wanted, |metric, value| {
            found.push((metric, value));
        });
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = "Ip: InSegs\nIp: 9\nTcp: MaxConn OutSegs New InSegs\nTcp: -1 7 0 5\n";
        check(
            text,
            SNMP,
            &[(Metric::SnmpTcpOutSegs, 7), (Metric::SnmpTcpInSegs, 5)],
        );
        check(text, NETSTAT, &[]);
    }

    #[test]
    fn short_odd_and_cut_lines_give_what_is_certain() {
        check(
            "Tcp: InSegs OutSegs\nTcp: 3\n",
            SNMP,
            &[(Metric::SnmpTcpInSegs, 3)],
        );
        check(
            "Tcp: InSegs OutSegs\nTcp: x 4\n",
            SNMP,
            &[(Metric::SnmpTcpOutSegs, 4)],
        );
        check("Tcp: InSegs\nTcp: 12", SNMP, &[]);
        check("Tcp: InSegs\nUdp: 12\n", SNMP, &[]);
        check("no colon\nTcp: 1\n", SNMP, &[]);
        check("", SNMP, &[]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>, lines in "((Tcp|TcpExt|)[:A-Za-z0-9 ]{0,20}\n?){0,6}") {
            parse(&text, SNMP, |_, _| {});
            parse(lines.as_bytes(), SNMP, |_, _| {});
        }
    }
}
