//! Who has the machine's CPUs. A test whose numbers others would move has them alone; of those that
//! load a CPU only a few go on at once, so that each is read in time. What only waits, reads words, or
//! keeps a rate of some Mbit/s asks nobody.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Tests that load a CPU and may go on at once: as many as the smallest machine for them has CPUs.
const LOADS_MAX: u32 = 2;

/// A part of the machine, until it is dropped.
#[must_use = "it is given back when it is dropped"]
pub struct Load(u32);

/// Who has it, and who comes next: in the order of asking, so that nobody waits for ever.
struct Machine {
    loads: u32,
    tickets: u64,
    served: u64,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    loads: 0,
    tickets: 0,
    served: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Waits until no test that asks for the machine goes on, and keeps others out.
pub fn alone() -> Load {
    take(LOADS_MAX)
}

/// Waits until there is a CPU to load, beside other tests that load one.
pub fn loading() -> Load {
    take(1)
}

fn take(loads: u32) -> Load {
    let mut machine = lock();
    let ticket = machine.tickets;
    machine.tickets += 1;
    let waits =
        |machine: &mut Machine| machine.served != ticket || machine.loads + loads > LOADS_MAX;
    let mut machine = CHANGED
        .wait_while(machine, waits)
        .unwrap_or_else(PoisonError::into_inner);
    machine.served += 1;
    machine.loads += loads;
    CHANGED.notify_all();
    Load(loads)
}

fn lock() -> MutexGuard<'static, Machine> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Load {
    fn drop(&mut self) {
        lock().loads -= self.0;
        CHANGED.notify_all();
    }
}
