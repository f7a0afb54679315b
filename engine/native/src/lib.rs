//! Reads ranges of Kafka topics into Arrow buffers, and writes rows from them, called by Python
//! through these functions and those of `writing`.
//!
//! All of them take a reader or a producer from one thread at a time; none keeps what it was given.

mod client;
mod columns;
mod librdkafka;
mod producer;
mod reader;
mod rows;
mod writing;

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use columns::Chunk;
use librdkafka::Functions;
use reader::Reader;

/// A range as Python gives it.
#[repr(C)]
pub struct WantedRange {
    topic: *const c_char,
    partition: i32,
    start: i64,
    end: i64,
}

/// Says which form these functions have; another number is another form.
#[unsafe(no_mangle)]
pub extern "C" fn kaflow_native_version() -> c_int {
    2
}

/// Opens a reader; null: `words` says why not.
///
/// # Safety
/// All texts end with NUL, `settings` are `count` names and as many values behind them, in pairs,
/// and `words` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_open(
    library: *const c_char,
    settings: *const *const c_char,
    count: usize,
    words: *mut c_char,
    room: usize,
) -> *mut Reader {
    // SAFETY: as the caller promises
    let opened = unsafe { opened(library, settings, count, Reader::open) };
    // SAFETY: as the caller promises
    unsafe { given(opened, words, room) }
}

/// Begins to read ranges in place of those before; returns librdkafka's code, 0 for none.
///
/// # Safety
/// The reader is open, and there are `count` ranges whose topics end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_begin(
    reader: *mut Reader,
    ranges: *const WantedRange,
    count: usize,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        let wanted: Vec<_> = std::slice::from_raw_parts(ranges, count)
            .iter()
            .map(|range| (CStr::from_ptr(range.topic), range.partition, range.start, range.end))
            .collect();
        (*reader).begin(&wanted)
    }
}

/// Reads on; returns 0: all ranges are read, 1: there is enough, 2: nothing more comes, 3: an error
/// was reported.
///
/// # Safety
/// The reader is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_fill(
    reader: *mut Reader,
    rows: usize,
    bytes: usize,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe { (*reader).fill(rows, bytes, timeout) as c_int }
}

/// Gives away what was read of a range; null: nothing.
///
/// # Safety
/// The reader is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_chunk(reader: *mut Reader, range: usize) -> *mut Chunk {
    // SAFETY: as the caller promises
    unsafe { (*reader).chunk(range).map_or(ptr::null_mut(), Box::into_raw) }
}

/// Lets go of what was given away.
///
/// # Safety
/// The chunk was given away, and is not used behind this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_chunk_free(chunk: *mut Chunk) {
    // SAFETY: as the caller promises
    drop(unsafe { Box::from_raw(chunk) });
}

/// Stops fetching.
///
/// # Safety
/// The reader is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_end(reader: *mut Reader) {
    // SAFETY: as the caller promises
    unsafe { (*reader).end() };
}

/// Takes the oldest report: returns its code, and writes its words; 0: there is none.
///
/// # Safety
/// The reader is open, and `words` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_report(
    reader: *mut Reader,
    words: *mut c_char,
    room: usize,
) -> c_int {
    // SAFETY: as the caller promises
    unsafe {
        match (*reader).report() {
            Some(report) => {
                write(&report.text, words, room);
                report.code
            }
            None => 0,
        }
    }
}

/// Closes a reader.
///
/// # Safety
/// The reader is open, and is not used behind this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kaflow_reader_close(reader: *mut Reader) {
    // SAFETY: as the caller promises
    drop(unsafe { Box::from_raw(reader) });
}

/// Opens what a function opens with the library and the settings.
///
/// # Safety
/// All texts end with NUL, and `settings` are `count` names and as many values behind them, in pairs.
unsafe fn opened<T>(
    library: *const c_char,
    settings: *const *const c_char,
    count: usize,
    open: impl FnOnce(Functions, &[(&CStr, &CStr)]) -> Result<Box<T>, String>,
) -> Result<Box<T>, String> {
    // SAFETY: as the caller promises
    unsafe {
        let texts = std::slice::from_raw_parts(settings, 2 * count);
        let pairs: Vec<_> =
            texts.chunks_exact(2).map(|pair| (CStr::from_ptr(pair[0]), CStr::from_ptr(pair[1]))).collect();
        open(Functions::of(CStr::from_ptr(library))?, &pairs)
    }
}

/// Gives away what was opened; null: `words` says why not.
///
/// # Safety
/// `words` has room for `room` bytes, at least one.
unsafe fn given<T>(opened: Result<Box<T>, String>, words: *mut c_char, room: usize) -> *mut T {
    match opened {
        Ok(found) => Box::into_raw(found),
        Err(why) => {
            // SAFETY: as the caller promises
            unsafe { write(&why, words, room) };
            ptr::null_mut()
        }
    }
}

/// Writes a text with NUL behind it, cut where there is no room.
///
/// # Safety
/// `words` has room for `room` bytes, at least one.
unsafe fn write(text: &str, words: *mut c_char, room: usize) {
    let bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).take(room - 1).collect();
    // SAFETY: as the caller promises
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), words.cast(), bytes.len());
        *words.add(bytes.len()) = 0;
    }
}
