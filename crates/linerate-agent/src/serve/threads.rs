//! Work of which others shall not wait: each caller's in turn, so that one's pile is its own to wait for.

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::peer::Peer;
use crate::access::Caller;
use crate::api::{Refusal, RefusalCode, refuse};
use crate::limits::Source;
use crate::session::turns::{Arrival, Rules, Turns};
use crate::sync::lock;

/// What callers may have on threads. Two of one take two CPUs at the most while another's begins; flows to
/// hosts that do not answer keep a thread for 10 s, so there are more for all.
const WORK: Rules = Rules {
    share: 2,
    most: 32,
    reserved: 16,
    waiting: 64,
};

/// Bodies of up to 4 MiB that are read at the same time: 64 MiB in all, whoever sends them and however slowly.
const BODIES: Rules = Rules {
    share: 2,
    most: 16,
    reserved: 8,
    waiting: 64,
};

/// Long answers, of up to 1.5 MB each to who may measure, from when they are made until they have been sent:
/// 96 MiB in all, however slowly they are read. Half of the places are for callers that have none.
const ANSWERS: Rules = Rules {
    share: 2,
    most: 64,
    reserved: 32,
    waiting: 64,
};

/// Threads of the runtime: those of callers' work, one for each of 48 tests of iperf3 that are launched
/// or wound up, and the runtime's own.
pub(super) const THREADS_MAX: usize = WORK.most + 64;

/// Places for which callers queue.
#[derive(Debug)]
pub(crate) struct Queue<K: Clone + Eq + Hash>(Mutex<Turns<K, oneshot::Sender<Place<K>>>>);

/// A place; the next has it once this is dropped.
#[derive(Debug)]
pub(crate) struct Place<K: Clone + Eq + Hash> {
    queue: Arc<Queue<K>>,
    of: K,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// Returns places that nobody has.
    pub(crate) fn new(rules: Rules) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Turns::new(rules))))
    }

    /// Waits for a place; none where `of` has too many waiting.
    pub(crate) async fn place(self: &Arc<Self>, of: K) -> Option<Place<K>> {
        let (give, given) = oneshot::channel();
        let arrival = lock(&self.0).handle_arrival(of.clone(), give, oneshot::Sender::is_closed);
        match arrival {
            Arrival::Begins(_) => Some(self.granted(of)),
            Arrival::Waits => given.await.ok(),
            Arrival::Refused => None,
        }
    }

    fn granted(self: &Arc<Self>, of: K) -> Place<K> {
        let queue = Arc::clone(self);
        Place { queue, of }
    }
}

impl<K: Clone + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        // Whoever has gone meanwhile hands its place on; dropped here, it would do so one call deeper.
        let mut over = self.of.clone();
        loop {
            let next = lock(&self.queue.0).handle_over(&over);
            let Some((of, give)) = next else { return };
            if !give.is_closed() {
                // Who goes at this moment drops the place that it was given.
                drop(give.send(self.queue.granted(of)));
                return;
            }
            over = of;
        }
    }
}

/// A caller: where it is, and the token that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Who {
    from: Source,
    token: Option<String>,
}

impl Who {
    /// Returns who sends a request.
    pub(super) fn of(peer: &Peer, caller: Option<&Caller>) -> Self {
        let token = caller.and_then(Caller::name).map(str::to_owned);
        let from = Source::of(peer.ip());
        Self { from, token }
    }
}

/// Threads for work of callers, and memory for what they send and what they are answered.
#[derive(Debug, Clone)]
pub(crate) struct Threads {
    work: Arc<Queue<Who>>,
    bodies: Arc<Queue<Who>>,
    answers: Arc<Queue<Who>>,
}

impl Threads {
    /// Returns threads that nobody has.
    pub(crate) fn new() -> Self {
        Self {
            work: Queue::new(WORK),
            bodies: Queue::new(BODIES),
            answers: Queue::new(ANSWERS),
        }
    }

    /// Runs `work` of a caller from `address` on a thread.
    pub(crate) async fn run_from<T: Send + 'static>(
        &self,
        address: IpAddr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let from = Source::of(address);
        self.run(Who { from, token: None }, work).await
    }

    /// Runs `work` of a caller on a thread once it is its turn. It has its place until it is done, also
    /// where nobody waits for it any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        of: Who,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = place_of(&self.work, &of, WORK).await?;
        let work = move || {
            let done = work();
            drop(place);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| {
            refuse(
                RefusalCode::Internal,
                "the agent failed; its log may say why",
            )
        })
    }
}

/// Waits for a place; refuses whoever has too many waiting.
async fn place_of(queue: &Arc<Queue<Who>>, of: &Who, rules: Rules) -> Result<Place<Who>, Refusal> {
    let place = queue.place(of.clone()).await;
    place.ok_or_else(|| {
        let from = of.from;
        let error = format!("{} requests from {from} wait here already", rules.waiting);
        refuse(RefusalCode::Busy, error)
    })
}

/// The threads, and who asks for them: what a request brings along.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) threads: Threads,
    pub(super) of: Who,
    /// Whether the caller takes compressed answers.
    pub(super) takes_gzip: bool,
}

impl Desk {
    /// Runs `work` on a thread once it is the caller's turn.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.threads.run(self.of.clone(), work).await?
    }

    /// Waits until it is the caller's turn to send a large body, which is read while the place is held.
    pub(super) async fn place_of_body(&self) -> Result<Place<Who>, Refusal> {
        place_of(&self.threads.bodies, &self.of, BODIES).await
    }

    /// Waits until the caller may have a long answer, which has its place until it was sent.
    pub(super) async fn place_of_answer(&self) -> Result<Place<Who>, Refusal> {
        place_of(&self.threads.answers, &self.of, ANSWERS).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Rules = Rules {
        share: 1,
        most: 1,
        reserved: 0,
        waiting: 2,
    };

    #[tokio::test]
    async fn whoever_goes_hands_its_place_on() {
        let queue = Queue::new(ONE);
        let first = queue.place('a').await;
        assert!(first.is_some());
        let wait = |of: char| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.place(of).await.map(drop) })
        };
        let (gone, second, third) = (wait('a'), wait('a'), wait('b'));
        tokio::task::yield_now().await;
        assert!(queue.place('a').await.is_none());
        gone.abort();
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(second.await.unwrap(), Some(()));
        assert_eq!(third.await.unwrap(), Some(()));
        assert!(queue.place('c').await.is_some());
    }
}
