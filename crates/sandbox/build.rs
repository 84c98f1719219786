//! Makes the guest, Python as machine code, and embeds it into the crate.
//!
//! componentize-py turns `guest/` at the root of the repository into a WebAssembly component, and wasmtime's Python
//! package compiles that to machine code; `guest/requirements.txt` pins both. The result is kept in the user's cache, so
//! that it is made once and not for each clone and target folder. Without Python or network the crate still builds: it
//! then has no guest, and knows why.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Part of the cache key. Raise it when this file makes something else of the same sources.
const RECIPE: &str = "2";

enum Failure {
    /// Something that is needed to make the guest is not here: karat is built without it.
    Missing(String),
    /// There is a guest, and it cannot be used: the build fails.
    Unusable(String),
}

struct Guest {
    code: Vec<u8>,
    /// Of the component that the code was compiled from.
    sha256: String,
    made_by: String,
}

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let out = PathBuf::from(variable("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["KARAT_GUEST", "KARAT_GUEST_CACHE", "PYTHON"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let guest = match variable("KARAT_GUEST") {
        Some(path) => read_ready(Path::new(&path)),
        None => find_or_make(&root.join("guest"), &out),
    };
    let embedded = match guest.and_then(|guest| embed(&guest, &out)) {
        Ok(source) => source,
        Err(Failure::Missing(why)) => {
            println!("cargo::warning=karat is built without Python, so 'karat eval' cannot run functions: {why}");
            // A file that never exists makes the next build try again: what is missing may have been installed.
            println!("cargo::rerun-if-changed={}", out.join("never").display());
            format!("Err({why:?})")
        }
        Err(Failure::Unusable(why)) => {
            println!("cargo::error={why}");
            return;
        }
    };
    let written = engine_settings(&root.join("guest/settings.txt"))
        .and_then(|settings| write_whole(&out.join("settings.rs"), settings.as_bytes()))
        .and_then(|()| write_whole(&out.join("embedded.rs"), embedded.as_bytes()));
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

/// Reads the machine code that `KARAT_GUEST` names.
fn read_ready(path: &Path) -> Result<Guest, Failure> {
    println!("cargo::rerun-if-changed={}", path.display());
    let named = format!("KARAT_GUEST={}", path.display());
    let code = fs::read(path).map_err(|error| Failure::Unusable(format!("cannot read {named}: {error}")))?;
    if code.starts_with(b"\0asm") {
        let why = format!("{named} is WebAssembly, not machine code: compile it with guest/compile.py");
        return Err(Failure::Unusable(why));
    }
    Ok(Guest { sha256: hex(&Sha256::digest(&code)), code, made_by: named })
}

/// Takes the guest out of the cache, or makes it.
fn find_or_make(sources: &Path, out: &Path) -> Result<Guest, Failure> {
    println!("cargo::rerun-if-changed={}", sources.display());
    let unreadable = |error: io::Error| Failure::Missing(format!("cannot read {}: {error}", sources.display()));
    let (host, target) = (text_variable("HOST"), text_variable("TARGET"));
    if architecture(&host) != architecture(&target) {
        return Err(Failure::Missing(format!(
            "machine code for {target} cannot be made on {host}: make it there, and name it with KARAT_GUEST"
        )));
    }
    let mut files = Vec::new();
    list_sources(sources, Path::new(""), &mut files).map_err(unreadable)?;
    files.sort();
    let key = cache_key(sources, &files, &target).map_err(unreadable)?;
    let made_by = pinned_tools(&sources.join("requirements.txt")).map_err(unreadable)?;
    same_wasmtime(&made_by, &sources.join("../Cargo.lock"))?;

    let cache = Cache::open(out, &key);
    if let Some((code, sha256)) = cache.get() {
        return Ok(Guest { code, sha256, made_by });
    }
    let work = out.join("make-guest");
    let _ = fs::remove_dir_all(&work);
    let made = make(&work, sources, &files, &target).map_err(Failure::Missing);
    let _ = fs::remove_dir_all(&work);
    let (wasm, code) = made?;
    let guest = Guest { code, sha256: hex(&Sha256::digest(wasm)), made_by };
    if let Err(error) = cache.put(&guest) {
        println!("cargo::warning=cannot keep the guest in {}: {error}", cache.file.display());
    }
    Ok(guest)
}

fn architecture(triple: &str) -> &str {
    triple.split('-').next().unwrap_or_default()
}

/// Returns the pinned tools as they are shown, such as `componentize-py 0.25.1, wasmtime 48.0.0`.
fn pinned_tools(requirements: &Path) -> io::Result<String> {
    let text = fs::read_to_string(requirements)?;
    let pins = text.lines().filter(|line| line.contains("==")).map(|line| line.trim_end_matches('\\').trim());
    Ok(pins.map(|pin| pin.replace("==", " ")).collect::<Vec<_>>().join(", "))
}

/// Checks that the pinned compiler has the major version of the crate that loads its code.
fn same_wasmtime(pinned: &str, lock: &Path) -> Result<(), Failure> {
    println!("cargo::rerun-if-changed={}", lock.display());
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    let compiler = pinned.split(", ").find_map(|pin| major(pin.strip_prefix("wasmtime ")?));
    // Where there is no lock file, the engine itself refuses another version's code.
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let locked = lock.split_once("name = \"wasmtime\"\nversion = \"").and_then(|(_, rest)| major(rest));
    match (compiler, locked) {
        (Some(compiler), Some(locked)) if compiler != locked => Err(Failure::Unusable(format!(
            "guest/requirements.txt pins wasmtime {compiler} and Cargo.lock has {locked}: both must have the same major \
             version"
        ))),
        _ => Ok(()),
    }
}

/// Lists the sources below a folder, without what Python, editors or file managers leave there.
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
    hash.update(format!("{RECIPE}\n{target}"));
    for file in files {
        // The same on every platform, even where a checkout changes line endings.
        let name = file.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(sources.join(file))?.replace("\r\n", "\n");
        hash.update(format!("\n{name}\n{}\n", text.len()));
        hash.update(text);
    }
    Ok(hex(&hash.finalize())[..16].to_owned())
}

/// One entry of the cache of guests.
struct Cache {
    file: PathBuf,
    /// While this is open, other builds of the same guest wait: making it twice would only be slower.
    _lock: Option<File>,
}

impl Cache {
    fn open(out: &Path, key: &str) -> Self {
        let folder = variable("KARAT_GUEST_CACHE")
            .map(PathBuf::from)
            .or_else(|| Some(user_cache()?.join("guest")))
            .filter(|folder| fs::create_dir_all(folder).is_ok())
            .unwrap_or_else(|| out.to_owned());
        let lock = File::create(folder.join(format!("{key}.lock"))).ok();
        // Some file systems have no locks. Files are renamed into place and verified, so nothing breaks without.
        let lock = lock.filter(|lock| lock.lock().is_ok());
        Self { file: folder.join(format!("{key}.cwasm")), _lock: lock }
    }

    /// Holds two hashes: the code's and the component's.
    fn hashes(&self) -> PathBuf {
        self.file.with_extension("sha256")
    }

    /// Returns the code and the component's hash, if the code is undamaged.
    fn get(&self) -> Option<(Vec<u8>, String)> {
        let code = fs::read(&self.file).ok()?;
        let hashes = fs::read_to_string(self.hashes()).ok()?;
        let (of_code, of_component) = hashes.trim_end().split_once('\n')?;
        if of_code != hex(&Sha256::digest(&code)) {
            println!("cargo::warning={} is damaged and is made again", self.file.display());
            return None;
        }
        Some((code, of_component.to_owned()))
    }

    fn put(&self, guest: &Guest) -> io::Result<()> {
        write_whole(&self.file, &guest.code)?;
        let hashes = format!("{}\n{}\n", hex(&Sha256::digest(&guest.code)), guest.sha256);
        write_whole(&self.hashes(), hashes.as_bytes())
    }
}

/// Returns karat's folder in the user's cache.
fn user_cache() -> Option<PathBuf> {
    let home = |below: &str| variable("HOME").map(|home| Path::new(&home).join(below));
    match env::consts::OS {
        "windows" => variable("LOCALAPPDATA").map(|folder| Path::new(&folder).join("karat/cache")),
        "macos" => home("Library/Caches/karat"),
        _ => {
            let given = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            given.map(|folder| folder.join("karat")).or_else(|| home(".cache/karat"))
        }
    }
}

/// Makes the component and its machine code in a virtual environment below `work`.
fn make(work: &Path, sources: &Path, files: &[PathBuf], target: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    // A copy, since Python leaves compiled files where it reads.
    for file in files {
        let copy = work.join("guest").join(file);
        let folder = copy.parent().unwrap_or(work);
        let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(sources.join(file), &copy));
        copied.map_err(|error| format!("cannot write {}: {error}", copy.display()))?;
    }
    let python = variable("PYTHON").unwrap_or_else(|| if cfg!(windows) { "python" } else { "python3" }.into());
    let shown = python.to_string_lossy();
    let version = "import sys; sys.exit(sys.version_info < (3, 9))";
    run(Command::new(&python).args(["-I", "-c", version]))
        .map_err(|why| format!("making it needs Python 3.9 or newer, and '{shown}' is not ({why})"))?;

    let venv = work.join("venv");
    run(Command::new(&python).args(["-I", "-m", "venv"]).arg(&venv))
        .map_err(|why| format!("'{shown} -m venv' failed; on Debian, install the package python3-venv ({why})"))?;
    let programs = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let pip = ["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"];
    let checked = ["--require-hashes", "--only-binary", ":all:", "--requirement"];
    run(Command::new(programs.join("python"))
        .args(pip)
        .args(checked)
        .arg(work.join("guest/requirements.txt"))
        .env("PIP_RETRIES", "2"))
    .map_err(|why| format!("pip cannot install guest/requirements.txt, which needs a network ({why})"))?;

    let wasm = work.join("guest.wasm");
    run(Command::new(programs.join("componentize-py"))
        .args(["-d", "wit", "-w", "guest", "componentize", "-p", ".", "app", "-o"])
        .arg(&wasm)
        .current_dir(work.join("guest")))
    .map_err(|why| format!("componentize-py failed ({why})"))?;
    let code = work.join("guest.cwasm");
    run(Command::new(programs.join("python"))
        .arg("-I")
        .arg(work.join("guest/compile.py"))
        .args([&wasm, &code])
        .arg(target))
    .map_err(|why| format!("guest/compile.py failed ({why})"))?;
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    Ok((read(&wasm)?, read(&code)?))
}

/// Runs a program and discards its output; on failure returns the line that most likely says what is wrong.
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
    write_whole(&path, &guest.code)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))?;
    let Guest { sha256, made_by, .. } = guest;
    let code = "{ static CODE: &PageAligned<{ include_bytes!(concat!(env!(\"OUT_DIR\"), \"/guest.cwasm\")).len() }> = \
                &PageAligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/guest.cwasm\"))); &CODE.0 }";
    Ok(format!("Ok(Embedded {{ code: {code}, sha256: {sha256:?}, made_by: {made_by:?} }})"))
}

/// Writes a file so that a reader never sees half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let written = fs::write(&name, bytes).and_then(|()| fs::rename(&name, path));
    written.inspect_err(|_| drop(fs::remove_file(&name)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Returns a variable's value, or none when it is empty.
fn variable(name: &(impl AsRef<OsStr> + ?Sized)) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn text_variable(name: &str) -> String {
    variable(name).unwrap_or_default().to_string_lossy().into_owned()
}
