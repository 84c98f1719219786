//! The engine, and Python ready to be started in it.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, InstancePre, Linker, Resource, ResourceType};
use wasmtime::{Config, Engine, ResourceLimiter};

use crate::code;
use crate::error::SandboxError;
use crate::guest::Guest;
use crate::memory::{Creator, Regions};

/// How often what runs is asked to look at the clock.
const TICK: Duration = Duration::from_millis(5);

/// The stack of a thread that runs Python; larger than Python's own stack, since the host breaks at the end of it.
pub(crate) const THREAD_STACK: usize = 64 << 20;

/// Python that is ready to be started, many times.
#[derive(Clone)]
pub struct Sandbox(Arc<Ready>);

struct Ready {
    engine: Engine,
    start: InstancePre<Host>,
    guest_hash: String,
}

/// What an instance's store knows of it.
pub(crate) struct Host {
    /// When it has run long enough.
    pub(crate) deadline: Instant,
    /// How large its memory may become, in bytes.
    pub(crate) most_memory: usize,
    /// Whether it asked for more.
    pub(crate) refused: bool,
}

impl ResourceLimiter for Host {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // No trap: Python is told that there is none, and raises its MemoryError.
        let fits = desired <= self.most_memory;
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= 1 << 20)
    }
}

/// A file that nobody can ever have.
struct Descriptor;

impl Sandbox {
    /// Loads the guest and gets it ready to be started. The embedded one is loaded once and kept, since the engine takes
    /// the code at one address only once.
    pub fn open(guest: &Guest) -> Result<Self, SandboxError> {
        static EMBEDDED: Mutex<Option<Sandbox>> = Mutex::new(None);
        if guest.file().is_some() {
            return Self::load(guest);
        }
        let mut embedded = EMBEDDED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*embedded {
            Some(sandbox) => Ok(sandbox.clone()),
            None => Ok(embedded.insert(Self::load(guest)?).clone()),
        }
    }

    fn load(guest: &Guest) -> Result<Self, SandboxError> {
        let engine = Engine::new(&config())?;
        let component = code::load(&engine, guest)?;
        let start = sealed(&engine, &component)?;
        let ready = Arc::new(Ready { engine, start, guest_hash: guest.hash().to_owned() });
        tick(&ready)?;
        Ok(Self(ready))
    }

    /// Returns the first twelve hex digits of the guest's SHA-256.
    pub fn guest_hash(&self) -> &str {
        &self.0.guest_hash
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn start(&self) -> &InstancePre<Host> {
        &self.0.start
    }
}

fn config() -> Config {
    let mut config: Config = include!(concat!(env!("OUT_DIR"), "/settings.rs"));
    config
        // The frames of a trap are never shown.
        .wasm_backtrace_max_frames(None)
        .with_custom_code_memory(Some(code::code_memory()))
        .with_host_memory(Arc::new(Creator(Arc::new(Regions::default()))));
    config
}

/// Gives Python the few functions that it calls, which give nothing; whatever else it calls ends it.
fn sealed(engine: &Engine, component: &Component) -> Result<InstancePre<Host>, SandboxError> {
    let mut linker: Linker<Host> = Linker::new(engine);
    for version in ["0.2.0", "0.2.9"] {
        linker.instance(&format!("wasi:filesystem/types@{version}"))?.resource(
            "descriptor",
            ResourceType::host::<Descriptor>(),
            |_, _| Ok(()),
        )?;
        let mut folders = linker.instance(&format!("wasi:filesystem/preopens@{version}"))?;
        folders.resource("descriptor", ResourceType::host::<Descriptor>(), |_, _| Ok(()))?;
        folders.func_wrap("get-directories", |_, (): ()| Ok((Vec::<(Resource<Descriptor>, String)>::new(),)))?;
    }
    let mut environment = linker.instance("wasi:cli/environment@0.2.9")?;
    environment.func_wrap("get-environment", |_, (): ()| Ok((Vec::<(String, String)>::new(),)))?;
    environment.func_wrap("get-arguments", |_, (): ()| Ok((Vec::<String>::new(),)))?;
    let mut random = linker.instance("wasi:random/random@0.2.9")?;
    random.func_wrap("get-random-bytes", |_, (count,): (u64,)| {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(4096);
        Ok((vec![42_u8; count],))
    })?;
    random.func_wrap("get-random-u64", |_, (): ()| Ok((42_u64,)))?;
    linker.define_unknown_imports_as_traps(component)?;
    Ok(linker.instantiate_pre(component)?)
}

/// Lets what runs look at the clock from time to time, as long as the sandbox is in use.
fn tick(ready: &Arc<Ready>) -> Result<(), SandboxError> {
    let ready: Weak<Ready> = Arc::downgrade(ready);
    let ticking = move || {
        while let Some(ready) = ready.upgrade() {
            ready.engine.increment_epoch();
            drop(ready);
            thread::sleep(TICK);
        }
    };
    let started = thread::Builder::new().name("karat-tick".to_owned()).spawn(ticking);
    started.map(drop).map_err(|error| SandboxError::Engine(error.to_string()))
}
