//! Machine code on disk. An empty component stands for Python: what is kept is compiled alike, only faster.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use karat_sandbox::{Guest, Sandbox, SandboxError, Stage, kept};
use rstest::rstest;
use tempfile::TempDir;

/// A component that has nothing in it but a name.
fn component(name: u8) -> Vec<u8> {
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    wasm.extend([0, 3, 1, b'n', name]);
    wasm
}

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: TempDir::new().expect("a folder") }
    }

    fn guest(&self, name: u8) -> Guest {
        let path = self.root.path().join(format!("{name}.wasm"));
        fs::write(&path, component(name)).expect("written");
        Guest::find(Some(&path)).expect("a guest")
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("cache/karat")
    }

    fn folder(&self) -> PathBuf {
        self.cache().join("python")
    }

    /// Opens the sandbox and returns what was told.
    fn open(&self, guest: &Guest) -> Result<Vec<Stage>, SandboxError> {
        let mut told = Vec::new();
        Sandbox::open(guest, &self.cache(), &mut |stage| told.push(stage))?;
        Ok(told)
    }

    /// Returns the file of a guest that was opened.
    fn file(&self, guest: &Guest) -> PathBuf {
        kept(guest, &self.cache()).expect("readable").expect("kept").path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").mode() & 0o777
}

#[test]
fn code_is_made_once_and_is_the_users_alone() {
    let place = Place::new();
    let guest = place.guest(b'a');
    assert_eq!(kept(&guest, &place.cache()).expect("no error"), None);
    assert!(!place.cache().exists(), "who only looks makes nothing");
    assert_eq!(place.open(&guest).expect("opened"), [Stage::Compiling]);
    assert_eq!(place.open(&guest).expect("opened"), []);
    let file = place.file(&guest);
    assert_eq!((mode(&place.folder()), mode(&file)), (0o700, 0o600));
    assert!(file.file_name().expect("a name").to_string_lossy().starts_with(guest.hash()), "{file:?}");
    assert_eq!(place.names().len(), 1);
    // Another guest is another file, and neither disturbs the other.
    let other = place.guest(b'b');
    assert_eq!(place.open(&other).expect("opened"), [Stage::Compiling]);
    assert_eq!(place.open(&guest).expect("opened"), []);
}

#[test]
fn damage_is_found_wherever_it_is() {
    let place = Place::new();
    let guest = place.guest(b'a');
    place.open(&guest).expect("opened");
    let file = place.file(&guest);
    let whole = fs::read(&file).expect("readable");
    let mut damaged: Vec<Vec<u8>> = (0..100)
        .map(|number| {
            let mut bytes = whole.clone();
            let at = number * (whole.len() - 1) / 99;
            bytes[at] ^= 1 << (number % 8);
            bytes
        })
        .collect();
    damaged.extend([Vec::new(), whole[..whole.len() / 2].to_vec(), whole[..whole.len() - 1].to_vec()]);
    damaged.push([whole.as_slice(), b"\0"].concat());
    for bytes in damaged {
        fs::write(&file, &bytes).expect("written");
        assert_eq!(kept(&guest, &place.cache()).expect("no error"), None);
        assert_eq!(place.open(&guest).expect("opened"), [Stage::Renewing]);
        assert_eq!(place.open(&guest).expect("opened"), []);
        assert_eq!(fs::read(&file).expect("readable"), whole, "it is made the same again");
    }
    assert_eq!(place.names().len(), 1);
}

#[test]
fn code_of_another_guest_is_not_taken_for_this_ones() {
    let place = Place::new();
    let (guest, other) = (place.guest(b'a'), place.guest(b'b'));
    place.open(&guest).expect("opened");
    place.open(&other).expect("opened");
    let (mine, others) = (place.file(&guest), place.file(&other));
    let name = |path: &Path| path.file_name().expect("a name").to_str().expect("text").to_owned();
    // Under this one's name, with either digest.
    let cut = name(&mine).rfind('-').expect("a digest");
    let posing = place.folder().join(format!("{}{}", &name(&mine)[..cut], &name(&others)[cut..]));
    fs::remove_file(&mine).expect("removed");
    for posing in [posing, mine] {
        fs::copy(&others, &posing).expect("copied");
        assert_eq!(place.open(&guest).expect("opened"), [Stage::Renewing]);
        fs::remove_file(place.file(&guest)).expect("removed");
    }
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Folder,
    File,
}

#[rstest]
#[case::anybody(Of::Folder, 0o777)]
#[case::anybody_but_only_their_own(Of::Folder, 0o1777)]
#[case::group(Of::Folder, 0o770)]
#[case::others(Of::Folder, 0o702)]
#[case::group(Of::File, 0o660)]
#[case::anybody(Of::File, 0o666)]
fn what_others_may_write_is_not_loaded(#[case] of: Of, #[case] mode: u32) {
    let place = Place::new();
    let guest = place.guest(b'a');
    place.open(&guest).expect("opened");
    let path = match of {
        Of::Folder => place.folder(),
        Of::File => place.file(&guest),
    };
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
    let error = place.open(&guest).expect_err("not trusted");
    let said = error.to_string();
    let expected = format!("{} is not trusted: others may write it (its mode is {mode:04o})", path.display());
    assert_eq!(said, expected);
    assert!(error.hint().is_some_and(|hint| hint.contains("KARAT_CACHE_DIR")));
    assert!(kept(&guest, &place.cache()).is_err());
    assert!(path.exists(), "it may be somebody's");
}

#[test]
fn what_belongs_to_another_user_is_not_loaded() {
    let place = Place::new();
    let guest = place.guest(b'a');
    place.open(&guest).expect("opened");
    for path in [place.file(&guest), place.folder()] {
        if chown(&path, Some(4242), None).is_err() {
            // Only root can give a file away.
            return;
        }
        let said = place.open(&guest).expect_err("not trusted").to_string();
        assert!(said.contains("it belongs to user 4242, and you are user "), "{said}");
        chown(&path, Some(0), None).expect("taken back");
        assert_eq!(place.open(&guest).expect("opened"), []);
    }
}

#[test]
fn a_link_is_not_followed() {
    let place = Place::new();
    let guest = place.guest(b'a');
    place.open(&guest).expect("opened");
    let file = place.file(&guest);
    let elsewhere = place.root.path().join("elsewhere");
    fs::rename(&file, &elsewhere).expect("moved");
    symlink(&elsewhere, &file).expect("linked");
    let said = place.open(&guest).expect_err("not trusted").to_string();
    assert!(said.ends_with("is not trusted: it is not a regular file"), "{said}");

    fs::remove_file(&file).expect("removed");
    let moved = place.root.path().join("moved");
    fs::rename(place.folder(), &moved).expect("moved");
    symlink(&moved, place.folder()).expect("linked");
    let said = place.open(&guest).expect_err("not trusted").to_string();
    assert!(said.ends_with("is not trusted: it is not a folder"), "{said}");
}

#[test]
fn many_at_once_are_all_served() {
    let place = Place::new();
    let guest = place.guest(b'a');
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| place.open(&guest))).collect();
        for thread in threads {
            thread.join().expect("no panic").expect("opened");
        }
    });
    assert_eq!(place.names().len(), 1, "one file, nothing unfinished");
    assert_eq!(place.open(&guest).expect("opened"), []);
}

#[test]
fn what_was_not_used_for_long_goes() {
    let place = Place::new();
    let age = |path: &Path, days: u64| {
        let time = SystemTime::now() - Duration::from_hours(24 * days);
        File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("aged");
    };
    let guests: Vec<Guest> = (b'a'..=b'd').map(|name| place.guest(name)).collect();
    place.open(&guests[0]).expect("opened");
    for name in ["notes.txt", ".unfinished-old", ".unfinished-new"] {
        fs::write(place.folder().join(name), "x").expect("written");
    }
    age(&place.folder().join("notes.txt"), 900);
    age(&place.folder().join(".unfinished-old"), 2);
    for (guest, days) in guests.iter().take(3).zip([30, 20, 10]) {
        place.open(guest).expect("opened");
        age(&place.file(guest), days);
    }
    // A use counts as well as a new file.
    assert_eq!(place.open(&guests[0]).expect("opened"), []);
    assert_eq!(place.open(&guests[3]).expect("opened"), [Stage::Compiling]);
    let is_kept = |guest: &Guest| kept(guest, &place.cache()).expect("no error").is_some();
    assert_eq!(guests.iter().map(is_kept).collect::<Vec<_>>(), [true, false, true, true]);
    let mut names = place.names();
    names.retain(|name| !name.ends_with(".code"));
    names.sort();
    assert_eq!(names, [".unfinished-new", "notes.txt"]);
}

#[test]
fn a_folder_that_cannot_be_is_an_error_that_names_it() {
    let place = Place::new();
    let guest = place.guest(b'a');
    fs::write(place.root.path().join("cache"), "a file").expect("written");
    let error = place.open(&guest).expect_err("no folder");
    let said = error.to_string();
    assert!(said.starts_with(&format!("cannot write {}: ", place.folder().display())), "{said}");
    assert!(error.hint().is_some());
}
