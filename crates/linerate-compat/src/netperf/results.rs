//! What the server counted.

use super::message::Message;
use super::response::OMNI_RESPONSE;

/// Words of the data before its texts.
const RESULT_WORDS: usize = 27;
/// Where the name of the congestion control begins behind them: the texts before it are about devices.
const CONGESTION_AT: usize = 16 + 4 * 32 + 16;
/// Bytes that it has.
const NAME_BYTES: usize = 16;
/// netperf's numbers of how the CPUs were measured, of which it shows the letters U, R and S; the first says that
/// they were not.
const METHOD_NONE: u32 = 0;
const METHOD_RUSAGE: u32 = 5;
const METHOD_PROC_STAT: u32 = 8;

/// What the server counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OmniResults {
    /// Payload that came in.
    pub bytes_received: u64,
    /// Calls that received it.
    pub receive_calls: u32,
    /// The receiving buffer of the socket at the end.
    pub receive_window_bytes: u32,
    /// Payload that went out.
    pub bytes_sent: u64,
    /// Calls that sent it.
    pub send_calls: u32,
    /// The sending buffer at the end.
    pub send_window_bytes: u32,
    /// Calls that the system refused.
    pub failed_sends: u32,
    /// Transactions.
    pub transactions: u32,
    /// How long the test went on.
    pub elapsed_s: f32,
    /// How many CPUs the server has.
    pub cpus: u32,
    /// How busy they were, where that was asked for.
    pub cpu: Option<CpuShares>,
    /// Segments that were sent again; absent where nothing counts them.
    pub retransmissions: Option<u32>,
    /// The congestion control, where its name was asked for.
    pub congestion: Option<String>,
}

/// Whose CPU time it is, and who told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuMethod {
    /// The host's, from /proc/stat.
    ProcStat,
    /// That of the process or of threads of it, by getrusage(2).
    Rusage,
    /// Another number of netperf's.
    Other(u32),
}

/// How busy a host's CPUs were, in percent of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShares {
    /// By what.
    pub method: CpuMethod,
    /// All but idle.
    pub busy: f32,
    /// Of it in user mode.
    pub user: f32,
    /// In the kernel.
    pub system: f32,
    /// Waiting for a disk.
    pub io_wait: f32,
    /// In interrupts.
    pub irq: f32,
    /// In soft interrupts.
    pub soft_irq: f32,
    /// The CPU that was the busiest.
    pub peak_cpu: u32,
    /// How busy that was, in percent of one.
    pub peak: f32,
}

impl CpuMethod {
    fn of(number: u32) -> Self {
        match number {
            METHOD_PROC_STAT => Self::ProcStat,
            METHOD_RUSAGE => Self::Rusage,
            other => Self::Other(other),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::ProcStat => METHOD_PROC_STAT,
            Self::Rusage => METHOD_RUSAGE,
            Self::Other(number) => number,
        }
    }
}

impl CpuShares {
    /// What was not measured.
    const NONE: Self = Self {
        method: CpuMethod::Other(METHOD_NONE),
        busy: 0.0,
        user: 0.0,
        system: 0.0,
        io_wait: 0.0,
        irq: 0.0,
        soft_irq: 0.0,
        peak_cpu: 0,
        peak: 0.0,
    };
}

impl OmniResults {
    /// Returns the message that says it.
    pub fn encode(&self) -> Message {
        let mut message = Message::new(OMNI_RESPONSE, 0);
        let (high, low) = (|sum: u64| (sum >> 32) as u32, |sum: u64| sum as u32);
        let cpu = self.cpu.unwrap_or(CpuShares::NONE);
        let words = [
            (0, high(self.bytes_received)),
            (1, low(self.bytes_received)),
            (2, self.receive_calls),
            (3, self.receive_window_bytes),
            (4, high(self.bytes_sent)),
            (5, low(self.bytes_sent)),
            (6, self.send_calls),
            (7, self.send_window_bytes),
            (8, self.failed_sends),
            (9, self.transactions),
            (10, self.elapsed_s.to_bits()),
            (11, cpu.busy.to_bits()),
            (12, cpu.user.to_bits()),
            (13, cpu.system.to_bits()),
            (14, cpu.io_wait.to_bits()),
            (15, cpu.irq.to_bits()),
            (16, cpu.soft_irq.to_bits()),
            (18, cpu.method.number()),
            (19, self.cpus),
            (20, cpu.peak_cpu),
            (21, cpu.peak.to_bits()),
            (26, self.retransmissions.unwrap_or(super::NOTHING_SAID)),
        ];
        for (index, word) in words {
            message.set_word(index, word);
        }
        let name = self.congestion.as_deref().unwrap_or("");
        message.set_text((RESULT_WORDS, CONGESTION_AT), NAME_BYTES, name);
        message
    }

    /// Reads what a server counted; the error where the test failed.
    pub fn decode(message: &Message) -> Result<Self, u32> {
        if message.second() != 0 {
            return Err(message.second());
        }
        let wide = |at| u64::from(message.word(at)) << 32 | u64::from(message.word(at + 1));
        let float = |at| f32::from_bits(message.word(at));
        let cpu = CpuShares {
            method: CpuMethod::of(message.word(18)),
            busy: float(11),
            user: float(12),
            system: float(13),
            io_wait: float(14),
            irq: float(15),
            soft_irq: float(16),
            peak_cpu: message.word(20),
            peak: float(21),
        };
        let name = message.text(RESULT_WORDS, CONGESTION_AT, NAME_BYTES);
        let name = String::from_utf8_lossy(name).into_owned();
        let is_measured = message.word(18) != METHOD_NONE;
        Ok(Self {
            bytes_received: wide(0),
            receive_calls: message.word(2),
            receive_window_bytes: message.word(3),
            bytes_sent: wide(4),
            send_calls: message.word(6),
            send_window_bytes: message.word(7),
            failed_sends: message.word(8),
            transactions: message.word(9),
            elapsed_s: float(10),
            cpus: message.word(19),
            cpu: is_measured.then_some(cpu),
            retransmissions: Some(message.word(26)).filter(|sent| *sent != super::NOTHING_SAID),
            congestion: Some(name).filter(|name| !name.is_empty()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_survive_the_wire() {
        let results = OmniResults {
            bytes_received: 0x1_2345_6789,
            receive_calls: 2,
            receive_window_bytes: 3,
            bytes_sent: u64::MAX,
            send_calls: 5,
            send_window_bytes: 6,
            failed_sends: 7,
            transactions: 8,
            elapsed_s: 9.5,
            cpus: 10,
            cpu: Some(CpuShares {
                method: CpuMethod::ProcStat,
                busy: 11.5,
                user: 1.0,
                system: 2.0,
                io_wait: 3.0,
                irq: 4.0,
                soft_irq: 1.5,
                peak_cpu: 12,
                peak: 13.25,
            }),
            retransmissions: Some(14),
            congestion: Some("cubic".to_owned()),
        };
        assert_eq!(OmniResults::decode(&results.encode()), Ok(results));
        let nothing = OmniResults::default();
        assert_eq!(OmniResults::decode(&nothing.encode()), Ok(nothing));
    }
}
