//! `linerate watch` on a terminal: pages of tables, renewed with each reading.
//!
//! One thread reads the host, so that a slow agent never holds up a key; this one takes keys and
//! draws, and only when something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use linerate_agent::api::Observation;
use linerate_analyze::watch::Watched;
use linerate_analyze::watch::pages::pages;
use linerate_model::Nanos;
use linerate_model::host::Snapshot;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::exit::CmdResult;
use crate::watching::{Watching, take};

/// From state to cells of the terminal.
mod draw;
/// What is shown, and what keys do to it.
mod state;

use state::{Action, State};

/// How long a key is waited for before readings are looked for.
const KEY_WAIT: Duration = Duration::from_millis(40);
/// How old the facts of the host may be: reading them takes milliseconds.
const FACTS_AGE: Duration = Duration::from_secs(10);

/// What was read of the host: what its observers count, and now and then what it is.
type Reading = (Observation, Option<Snapshot>);

/// Draws until the user, a signal or the `count` of readings ends it, beginning with the page of that name.
/// The terminal is as it was afterwards, even after a panic.
pub fn live(
    host: Watching,
    page: &str,
    count: Option<u64>,
    (first, facts): (Observation, Snapshot),
    stop: &AtomicBool,
) -> CmdResult<()> {
    let mut watched = Watched::default();
    let mut state = State::new(&first.host_name, host.interval, page);
    take(&mut watched, first);
    let interval_ns = Arc::new(AtomicU64::new(host.interval.0));
    let (tell, readings) = mpsc::channel();
    let every = Arc::clone(&interval_ns);
    thread::spawn(move || read(&host, &every, &tell));
    let left = count.unwrap_or(u64::MAX);
    let mut seen = Seen {
        watched,
        facts,
        left,
    };
    seen.show(&mut state);
    let mut terminal = ratatui::init();
    let result = follow(
        &mut terminal,
        &mut state,
        &mut seen,
        &readings,
        &interval_ns,
        stop,
    );
    ratatui::restore();
    Ok(result?)
}

/// What was seen of the host, and what the host is.
struct Seen {
    watched: Watched,
    facts: Snapshot,
    /// Readings until the end.
    left: u64,
}

impl Seen {
    /// Makes the pages anew.
    fn show(&mut self, state: &mut State) {
        let pages = pages(&self.watched, &self.facts, state.span);
        state.renew(pages, self.watched.seconds());
    }
}

/// Reads the host until nobody listens any more.
fn read(host: &Watching, interval_ns: &AtomicU64, tell: &Sender<Result<Reading, String>>) {
    let mut due = Instant::now();
    let mut facts_due = due + FACTS_AGE;
    loop {
        let interval = Duration::from_nanos(interval_ns.load(Ordering::Relaxed));
        due = (due + interval).max(Instant::now());
        // In steps, so that a shorter interval takes hold at once.
        while Instant::now() < due {
            let now_wanted = Duration::from_nanos(interval_ns.load(Ordering::Relaxed));
            due = due.min(Instant::now() + now_wanted);
            thread::sleep(KEY_WAIT.min(due.saturating_duration_since(Instant::now())));
        }
        let facts = (Instant::now() >= facts_due).then(|| host.facts().ok());
        if facts.is_some() {
            facts_due = Instant::now() + FACTS_AGE;
        }
        let reading = host.observe().map(|reading| (reading, facts.flatten()));
        let reading = reading.map_err(|error| error.to_string());
        if tell.send(reading).is_err() {
            return;
        }
    }
}

fn follow(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    seen: &mut Seen,
    readings: &Receiver<Result<Reading, String>>,
    interval_ns: &AtomicU64,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let mut is_changed = true;
    while !stop.load(Ordering::Relaxed) && seen.left > 0 {
        if is_changed {
            terminal.draw(|frame| draw::draw(frame, state))?;
            is_changed = false;
        }
        if event::poll(KEY_WAIT)? {
            is_changed = true;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
            {
                match state.handle_key(key) {
                    Action::Quit => return Ok(()),
                    // What stands there was made for another span.
                    Action::Renew => seen.show(state),
                    Action::Nothing => {}
                }
                let Nanos(wanted_ns) = state.interval;
                interval_ns.store(wanted_ns, Ordering::Relaxed);
            }
        }
        for reading in readings.try_iter() {
            is_changed = true;
            seen.left = seen.left.saturating_sub(1);
            match reading {
                Ok((reading, facts)) => {
                    take(&mut seen.watched, reading);
                    if let Some(facts) = facts {
                        seen.facts = facts;
                    }
                    state.trouble = None;
                    if !state.is_paused {
                        seen.show(state);
                    }
                }
                Err(why) => state.trouble = Some(why),
            }
        }
    }
    Ok(())
}
