//! The bytes that move a test along.

/// One byte of control, in either direction.
///
/// Numbers that iperf3 reserves and never sends (3, 5 to 8, 15) are no states here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// The server: all streams are there.
    TestStart = 1,
    /// The server: payload flows from now on.
    TestRunning = 2,
    /// The client: the time is over.
    TestEnd = 4,
    /// The server: say what you want.
    ParamExchange = 9,
    /// The server: open the data connections.
    CreateStreams = 10,
    /// The server was interrupted.
    ServerTerminate = 11,
    /// The client was interrupted.
    ClientTerminate = 12,
    /// The server: say what you measured.
    ExchangeResults = 13,
    /// The server: that was all.
    DisplayResults = 14,
    /// The client: goodbye.
    Done = 16,
    /// The server: something failed; two numbers follow.
    ServerError = 0xFE,
    /// The server is busy, or does not know the cookie.
    AccessDenied = 0xFF,
}

impl State {
    /// Every state.
    const ALL: [State; 12] = [
        State::TestStart,
        State::TestRunning,
        State::TestEnd,
        State::ParamExchange,
        State::CreateStreams,
        State::ServerTerminate,
        State::ClientTerminate,
        State::ExchangeResults,
        State::DisplayResults,
        State::Done,
        State::ServerError,
        State::AccessDenied,
    ];

    /// Returns the state that `byte` stands for, if any.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&state| state as u8 == byte)
    }

    /// Returns the byte on the wire.
    pub fn byte(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_states_agree() {
        let known: Vec<u8> = (0..=255)
            .filter(|&byte| State::from_byte(byte).is_some())
            .collect();
        assert_eq!(known, [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 0xFE, 0xFF]);
        for byte in known {
            assert_eq!(State::from_byte(byte).map(State::byte), Some(byte));
        }
    }
}
