//! Answers a prompt with a daemon that runs already: chat PROMPT [MODEL]
//!
//! Build: `rustc chat.rs -L FOLDER_OF_LIBLLMD`. Needs no crate.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};

const ABI_VERSION: c_int = 1;
const OK: c_int = 0;
const PIECE_TEXT: c_int = 1;

type OnPiece = extern "C" fn(*mut c_void, c_int, *const c_char, usize) -> c_int;

#[repr(C)]
struct RawDaemon {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawRequest {
    _opaque: [u8; 0],
}

#[link(name = "llmd")]
extern "C" {
    fn llmd_open_abi(abi_version: c_int, daemon: *mut *mut RawDaemon) -> c_int;
    fn llmd_connect(daemon: *mut RawDaemon) -> c_int;
    fn llmd_message(daemon: *const RawDaemon) -> *const c_char;
    fn llmd_close(daemon: *mut RawDaemon);
    fn llmd_request_new(daemon: *mut RawDaemon, request: *mut *mut RawRequest) -> c_int;
    fn llmd_request_set(request: *mut RawRequest, option: *const c_char, value: *const c_char, length: usize) -> c_int;
    fn llmd_add_message(request: *mut RawRequest, role: *const c_char, text: *const c_char, length: usize) -> c_int;
    fn llmd_chat(request: *mut RawRequest, on_piece: Option<OnPiece>, user: *mut c_void) -> c_int;
    fn llmd_finish_reason(request: *const RawRequest) -> *const c_char;
    fn llmd_request_message(request: *const RawRequest) -> *const c_char;
    fn llmd_request_free(request: *mut RawRequest);
}

fn text_of(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

struct Daemon(*mut RawDaemon);

impl Daemon {
    fn connect() -> Result<Daemon, String> {
        let mut handle = std::ptr::null_mut();
        if unsafe { llmd_open_abi(ABI_VERSION, &mut handle) } != OK {
            return Err("libllmd has another ABI version".into());
        }
        let daemon = Daemon(handle);
        let status = unsafe { llmd_connect(daemon.0) };
        daemon.checked(status).map(|()| daemon)
    }

    fn checked(&self, status: c_int) -> Result<(), String> {
        if status == OK { Ok(()) } else { Err(text_of(unsafe { llmd_message(self.0) })) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        unsafe { llmd_close(self.0) }
    }
}

struct Request(*mut RawRequest);

impl Request {
    fn new(daemon: &Daemon) -> Result<Request, String> {
        let mut handle = std::ptr::null_mut();
        let status = unsafe { llmd_request_new(daemon.0, &mut handle) };
        daemon.checked(status).map(|()| Request(handle))
    }

    fn checked(&self, status: c_int) -> Result<(), String> {
        if status == OK { Ok(()) } else { Err(text_of(unsafe { llmd_request_message(self.0) })) }
    }

    fn set(&self, option: &str, value: &str) -> Result<(), String> {
        let name = CString::new(option).map_err(|error| error.to_string())?;
        self.checked(unsafe { llmd_request_set(self.0, name.as_ptr(), value.as_ptr().cast(), value.len()) })
    }

    fn add_message(&self, role: &str, text: &str) -> Result<(), String> {
        let role = CString::new(role).map_err(|error| error.to_string())?;
        self.checked(unsafe { llmd_add_message(self.0, role.as_ptr(), text.as_ptr().cast(), text.len()) })
    }

    /// Returns why the answer ended.
    fn chat<F: FnMut(c_int, &str) -> bool>(&self, mut on_piece: F) -> Result<String, String> {
        let user = &mut on_piece as *mut F as *mut c_void;
        self.checked(unsafe { llmd_chat(self.0, Some(pass_on::<F>), user) })?;
        Ok(text_of(unsafe { llmd_finish_reason(self.0) }))
    }
}

/// A panic may not pass through the library: it ends the answer, and the program at the next unwrap.
extern "C" fn pass_on<F: FnMut(c_int, &str) -> bool>(user: *mut c_void, kind: c_int, text: *const c_char, length: usize) -> c_int {
    let on_piece = unsafe { &mut *(user as *mut F) };
    let bytes = unsafe { std::slice::from_raw_parts(text as *const u8, length) };
    let call = std::panic::AssertUnwindSafe(|| on_piece(kind, &String::from_utf8_lossy(bytes)));
    matches!(std::panic::catch_unwind(call), Ok(true)) as c_int ^ 1
}

impl Drop for Request {
    fn drop(&mut self) {
        unsafe { llmd_request_free(self.0) }
    }
}

fn run(prompt: &str, model: Option<&String>) -> Result<String, String> {
    let daemon = Daemon::connect()?;
    let request = Request::new(&daemon)?;
    request.set("max_tokens", "200")?;
    if let Some(name) = model {
        request.set("model", name)?;
    }
    request.add_message("user", prompt)?;
    request.chat(|kind, text| {
        if kind == PIECE_TEXT {
            print!("{}", text);
        }
        true
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 2 {
        eprintln!("usage: chat PROMPT [MODEL]");
        std::process::exit(1);
    }
    match run(&arguments[1], arguments.get(2)) {
        Ok(reason) => println!("\n({})", reason),
        Err(message) => {
            eprintln!("{}", message);
            std::process::exit(1);
        }
    }
}
