//! What consumers and producers share: how a client is opened, and what it reports aside.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard};

use crate::librdkafka::Functions;

const FATAL: c_int = -150;
const REPORTS: usize = 16;

/// Errors that librdkafka reported aside, oldest first; they explain why nothing comes or goes.
pub struct Reports {
    api: Functions,
    found: Mutex<VecDeque<Report>>,
}

/// An error that was reported aside.
pub struct Report {
    pub code: c_int,
    pub text: String,
    /// Whether the client is of no use behind it.
    pub fatal: bool,
}

impl Reports {
    pub fn new(api: Functions) -> Reports {
        Reports { api, found: Mutex::default() }
    }

    /// Keeps a report; of many the newest.
    pub fn add(&self, report: Report) {
        let mut found = self.locked();
        if found.len() == REPORTS {
            found.pop_front();
        }
        found.push_back(report);
    }

    /// Takes the oldest report.
    pub fn take(&self) -> Option<Report> {
        self.locked().pop_front()
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<Report>> {
        self.found.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Takes an error of a client; where it is fatal, the one that made it so.
///
/// # Safety
/// The client is one of librdkafka that is open, and the text ends with NUL.
pub unsafe fn note(reports: &Reports, client: *mut c_void, code: c_int, text: *const c_char) {
    let mut words = [0 as c_char; 512];
    let fatal = code == FATAL;
    // SAFETY: `words` has as much room as is said, and librdkafka ends what it writes with NUL
    unsafe {
        let code = match fatal {
            true => (reports.api.rd_kafka_fatal_error)(client, words.as_mut_ptr(), words.len()),
            false => code,
        };
        let text = CStr::from_ptr(if fatal { words.as_ptr() } else { text });
        reports.add(Report { code, text: text.to_string_lossy().into_owned(), fatal });
    }
}

/// What is written to logs comes as an error, too, where it matters.
unsafe extern "C" fn on_log(_: *const c_void, _: c_int, _: *const c_char, _: *const c_char) {}

/// Opens a client of a kind; the error is that of the settings.
///
/// # Safety
/// `prepare` sets callbacks of a configuration whose opaque pointer outlives the client.
pub unsafe fn open(
    api: &Functions,
    kind: c_int,
    settings: &[(&CStr, &CStr)],
    prepare: impl FnOnce(*mut c_void),
) -> Result<*mut c_void, String> {
    let mut words = [0 as c_char; 512];
    // SAFETY: `words` has as much room as is said; what was made is destroyed on each way out,
    // and `rd_kafka_new` owns the configuration where it succeeds
    unsafe {
        let configuration = (api.rd_kafka_conf_new)();
        let text_of = |words: &[c_char; 512]| CStr::from_ptr(words.as_ptr()).to_string_lossy().into_owned();
        for (name, value) in settings {
            let (name, value) = (name.as_ptr(), value.as_ptr());
            if (api.rd_kafka_conf_set)(configuration, name, value, words.as_mut_ptr(), words.len()) != 0 {
                (api.rd_kafka_conf_destroy)(configuration);
                return Err(text_of(&words));
            }
        }
        (api.rd_kafka_conf_set_log_cb)(configuration, on_log);
        prepare(configuration);
        let client = (api.rd_kafka_new)(kind, configuration, words.as_mut_ptr(), words.len());
        if client.is_null() {
            (api.rd_kafka_conf_destroy)(configuration);
            return Err(text_of(&words));
        }
        Ok(client)
    }
}
