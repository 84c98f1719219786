//! Makes the guest, Python as a WebAssembly component, and puts it into the crate.
//!
//! It is made from `guest/` at the root of the repository by componentize-py, whose version and hashes are pinned
//! there, and kept in the user's cache, so that it is made once and not for each clone and target folder. Without
//! Python or network the crate still builds: it then has no guest, and knows why.

#![expect(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Part of the key of what is cached: to be raised when this file makes something else of the same sources.
const RECIPE: &str = "1";

/// Small enough and done in two seconds; the best would take fifteen for a tenth less.
const LEVEL: i32 = 12;

/// How a WebAssembly component begins.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A line that says why there is no guest.
type Why = String;

struct Guest {
    /// Compressed.
    packed: Vec<u8>,
    /// Of what is compressed.
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
        Some(path) => ready(Path::new(&path)),
        None => made(&root.join("guest"), &out),
    };
    if let Err(why) = &guest {
        println!("cargo::warning=karat is built without Python, so 'karat eval' will not run functions: {why}");
        // A file that is never there makes the next build try again: what is missing may have been installed.
        println!("cargo::rerun-if-changed={}", out.join("never").display());
    }
    if let Err(error) = embed(guest, &out) {
        println!("cargo::error=cannot write to {}: {error}", out.display());
    }
}

/// Takes the guest that somebody names.
fn ready(path: &Path) -> Result<Guest, Why> {
    println!("cargo::rerun-if-changed={}", path.display());
    let wasm = fs::read(path).map_err(|error| format!("cannot read KARAT_GUEST={}: {error}", path.display()))?;
    packed(&wasm, format!("KARAT_GUEST={}", path.display()))
}

/// Takes the guest out of the cache, or makes it.
fn made(sources: &Path, out: &Path) -> Result<Guest, Why> {
    println!("cargo::rerun-if-changed={}", sources.display());
    let unreadable = |error: io::Error| format!("cannot read {}: {error}", sources.display());
    let mut files = Vec::new();
    list(sources, Path::new(""), &mut files).map_err(unreadable)?;
    files.sort();
    let key = key(sources, &files).map_err(unreadable)?;
    let pinned = fs::read_to_string(sources.join("requirements.txt")).map_err(unreadable)?;
    let made_by = pinned.lines().find(|line| line.starts_with("componentize-py==")).unwrap_or_default();
    let made_by = made_by.trim_end_matches('\\').trim().replace("==", " ");

    let cache = Cache::open(out, &key);
    if let Some(guest) = cache.get(&made_by) {
        return Ok(guest);
    }
    let wasm = componentize(sources, &files, out)?;
    let guest = packed(&wasm, made_by)?;
    // Kept or not, it is there.
    if let Err(error) = cache.put(&guest) {
        println!("cargo::warning=the guest is not kept in {}: {error}", cache.file.display());
    }
    Ok(guest)
}

/// Lists the sources below a folder, and not what Python, editors or file managers leave there.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        if entry.file_type()?.is_dir() {
            list(root, &path, files)?;
        } else if ["py", "txt", "wit"].contains(&ending) {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns a name for what these files make.
fn key(sources: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(RECIPE);
    for file in files {
        // The same on every platform, also where a checkout changes the ends of lines.
        let name = file.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(sources.join(file))?.replace("\r\n", "\n");
        hash.update(format!("\n{name}\n{}\n", text.len()));
        hash.update(text);
    }
    Ok(hex(&hash.finalize())[..16].to_owned())
}

/// Where guests are kept, and the right to change what is kept under one key.
struct Cache {
    file: PathBuf,
    /// As long as this is open, other builds that want the same guest wait: making it twice would only be slower.
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
        // Some file systems have no locks; nothing breaks without, for files are renamed into place and verified.
        let lock = lock.filter(|lock| lock.lock().is_ok());
        Self { file: folder.join(format!("{key}.wasm.zst")), _lock: lock }
    }

    /// Beside the guest, in the format of `sha256sum`.
    fn sum(&self) -> PathBuf {
        self.file.with_extension("zst.sha256")
    }

    /// Returns what is kept, if it is whole.
    fn get(&self, made_by: &str) -> Option<Guest> {
        let packed = fs::read(&self.file).ok()?;
        let sum = fs::read_to_string(self.sum()).ok()?;
        if sum.split_whitespace().next()? != hex(&Sha256::digest(&packed)) {
            println!("cargo::warning={} is damaged, and made again", self.file.display());
            return None;
        }
        let wasm = zstd::decode_all(packed.as_slice()).ok()?;
        Some(Guest { packed, sha256: hex(&Sha256::digest(&wasm)), made_by: made_by.to_owned() })
    }

    fn put(&self, guest: &Guest) -> io::Result<()> {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        write_whole(&self.file, &guest.packed)?;
        write_whole(&self.sum(), format!("{}  {name}\n", hex(&Sha256::digest(&guest.packed))).as_bytes())
    }
}

/// Returns karat's folder in the user's cache: the one that the program uses too.
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

/// Makes the guest with a Python of its own, of which nothing is left.
fn componentize(sources: &Path, files: &[PathBuf], out: &Path) -> Result<Vec<u8>, Why> {
    let work = out.join("componentize");
    let _ = fs::remove_dir_all(&work);
    let made = componentize_in(&work, sources, files);
    let _ = fs::remove_dir_all(&work);
    made
}

fn componentize_in(work: &Path, sources: &Path, files: &[PathBuf]) -> Result<Vec<u8>, Why> {
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
        .map_err(|why| format!("it takes Python 3.9 or newer to make it, and '{shown}' is none ({why})"))?;

    let venv = work.join("venv");
    run(Command::new(&python).args(["-I", "-m", "venv"]).arg(&venv))
        .map_err(|why| format!("'{shown} -m venv' failed; on Debian it is the package python3-venv ({why})"))?;
    let programs = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let pip = ["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"];
    let checked = ["--require-hashes", "--only-binary", ":all:", "--requirement"];
    run(Command::new(programs.join("python"))
        .args(pip)
        .args(checked)
        .arg(work.join("guest/requirements.txt"))
        .env("PIP_RETRIES", "2"))
    .map_err(|why| format!("pip cannot install guest/requirements.txt, for which it takes a network ({why})"))?;

    let wasm = work.join("guest.wasm");
    run(Command::new(programs.join("componentize-py"))
        .args(["-d", "wit", "-w", "guest", "componentize", "-p", ".", "app", "-o"])
        .arg(&wasm)
        .current_dir(work.join("guest")))
    .map_err(|why| format!("componentize-py failed ({why})"))?;
    fs::read(&wasm).map_err(|error| format!("componentize-py wrote no guest: {error}"))
}

/// Runs a program in silence, or returns the line in which it most likely says what is wrong.
fn run(command: &mut Command) -> Result<(), Why> {
    let output = command
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME")
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find_map(|line| line.strip_prefix("ERROR: ")).or_else(|| lines().next_back());
    Err(error.map_or_else(|| output.status.to_string(), str::to_owned))
}

fn packed(wasm: &[u8], made_by: String) -> Result<Guest, Why> {
    if !wasm.starts_with(COMPONENT) {
        return Err(format!("what {made_by} has is no WebAssembly component"));
    }
    let packed = zstd::encode_all(wasm, LEVEL).map_err(|error| error.to_string())?;
    Ok(Guest { packed, sha256: hex(&Sha256::digest(wasm)), made_by })
}

/// Writes what `guest.rs` includes.
fn embed(guest: Result<Guest, Why>, out: &Path) -> io::Result<()> {
    let source = match guest {
        Ok(guest) => {
            let path = out.join("guest.wasm.zst");
            write_whole(&path, &guest.packed)?;
            let Guest { sha256, made_by, .. } = guest;
            format!("Ok(Embedded {{ packed: include_bytes!({path:?}), sha256: {sha256:?}, made_by: {made_by:?} }})")
        }
        Err(why) => format!("Err({why:?})"),
    };
    write_whole(&out.join("embedded.rs"), source.as_bytes())
}

/// Writes a file so that nobody ever sees half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let written = fs::write(&name, bytes).and_then(|()| fs::rename(&name, path));
    written.inspect_err(|_| drop(fs::remove_file(&name)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a variable's value; an empty one is none.
fn variable(name: &(impl AsRef<OsStr> + ?Sized)) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
