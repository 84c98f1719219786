//! The WebAssembly engine with the loaded guest.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use karat_cases::similarity::SimilarityMethod;
use wasmtime::component::{Component, InstancePre, Linker, Resource, ResourceType};
use wasmtime::{Config, Engine, ResourceLimiter};

use crate::code;
use crate::error::SandboxError;
use crate::guest::Guest;
use crate::memory::{MemoryImage, RegionCreator};

/// How often running guests check their deadline.
const EPOCH_INTERVAL: Duration = Duration::from_millis(5);

/// Stack size of threads that run Python. It must be larger than Python's own stack: the host aborts on overflow.
pub(crate) const THREAD_STACK: usize = 64 << 20;

/// A loaded guest from which Python instances are started.
#[derive(Clone)]
pub struct Sandbox(Arc<LoadedGuest>);

/// The error when a function reads the clock.
#[derive(Debug, thiserror::Error)]
#[error("there is no clock in the sandbox")]
pub(crate) struct NoClock;

struct LoadedGuest {
    engine: Engine,
    start: InstancePre<Host>,
    guest_hash: String,
}

/// Host state of one instance.
pub(crate) struct Host {
    pub(crate) deadline: Instant,
    /// Maximum size of the instance's memory, in bytes.
    pub(crate) max_memory: usize,
    /// Whether the instance requested more.
    pub(crate) hit_memory_limit: bool,
}

impl ResourceLimiter for Host {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // No trap: the allocation fails and Python raises MemoryError.
        let fits = desired <= self.max_memory;
        self.hit_memory_limit |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= 1 << 20)
    }
}

/// A file descriptor; none is ever created.
struct Descriptor;

impl Sandbox {
    /// Loads the guest. The embedded one is loaded once per process, since the engine accepts the code at one address
    /// only once.
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
        let engine = Engine::new(&config(code::image(guest)?))?;
        let component = code::load(&engine, guest)?;
        let start = link_without_capabilities(&engine, &component)?;
        let loaded = Arc::new(LoadedGuest { engine, start, guest_hash: guest.hash().to_owned() });
        spawn_epoch_ticker(&loaded)?;
        Ok(Self(loaded))
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

fn config(image: MemoryImage) -> Config {
    let mut config: Config = include!(concat!(env!("OUT_DIR"), "/settings.rs"));
    config
        // Backtraces of traps are never shown.
        .wasm_backtrace_max_frames(None)
        .with_custom_code_memory(Some(code::code_memory()))
        .with_host_memory(Arc::new(RegionCreator(Arc::new(image))));
    config
}

/// Links the few host functions that Python needs, as stubs; a call of any other import is a trap.
fn link_without_capabilities(engine: &Engine, component: &Component) -> Result<InstancePre<Host>, SandboxError> {
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
        for clock in ["wall-clock", "monotonic-clock"] {
            let mut clock = linker.instance(&format!("wasi:clocks/{clock}@{version}"))?;
            clock.func_new("now", |_, _, _, _| Err(NoClock.into()))?;
        }
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
    linker.root().func_wrap("similarity", |_, (method, first, second): (String, String, String)| {
        let method = SimilarityMethod::from_name(&method).ok_or_else(|| format!("unknown method '{method}'"));
        Ok((method.and_then(|method| method.compare(&first, &second).map_err(|error| error.to_string())),))
    })?;
    linker.define_unknown_imports_as_traps(component)?;
    Ok(linker.instantiate_pre(component)?)
}

/// Advances the engine's epoch, at which guests check their deadline, until the sandbox is dropped.
fn spawn_epoch_ticker(loaded: &Arc<LoadedGuest>) -> Result<(), SandboxError> {
    let loaded: Weak<LoadedGuest> = Arc::downgrade(loaded);
    let run = move || {
        while let Some(loaded) = loaded.upgrade() {
            loaded.engine.increment_epoch();
            drop(loaded);
            thread::sleep(EPOCH_INTERVAL);
        }
    };
    let started = thread::Builder::new().name("karat-tick".to_owned()).spawn(run);
    started.map(drop).map_err(|error| SandboxError::Engine(error.to_string()))
}
