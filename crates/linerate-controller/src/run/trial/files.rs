//! The files that hosts capture during a trial: how large, where, and how they come here.

use linerate_agent::api::CaptureAt;
use linerate_model::Bytes;
use linerate_model::capture::{CaptureOptions, CaptureOutcome, FILE_BYTES_MAX, FILE_BYTES_MIN};

use super::participant::Participant;
use crate::fleet::Member;

/// Bytes that the captures of one run take together at the most: a bundle should be one that can be
/// copied, and a report is rendered from all of them.
const CAPTURES_BYTES_MAX: u64 = 1 << 30;
/// Fewer are not worth a capture: handshakes and a few packets.
const CAPTURE_BYTES_MIN: u64 = FILE_BYTES_MIN;
/// Parts of one capture that are asked for at the most: agents hand over a mebibyte at once.
const CAPTURE_PARTS_MAX: usize = 2 * (FILE_BYTES_MAX >> 20) as usize;

/// Returns what each of `hosts` may capture of what is asked for where those before took `taken_bytes`,
/// if that is anything.
pub(super) fn options(
    asked: CaptureOptions,
    taken_bytes: u64,
    hosts: usize,
) -> Option<CaptureOptions> {
    let left = CAPTURES_BYTES_MAX.saturating_sub(taken_bytes);
    let bytes = asked.bytes.0.min(left / hosts.max(1) as u64);
    (bytes >= CAPTURE_BYTES_MIN).then_some(CaptureOptions {
        bytes: Bytes(bytes),
        ..asked
    })
}

/// Returns where `member` sees frames of flows to `server`, as far as that is known.
pub(super) fn device_of(
    member: &Member,
    server: &Member,
    over_loopback: bool,
) -> Option<CaptureAt> {
    let device = if over_loopback {
        // Whatever the address: what a machine sends to itself passes there.
        "lo".to_owned()
    } else {
        member.record.link.clone()?
    };
    let port = server.data_socket().rsplit_once(':')?.1.parse().ok()?;
    Some(CaptureAt { device, port })
}

impl Participant<'_> {
    /// Takes over the file that the host captured; one that does not arrive whole is said to be missing
    /// and spoils nothing.
    pub(super) fn fetch_capture(&mut self) {
        let Some(CaptureOutcome::Taken(taken)) = &self.gathered.capture else {
            return;
        };
        match self.capture_file(taken.bytes) {
            Ok(file) => self.gathered.capture_file = file,
            Err(why) => self.gathered.capture = Some(CaptureOutcome::Missing(why)),
        }
    }

    fn capture_file(&self, bytes: u64) -> Result<Vec<u8>, String> {
        if bytes > FILE_BYTES_MAX {
            return Err(format!("it has {bytes} bytes, more than a capture may"));
        }
        let mut file = Vec::new();
        // One more than there are: the answer to the last says that all have arrived.
        for part in 0..CAPTURE_PARTS_MAX {
            let part = self.agent.capture_part(part);
            let part = part.map_err(|error| format!("it could not be fetched: {error}"))?;
            if part.is_empty() {
                break;
            }
            file.extend(part);
            if file.len() as u64 > bytes {
                break;
            }
        }
        match file.len() as u64 {
            got if got == bytes => Ok(file),
            got => Err(format!("{got} of its {bytes} bytes arrived")),
        }
    }

    /// Returns what came of the capture that was asked for.
    pub(super) fn capture_outcome(&mut self) -> CaptureOutcome {
        if let Some(outcome) = self.gathered.capture.take() {
            return outcome;
        }
        let why = if !self.agent.program().is_agent() {
            "only agents capture, and the server is none"
        } else if self.assignment.probes.capture.is_none() {
            "the captures of one run take 1 GiB together at the most, and those before took it"
        } else {
            "its agent did not hand any over"
        };
        CaptureOutcome::Missing(why.to_owned())
    }
}
