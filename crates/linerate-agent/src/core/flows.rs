//! Data connections: opened by the connecting end, taken up by the accepting one.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use linerate_engine as engine;
use linerate_engine::{Calls, ConnectError, Flow, FlowConfig};
use linerate_model::manner::Transport;
use linerate_model::reason::with_causes;
use linerate_model::setting::SettingPool;
use linerate_model::workload::Part;
use linerate_model::{FlowId, hex};
use socket2::SockRef;

use super::Core;
use super::limits::limit_rate;
use super::slot::{OtherEnd, TrialSlot};
use crate::api::{Assignment, FlowAssignment, Refusal, RefusalCode, refuse};
use crate::serve::hello::{Announces, Answer, Hello};
use crate::sync::lock;

/// How long one data connection may take to open.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Connections that are being opened at the same time. With a round trip of 100 ms, 20 000 flows
/// take 8 s, of the 15 s that a trial may take to gather them; and as many fit a listener whose
/// backlog is a tenth of the usual 4096.
const OPENING_MAX: usize = 256;
/// What opening all flows may take on one thread: more threads are made only for what would take
/// longer, since a thread costs as much as opening a flow on a near host, 30 µs.
const ALONE: Duration = Duration::from_millis(20);
/// How often is asked who listens: of two servers behind one address, whichever gets each connection by chance,
/// the other answers at least once in 15 of 16 cases, and in all where they take turns.
const QUESTIONS: u32 = 4;
/// Stack of a thread that opens flows: system calls, options and an error's text.
const STACK_BYTES: usize = 256 << 10;

impl Core {
    /// Takes up a socket that said whose flow it is, and what carries it; says why where nobody waits for it.
    pub(crate) fn deliver(
        &self,
        hello: Hello,
        socket: OwnedFd,
        transport: Transport,
    ) -> Result<(), String> {
        let slot = self.slot_of(&hello);
        let slot = slot.ok_or("no trial waits for this connection")?;
        take_up(&slot, hello, socket, transport)
    }

    /// Gives a connection to the place that it is for. One that nobody waits for is reset: its end could be
    /// taken for that of a response.
    pub(crate) fn hand_in(&self, hello: &Hello, stream: TcpStream) {
        let slot = self.slot_of(hello).filter(|slot| !slot.is_over());
        let calls = slot.and_then(|slot| slot.calls.clone());
        match calls.filter(|_| stream.set_nonblocking(true).is_ok()) {
            Some(calls) => calls.hand_in(stream.into(), hello.encode()),
            None => {
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

/// Takes up the socket of a flow that its trial waits for.
pub(super) fn take_up(
    slot: &TrialSlot,
    hello: Hello,
    socket: OwnedFd,
    transport: Transport,
) -> Result<(), String> {
    // What speaks MPTCP, or falls back from it, comes to the same listener as TCP.
    let kind = |transport| match transport {
        Transport::Mptcp => Transport::Tcp,
        other => other,
    };
    let mut gathered = lock(&slot.gathered);
    let expected = gathered.expected.get(&hello.flow);
    let (group, part) = *expected.ok_or("the trial has no such flow, or has it already")?;
    if kind(slot.groups[group].manner.transport) != kind(transport) {
        return Err("the trial wants another transport".to_owned());
    }
    gathered.expected.remove(&hello.flow);
    drop(gathered);
    let adopted = adopt(&slot.groups[group], hello.flow, part, socket);
    let mut gathered = lock(&slot.gathered);
    let mut flow = match adopted {
        Ok(flow) => flow,
        Err(why) => {
            // A second try to connect this flow may succeed.
            gathered.expected.insert(hello.flow, (group, part));
            return Err(why);
        }
    };
    if !gathered.session.state().is_gathering() {
        return Err("the trial is over".to_owned());
    }
    if transport == Transport::Udp {
        // Lost or not: a client that does not hear it asks again.
        let _ = flow.confirm(&hello.encode());
    }
    flow.share_settings(&mut gathered.pool);
    gathered.flows.push(flow);
    gathered.session.handle_flow();
    slot.changed.tell();
    Ok(())
}

fn adopt(
    assignment: &Assignment,
    flow: FlowId,
    part: Part,
    socket: OwnedFd,
) -> Result<Flow, String> {
    let mut flow = engine::adopt(flow_config(assignment, flow, part), socket)
        .map_err(|error| with_causes(&error))?;
    limit_rate(&mut flow, assignment).map_err(|refusal| refusal.error)?;
    Ok(flow)
}

/// Returns the flows that an accepting end waits for, by their number, with the place of their group and their part.
/// Connections come and go while a group with places runs: nobody has to come first.
pub(super) fn expected(groups: &[Assignment]) -> HashMap<FlowId, (usize, Part)> {
    let waiting = groups.iter().enumerate();
    let waiting = waiting.filter(|(_, group)| !group.traffic.is_placed());
    let plans = waiting.flat_map(|(at, group)| group.flows.iter().map(move |plan| (at, plan)));
    plans
        .map(|(at, plan)| (plan.flow, (at, plan.part)))
        .collect()
}

/// Deals the flows of a trial to its groups.
pub(super) fn by_group(flows: Vec<Flow>, groups: &[Assignment]) -> Vec<Vec<Flow>> {
    if groups.len() <= 1 {
        return vec![flows];
    }
    let plans = groups.iter().enumerate();
    let plans = plans.flat_map(|(at, group)| group.flows.iter().map(move |plan| (plan.flow, at)));
    let places: HashMap<FlowId, usize> = plans.collect();
    let mut dealt: Vec<Vec<Flow>> = groups.iter().map(|_| Vec::new()).collect();
    for flow in flows {
        if let Some(at) = places.get(&flow.config().flow) {
            dealt[*at].push(flow);
        }
    }
    dealt
}

pub(super) fn flow_config(assignment: &Assignment, flow: FlowId, part: Part) -> FlowConfig {
    let mut manner = assignment.manner.clone();
    // Only TCP paces itself without a queueing discipline that does (fq): everything else is paced
    // by its sender.
    let streams = assignment.traffic.is_stream();
    let paced = streams && manner.transport != Transport::Tcp && part == Part::Sender;
    if let Some(most) = assignment.flow_rate_max.filter(|_| paced) {
        let most = most.0.max(8.0) as u64;
        manner.rate_bps = Some(manner.rate_bps.map_or(most, |rate| rate.min(most)));
    }
    FlowConfig {
        flow,
        end: assignment.end,
        part,
        traffic: assignment.traffic.clone(),
        options: assignment.options.clone(),
        manner,
    }
}

/// Returns whether a limit counts what the flows send: where they answer, since what a responder receives
/// and sends is held together. The kernel or their sender holds what streams send.
pub(super) fn counts_sent(assignment: &Assignment) -> bool {
    !assignment.traffic.is_stream()
}

/// Opens every flow of the connecting end, many at a time where the peer is far; returns them in
/// the order of the assignment. The first failure ends it and closes what was opened.
pub(super) fn connect_all(
    assignment: &Assignment,
    other_end: &OtherEnd,
    cookie: [u8; 16],
) -> Result<Vec<Flow>, Refusal> {
    let opener = Opener::of(assignment, cookie)?;
    if let (true, OtherEnd::Agent, Peer::Ip(peer)) =
        (assignment.traffic.is_placed(), other_end, &opener.peer)
    {
        // Here it shows whether there is a way to it at all, before the time that is measured.
        opener.ask(*peer).map_err(|error| unopened(&error))??;
    }
    match other_end {
        OtherEnd::Agent => at_once(&assignment.flows, |plan| opener.open(plan)),
        // A foreign server numbers its flows as they come.
        OtherEnd::Foreign { greeting } => opener.open_in_turn(greeting),
        OtherEnd::Addressed(addresses) => opener.open_each_at(addresses),
    }
}

/// Makes the accepting end of every place, whose connections come in at `calls`.
pub(super) fn await_all(
    assignment: &Assignment,
    cookie: [u8; 16],
    calls: &Arc<Calls>,
) -> Result<Vec<Flow>, Refusal> {
    let wait_for = |plan: &FlowAssignment| {
        let config = flow_config(assignment, plan.flow, plan.part);
        let hello = hello_of(assignment, cookie, plan.flow);
        let flow = engine::await_calls(config, hello.encode(), calls);
        let mut flow = flow.map_err(|error| unopened(&error))?;
        limit_rate(&mut flow, assignment)?;
        Ok(flow)
    };
    assignment.flows.iter().map(wait_for).collect()
}

/// Returns what a flow says first, or each of its connections.
fn hello_of(assignment: &Assignment, cookie: [u8; 16], flow: FlowId) -> Hello {
    Hello {
        cookie,
        flow,
        announces: if assignment.traffic.is_placed() {
            Announces::Connection
        } else {
            Announces::Flow
        },
    }
}

/// Returns what every connection of a trial says first, but for the number of its flow.
pub(super) fn words_of_connections(cookie: [u8; 16], flow: FlowId) -> Vec<Option<u8>> {
    let hello = |flow, announces| Hello {
        cookie,
        flow,
        announces,
    };
    let one = hello(flow, Announces::Connection).encode();
    let other = hello(FlowId(!flow.0), Announces::Connection).encode();
    let same = one.iter().zip(other);
    same.map(|(byte, other)| (*byte == other).then_some(*byte))
        .collect()
}

/// What is the same for every flow that is opened.
struct Opener<'a> {
    assignment: &'a Assignment,
    cookie: [u8; 16],
    peer: Peer,
    bind: Option<SocketAddr>,
    /// Settings of the flows so far; taken once a flow, which takes a hundred times as long to open.
    pool: Mutex<SettingPool>,
}

/// Where flows connect to.
enum Peer {
    Ip(SocketAddr),
    /// A name of the abstract namespace.
    Unix(String),
}

impl Peer {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("unix:@") {
            Some(name) => Some(Peer::Unix(name.to_owned())),
            None => text.parse().ok().map(Peer::Ip),
        }
    }
}

/// Reads `ADDRESS`, or `[ADDRESS%NUMBER]:0` with the number of a device.
fn bind_address(text: &str) -> Result<SocketAddr, std::net::AddrParseError> {
    let plain = text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 0));
    plain.or_else(|_| text.parse())
}

impl<'a> Opener<'a> {
    fn of(assignment: &'a Assignment, cookie: [u8; 16]) -> Result<Self, Refusal> {
        let bad = |what: &str| refuse(RefusalCode::BadRequest, what);
        let peer = assignment.peer.as_deref();
        let peer = peer.ok_or_else(|| bad("the connecting end needs a peer"))?;
        let bind = assignment.bind.as_deref().map(bind_address).transpose();
        let bind = bind.map_err(|_| bad("the bind address is not an address"))?;
        Ok(Self {
            assignment,
            cookie,
            peer: match (Peer::parse(peer), assignment.manner.transport) {
                (Some(peer @ Peer::Unix(_)), Transport::Unix) => peer,
                (Some(peer @ Peer::Ip(_)), transport) if transport != Transport::Unix => peer,
                (Some(Peer::Ip(_)), _) => {
                    return Err(bad("flows over Unix sockets need a peer `unix:@NAME`"));
                }
                _ => return Err(bad("the peer is not ADDRESS:PORT")),
            },
            bind,
            pool: Mutex::default(),
        })
    }

    /// Asks some times who listens at `peer`; the inner refusal is of another agent than that of the trial, which
    /// may have taken a flow or would take some of its connections.
    fn ask(&self, peer: SocketAddr) -> Result<Result<(), Refusal>, ConnectError> {
        let question = Hello {
            cookie: self.cookie,
            flow: FlowId(0),
            announces: Announces::Question,
        };
        for _ in 0..QUESTIONS {
            let answer = engine::ask(peer, self.bind, &question.encode(), CONNECT_DEADLINE)?;
            let known = Answer::decode(&answer);
            let Some(answer) = known else {
                let error = format!("{peer} answers, but not as linerate does");
                return Ok(Err(refuse(RefusalCode::Flows, error)));
            };
            if let Some(refusal) = unexpected(self.assignment, &answer, peer) {
                return Ok(Err(refusal));
            }
        }
        Ok(Ok(()))
    }

    /// Returns the refusal of a trial of which a flow could not be opened. A datagram that was not answered may
    /// have gone to another server.
    fn unopened(&self, error: &ConnectError) -> Refusal {
        let another = match error {
            ConnectError::Unanswered { peer, .. } => self.ask(*peer).ok().and_then(Result::err),
            _ => None,
        };
        another.unwrap_or_else(|| unopened(error))
    }

    fn open(&self, plan: &FlowAssignment) -> Result<Flow, Refusal> {
        let config = flow_config(self.assignment, plan.flow, plan.part);
        let hello = hello_of(self.assignment, self.cookie, plan.flow);
        self.connect(config, &hello.encode())
    }

    /// Opens all flows, one after another, each with `greeting`; over TCP the last says it at the
    /// start only, since that is when the server starts its clock.
    fn open_in_turn(&self, greeting: &[u8]) -> Result<Vec<Flow>, Refusal> {
        let plans = &self.assignment.flows;
        let mut flows = Vec::with_capacity(plans.len());
        for plan in plans {
            let config = flow_config(self.assignment, plan.flow, plan.part);
            let is_last = flows.len() + 1 == plans.len();
            flows.push(match self.assignment.manner.transport {
                // A hello by datagram is answered, and so must be said before.
                Transport::Udp => {
                    let mut flow = self.connect(config, greeting)?;
                    flow.keep_to_payload();
                    flow
                }
                _ if is_last => {
                    let mut last = self.connect(config, &[])?;
                    last.greet_at_start(greeting.to_vec());
                    last
                }
                _ => self.connect(config, greeting)?,
            });
        }
        Ok(flows)
    }

    /// Opens each flow at its address, without a word.
    fn open_each_at(&self, addresses: &[SocketAddr]) -> Result<Vec<Flow>, Refusal> {
        let plans = self.assignment.flows.iter().zip(addresses);
        at_once(&plans.collect::<Vec<_>>(), |(plan, address)| {
            let config = flow_config(self.assignment, plan.flow, plan.part);
            let mut flow = self.connect_to(&Peer::Ip(**address), config, &[])?;
            if self.assignment.manner.transport == Transport::Udp {
                flow.end_with_empty_datagrams();
            }
            Ok(flow)
        })
    }

    fn connect(&self, config: FlowConfig, hello: &[u8]) -> Result<Flow, Refusal> {
        self.connect_to(&self.peer, config, hello)
    }

    fn connect_to(&self, peer: &Peer, config: FlowConfig, hello: &[u8]) -> Result<Flow, Refusal> {
        let flow = match peer {
            Peer::Ip(peer) => engine::connect(config, *peer, self.bind, hello, CONNECT_DEADLINE),
            Peer::Unix(name) => engine::connect_unix(config, name, hello, CONNECT_DEADLINE),
        };
        let mut flow = flow.map_err(|error| self.unopened(&error))?;
        flow.share_settings(&mut lock(&self.pool));
        limit_rate(&mut flow, self.assignment)?;
        Ok(flow)
    }
}

/// Returns what an answer says of the flows of a trial, unless it is of the server that prepared them.
fn unexpected(assignment: &Assignment, answer: &Answer, peer: SocketAddr) -> Option<Refusal> {
    let prepared = assignment.server.as_deref().and_then(hex::decode)?;
    if answer.instance != prepared {
        let error = format!(
            "another server than the one that prepared the trial answers at {peer}: there is more than one \
             behind this address; name one of them, by an address that only it has"
        );
        return Some(refuse(RefusalCode::Flows, error));
    }
    let error = format!("{peer} does not expect the flows any more: it has ended the trial");
    (!answer.knows).then(|| refuse(RefusalCode::Flows, error))
}

/// Returns why a flow that was opened will not be taken up, where the other end has said so.
pub(super) fn refused(assignment: &Assignment, flows: &[Flow]) -> Option<Refusal> {
    flows.iter().find_map(|flow| {
        let answer = Answer::decode(&flow.first_bytes()?)?;
        unexpected(assignment, &answer, flow.remote().ip()?)
    })
}

/// Returns the refusal of a trial of which a flow could not be opened.
fn unopened(error: &ConnectError) -> Refusal {
    let code = if error.is_lasting() {
        RefusalCode::BadRequest
    } else {
        RefusalCode::Flows
    };
    refuse(code, with_causes(error))
}

/// Returns what `work` makes of each item, in their order, or the failure of the first that fails.
///
/// The first item is done alone and tells how long one takes: see [`ALONE`].
fn at_once<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, Refusal> + Sync,
) -> Result<Vec<R>, Refusal> {
    let Some((first, rest)) = items.split_first() else {
        return Ok(Vec::new());
    };
    let began = Instant::now();
    let mut all = Vec::with_capacity(items.len());
    all.push(work(first)?);
    let pool = Pool {
        items: rest,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
    };
    let mut done = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads(began.elapsed(), rest.len()))
            .map_while(|_| {
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                let (pool, work) = (&pool, &work);
                // Where no more threads can be made, those that exist do the rest.
                thread.spawn_scoped(scope, move || pool.share(work)).ok()
            })
            .collect();
        let mut done = pool.share(&work);
        for helper in helpers {
            // A panic of one of our own threads is ours to pass on.
            let more = helper.join();
            done.extend(more.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    for (_, result) in done {
        all.push(result?);
    }
    Ok(all)
}

/// Returns how many threads `items` are worth when each takes as long as the first took.
fn threads(first_took: Duration, items: usize) -> usize {
    let alone = first_took.as_nanos() * items as u128;
    let wanted = alone.div_ceil(ALONE.as_nanos()).min(OPENING_MAX as u128);
    (wanted as usize).min(items)
}

/// Items that several threads take from, one after another, until all are taken or one has failed.
struct Pool<'a, T> {
    items: &'a [T],
    next: AtomicUsize,
    failed: AtomicBool,
}

impl<T> Pool<'_, T> {
    /// Does one thread's share; returns what came of it with the items' places.
    fn share<R>(
        &self,
        work: impl Fn(&T) -> Result<R, Refusal>,
    ) -> Vec<(usize, Result<R, Refusal>)> {
        let mut done = Vec::new();
        while !self.failed.load(Ordering::Relaxed) {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(at) else {
                break;
            };
            let result = work(item);
            if result.is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            done.push((at, result));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    #[test]
    fn settings_that_this_host_cannot_have_are_told_from_a_path_that_lost_a_connection() {
        let (peer, source) = (([192, 0, 2, 1], 1).into(), std::io::ErrorKind::NotFound);
        let lost = ConnectError::TimedOut {
            peer,
            deadline: CONNECT_DEADLINE,
        };
        assert_eq!(unopened(&lost).code, RefusalCode::Flows);
        let unknown = ConnectError::Congestion {
            algorithm: "none".to_owned(),
            source: source.into(),
        };
        assert_eq!(unopened(&unknown).code, RefusalCode::BadRequest);
    }

    #[test]
    fn far_peers_are_worth_threads_and_near_ones_are_not() {
        let check = |took_us, items, expect| {
            let got = threads(Duration::from_micros(took_us), items);
            assert_eq!(got, expect, "{took_us} µs, {items} items");
        };
        check(30, 0, 0);
        check(30, 600, 1);
        check(30, 10_000, 15);
        check(50_000, 1, 1);
        check(50_000, 9, 9);
        check(50_000, 20_000, OPENING_MAX);
    }

    #[test]
    fn as_many_as_may_are_under_way_at_once_and_the_order_stays() {
        // Each waits for all others: done one after another, this would never end.
        let (under_way, all_there) = (Mutex::new(0), Condvar::new());
        let items: Vec<usize> = (0..40).collect();
        let work = |item: &usize| {
            if *item == 0 {
                // Far enough that every other is worth a thread.
                std::thread::sleep(2 * ALONE);
                return Ok(0);
            }
            let mut count = lock(&under_way);
            *count += 1;
            all_there.notify_all();
            let wait = Duration::from_secs(30);
            let waited = all_there.wait_timeout_while(count, wait, |count| *count < 39);
            assert!(!waited.unwrap().1.timed_out());
            Ok(*item)
        };
        assert_eq!(at_once(&items, work).unwrap(), items);
    }

    #[test]
    fn the_first_failure_ends_it_and_drops_what_was_made() {
        struct Made<'a>(&'a AtomicUsize);
        impl Drop for Made<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let (alive, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..10_000).collect();
        let work = |item: &usize| {
            tried.fetch_add(1, Ordering::Relaxed);
            if *item == 0 {
                std::thread::sleep(ALONE / 1000);
            }
            if *item == 100 {
                return Err(refuse(RefusalCode::Flows, "number 100"));
            }
            alive.fetch_add(1, Ordering::Relaxed);
            Ok(Made(&alive))
        };
        let refusal = at_once(&items, work).map(|made| made.len()).unwrap_err();
        assert_eq!(refusal.error, "number 100");
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        assert!(tried.load(Ordering::Relaxed) < items.len());
    }
}
