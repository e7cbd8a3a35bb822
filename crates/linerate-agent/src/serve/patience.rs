//! Connections whose other end has so long to take an answer, however slowly it takes it: the kernel ends
//! only those that take nothing at all.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A connection that breaks where the other end keeps an answer waiting.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    most: Duration,
    /// Runs from the first wait until all that was written has been taken.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: Unpin> Patient<S> {
    /// Returns `stream` with that much patience.
    pub(super) fn new(stream: S, most: Duration) -> Self {
        Self {
            stream,
            most,
            waiting: None,
        }
    }

    /// Goes on as `sent` says, unless the other end has had its time.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        sent: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            return sent;
        }
        let most = self.most;
        let sleep = || Box::pin(tokio::time::sleep(most));
        let waiting = self.waiting.get_or_insert_with(sleep);
        let over = waiting.as_mut().poll(context);
        over.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.in_time(context, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(sent, Poll::Ready(Ok(()))) {
            self.waiting = None;
        }
        self.in_time(context, sent)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    // Beside busy threads a pause may take some hundred milliseconds longer.
    const MOST: Duration = Duration::from_millis(400);

    fn run(work: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build();
        runtime.expect("a runtime").block_on(work);
    }

    #[test]
    fn who_takes_an_answer_byte_by_byte_is_given_up() {
        run(async {
            let (ours, mut theirs) = duplex(16);
            let mut ours = Patient::new(ours, MOST);
            let trickle = async {
                while theirs.read_u8().await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let answer = [0; 4096];
            let sent = async {
                let sent = ours.write_all(&answer).await;
                drop(ours);
                sent.expect_err("it takes 20 s").kind()
            };
            let (kind, ()) = tokio::join!(sent, trickle);
            assert_eq!(kind, io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn every_answer_has_its_own_time() {
        run(async {
            let (ours, mut theirs) = duplex(16);
            let mut ours = Patient::new(ours, MOST);
            let reader = async {
                let mut room = [0; 64];
                for _ in 0..8 {
                    // Each is waited for, and taken in less than its time; all of them take longer.
                    tokio::time::sleep(MOST / 4).await;
                    theirs.read_exact(&mut room).await.expect("an answer");
                }
            };
            let writer = async {
                for _ in 0..8 {
                    ours.write_all(&[0; 64]).await.expect("in time");
                    ours.flush().await.expect("in time");
                }
            };
            tokio::join!(writer, reader);
        });
    }
}
