//! The workload that means the same as what a group of strands does.

use linerate_model::manner::{BURST_MAX, SIZES_MAX, Sizes};
use linerate_model::number::counted;
use linerate_model::reason::with_causes;
use linerate_model::step::Step;
use linerate_model::workload::{Direction, Kind, Traffic, TrialHost, Workload};
use linerate_model::{Bytes, Nanos};

use super::exchange::{Does, Message, Pass, Piece, Requests, Way, from_first, requests};
use super::options::{Act, Amount, RANDOM};
use super::shape::{Life, Shape};
use super::steps::steps;
use crate::file::error::ReadError;
use crate::file::source::Source;

/// What is measured in another way than uperf does it.
#[derive(Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    /// Adds a note, unless it is there.
    pub(super) fn add(&mut self, note: String) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Returns them as one text.
    pub(super) fn text(&self) -> String {
        self.0.join(" ")
    }
}

/// Who takes the part of uperf's master.
///
/// All flows of a run go between its clients and its one server. With one `remotehost` the client is the master, as
/// whoever executes uperf is. With several all traffic is the master's, so the server is.
pub(super) struct Roles {
    /// Those that play slaves, in the order of the profile.
    hosts: Vec<String>,
}

impl Roles {
    /// Returns the roles of the hosts that `shapes` name.
    pub(super) fn of(shapes: &[Shape<'_>], notes: &mut Notes) -> Self {
        let mut hosts: Vec<String> = Vec::new();
        for host in shapes
            .iter()
            .filter_map(|shape| shape.open.options.remote_host.clone())
        {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        if hosts.len() > 1 {
            notes.add(format!(
                "The server takes the part of uperf's master, and clients 1 to {} those of {}.",
                hosts.len(),
                hosts.join(", ")
            ));
        }
        Self { hosts }
    }

    /// Returns which way it is, as the master sees it, when a client sends.
    fn client_sends(&self) -> Way {
        match self.hosts.len() {
            0 | 1 => Way::Out,
            _ => Way::In,
        }
    }

    /// Returns the flowop of the master where a client connects.
    fn client_connects(&self) -> Act {
        match self.client_sends() {
            Way::Out => Act::Connect,
            Way::In => Act::Accept,
        }
    }

    /// Returns the client that plays `host`, where not all flows are of one.
    fn clients_of(&self, host: Option<&String>) -> Vec<TrialHost> {
        let at = self.hosts.iter().position(|one| Some(one) == host);
        match at {
            Some(at) if self.hosts.len() > 1 => vec![TrialHost(at as u32 + 1)],
            _ => Vec::new(),
        }
    }
}

/// Returns the workload of `shape`.
pub(super) fn workload(
    source: &Source<'_>,
    shape: &Shape<'_>,
    roles: &Roles,
    notes: &mut Notes,
) -> Result<Workload, ReadError> {
    let mut workload = match (shape.life, &shape.pass) {
        (Life::Strand, Pass::OneWay(message)) => stream(source, message, roles)?,
        (Life::Strand, Pass::Exchange(pieces)) => exchange(source, pieces, roles, notes)?,
        (Life::Pass, Pass::Nothing) => connections((0, 0)),
        (Life::Pass, Pass::Exchange(pieces)) => {
            connections_with(source, shape, pieces, roles, notes)?
        }
        (Life::Pass, Pass::OneWay(_)) | (Life::Strand, Pass::Nothing) => {
            return Err(carries_more(source, shape));
        }
    };
    check_opening(source, shape, roles, notes)?;
    workload.connections = shape.strands;
    workload.from = roles.clients_of(shape.open.options.remote_host.as_ref());
    options(shape, &mut workload, notes);
    rate(source, shape, roles, &mut workload, notes)?;
    workload.check().map_err(|error| {
        let spot = source.at("transaction", shape.transaction.at.clone());
        spot.wrong(&with_causes(&error))
    })?;
    Ok(workload)
}

/// Refuses connections that the other end would make, where it counts who makes them, and notes it where not.
fn check_opening(
    source: &Source<'_>,
    shape: &Shape<'_>,
    roles: &Roles,
    notes: &mut Notes,
) -> Result<(), ReadError> {
    if shape.open.act == roles.client_connects() {
        return Ok(());
    }
    match shape.life {
        Life::Strand => {
            notes.add(
                "Clients open the connections, where uperf has the other end do it.".to_owned(),
            );
            Ok(())
        }
        Life::Pass => {
            let message = "the rate of connections that the server opens: clients open them";
            Err(source.at("flowop", shape.open.at.clone()).wrong(message))
        }
    }
}

/// Payload one way.
fn stream(source: &Source<'_>, message: &Message, roles: &Roles) -> Result<Workload, ReadError> {
    let direction = if message.way == roles.client_sends() {
        Direction::ToServer
    } else {
        Direction::FromServer
    };
    let mut workload = Workload::stream(direction);
    match (message.size(), workload.traffic.stream_mut()) {
        (Some(Amount::Bytes(bytes)), Some((_, message_bytes))) => *message_bytes = Bytes(bytes),
        (Some(Amount::Random(low, high)), _) => workload.manner.sizes = Some(uniform(low, high)),
        _ => workload.manner.sizes = Some(list(source, message)?),
    }
    Ok(workload)
}

fn uniform(low: u64, high: u64) -> Sizes {
    let (low, high) = (Bytes(low), Bytes(high));
    Sizes::Uniform { low, high }
}

/// Returns the sizes of the calls of `message`, one after another.
fn list(source: &Source<'_>, message: &Message) -> Result<Sizes, ReadError> {
    let spot = source.at("flowop", message.at.clone());
    if message.count() > SIZES_MAX as u64 {
        let found = format!("{} of several sizes", counted(message.count(), "call"));
        return Err(spot.value(found, format!("at most {SIZES_MAX}")));
    }
    let mut bytes = Vec::new();
    for calls in &message.calls {
        let Amount::Bytes(size) = calls.size else {
            return Err(spot.wrong("random sizes next to others"));
        };
        bytes.extend(std::iter::repeat_n(Bytes(size), calls.count as usize));
    }
    Ok(Sizes::List {
        bytes: bytes.into(),
    })
}

/// Requests and responses over one connection, or an exchange of several steps.
fn exchange(
    source: &Source<'_>,
    pieces: &[Piece],
    roles: &Roles,
    notes: &mut Notes,
) -> Result<Workload, ReadError> {
    let mut workload = Workload::of(Kind::Rr);
    let own = roles.client_sends();
    if pieces.iter().find_map(Piece::way) != Some(own) {
        notes.add("Clients send first, where uperf has the other end do it.".to_owned());
    }
    let pieces = from_first(pieces, own);
    let Some(found) = requests(&pieces) else {
        let steps = steps(source, &pieces, own)?;
        note_steps(&steps, notes);
        workload.set_steps(steps);
        return Ok(workload);
    };
    let Requests {
        request,
        response,
        times,
    } = &found;
    if *times > 1 {
        notes.add(format!("A transaction of uperf is {times} exchanges here."));
    }
    match (request.size(), response.size()) {
        (Some(one @ Amount::Random(low, high)), Some(other))
            if one == other && request.count() == 1 =>
        {
            workload.manner.sizes = Some(uniform(low, high));
            notes.add(
                "A response is as long as its request, where uperf draws each size for itself."
                    .to_owned(),
            );
        }
        _ => {
            workload.traffic = Traffic::Rr {
                request_bytes: Bytes(known_bytes(source, request)?),
                response_bytes: Bytes(known_bytes(source, response)?),
                request_writes: request.count() as u32,
            };
        }
    }
    pauses(&found, &mut workload, notes);
    Ok(workload)
}

fn known_bytes(source: &Source<'_>, message: &Message) -> Result<u64, ReadError> {
    let spot = source.at("flowop", message.at.clone());
    message.bytes().ok_or_else(|| spot.wrong(RANDOM))
}

/// Notes how steps are counted, and what a busy pause is.
fn note_steps(steps: &[Step], notes: &mut Notes) {
    let moves = steps.iter().filter(|step| step.message().is_some()).count();
    notes.add(format!(
        "A transaction is a pass of {moves} reads and writes, each of which uperf counts as an operation."
    ));
    if steps
        .iter()
        .any(|step| matches!(step, Step::Pause { busy: true, .. }))
    {
        notes.add(
            "A busy pause keeps the CPU of a worker, whatever connections it has, where uperf has a thread for each."
                .to_owned(),
        );
    }
}

/// Connections one after another with an exchange of these sizes.
fn connections((request, response): (u64, u64)) -> Workload {
    Workload {
        traffic: Traffic::Crr {
            request_bytes: Bytes(request),
            response_bytes: Bytes(response),
        },
        ..Workload::of(Kind::Crr)
    }
}

fn connections_with(
    source: &Source<'_>,
    shape: &Shape<'_>,
    pieces: &[Piece],
    roles: &Roles,
    notes: &mut Notes,
) -> Result<Workload, ReadError> {
    let own = roles.client_sends();
    if let Some(first) = pieces.iter().find(|piece| piece.way().is_some())
        && first.way() != Some(own)
    {
        let message = "a connection on which the server sends first";
        return Err(source.at("flowop", first.at.clone()).wrong(message));
    }
    let busy = |piece: &&Piece| matches!(piece.does, Does::Pause { busy: true, .. });
    if let Some(busy) = pieces.iter().find(busy) {
        let message = "busy is not possible on a connection of each pass";
        return Err(source.at("think", busy.at.clone()).wrong(message));
    }
    let found = requests(&from_first(pieces, own));
    let is_one = |found: &Requests| found.times == 1 && found.request.count() == 1;
    let found = found
        .filter(is_one)
        .ok_or_else(|| carries_more(source, shape))?;
    let sizes = (
        known_bytes(source, &found.request)?,
        known_bytes(source, &found.response)?,
    );
    let mut workload = connections(sizes);
    pauses(&found, &mut workload, notes);
    Ok(workload)
}

fn carries_more(source: &Source<'_>, shape: &Shape<'_>) -> ReadError {
    let message = "connections that carry anything but one request and its response";
    let spot = source.at("transaction", shape.transaction.at.clone());
    spot.wrong(message)
}

/// Sets the pauses of an exchange, which both ends of uperf make at the same time, as one after the response.
fn pauses(found: &Requests, workload: &mut Workload, notes: &mut Notes) {
    let pause_ns = found.request.pause.0.saturating_add(found.response.pause.0);
    if pause_ns == 0 {
        return;
    }
    workload.manner.think = Some(Nanos(pause_ns));
    notes.add(
        "The pauses of an exchange come after its response, so that latency is without them; both ends of uperf make \
         each pause at the same time."
            .to_owned(),
    );
}

/// Sets what `connect` asks of the sockets.
fn options(shape: &Shape<'_>, workload: &mut Workload, notes: &mut Notes) {
    let open = &shape.open.options;
    workload.manner.transport = open.transport;
    workload.options.socket_buffer = open.window_bytes.map(Bytes);
    // On unless the profile turns it off, also at a rate.
    let is_on = open.transport.is_tcp() && shape.transaction.rate.is_some();
    workload.options.nagle = if open.has_nodelay {
        Some(false)
    } else {
        is_on.then_some(true)
    };
    workload.options.congestion = open.congestion.clone();
    let flowops = shape.transaction.flowops.iter().chain([shape.open]);
    for (name, why) in flowops.flat_map(|flowop| &flowop.options.passed_over) {
        if *name != "idle" {
            notes.add(format!("Option {name} is passed over: {why}."));
        }
    }
}

/// Sets the rate of a transaction.
fn rate(
    source: &Source<'_>,
    shape: &Shape<'_>,
    roles: &Roles,
    workload: &mut Workload,
    notes: &mut Notes,
) -> Result<(), ReadError> {
    let Some(rate) = shape.transaction.rate else {
        return Ok(());
    };
    let spot = source.at("transaction.rate", shape.transaction.at.clone());
    match &shape.pass {
        Pass::OneWay(message) => {
            let bytes = message
                .bytes()
                .ok_or_else(|| spot.wrong("a rate of random sizes"))?;
            workload.manner.rate_bps = Some(rate.saturating_mul(8).saturating_mul(bytes));
            let burst = message.count().clamp(1, BURST_MAX.into());
            workload.manner.burst = burst as u32;
        }
        Pass::Exchange(pieces) => {
            let found = requests(&from_first(pieces, roles.client_sends()));
            let times = found.map_or(1, |found| found.times);
            workload.manner.requests_per_s =
                Some(rate.saturating_mul(times).min(u32::MAX.into()) as u32);
        }
        Pass::Nothing => workload.manner.requests_per_s = Some(rate.min(u32::MAX.into()) as u32),
    }
    notes.add("A rate is kept evenly, where uperf works it off twice per second.".to_owned());
    Ok(())
}
