//! Builds the guest (Python as machine code) and embeds it into the crate.
//!
//! componentize-py turns `guest/` at the root of the repository into a WebAssembly component, and wasmtime's Python
//! package compiles that to machine code; `guest/requirements.txt` pins both. The result is stored in the user's cache
//! and shared by all clones and target directories. Without Python or network access the crate still builds, without a
//! guest, and records the reason.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Part of the cache key. Increment it when this file builds the same sources in another way.
const BUILD_VERSION: &str = "3";

enum Failure {
    /// A requirement of the guest is missing: karat is built without a guest.
    Missing(String),
    /// The guest cannot be used: the build fails.
    Unusable(String),
}

struct Guest {
    code: Vec<u8>,
    /// SHA-256 of the component that the code was compiled from.
    sha256: String,
    build_tools: String,
}

fn main() {
    let root = PathBuf::from(env_var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let out = PathBuf::from(env_var("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["KARAT_GUEST", "KARAT_GUEST_CACHE", "PYTHON"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let guest = match env_var("KARAT_GUEST") {
        Some(path) => read_prebuilt(Path::new(&path)),
        None => find_or_build(&root.join("guest"), &out),
    };
    let embedded = match guest.and_then(|guest| embed(&guest, &out)) {
        Ok(source) => source,
        Err(Failure::Missing(reason)) => {
            println!("cargo::warning=building karat without Python, so 'karat eval' cannot run functions: {reason}");
            // A file that never exists makes the next build try again, in case the requirement was installed.
            println!("cargo::rerun-if-changed={}", out.join("never").display());
            format!("Err({reason:?})")
        }
        Err(Failure::Unusable(reason)) => {
            println!("cargo::error={reason}");
            return;
        }
    };
    let written = engine_settings(&root.join("guest/settings.txt"))
        .and_then(|settings| write_atomic(&out.join("settings.rs"), settings.as_bytes()))
        .and_then(|()| write_atomic(&out.join("embedded.rs"), embedded.as_bytes()));
    if let Err(error) = written {
        println!("cargo::error=cannot write to {}: {error}", out.display());
    }
}

/// Returns the expression that `engine.rs` includes: the engine's configuration from `guest/settings.txt`.
fn engine_settings(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let settings = text.lines().filter(|line| !line.starts_with('#'));
    let settings = settings.filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name != "compile-only");
    let calls: Vec<String> = settings.map(|(name, value)| format!("config.{name}({value});\n")).collect();
    Ok(format!("{{ let mut config = wasmtime::Config::new();\n{}config }}", calls.concat()))
}

/// Reads the machine code in the file that `KARAT_GUEST` names.
fn read_prebuilt(path: &Path) -> Result<Guest, Failure> {
    println!("cargo::rerun-if-changed={}", path.display());
    let named = format!("KARAT_GUEST={}", path.display());
    let code = fs::read(path).map_err(|error| Failure::Unusable(format!("cannot read {named}: {error}")))?;
    if code.starts_with(b"\0asm") {
        let reason = format!("{named} is WebAssembly, not machine code: compile it with guest/compile.py");
        return Err(Failure::Unusable(reason));
    }
    Ok(Guest { sha256: hex(&Sha256::digest(&code)), code, build_tools: named })
}

/// Returns the guest from the cache, or builds it.
fn find_or_build(sources: &Path, out: &Path) -> Result<Guest, Failure> {
    println!("cargo::rerun-if-changed={}", sources.display());
    let unreadable = |error: io::Error| Failure::Missing(format!("cannot read {}: {error}", sources.display()));
    let (host, target) = (env_text("HOST"), env_text("TARGET"));
    if architecture(&host) != architecture(&target) {
        return Err(Failure::Missing(format!(
            "cannot build machine code for {target} on {host}: build the guest there and set KARAT_GUEST"
        )));
    }
    let mut files = Vec::new();
    list_sources(sources, Path::new(""), &mut files).map_err(unreadable)?;
    files.sort();
    let key = cache_key(sources, &files, &target).map_err(unreadable)?;
    let build_tools = pinned_tools(&sources.join("requirements.txt")).map_err(unreadable)?;
    check_wasmtime_version(&build_tools, &sources.join("../Cargo.lock"))?;

    let cache = Cache::open(out, &key);
    if let Some((code, sha256)) = cache.get() {
        return Ok(Guest { code, sha256, build_tools });
    }
    let work = out.join("make-guest");
    let _ = fs::remove_dir_all(&work);
    let built = build_guest(&work, sources, &files, &target).map_err(Failure::Missing);
    let _ = fs::remove_dir_all(&work);
    let (wasm, code) = built?;
    let guest = Guest { code, sha256: hex(&Sha256::digest(wasm)), build_tools };
    if let Err(error) = cache.put(&guest) {
        println!("cargo::warning=cannot write the guest to {}: {error}", cache.file.display());
    }
    Ok(guest)
}

fn architecture(triple: &str) -> &str {
    triple.split('-').next().unwrap_or_default()
}

/// Returns the pinned tools for display, such as `componentize-py 0.25.1, wasmtime 48.0.0`.
fn pinned_tools(requirements: &Path) -> io::Result<String> {
    let text = fs::read_to_string(requirements)?;
    let pins = text.lines().filter(|line| line.contains("==")).map(|line| line.trim_end_matches('\\').trim());
    Ok(pins.map(|pin| pin.replace("==", " ")).collect::<Vec<_>>().join(", "))
}

/// Checks that the pinned compiler has the major version of the crate that loads its code.
fn check_wasmtime_version(pinned: &str, lock: &Path) -> Result<(), Failure> {
    println!("cargo::rerun-if-changed={}", lock.display());
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    let compiler = pinned.split(", ").find_map(|pin| major(pin.strip_prefix("wasmtime ")?));
    // Without a lock file, the engine itself rejects code of another version.
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let locked = lock.split_once("name = \"wasmtime\"\nversion = \"").and_then(|(_, rest)| major(rest));
    match (compiler, locked) {
        (Some(compiler), Some(locked)) if compiler != locked => Err(Failure::Unusable(format!(
            "guest/requirements.txt pins wasmtime {compiler} but Cargo.lock has {locked}: both need the same major \
             version"
        ))),
        _ => Ok(()),
    }
}

/// Lists the source files in a folder, without files of Python, editors or file managers.
fn list_sources(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        if entry.file_type()?.is_dir() {
            list_sources(root, &path, files)?;
        } else if ["py", "txt", "wit"].contains(&extension) {
            files.push(path);
        }
    }
    Ok(())
}

fn cache_key(sources: &Path, files: &[PathBuf], target: &str) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{BUILD_VERSION}\n{target}"));
    for file in files {
        // Normalised, so that the key is the same on every platform.
        let name = file.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(sources.join(file))?.replace("\r\n", "\n");
        hash.update(format!("\n{name}\n{}\n", text.len()));
        hash.update(text);
    }
    Ok(hex(&hash.finalize())[..16].to_owned())
}

/// An entry of the guest cache.
struct Cache {
    file: PathBuf,
    /// While this is open, other builds of the same guest wait instead of building it twice.
    _lock: Option<File>,
}

impl Cache {
    fn open(out: &Path, key: &str) -> Self {
        let folder = env_var("KARAT_GUEST_CACHE")
            .map(PathBuf::from)
            .or_else(|| Some(user_cache()?.join("guest")))
            .filter(|folder| fs::create_dir_all(folder).is_ok())
            .unwrap_or_else(|| out.to_owned());
        let lock = File::create(folder.join(format!("{key}.lock"))).ok();
        // Some file systems have no locks. Files are renamed into place and verified, so locks are optional.
        let lock = lock.filter(|lock| lock.lock().is_ok());
        Self { file: folder.join(format!("{key}.cwasm")), _lock: lock }
    }

    /// Returns the file with the hashes of the code and of the component.
    fn hash_file(&self) -> PathBuf {
        self.file.with_extension("sha256")
    }

    /// Returns the code and the component's hash, if the code is undamaged.
    fn get(&self) -> Option<(Vec<u8>, String)> {
        let code = fs::read(&self.file).ok()?;
        let hashes = fs::read_to_string(self.hash_file()).ok()?;
        let (of_code, of_component) = hashes.trim_end().split_once('\n')?;
        if of_code != hex(&Sha256::digest(&code)) {
            println!("cargo::warning={} is corrupt and will be rebuilt", self.file.display());
            return None;
        }
        Some((code, of_component.to_owned()))
    }

    fn put(&self, guest: &Guest) -> io::Result<()> {
        write_atomic(&self.file, &guest.code)?;
        let hashes = format!("{}\n{}\n", hex(&Sha256::digest(&guest.code)), guest.sha256);
        write_atomic(&self.hash_file(), hashes.as_bytes())
    }
}

/// Returns karat's directory in the user's cache.
fn user_cache() -> Option<PathBuf> {
    let home = |below: &str| env_var("HOME").map(|home| Path::new(&home).join(below));
    match env::consts::OS {
        "windows" => env_var("LOCALAPPDATA").map(|folder| Path::new(&folder).join("karat/cache")),
        "macos" => home("Library/Caches/karat"),
        _ => {
            let cache_home = env_var("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            cache_home.map(|folder| folder.join("karat")).or_else(|| home(".cache/karat"))
        }
    }
}

/// Builds the component and its machine code in a virtual environment below `work`.
fn build_guest(work: &Path, sources: &Path, files: &[PathBuf], target: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    // Use a copy, since Python writes compiled files next to the sources.
    for file in files {
        let copy = work.join("guest").join(file);
        let folder = copy.parent().unwrap_or(work);
        let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(sources.join(file), &copy));
        copied.map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
    }
    let python = env_var("PYTHON").unwrap_or_else(|| if cfg!(windows) { "python" } else { "python3" }.into());
    let shown = python.to_string_lossy();
    let version = "import sys; sys.exit(sys.version_info < (3, 9))";
    run(Command::new(&python).args(["-I", "-c", version]))
        .map_err(|reason| format!("the guest needs Python 3.9 or newer, which '{shown}' is not ({reason})"))?;

    let venv = work.join("venv");
    run(Command::new(&python).args(["-I", "-m", "venv"]).arg(&venv)).map_err(|reason| {
        format!("'{shown} -m venv' failed; on Debian, install the package python3-venv ({reason})")
    })?;
    let programs = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let pip = ["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"];
    let checked = ["--require-hashes", "--only-binary", ":all:", "--requirement"];
    run(Command::new(programs.join("python"))
        .args(pip)
        .args(checked)
        .arg(work.join("guest/requirements.txt"))
        .env("PIP_RETRIES", "2"))
    .map_err(|reason| format!("pip cannot install guest/requirements.txt, which needs network access ({reason})"))?;

    let wasm = work.join("guest.wasm");
    run(Command::new(programs.join("componentize-py"))
        .args(["-d", "wit", "-w", "guest", "componentize", "-p", ".", "app", "-o"])
        .arg(&wasm)
        .current_dir(work.join("guest")))
    .map_err(|reason| format!("componentize-py failed ({reason})"))?;
    let code = work.join("guest.cwasm");
    run(Command::new(programs.join("python"))
        .arg("-I")
        .arg(work.join("guest/compile.py"))
        .args([&wasm, &code])
        .arg(target))
    .map_err(|reason| format!("guest/compile.py failed ({reason})"))?;
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    Ok((read(&wasm)?, read(&code)?))
}

/// Runs a program and discards its output. On failure returns the line that most likely names the error.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stderr, output.stdout].concat();
    let printed = String::from_utf8_lossy(&printed);
    let lines = || printed.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find_map(|line| line.strip_prefix("ERROR: ")).or_else(|| lines().next_back());
    Err(error.map_or_else(|| output.status.to_string(), str::to_owned))
}

/// Writes the code and returns the expression that `guest.rs` includes.
fn embed(guest: &Guest, out: &Path) -> Result<String, Failure> {
    let path = out.join("guest.cwasm");
    write_atomic(&path, &guest.code)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))?;
    let Guest { sha256, build_tools, .. } = guest;
    let code = "{ static CODE: &PageAligned<{ include_bytes!(concat!(env!(\"OUT_DIR\"), \"/guest.cwasm\")).len() }> = \
                &PageAligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/guest.cwasm\"))); &CODE.0 }";
    Ok(format!("Ok(Embedded {{ code: {code}, sha256: {sha256:?}, build_tools: {build_tools:?} }})"))
}

/// Writes a file atomically.
fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let written = fs::write(&name, bytes).and_then(|()| fs::rename(&name, path));
    written.inspect_err(|_| drop(fs::remove_file(&name)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Returns the value of an environment variable; `None` if it is empty.
fn env_var(name: &(impl AsRef<OsStr> + ?Sized)) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn env_text(name: &str) -> String {
    env_var(name).unwrap_or_default().to_string_lossy().into_owned()
}
