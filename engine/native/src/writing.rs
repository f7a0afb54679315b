//! The functions by which Python writes.

use std::ffi::{c_char, c_int};

use crate::producer::{Failure, Producer};
use crate::rows::Rows;
use crate::{given, opened, write};

/// Opens a producer; null: `words` says why not.
///
/// # Safety
/// As of `kaflow_reader_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_open(
    library: *const c_char,
    settings: *const *const c_char,
    count: usize,
    words: *mut c_char,
    room: usize,
) -> *mut Producer {
    // SAFETY: as the caller promises
    unsafe { given(opened(library, settings, count, Producer::open), words, room) }
}

/// Hands rows over in their order; returns how many, and writes why not all of them.
///
/// # Safety
/// The producer is open, the rows are as they say, of `topics` topics, and there is room for a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_produce(
    producer: *mut Producer,
    rows: *const Rows,
    topics: usize,
    failure: *mut Failure,
) -> usize {
    // SAFETY: as the caller promises
    unsafe {
        let (taken, why) = (*producer).produce(&*rows, topics);
        *failure = why;
        taken
    }
}

/// Returns 0 when a broker has answered, else librdkafka's code.
///
/// # Safety
/// The producer is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_reach(producer: *mut Producer, timeout: c_int) -> c_int {
    // SAFETY: as the caller promises
    unsafe { (*producer).reach(timeout) }
}

/// Gets the identity of a producer of transactions.
///
/// # Safety
/// The producer is open, and there is room for a failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_init(producer: *mut Producer, timeout: c_int, failure: *mut Failure) {
    // SAFETY: as the caller promises
    unsafe { *failure = (*producer).init(timeout) }
}

/// Begins a transaction.
///
/// # Safety
/// As of `kaflow_producer_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_begin(producer: *mut Producer, failure: *mut Failure) {
    // SAFETY: as the caller promises
    unsafe { *failure = (*producer).begin() }
}

/// Commits a transaction.
///
/// # Safety
/// As of `kaflow_producer_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_commit(producer: *mut Producer, timeout: c_int, failure: *mut Failure) {
    // SAFETY: as the caller promises
    unsafe { *failure = (*producer).commit(timeout) }
}

/// Aborts a transaction.
///
/// # Safety
/// As of `kaflow_producer_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_abort(producer: *mut Producer, timeout: c_int, failure: *mut Failure) {
    // SAFETY: as the caller promises
    unsafe { *failure = (*producer).abort(timeout) }
}

/// Waits until nothing is under way, or time is up.
///
/// # Safety
/// The producer is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_flush(producer: *mut Producer, timeout: c_int) {
    // SAFETY: as the caller promises
    unsafe { (*producer).flush(timeout) }
}

/// Takes reports, and waits for one.
///
/// # Safety
/// The producer is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_poll(producer: *mut Producer, timeout: c_int) {
    // SAFETY: as the caller promises
    unsafe { (*producer).poll(timeout) }
}

/// Returns how many rows are under way.
///
/// # Safety
/// The producer is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_waiting(producer: *mut Producer) -> c_int {
    // SAFETY: as the caller promises
    unsafe { (*producer).waiting() }
}

/// Throws away what is under way.
///
/// # Safety
/// The producer is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_purge(producer: *mut Producer) {
    // SAFETY: as the caller promises
    unsafe { (*producer).purge() }
}

/// Takes the oldest report: returns its code, and writes its words and whether it is fatal; 0: there
/// is none.
///
/// # Safety
/// The producer is open, and `words` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_report(
    producer: *mut Producer,
    words: *mut c_char,
    room: usize,
    fatal: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        (*producer).report().map_or(0, |report| {
            write(&report.text, words, room);
            *fatal = c_int::from(report.fatal);
            report.code
        })
    }
}

/// Takes a row that was refused: returns its code, and writes its topic and its bytes; 0: there is
/// none.
///
/// # Safety
/// As of `kaflow_producer_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_refusal(
    producer: *mut Producer,
    words: *mut c_char,
    room: usize,
    size: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        (*producer).refusal().map_or(0, |refusal| {
            write(&refusal.topic.to_string_lossy(), words, room);
            *size = refusal.size;
            refusal.code
        })
    }
}

/// Closes a producer.
///
/// # Safety
/// The producer is open, and is not used behind this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_producer_close(producer: *mut Producer) {
    // SAFETY: as the caller promises
    drop(unsafe { Box::from_raw(producer) });
}
