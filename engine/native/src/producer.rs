//! A producer that takes rows from Arrow's buffers, with or without transactions.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use crate::client::{self, Report, Reports};
use crate::librdkafka::{Content, Functions, Message, Tagged};
use crate::rows::{Headers, Rows};

const PRODUCER: c_int = 0;
const COPIED: i32 = 2;
/// How long librdkafka waits before it looks again.
const FLUSHED_MS: c_int = 10;
/// For how long a small batch is under way, in which each millisecond counts.
const SOON_MS: c_int = 20;
const EVERYTHING: c_int = 1 | 2;
const REFUSALS: usize = 10;
/// Codes of rows that the client threw away itself: another error made it do so.
const PURGED: [c_int; 2] = [-152, -151];
const WORDS: usize = 512;

/// Tags of what `rd_kafka_produceva` takes.
const TOPIC: c_int = 2;
const PARTITION: c_int = 3;
const VALUE: c_int = 4;
const KEY: c_int = 5;
const FLAGS: c_int = 7;
const TIMESTAMP: c_int = 8;
const HEADERS: c_int = 10;

/// A row that the brokers did not take.
pub struct Refusal {
    pub code: c_int,
    pub topic: CString,
    pub size: usize,
}

/// Why a call failed; code 0: it did not.
#[repr(C)]
pub struct Failure {
    code: c_int,
    fatal: c_int,
    retriable: c_int,
    aborts: c_int,
    words: [c_char; WORDS],
}

/// What librdkafka's callbacks fill.
struct Aside {
    api: Functions,
    reports: Reports,
    refusals: Mutex<VecDeque<Refusal>>,
}

pub struct Producer {
    api: Functions,
    client: *mut c_void,
    aside: Box<Aside>,
    topics: HashMap<CString, *mut c_void>,
}

unsafe extern "C" fn on_error(client: *mut c_void, code: c_int, text: *const c_char, aside: *mut c_void) {
    // SAFETY: this is the `aside` of the producer, which outlives its client
    unsafe { client::note(&(*aside.cast::<Aside>()).reports, client, code, text) };
}

/// Takes the report of a row: only of those that were not delivered there are any.
unsafe extern "C" fn on_delivery(_: *mut c_void, message: *const Message, aside: *mut c_void) {
    // SAFETY: as above; the message, and the name of its topic, stay as long as this runs
    unsafe {
        let (aside, row) = (&*aside.cast::<Aside>(), &*message);
        let mut refusals = aside.refusals.lock().unwrap_or_else(|broken| broken.into_inner());
        if row.code != 0 && !PURGED.contains(&row.code) && refusals.len() < REFUSALS {
            let topic = CStr::from_ptr((aside.api.rd_kafka_topic_name)(row.topic)).to_owned();
            refusals.push_back(Refusal { code: row.code, topic, size: row.key_size + row.value_size });
        }
    }
}

impl Failure {
    fn none() -> Failure {
        Failure { code: 0, fatal: 0, retriable: 0, aborts: 0, words: [0; WORDS] }
    }

    fn of_code(code: c_int) -> Failure {
        Failure { code, ..Failure::none() }
    }

    /// # Safety
    /// The error is null or one of librdkafka, which is not used behind this.
    unsafe fn of(api: &Functions, error: *mut c_void) -> Failure {
        let mut found = Failure::none();
        if error.is_null() {
            return found;
        }
        // SAFETY: as above; the text ends with NUL, and stays as long as the error
        unsafe {
            found.code = (api.rd_kafka_error_code)(error);
            found.fatal = (api.rd_kafka_error_is_fatal)(error);
            found.retriable = (api.rd_kafka_error_is_retriable)(error);
            found.aborts = (api.rd_kafka_error_txn_requires_abort)(error);
            let text = CStr::from_ptr((api.rd_kafka_error_string)(error)).to_bytes();
            for (to, &from) in found.words[..WORDS - 1].iter_mut().zip(text) {
                *to = from as c_char;
            }
            (api.rd_kafka_error_destroy)(error);
        }
        found
    }
}

impl Producer {
    /// Opens a client; the error is that of the settings.
    pub fn open(api: Functions, settings: &[(&CStr, &CStr)]) -> Result<Box<Producer>, String> {
        let (reports, refusals) = (Reports::new(api), Mutex::default());
        let aside = Box::new(Aside { api, reports, refusals });
        let opaque: *const Aside = &*aside;
        // SAFETY: `aside` lives in the producer, which destroys its client first
        let client = unsafe {
            client::open(&api, PRODUCER, settings, |configuration| {
                (api.rd_kafka_conf_set_opaque)(configuration, opaque.cast_mut().cast());
                (api.rd_kafka_conf_set_error_cb)(configuration, on_error);
                (api.rd_kafka_conf_set_dr_msg_cb)(configuration, on_delivery);
            })?
        };
        Ok(Box::new(Producer { api, client, aside, topics: HashMap::new() }))
    }

    /// Hands rows over in their order; returns how many, and why not all of them.
    ///
    /// # Safety
    /// The rows are as they say.
    pub unsafe fn produce(&mut self, rows: &Rows, topics: usize) -> (usize, Failure) {
        let mut handles = Vec::with_capacity(topics);
        for number in 0..topics {
            // SAFETY: names of topics end with NUL
            match self.topic(unsafe { CStr::from_ptr(*rows.topics.add(number)) }) {
                Ok(handle) => handles.push(handle),
                Err(code) => return (0, Failure::of_code(code)),
            }
        }
        let mut tagged = [
            Tagged::new(FLAGS, Content { number: COPIED }),
            Tagged::new(TOPIC, Content { handle: ptr::null_mut() }),
            Tagged::new(PARTITION, Content { number: 0 }),
            Tagged::new(TIMESTAMP, Content { time: 0 }),
            Tagged::new(KEY, Content { handle: ptr::null_mut() }),
            Tagged::new(VALUE, Content { handle: ptr::null_mut() }),
            Tagged::new(HEADERS, Content { handle: ptr::null_mut() }),
        ];
        for row in 0..rows.rows as usize {
            // SAFETY: as the caller promises; what librdkafka takes it copies, headers aside,
            // which it owns where it takes the row
            unsafe {
                let headers = self.headers(rows.headers, row);
                tagged[1].content.handle = handles[rows.topic(row)];
                tagged[2].content.number = rows.partition(row);
                tagged[3].content.time = rows.timestamp(row);
                tagged[4].content.bytes = rows.key.bytes(row);
                tagged[5].content.bytes = rows.value.bytes(row);
                tagged[6].content.handle = headers;
                let count = if headers.is_null() { 6 } else { 7 };
                let error = (self.api.rd_kafka_produceva)(self.client, tagged.as_ptr(), count);
                if !error.is_null() {
                    if !headers.is_null() {
                        (self.api.rd_kafka_headers_destroy)(headers);
                    }
                    return (row, Failure::of(&self.api, error));
                }
            }
        }
        (rows.rows as usize, Failure::none())
    }

    /// Asks a broker who they all are: returns librdkafka's code when it has answered.
    pub fn reach(&self, timeout: c_int) -> c_int {
        let mut found = ptr::null();
        // SAFETY: of no topic is anything asked, and what is found is destroyed
        unsafe {
            let (client, none) = (self.client, ptr::null_mut());
            let code = (self.api.rd_kafka_metadata)(client, 0, none, &mut found, timeout);
            if code == 0 {
                (self.api.rd_kafka_metadata_destroy)(found);
            }
            code
        }
    }

    /// Gets the producer's identity; whoever had it before is fenced.
    pub fn init(&self, timeout: c_int) -> Failure {
        // SAFETY: the client is open
        unsafe { Failure::of(&self.api, (self.api.rd_kafka_init_transactions)(self.client, timeout)) }
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Failure {
        // SAFETY: the client is open
        unsafe { Failure::of(&self.api, (self.api.rd_kafka_begin_transaction)(self.client)) }
    }

    /// Commits the transaction.
    pub fn commit(&self, timeout: c_int) -> Failure {
        // SAFETY: the client is open
        unsafe { Failure::of(&self.api, (self.api.rd_kafka_commit_transaction)(self.client, timeout)) }
    }

    /// Aborts the transaction.
    pub fn abort(&self, timeout: c_int) -> Failure {
        // SAFETY: the client is open
        unsafe { Failure::of(&self.api, (self.api.rd_kafka_abort_transaction)(self.client, timeout)) }
    }

    /// Waits until nothing is under way; whoever calls asks what still is.
    ///
    /// librdkafka itself looks each 10 ms only, as no report comes of what is acknowledged.
    pub fn flush(&self, timeout: c_int) {
        let mut waited = 0;
        while waited < timeout && self.waiting() > 0 {
            let step = if waited < SOON_MS { 1 } else { FLUSHED_MS };
            // SAFETY: the client is open
            unsafe { (self.api.rd_kafka_flush)(self.client, step.min(timeout - waited)) };
            waited += step;
        }
    }

    /// Takes reports.
    pub fn poll(&self, timeout: c_int) {
        // SAFETY: the client is open
        unsafe { (self.api.rd_kafka_poll)(self.client, timeout) };
    }

    /// How many rows are not acknowledged yet, or reports not taken.
    pub fn waiting(&self) -> c_int {
        // SAFETY: the client is open
        unsafe { (self.api.rd_kafka_outq_len)(self.client) }
    }

    /// Throws away what is not acknowledged.
    pub fn purge(&self) {
        // SAFETY: the client is open
        unsafe { (self.api.rd_kafka_purge)(self.client, EVERYTHING) };
    }

    /// Takes the oldest report.
    pub fn report(&self) -> Option<Report> {
        self.aside.reports.take()
    }

    /// Takes the first row that was refused.
    pub fn refusal(&self) -> Option<Refusal> {
        self.aside.refusals.lock().unwrap_or_else(|broken| broken.into_inner()).pop_front()
    }

    fn topic(&mut self, name: &CStr) -> Result<*mut c_void, c_int> {
        if let Some(&handle) = self.topics.get(name) {
            return Ok(handle);
        }
        // SAFETY: the name ends with NUL; without a configuration it has that of the client
        unsafe {
            let handle = (self.api.rd_kafka_topic_new)(self.client, name.as_ptr(), ptr::null_mut());
            if handle.is_null() {
                return Err((self.api.rd_kafka_last_error)());
            }
            self.topics.insert(name.to_owned(), handle);
            Ok(handle)
        }
    }

    /// Headers of a row as librdkafka has them; null: none.
    ///
    /// # Safety
    /// There is such a row.
    unsafe fn headers(&self, of: *const Headers, row: usize) -> *mut c_void {
        // SAFETY: as above; names and values are as long as is said, and are copied
        unsafe {
            let Some(of) = of.as_ref() else { return ptr::null_mut() };
            let (start, end) = of.lists.bounds(row).unwrap_or((0, 0));
            if start == end {
                return ptr::null_mut();
            }
            let made = (self.api.rd_kafka_headers_new)(end - start);
            for at in start..end {
                let (name, value) = (of.key.bytes(at), of.value.bytes(at));
                let (size, length) = (name.size as isize, value.size as isize);
                (self.api.rd_kafka_header_add)(made, name.start.cast(), size, value.start.cast(), length);
            }
            made
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        // SAFETY: nothing of the client is used behind this
        unsafe {
            for &handle in self.topics.values() {
                (self.api.rd_kafka_topic_destroy)(handle);
            }
            (self.api.rd_kafka_destroy_flags)(self.client, 0);
        }
    }
}
