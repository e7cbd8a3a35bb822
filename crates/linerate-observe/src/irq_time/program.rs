//! What runs in the kernel at the entry and exit of interrupts, as instructions.
//!
//! The value of each CPU is a list of slots of two words: when the interrupt that goes on began, and
//! the time of all that ended. One slot for each vector, one for hardirqs.
//!
//! 1. A hard interrupt may come while a soft one goes on. So the clock of softirqs is the
//!    time less all time in hard ones: it stands still while they are handled.
//! 2. Nothing else nests: a CPU handles one soft interrupt at a time, and handlers of hard ones run
//!    with interrupts off.
//! 3. An exit whose entry was not seen, at the very beginning, finds 0 and counts nothing.

use std::ffi::CStr;

use crate::sys::bpf::{
    Helper, Instruction, PerCpu, R0, R1, R2, R6, R7, R10, add, add_value, call, copy, exit, load,
    set, shift_left, skip_if_equal, skip_if_more, store, store_value, store_value_32, subtract,
};

/// Vectors of softirqs, then one slot for hard ones.
pub(super) const SLOTS: usize = 11;
/// Bytes of a slot: two words.
const SLOT_BYTES: usize = 16;
/// Bytes of a CPU's value.
pub(super) const VALUE_BYTES: usize = SLOTS * SLOT_BYTES;

/// Where in the value hardirqs are.
const HARD_BEGIN: i16 = ((SLOTS - 1) * SLOT_BYTES) as i16;
const HARD_TOTAL: i16 = HARD_BEGIN + 8;
/// The greatest vector of a soft interrupt.
const VECTOR_MAX: i32 = SLOTS as i32 - 2;
/// Bits by which a vector is shifted to become the place of its slot.
const SLOT_SHIFT: i32 = SLOT_BYTES.trailing_zeros() as i32;

/// Returns the word of a CPU's value that holds the total of `slot`.
pub(super) fn total_word(slot: usize) -> usize {
    slot * SLOT_BYTES / 8 + 1
}

/// Returns the programs with the tracepoints that they belong to.
pub(super) fn programs(times: &PerCpu) -> [(&'static CStr, Vec<Instruction>); 4] {
    [
        (c"softirq_entry", soft(times, &begins(0))),
        (c"softirq_exit", soft(times, &ends(0))),
        (c"irq_handler_entry", hard(times, &begins(HARD_BEGIN))),
        (c"irq_handler_exit", hard(times, &ends(HARD_BEGIN))),
    ]
}

/// R7 = now, R0 = this CPU's value or 0.
fn preamble(times: &PerCpu) -> Vec<Instruction> {
    let [map, map_high] = times.address(R1);
    vec![
        copy(R6, R1),
        call(Helper::KtimeGetNs),
        copy(R7, R0),
        store_value_32(R10, -4, 0),
        copy(R2, R10),
        add_value(R2, -4),
        map,
        map_high,
        call(Helper::MapLookup),
    ]
}

/// A program for softirqs: R0 = the slot of the vector, R7 = their clock.
fn soft(times: &PerCpu, body: &[Instruction]) -> Vec<Instruction> {
    let mut program = preamble(times);
    let rest = [
        // The vector is the tracepoint's only argument.
        load(R1, R6, 0),
        skip_if_more(R1, VECTOR_MAX, body.len() as i16 + 4),
        load(R2, R0, HARD_TOTAL),
        subtract(R7, R2),
        shift_left(R1, SLOT_SHIFT),
        add(R0, R1),
    ];
    finish(&mut program, &[&rest, body].concat());
    program
}

/// A program for hardirqs: R0 = the value, R7 = the time.
fn hard(times: &PerCpu, body: &[Instruction]) -> Vec<Instruction> {
    let mut program = preamble(times);
    finish(&mut program, body);
    program
}

/// Appends `body` and the end.
fn finish(program: &mut Vec<Instruction>, body: &[Instruction]) {
    // An array always has its element; the kernel's checker wants to see it looked at.
    program.push(skip_if_equal(R0, 0, body.len() as i16));
    program.extend(body);
    program.extend([set(R0, 0), exit()]);
}

/// Takes down that the interrupt of the slot at R0 + `slot` begins.
fn begins(slot: i16) -> Vec<Instruction> {
    vec![store(R0, slot, R7)]
}

/// Adds the time since the begin of the slot at R0 + `slot` to its total.
fn ends(slot: i16) -> Vec<Instruction> {
    vec![
        load(R1, R0, slot),
        skip_if_equal(R1, 0, 5),
        subtract(R7, R1),
        load(R2, R0, slot + 8),
        add(R2, R7),
        store(R0, slot + 8, R2),
        store_value(R0, slot, 0),
    ]
}
