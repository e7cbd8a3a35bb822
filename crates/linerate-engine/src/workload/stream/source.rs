//! Where the payload of the faster ways to send comes from: one for a worker.

use std::io;

use linerate_model::manner::SendBy;

use crate::sys::pages::{HUGE_PAGE_BYTES, Pages};
use crate::sys::splice::{MemoryFile, Pipe};

/// Constant payload behind a pipe, a file, or for MSG_ZEROCOPY.
const PAYLOAD_BYTES: usize = 2 * HUGE_PAGE_BYTES;

/// What the senders of one worker take their payload from, if they do not copy it.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(super) pages: Option<Pages>,
    pub(super) pipe: Option<Pipe>,
    pub(super) file: Option<MemoryFile>,
}

impl Source {
    /// Returns what senders by `ways` need.
    pub(crate) fn new(ways: impl Iterator<Item = SendBy>) -> io::Result<Self> {
        let mut source = Self::default();
        for way in ways {
            match way {
                SendBy::Copy | SendBy::Auto => {}
                SendBy::Vmsplice => {
                    source.need_pages()?;
                    if source.pipe.is_none() {
                        source.pipe = Some(Pipe::new()?);
                    }
                }
                SendBy::MsgZerocopy => {
                    source.need_pages()?;
                }
                SendBy::Sendfile => {
                    if source.file.is_none() {
                        let content = Pages::new(PAYLOAD_BYTES)?;
                        source.file = Some(MemoryFile::new(content.as_slice())?);
                    }
                }
            }
        }
        Ok(source)
    }

    fn need_pages(&mut self) -> io::Result<()> {
        if self.pages.is_none() {
            self.pages = Some(Pages::new(PAYLOAD_BYTES)?);
        }
        Ok(())
    }
}
